"""Runs whose tracker gets what a filter makes of a scenario's sensors, by the command and from
Python: results, summaries, parameters of nodes, refusals.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from command import nh_control

from nh_control import scenarios
from nh_control.cli import main
from nh_control.loop.sensing import Sensors
from nh_control.runs.experiment import Experiment
from nh_control.runs.saved_results import stored as stored_results
from nh_control.scenarios import PlantOptions
from nh_control.scenarios.fault import parse

FILE = Path(__file__).parents[1] / "ros" / "sensing_arm.py"


@cache
def arm():
    """The arm with its late encoder, an IMU and a pose of its end."""
    return scenarios.get(str(FILE))


def experiment(**options):
    return Experiment.make(arm(), duration_s=0.2, estimate="sensors", **options)


def test_a_run_by_sensors_is_told_in_its_summary_and_made_again(tmp_path, capsys):
    folder = tmp_path / "run"
    options = ["--estimate", "sensors", "--duration", "0.2", "--perturb-displacement", "0.1"]
    code = main(["simulate", str(FILE), *options, "--output", str(folder), "--no-plots"])
    assert code == 0 and "LQR, states estimated from sensors" in capsys.readouterr().out
    assert json.loads((folder / "summary.json").read_text())["estimate"] == "sensors"
    result = stored_results(folder).result
    assert result.experiment.estimate == "sensors"
    again = result.experiment.run()
    np.testing.assert_array_equal(again.trajectory.states, result.loop.trajectory.states)
    by_state = replace(result.experiment, estimate="state").run()
    away = np.abs(again.trajectory.inputs - by_state.trajectory.inputs)
    assert 1e-3 < away.max() < 20.0
    # errors are those of the true state, and without feedback nothing is estimated
    e = result.experiment
    true = [e.tracker.error(k, x) for k, x in enumerate(again.trajectory.states)]
    np.testing.assert_array_equal(again.errors, true)
    opened = e.run(feedback=False).trajectory.states
    np.testing.assert_array_equal(
        opened, replace(e, estimate="state").run(False).trajectory.states
    )


def test_sensors_show_the_inputs_that_actuators_give(monkeypatch):
    """Which faults of commands make of the commands."""
    shown, measure = {}, Sensors.measure

    def watched(sensors, k, q, v, u):
        shown[k] = u
        return measure(sensors, k, q, v, u)

    monkeypatch.setattr(Sensors, "measure", watched)
    made = experiment(options=PlantOptions(faults=(parse("commands:bias=2"),)))
    run = made.run()
    np.testing.assert_allclose(run.trajectory.inputs, run.commands + 2.0)
    acted = [shown[k] for k in range(1, made.steps + 1)]
    np.testing.assert_array_equal(acted, run.trajectory.inputs)


def test_faults_of_what_an_estimate_does_not_use_are_refused():
    with pytest.raises(ValueError, match="change nothing"):
        experiment(options=PlantOptions(faults=(parse("noise=0.1"),)))


@pytest.mark.slow
def test_nodes_run_by_sensors_as_one_process_does(tmp_path):
    """In lock-step, from the option alone."""
    folder, options = tmp_path / "run", ["--estimate", "sensors", "--duration", "0.3"]
    lockstep = ["--lockstep", "--speed-factor", "0", "--no-display", "--no-plots"]
    error = ["--perturb-displacement", "0.1"]
    done = nh_control(
        "run", str(FILE), *options, *lockstep, *error, "--output", str(folder), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["estimate"] == "sensors"
    assert summary["ros"]["difference_to_simulation"] == 0.0
