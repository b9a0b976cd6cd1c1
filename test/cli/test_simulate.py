"""`nh_control list` and `simulate`: what they print, what they save, and what bad input gets."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import MAIN, WITHOUT_ROS, environment, nh_control

from nh_control import scenarios
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics.progress import Progress

FIGURES = {"path", "states", "inputs", "energy", "error"}


def test_list_shows_every_scenario_with_all_its_names(call):
    text, listed = call("list").stdout, json.loads(call("list", "--json").stdout)
    assert set(listed) == set(scenarios.names())
    for name, entry in listed.items():
        scenario = scenarios.get(name)
        inputs = scenario.make_system(scenario.parameters).inputs
        parameters = vars(scenario.parameters)
        for word in (name, *scenario.references, *scenario.integrators, *inputs, *parameters):
            assert word in text
        assert set(inputs) <= entry["actuators"].keys() and set(parameters) >= {
            *entry["parameters"]
        }
    assert listed["snakeboard"]["actuators"]["rotor_torque"] == [-20.0, 20.0, "N m"]
    assert listed["quadrotor_payload"]["parameters"]["lengths"] == [0.6, 0.8]


def test_a_scenario_is_explained_with_all_that_can_be_chosen(call, snapshot):
    assert call("list", "snakeboard").stdout == snapshot
    text = call("list", "satellite").stdout
    assert "satellite in odom" in text and "wheel1_torque or wheel1_joint" in text
    assert "no limit N m" in call("list", "pendulum_swing_up").stdout


def test_the_robot_of_a_urdf_file_is_held(call):
    from nh_control.scenarios.urdf import DEFAULT

    robot = ("--urdf", str(DEFAULT), "--duration", "2", "--no-plots", "--json")
    done = call("simulate", "urdf", *robot)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["error"]["reduction"] > 1e6


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulate")
    done = nh_control("simulate", "snakeboard", "--json", cwd=folder, before=WITHOUT_ROS)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_simulate_needs_no_ros_and_tracks(simulated):
    _, summary = simulated
    assert summary["reference"] == "parking"
    assert summary["steps"] == summary["steps_planned"] == 1480
    assert summary["error"]["initial"] == pytest.approx(np.hypot(0.1, 0.1))
    assert summary["error"]["reduction"] > 100
    assert summary["error"]["open_loop_final"] is None
    assert "leaves the domain" in summary["error"]["open_loop_stopped"]
    assert summary["constraint_residual_max_m"] < 1e-12
    assert summary["stopped"] is None


def test_simulate_draws_every_figure(simulated):
    folder, summary = simulated
    assert set(summary["files"]) == FIGURES | {"results", "summary"}
    for name in FIGURES:
        data = (folder / summary["files"][name]).read_bytes()
        width, height = struct.unpack(">II", data[16:24])
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert 600 < width < 2000 and 250 < height < 2000
        assert len(data) > 20_000


def test_simulate_saves_numbers(simulated):
    folder, summary = simulated
    saved = np.load(folder / summary["files"]["results"])
    n = summary["steps"]
    shapes = {
        "states": (n + 1, 8),
        "errors": (n + 1, 8),
        "inputs": (n, 2),
        "saturated": (n, 2),
        "energy": (n + 1,),
        "constraint": (n, 2),
    }
    assert {name: saved[name].shape for name in shapes} == shapes
    assert saved["times"][-1] == pytest.approx(14.8)
    assert list(saved["input_names"]) == ["rotor_torque", "steer_torque"]
    assert np.linalg.norm(saved["errors"][-1, :5]) == pytest.approx(summary["error"]["final"])
    on_disk = json.loads((folder / summary["files"]["summary"]).read_text())
    assert on_disk == {
        key: value for key, value in summary.items() if key not in ("output", "files")
    }


def test_each_run_has_a_new_folder_and_a_chosen_one_is_not_overwritten(
    simulated, call, monkeypatch
):
    folder, summary = simulated
    monkeypatch.chdir(folder)
    short = "simulate", "snakeboard", "--no-plots", "--duration", "0.1"
    again = call(*short)
    assert again.returncode == 0
    assert "snakeboard-parking-2/" in again.stdout
    chosen = (*short, "--output", summary["output"])
    refused = call(*chosen)
    assert refused.returncode == 2
    assert "not empty" in refused.stderr and "--overwrite" in refused.stderr
    assert call(*chosen, "--overwrite").returncode == 0


def test_a_run_that_fails_is_explained_and_its_finished_steps_are_saved(call):
    failing = ("--plant-parameter", "J=0.001", "--step", "0.1", "--open-loop")
    done = call("simulate", "snakeboard", *failing, "--json", "--no-plots")
    summary = json.loads(done.stdout)
    assert done.returncode == 1
    assert "at step" in done.stderr and "reduce h" in done.stderr
    assert 0 < summary["steps"] < summary["steps_planned"]
    assert summary["stopped"] in done.stderr
    assert len(np.load(summary["files"]["results"])["inputs"]) == summary["steps"]


def test_a_run_that_fails_is_drawn_and_its_open_loop_does_not_seem_to_end_well(call, sketched):
    failing = ("--plant-parameter", "J=0.001", "--step", "0.1")
    opened = call("simulate", "snakeboard", *failing, "--open-loop", "--json")
    summary = json.loads(opened.stdout)
    assert (opened.returncode, summary["steps"]) == (1, 4)
    assert set(summary["files"]) > FIGURES
    closed = json.loads(call("simulate", "snakeboard", *failing, "--json", "--no-plots").stdout)
    for one in (summary, closed):
        assert one["error"]["open_loop_final"] is None
        assert "at step 4" in one["error"]["open_loop_stopped"]
        assert one["error"]["open_loop_steps"] == 4
    page = call("simulate", "snakeboard", *failing, "--no-plots").stdout
    assert "the reference's inputs alone fail after 0.4 s" in " ".join(page.split())
    assert "no feedback" not in call("simulate", "snakeboard", *failing, "--open-loop").stdout


def test_the_page_of_a_run_names_what_to_look_at_and_no_residuals(call, sketched, tmp_path):
    folder = str(tmp_path / "out")
    page = call("simulate", "cart_pole", "--duration", "0.1", "--output", folder).stdout
    lines = dict(line.split(None, 2)[::2] for line in page.splitlines() if line.startswith("look"))
    assert lines["look"].startswith("path.png (the motion), error.png (the tracking error), ")
    assert (
        f"nh_control view {folder}" in page
        and "nh_control run cart_pole --duration 0.1 --lockstep --view" in " ".join(page.split())
    )
    assert not [word for word in ("residual", "condition", "Newton", "energy ") if word in page]
    bare = call("simulate", "cart_pole", "--duration", "0.1", "--no-plots").stdout
    assert "look at" not in bare and "play back" in bare


def test_ctrl_c_keeps_the_results_so_far(call, monkeypatch):
    def pressed_on_the_way(self, text, total):
        return lambda k: signal.raise_signal(signal.SIGINT) if 100 <= k < 1000 else None

    monkeypatch.setattr(Progress, "steps", pressed_on_the_way)
    try:
        done = call("simulate", "snakeboard", "--output", "out", "--no-plots", "--json")
    except KeyboardInterrupt:
        pytest.fail("what there is, is lost")
    check_interrupted(done.returncode, done.stdout, done.stderr, Path("out"))


def check_interrupted(code, out, err, folder):
    """Check the output and the files of an interrupted run."""
    assert code == 130 and "interrupted; the finished steps are saved" in err
    summary = json.loads(out)
    done, planned = summary["steps"], summary["steps_planned"]
    assert 0 < done < planned
    assert summary["stopped"] == f"interrupted after {done} of {planned} steps"
    saved = np.load(folder / "results.npz")
    assert len(saved["inputs"]) == done == len(saved["states"]) - 1


def processor_s(pid):
    """Return the processor time of a process in s."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_ctrl_c_reaches_a_process_within_its_long_steps(call, tmp_path):
    assert call("new", "swing_arm").returncode == 0
    options = ("--duration", "2000", "--plant-substeps", "1000", "--output", "out", "--no-plots")
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "simulate", "swing_arm.py", *options, "--json"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "out").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    begun = processor_s(process.pid)
    while processor_s(process.pid) < begun + 2.0:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=180)
    check_interrupted(process.returncode, out, err, tmp_path / "out")


