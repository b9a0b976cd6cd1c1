"""Figures follow from what a scenario declares; here joints alone, with a visual model and
without, and bodies in space without one.
"""

from dataclasses import replace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.figures import save_all
from nh_control.figures.gallery import figures
from nh_control.figures.scene import scene
from nh_control.integrators import midpoint
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.summary import summarize, table
from nh_control.scenarios import Joint, Scenario
from nh_control.scenarios.quadrotor_payload import PayloadPerturbation
from nh_control.scenarios.visual_model import Cable, Pose, Shape, VisualModel
from nh_control.systems import PendulumParameters, pendulum


def swing(model):
    return model.simulate(model.state([0.5], [0.0]), np.zeros((50, 1)))


PENDULUM = Scenario(
    name="pendulum",
    title="A pendulum",
    parameters=PendulumParameters(),
    make_system=pendulum,
    integrators={"midpoint": midpoint},
    references={"swing": swing},
    weights=(np.eye(2), np.eye(1), np.eye(2)),
    joints=(Joint("pivot", "theta"),),
)


def result(scenario, **options):
    experiment = Experiment.make(scenario, **options)
    loop = experiment.run()
    return Result(experiment, loop, experiment.run(feedback=False), wall_s=0.1)


def test_joints_alone_have_all_figures_but_a_path(tmp_path):
    run = result(PENDULUM)
    files = save_all(run, tmp_path)
    assert set(files) == {"states", "inputs", "energy", "error"}
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.png" for name in files}
    panels = figures(PENDULUM)["states"](run).axes
    assert [panel.get_ylabel() for panel in panels] == ["θ (rad)", "p of θ (kg m²/s)"]


def hanging(parameters, q):
    pivot = Pose(np.array([0.0, 0.0, 2.0]), np.eye(3)).turned(
        q[0], (0.0, 0.0, 0.0), (0.0, -1.0, 0.0)
    )
    return {"rod": pivot, "end": pivot.turned(0.0, (0.0, 0.0, -1.0))}


def visual_model(parameters):
    shapes = [
        Shape(kind, (0.1, 0.2, 1.0), (1.0, 0.0, 0.0), "rod", (0.0, 0.0, -0.5), roll=np.pi)
        for kind in ("box", "cylinder", "sphere")
    ]
    return VisualModel(
        "odom", hanging, tuple(shapes), trail="end", cables=(Cable("rod", "end", ""),)
    )


def test_joints_alone_are_seen_from_the_side_in_which_they_move(tmp_path):
    shown = replace(PENDULUM, visual=visual_model)
    run = result(shown)
    assert "path" in save_all(run, tmp_path)
    axes = figures(shown)["path"](run).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_aspect()) == ("x (m)", "z (m)", 1.0)
    (path,) = [line for line in axes.lines if line.get_label() == "tracked"]
    angle = run.loop.trajectory.states[:, 0]
    np.testing.assert_allclose(
        np.column_stack(path.get_data()),
        np.column_stack([np.sin(angle), 2 - np.cos(angle)]),
        atol=1e-12,
    )
    for state, outline in zip(
        run.loop.trajectory.states[[0, -1]], (axes.patches[3], axes.patches[-3])
    ):
        end = scene(run.experiment, state).cables[0][1]
        assert outline.get_path().contains_point(0.9 * end[[0, 2]] + [0, 0.2])


def test_summary_of_joints_alone_leaves_out_what_there_is_not():
    summary = summarize(result(PENDULUM))
    assert list(summary["error"]["parts"]) == ["θ"]
    part = summary["error"]["parts"]["θ"]
    assert (
        part["unit"] == "rad"
        and part["initial"] == pytest.approx(0.1)
        and part["final"] < part["rms"] < part["largest"]
    )
    assert summary["monitored"] == {} and summary["disturbances"] == []
    assert (
        summary["constraint_residual_max_m"] is None and summary["manifold_residual_max"] is None
    )
    labels = table(summary).columns[0]._cells
    absent = {"constraint residual", "distance from manifold", "disturbance"}
    assert "  θ" in labels and not absent & set(labels)


@pytest.fixture(scope="module")
def short_hover():
    """The quadrotors with payload, not saying what they look like."""
    return replace(scenarios.get("quadrotor_payload"), visual=None)


@pytest.mark.slow
def test_bodies_in_space_have_a_path_in_space_even_without_a_look(tmp_path, short_hover):
    run = result(
        short_hover,
        reference="hover",
        duration_s=0.5,
        perturbation=PayloadPerturbation(0.5, tilt=0.5),
    )
    assert set(save_all(run, tmp_path)) == {
        "path",
        "states",
        "inputs",
        "energy",
        "error",
        "tension",
    }
    drawn = figures(short_hover)["path"](run)
    space, bar = drawn.axes
    assert (space.name, bar.get_ylabel()) == ("3d", "time (s)")
    sides = np.diff([space.get_xlim(), space.get_ylim(), space.get_zlim()], axis=1)[:, 0]
    np.testing.assert_allclose(
        space._box_aspect / space._box_aspect[0], sides / sides[0], rtol=1e-9
    )
    labels = [line.get_label() for line in space.lines]
    assert {"payload, tracked", "reference", "quad1", "quad2", "shadow"} <= set(labels)
    path = np.array(space.lines[labels.index("payload, tracked")].get_data_3d()).T
    np.testing.assert_allclose(path, run.loop.trajectory.states[:, :3], atol=1e-12)


def test_inputs_are_drawn_with_their_limits_near_or_named(short_hover):
    run = result(
        short_hover, reference="hover", duration_s=0.5, perturbation=PayloadPerturbation(tilt=1.0)
    )
    panels = {panel.get_ylabel(): panel for panel in figures(short_hover)["inputs"](run).axes}
    thrust, torque = panels["quad1 thrust (N)"], panels["quad1 torque x (N m)"]
    saturated = run.loop.saturated.sum(axis=0)
    assert saturated[1] > 0 == saturated[0]
    assert thrust.get_title(loc="right") == "limits 0 ... 30"
    assert torque.get_title(loc="right") == f"{saturated[1]} of 50 steps at the limit"
    assert [line.get_ydata()[0] for line in torque.lines if line.get_label() == "limit"] == [
        -5.0,
        5.0,
    ]
