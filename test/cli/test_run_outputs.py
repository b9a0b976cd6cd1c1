"""Outputs that a system declares in the results, the summary, the figures and the studies of its
scenario.
"""

from dataclasses import replace

import numpy as np
import pytest

from nh_control.figures import save_all
from nh_control.figures.common import outputs as drawn
from nh_control.integrators import midpoint
from nh_control.mechanics.outputs import Output
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.summary import summarize, table
from nh_control.scenarios import Joint, PlantOptions, Scenario, disturbance
from nh_control.studies.worker import metrics_of
from nh_control.systems import PendulumParameters, pendulum


def watched(parameters):
    return replace(
        pendulum(parameters),
        outputs=(
            Output("kinetic_energy", lambda q, v, u, p: p.m * p.l**2 * v[0] ** 2 / 2, units="J"),
            Output("power", lambda q, v, u, p: u[0] * v[0], units="W"),
        ),
    )


def swing(model):
    return model.simulate(model.state([0.5], [0.0]), np.full((50, 1), 0.1))


PENDULUM = Scenario(
    name="watched",
    title="A pendulum with outputs",
    parameters=PendulumParameters(),
    make_system=watched,
    integrators={"midpoint": midpoint},
    references={"swing": swing},
    weights=(np.eye(2), np.eye(1), np.eye(2)),
    joints=(Joint("pivot", "theta"),),
)


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
    assert shown["power"] == f"{values.min():.3g} ... {values.max():.3g} W"


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