SWALLOWED = """
import signal, threading, time
from nh_control.cli import main
from nh_control.control import optimize
from nh_control import scenarios

def swallow(*_, **robot):  # as CasADi does, whatever is raised in it
    for _ in range(2):
        try:
            if not pressed.is_set():
                pressed.set()
                signal.raise_signal(signal.SIGINT)
            for _ in range(500):
                time.sleep(0.01)
        except KeyboardInterrupt:
            caught.append(1)
        if fails and caught:
            raise ValueError("no solution found")

scenarios.get = swallow
for fails in (True, False):
    pressed, caught = threading.Event(), []
    print(main(), len(caught))
raise SystemExit
"""


def test_ctrl_c_that_a_library_swallows_is_not_lost(tmp_path):
    """The library either fails, or continues and is interrupted again."""
    done = nh_control("simulate", "snakeboard", cwd=tmp_path, before=SWALLOWED)
    assert (done.stdout, done.stderr) == ("130 1\n130 2\n", "nh_control: interrupted\n" * 2)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def short_hover(monkeypatch):
    """Quadrotors that hold their payload in place for ten steps."""
    payload = scenarios.get("quadrotor_payload")

    def hover(model):
        space, p = model.system.space, payload.parameters
        up = np.r_[0, 0, 1, np.tile([1.0, 0, 0, 0], 2), np.tile([0.0, 0, 1], 2)]
        lift = p.g * (p.quadrotor_mass + p.payload_mass / 2)
        x, u = model.state(up, np.zeros(space.nw)), np.tile([lift, 0.0, 0.0, 0.0], 2)
        return Trajectory(
            model.h, np.tile(x, (11, 1)), np.tile(u, (10, 1)), model.state_names, model.inputs
        )

    short = replace(payload, references={"hover": hover})
    monkeypatch.setattr(scenarios, "get", lambda *_, **robot: short)


