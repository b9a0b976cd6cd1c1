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
from test_figure_data import SWING

from nh_control import scenarios
from nh_control.cli import main
from nh_control.figures import save_all
from nh_control.figures.common import outputs as drawn
from nh_control.loop.sensing import Sensors
from nh_control.mechanics.outputs import Output
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.saved_results import stored as stored_results
from nh_control.runs.summary import summarize, table
from nh_control.scenarios import MpcOptions, PlantOptions, disturbance
from nh_control.scenarios.fault import parse
from nh_control.studies.worker import metrics_of
from nh_control.systems import pendulum

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
    with pytest.raises(ValueError, match="have no effect"):
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


# --- Runs of the predictive tracker by the command: their results, summaries, figures ---


OPTIONS = ["--duration", "0.3", "--controller", "mpc", "--mpc-horizon", "0.4", "--mpc-late", "0.2"]


def test_a_run_is_summarized_with_its_margins_and_read_again(tmp_path, capsys):
    """Its folder makes the same tracker again, and the figure shows what is forbidden."""
    folder = tmp_path / "run"
    code = main(["simulate", "cart_pole", *OPTIONS, "--output", str(folder)])
    text = capsys.readouterr().out
    assert code == 0 and "MPC over 0.4 s, 3 iterations, 20% of its plans late" in text
    assert "smallest margin" in text and (folder / "constraints.png").stat().st_size > 5000
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["mpc"]["horizon_s"] == 0.4 and summary["constraints"]["track"]["unit"] == "m"
    result = stored_results(folder).result
    assert result.experiment.mpc == MpcOptions(horizon_s=0.4, late=0.2)
    again = result.experiment.run()
    np.testing.assert_array_equal(again.trajectory.states, result.loop.trajectory.states)
    track = result.kept_constraints["track"]
    x = result.loop.trajectory.states[:-1, 0]
    np.testing.assert_allclose(track.margins, 1 - np.abs(x))
    np.testing.assert_array_equal(track.values[:, 0], x)
    assert [b.tolist() for b in track.bounds] == [[-1.0], [1.0]]


# --- Outputs that a system declares in the results, the summary, the figures and the  ---


def watched(parameters):
    return replace(
        pendulum(parameters),
        outputs=(
            Output("kinetic_energy", lambda q, v, u, p: p.m * p.l**2 * v[0] ** 2 / 2, units="J"),
            Output("power", lambda q, v, u, p: u[0] * v[0], units="W"),
        ),
    )


PENDULUM = replace(SWING, make_system=watched, weights=(np.eye(2), np.eye(1), np.eye(2)))


@pytest.fixture(scope="module")
def run():
    push = disturbance.parse("theta:constant:0.5")
    options = PlantOptions(parameters={"m": 1.1}, disturbances=(push,))
    experiment = Experiment.make(PENDULUM, options=options)
    return Result(experiment, experiment.run(), None, wall_s=0.1)


def test_results_have_the_outputs_of_the_plant(run, tmp_path):
    """With the plant's mass, and the power of the commands alone."""
    model, path = run.experiment.model, run.loop.trajectory
    speed, p = path.velocities[:, 0], run.experiment.plant_parameters
    kinetic, power = run.outputs.values.T
    assert kinetic == pytest.approx(1.1 * p.l**2 * speed**2 / 2)
    assert power[1:] == pytest.approx(path.inputs[:, 0] * speed[1:])
    assert power[0] == pytest.approx(path.inputs[0, 0] * speed[0])
    run.save(tmp_path / "results.npz")
    with np.load(tmp_path / "results.npz") as saved:
        assert saved["output_names"].tolist() == ["kinetic_energy", "power"]
        assert saved["output_units"].tolist() == ["J", "W"]
        assert np.array_equal(saved["outputs"], run.outputs.values)
    assert model.system.outputs[0].name == "kinetic_energy"


def test_summary_and_table_have_their_extent(run):
    told = summarize(run)["outputs"]["power"]
    values = run.outputs.values[:, 1]
    assert told == {"min": values.min(), "max": values.max(), "final": values[-1], "unit": "W"}
    labels, texts = table(summarize(run)).columns
    shown = dict(zip((label.strip() for label in labels.cells), map(str, texts.cells)))
    assert shown["power"] == f"{values.min():.3g} to {values.max():.3g} W"


def test_a_figure_has_a_panel_for_each(run, tmp_path, sketched):
    assert "outputs" in save_all(run, tmp_path)
    labels = [panel.get_ylabel() for panel in drawn(run).axes]
    assert labels == ["kinetic energy (J)", "power (W)"]


def test_metrics_of_studies_have_their_largest_sizes(run):
    class Asked:
        monitor = True

        class settings:  # noqa: N801
            scenario = PENDULUM

    found = metrics_of(Asked())
    assert found["largest_power"].unit == "W"
    assert found["largest_power"].of(run) == np.abs(run.outputs.values[:, 1]).max()
    assert "least" not in " ".join(found)
