"""`nh_control run`: real nodes in processes of their own, over DDS."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import yaml
from command import MAIN, environment, nh_control, wait_for_clock

from nh_control.cli import main
from nh_control.runs.dds_domain import reserved_domain


def alive(folder):
    """Return the process ids of nodes that log into the folder, and of all processes that were
    started in it.
    """
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            places = [os.readlink(f"/proc/{pid}/{name}") for name in ("cwd", "fd/1")]
        except OSError:
            continue
        found += [int(pid)] * any(place.startswith(str(folder)) for place in places)
    return found


def test_without_ros_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("rclpy", "rosbags", "sensor_msgs"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["run", "snakeboard"]) == 2
    told = capsys.readouterr().err
    for text in ("rclpy", "pip install -e '.[ros]'", "rosdep install", "nh_control simulate"):
        assert text in told
    assert list(tmp_path.iterdir()) == []


ros = pytest.mark.skipif(
    not all(__import__("importlib").util.find_spec(name) for name in ("rclpy", "rosbags")),
    reason="needs ROS: install the extra 'ros'",
)


QUIETLY = ("--json", "--no-plots", "--no-display")
RUNS = {
    "snakeboard": ("--plant-parameter", "m=1.05"),
    "quadrotor_payload": (
        *("--reference", "hover", "--plant-parameter", "lengths=0.6,0.81"),
        *("--perturb-tilt", "0.5"),
        *("--disturb", "payload:gust:2,0,0,start=0.5,duration=0.5"),
        *("--disturb", "quad2:noise:0.2,0.2,0.2,0.05,0.05,0.05,correlation=0.3,seed=2"),
    ),
}


@ros
@pytest.mark.slow
@pytest.mark.parametrize("scenario", RUNS)
def test_lockstep_gives_the_numbers_of_the_simulation(scenario, tmp_path):
    options = ["--lockstep", "--speed-factor", "0", "--duration", "2", "--plant-substeps", "2"]
    options += QUIETLY
    done = nh_control("run", scenario, *RUNS[scenario], *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["steps"] == summary["steps_planned"] == 200
    assert summary["ros"]["difference_to_simulation"] == 0.0
    for name in ("commands_rejected", "fallback_steps", "states_missing_in_recording"):
        assert summary["ros"][name] == 0
    folder = tmp_path / summary["output"]
    files = {"results.npz", "summary.json", "parameters.yaml", "recording", "logs"}
    assert {file.name for file in folder.iterdir()} == files
    given = yaml.safe_load((folder / "parameters.yaml").read_text())["/**"]["ros__parameters"]
    assert given.get("fallback") == ("hold" if scenario == "quadrotor_payload" else None)
    assert not alive(folder)
    again = nh_control("replay", str(folder), "--json", cwd=tmp_path)
    replayed = json.loads(again.stdout)
    assert again.returncode == 0 and replayed["steps"] == 200 and replayed["lockstep"]
    assert replayed["largest_difference"] == 0.0
    if scenario == "snakeboard":
        known = nh_control("identify", str(folder), "--parameter", "m", "--json", cwd=tmp_path)
        assert known.returncode == 0, known.stderr
        mass = json.loads(known.stdout)["parameters"]["m"]
        assert mass["start"] == 1.0 and abs(mass["value"] - 1.05) < 1e-3
    file = folder / "parameters.yaml"
    file.write_text(file.read_text().replace("substeps: 2", "substeps: 3"))
    other = nh_control("replay", str(folder), cwd=tmp_path)
    assert other.returncode == 1 and "differs from step 1 on" in other.stderr


@ros
def test_a_run_refuses_the_domain_of_another_run(call, tmp_path, monkeypatch):
    with reserved_domain() as number:
        monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
        for given in ("--domain", str(number)), ():
            done = call("run", "cart_pole", *given)
            assert done.returncode == 2 and f"uses the DDS domain {number}, and" in done.stderr
            monkeypatch.setenv("ROS_DOMAIN_ID", str(number))
    monkeypatch.setenv("ROS_DOMAIN_ID", "300")
    done = call("run", "cart_pole")
    assert done.returncode == 2 and "ROS_DOMAIN_ID must be a DDS domain, 0 to 101" in done.stderr
    assert list(tmp_path.iterdir()) == []


@ros
@pytest.mark.slow
def test_runs_at_the_same_time_do_not_hear_each_other(tmp_path):
    words = ("run", "cart_pole", "--lockstep", "--speed-factor", "0", "--duration", "1", *QUIETLY)
    angles = {"a": 0.1, "b": 0.3}
    running = {
        name: subprocess.Popen(
            [sys.executable, "-c", MAIN, *words, f"--perturb-angle={angle}", "--output", name],
            cwd=tmp_path,
            env=environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for name, angle in angles.items()
    }
    domains = set()
    for name, process in running.items():
        out, err = process.communicate(timeout=180)
        assert process.returncode == 0, err
        domains.add(err.splitlines()[0])
        summary = json.loads(out)
        assert summary["error"]["parts"]["theta"]["initial"] == pytest.approx(angles[name])
        assert summary["ros"]["difference_to_simulation"] == 0.0
    assert len(domains) == 2


def started(*options, folder, **streams):
    """Return the process of a run of the snakeboard whose results go to `out` in the folder."""
    words = ("run", "snakeboard", *options, "--output", str(folder / "out"))
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *words], cwd=folder, env=environment(), text=True, **streams
    )


@ros
@pytest.mark.slow
def test_ctrl_c_ends_all_nodes_and_keeps_the_results(tmp_path):
    process = started(*QUIETLY, folder=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_clock(1.0, int(process.stderr.readline().split()[-1]))
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    summary = json.loads(out)
    assert 0 < summary["steps"] < summary["steps_planned"]
    assert "interrupted" in summary["stopped"]
    assert not alive(tmp_path)


@ros
@pytest.mark.slow
def test_a_node_that_ends_early_is_shown_and_the_others_end(tmp_path):
    words = ("run", "snakeboard", "--no-display", "--output", "out")
    done = nh_control(*words, cwd=tmp_path, RMW_IMPLEMENTATION="rmw_nope")
    assert done.returncode == 1
    assert "ended with exit code" in done.stderr and "rmw_nope" in done.stderr
    assert "Traceback" not in done.stderr
    assert not alive(tmp_path)


@ros
@pytest.mark.slow
def test_nodes_do_not_outlive_a_killed_command(tmp_path):
    hidden = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = started("--no-plots", folder=tmp_path, **hidden)
    deadline = time.monotonic() + 30
    while len(alive(tmp_path / "out")) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(alive(tmp_path / "out")) >= 4
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while alive(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(tmp_path)


@ros
@pytest.mark.slow
def test_a_step_that_fails_ends_the_run_with_the_reason(tmp_path):
    failing = ("--plant-parameter", "J=0.1", "--step", "0.1", "--lockstep", "--speed-factor", "0")
    done = nh_control("run", "snakeboard", *failing, *QUIETLY, cwd=tmp_path)
    assert done.returncode == 1
    assert "failed at step" in done.stderr and "reduce h" in done.stderr
    summary = json.loads(done.stdout)
    assert 0 < summary["steps"] < summary["steps_planned"]
    assert "leaves the domain" in summary["stopped"] and "at phi = " in summary["stopped"]
    assert not alive(tmp_path)


INTERRUPTED = """
import signal
from nh_control.runs import launcher
begin, begun = launcher._Node.__init__, []
def interrupted(node, *given):
    begin(node, *given)
    begun.append(node)
    if len(begun) == {count}:
        signal.raise_signal(signal.SIGINT)