def test_figures_of_bodies_in_space_show_errors_tensions_and_wind(call, short_hover):
    options = (
        "--reference hover --json --no-plots --perturb-position 0.5 --perturb-swing 0.3 "
        "--perturb-tilt 0.6 --perturb-heading 0 --perturb-seed 1 "
        "--plant-parameter lengths=0.6,0.81 --plant-parameter payload_mass=0.5 "
        "--disturb payload:gust:2,0,-0.5,start=0.02"
    )
    done = call("simulate", "quadrotor_payload", *options.split())
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    initial = {
        name: (part["initial"], part["unit"]) for name, part in summary["error"]["parts"].items()
    }
    tilt, swing = (pytest.approx(0.6), "rad"), (pytest.approx(0.3), "rad")
    turns = {
        name: turn
        for i in (1, 2)
        for name, turn in ((f"quad{i} attitude", tilt), (f"link{i} direction", swing))
    }
    assert initial == {"payload position": (pytest.approx(0.5), "m"), **turns}
    assert summary["plant_parameters"]["lengths"] == [0.6, 0.81]
    assert summary["disturbances"] == ["payload:gust:2.0,0.0,-0.5,start=0.02,duration=0.0"]
    assert summary["perturbation"]["tilt"] == 0.6
    assert set(summary["monitored"]) == {"link1 tension", "link2 tension"}
    assert 0 < summary["manifold_residual_max"] < 1e-14
    saved = np.load(summary["files"]["results"])
    assert saved["inputs"].shape == (10, 8) and "quad2_torque_z" in saved["input_names"]
    assert len(saved["error_names"]) < len(saved["state_names"])  # they differ on manifolds


REFUSED = """
nope
snakeboard --reference nope
snakeboard --integrator nope
snakeboard --plant-integrator nope
snakeboard --plant-parameter mass=1
snakeboard --plant-parameter m=-1
snakeboard --plant-parameter m=nan
snakeboard --plant-parameter I=5
snakeboard --plant-parameter m
snakeboard --step 0
snakeboard --step nan
snakeboard --step 100
snakeboard --step 1e-9
snakeboard --plant-substeps 0
snakeboard --perturb-seed -2
snakeboard --perturb-heading inf
snakeboard --perturb-tilt 1
snakeboard --no-plots --overwrite
snakeboard --urdf nowhere.urdf
urdf --urdf nowhere.urdf
snakeboard --disturb payload:gust:1,0,0
quadrotor_payload --disturb payload:gust:1
quadrotor_payload --disturb payload:gust:1,0,inf
quadrotor_payload --disturb payload:gust:1,0,0,start=-1
snakeboard --disturb psi:storm:1
snakeboard --disturb psi:gust
snakeboard --disturb psi:noise:1,colour=3
snakeboard --disturb psi:sine:much
quadrotor_payload --plant-parameter lengths=0.6
quadrotor_payload --plant-parameter payload_mass=1,2
quadrotor_payload --plant-parameter thrust_limit=5
cart_pole --mpc-iterations 2
cart_pole --controller mpc --mpc-constraint roof
cart_pole --controller mpc --mpc-late 2
cart_pole --estimate sensors
"""


def test_bad_input_is_refused_before_anything_starts(call, tmp_path, snapshot):
    said = []
    for line in REFUSED.strip().splitlines():
        refused = call("simulate", *line.split())
        assert (refused.returncode, refused.stdout) == (2, ""), line
        said.append(f"{line}\n    {refused.stderr.splitlines()[-1]}")
    assert "\n".join(said) == snapshot
    assert list(tmp_path.iterdir()) == []


def test_half_a_turn_is_refused_before_anything_starts(call, short_hover, tmp_path):
    refused = call("simulate", "quadrotor_payload", "--perturb-swing", "3.2")
    assert refused.returncode == 2 and "below half a turn" in refused.stderr
    assert list(tmp_path.iterdir()) == []
