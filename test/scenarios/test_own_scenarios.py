"""Scenarios that somebody else has written, in files and in a package: by the command, with
figures, errors, disturbances and recordings; and the one that `nh_control new` writes.
"""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command import nh_control
from own_scenarios import CALLS, FILES, install

from nh_control import scenarios
from nh_control.mechanics.parameters import declarations

DRIVE_FIRST = [
    n if n == "differential_drive" else pytest.param(n, marks=pytest.mark.slow) for n in FILES
]
ros = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("rclpy", "rosbags")),
    reason="needs ROS: install the extra 'ros'",
)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DRIVE_FIRST)
def test_a_file_is_simulated_with_figures_errors_and_disturbances(name, call, sketched):
    done = call("simulate", FILES[name], *CALLS[name], "--duration", "4", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["scenario"] == name and summary["steps"] == summary["steps_planned"]
    assert {"path", "states", "inputs", "energy", "error"} <= set(summary["files"])
    for file in summary["files"].values():
        assert Path(file).stat().st_size > 500
    (text,) = summary["disturbances"]
    assert text.startswith(CALLS[name][-1].split(",")[0].split(":")[0])
    given = dict(zip(CALLS[name][::2], CALLS[name][1::2]))
    for option, value in given.items():
        if option.startswith("--perturb-"):
            assert summary["perturbation"][option.removeprefix("--perturb-")] == float(value)


@pytest.mark.parametrize("name", DRIVE_FIRST)
def test_the_tracker_brings_a_file_back_to_its_reference(name, call):
    """From the scenario's own initial error; angles of wheels may stay where they come to."""
    done = call("simulate", FILES[name], "--json", "--no-plots")
    assert done.returncode == 0, done.stderr
    parts = json.loads(done.stdout)["error"]["parts"]
    wheels = {"differential_drive": "left, right"}.get(name)
    for part, values in parts.items():
        if part != wheels and values["initial"]:
            assert values["final"] < 0.02 * values["initial"], part


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "marionette" else name
        for name in (*scenarios.built_in(), *FILES)
    ],
)
def test_the_example_of_a_disturbance_that_list_gives_works(name, call):
    where = FILES.get(name, name)
    example = json.loads(call("list", where, "--json").stdout)["disturbances"]["example"]
    scenario = scenarios.get(str(where))
    from nh_control.scenarios.disturbance import DisturbanceForces, parse

    targets = scenario.targets(scenario.make_system(scenario.parameters))
    forces = DisturbanceForces((parse(example),), targets, 0.01)
    assert forces(249).any() and not forces(0).any()
    helped = call("simulate", where, "--help")
    assert helped.returncode == 0 and example in "".join(helped.stdout.split())
    for entry in declarations(scenario.perturbation):
        assert f"--perturb-{entry.name}" in helped.stdout


def test_an_error_while_a_scenario_is_made_names_file_and_line(call, tmp_path):
    broken = tmp_path / "broken.py"
    text = FILES["underwater_vehicle"].read_text().replace("20.0 / model.h", "0.1 / model.h")
    wrong = {
        "p.roll, p.turn": ("p.rolling, p.turn", "has no attribute 'rolling'"),
        "np.tile([8.0, 0.0, -2.0, 0.3]": ("np.tile([8.0, 0.0, -2.0]", "ValueError"),
        "shifted = model.retract(x, [": ("shifted = model.retract(y, [", "NameError"),
    }
    for correct, (mistake, error) in wrong.items():
        broken.write_text(text.replace(correct, mistake))
        (line,) = [i for i, row in enumerate(broken.open(), 1) if mistake in row]
        refused = call("simulate", broken, "--no-plots")
        assert refused.returncode == 2
        assert f"{broken}, line {line}:" in refused.stderr and error in refused.stderr
        assert "Traceback" not in refused.stderr


# --- an installed package ------------------------------------------------------------------------


def test_a_packages_scenario_is_simulated_by_name(call, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(install(tmp_path / "site"))
    name = "differential_drive"
    options = (*CALLS[name], "--duration", "1", "--json", "--no-plots")
    runs = [call("simulate", which, *options) for which in (f"my_{name}", FILES[name])]
    ours, theirs = (json.loads(done.stdout) for done in runs)
    assert ours["error"] == theirs["error"] and ours["inputs"] == theirs["inputs"]


def test_list_shows_packages_and_goes_on_after_one_that_is_broken(call, tmp_path, monkeypatch):
    found = {
        "my_cart": "theirs.cart_double_pendulum:CART_DOUBLE_PENDULUM",
        "bad": "theirs.bad:BAD",
    }
    site = install(tmp_path / "site", "theirs", **found)
    (site / "theirs" / "bad.py").write_text("BAD = 1 / 0\n")
    monkeypatch.syspath_prepend(site)
    listed = call("list")
    assert listed.returncode == 1
    assert "my_cart: A cart that balances two poles" in listed.stdout
    assert "snakeboard" in listed.stdout
    assert "bad.py, line 1:\n    BAD = 1 / 0\nZeroDivisionError" in listed.stderr


# --- as nodes ------------------------------------------------------------------------------------


@ros
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_file_runs_as_nodes_with_the_numbers_of_the_simulation(name, tmp_path):
    """In lock-step."""
    options = ("--lockstep", "--speed-factor", "0", "--duration", "2", "--no-display", "--json")
    done = nh_control("run", str(FILES[name]), *CALLS[name], *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["steps"] == summary["steps_planned"] > 0
    assert summary["ros"]["difference_to_simulation"] == 0.0
    assert summary["ros"]["commands_rejected"] == summary["ros"]["fallback_steps"] == 0
    folder = tmp_path / summary["output"]
    assert (folder / "path.png").is_file() and list((folder / "recording").glob("*.mcap"))
    assert np.load(folder / "results.npz")["states"].shape[0] == summary["steps"] + 1


# --- one's own -----------------------------------------------------------------------------------


def test_new_writes_a_short_scenario_that_runs_at_once(call, tmp_path):
    written = call("new", "swing_arm")
    assert written.returncode == 0 and "nh_control simulate swing_arm.py" in written.stdout
    file = tmp_path / "swing_arm.py"
    text = file.read_text()
    assert len(text.splitlines()) < 100 and "my_robot" not in text.lower()
    assert re.search(r"^class SwingArmParameters", text, re.MULTILINE)
    for reference in ("raised", "upright"):
        done = call("simulate", file, "--reference", reference, "--json", "--no-plots")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["error"]["reduction"] > 1e4
    heavier = call("simulate", file, "--plant-parameter", "mass=1.2", "--integral", "--no-plots")
    assert heavier.returncode == 0, heavier.stderr
    assert call("list", file).returncode == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, "letters, digits and _") for name in ("1robot", "my robot", "class", "a/b")),
        ("robot", "already exists"),
    ],
)
def test_new_writes_no_name_that_python_cannot_have_and_over_no_file(name, words, call, tmp_path):
    (tmp_path / "robot.py").write_text("mine")
    refused = call("new", name)
    assert refused.returncode == 2 and words in refused.stderr
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]


# --- the command itself --------------------------------------------------------------------------


def test_the_command_alone_helps_and_tells_its_version(call):
    alone, version = call(), call("--version")
    assert alone.returncode == 0 and "simulate" in alone.stdout and "new" in alone.stdout
    assert version.returncode == 0 and version.stdout.startswith("nh_control ")