launcher._Node.__init__ = interrupted
"""
"""Before the command: Ctrl-C at the start of a node, before or after it could record anything."""


@ros
@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_ctrl_c_while_nodes_start_is_an_interruption_and_leaves_nothing(count, tmp_path):
    given = ("--no-plots", "--no-display", "--output", "out")
    before = INTERRUPTED.format(count=count)
    done = nh_control("run", "cart_pole", *given, cwd=tmp_path, before=before)
    assert done.returncode == 130, done.stderr
    assert "error" not in done.stderr and "Traceback" not in done.stderr
    assert not alive(tmp_path)


@ros
@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["cart_pole", "snakeboard"])
def test_ctrl_c_at_any_moment_of_a_run_is_an_interruption_and_leaves_nothing(scenario, tmp_path):
    """Also inside IPOPT. A tenth of real time makes the run longer than every wait."""
    rng = random.Random(scenario)
    reference = {"snakeboard": ("--reference", "parking_optimal")}.get(scenario, ())
    for i in range(4):
        wait_s = rng.uniform(2.0 * i, 2.0 * i + 2.0)
        before = (
            "import _thread, threading; "
            f"threading.Thread(target=lambda: (__import__('time').sleep({wait_s}), "
            "_thread.interrupt_main()), daemon=True).start(); import nh_control.cli; "
        )
        given = ("run", scenario, *reference, "--no-plots", "--no-display", "--output", f"out{i}")
        given += ("--speed-factor", "0.1")
        cache = {"NH_CONTROL_CACHE": str(tmp_path / f"cache{i}")} if i == 0 else {}
        done = nh_control(*given, cwd=tmp_path, before=before, **cache)
        print(f"{wait_s:.3f} s: {done.returncode}\n{done.stderr}")
        assert done.returncode == 130 and "Traceback" not in done.stderr
        assert not alive(tmp_path)
