"""Every body, input and curve is drawn as its own: figures of a run in space, with several inputs,
and of one on the ground, whose plants are not quite their models.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control import scenarios
from nh_control.figures import (
    attitude,
    common,
    comparison,
    gallery,
    planar,
    scene,
    spatial,
    stick_figures,
    style,
)
from nh_control.integrators import midpoint
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import Body, BodyState, Displacement, Joint, PlantOptions, Scenario
from nh_control.scenarios.visual_model import Arrow, Cable, Pose, Shape, VisualModel


@dataclass(frozen=True)
class Towing(nh.Parameters):
    """A tug that tows a barge behind and above it."""

    length: float = nh.parameter(0.5, "m", "of the rope")


INPUTS = ("ahead", "aside", "up", "spare")


def towing(parameters):
    return nh.System(
        name="towing",
        space=nh.Rn("x", "y", "z"),
        parameters=parameters,
        inputs=INPUTS,
        input_limits=[[-9.0, 9.0]] * 4,
        lagrangian=lambda q, v, p: ca.sumsqr(v) / 2,
        force=lambda q, v, u, p: u[:3],
    )


def climb(model):
    inputs = np.tile([0.5, -0.3, 0.2, 0.0], (40, 1)) * np.sin(np.arange(40.0))[:, None]
    return model.simulate(model.state([0.0, 0.0, 1.0], [1.0, 0.5, 0.3]), inputs)


TILT = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])


def tug_and_barge(parameters, q, v):
    behind = q + [-parameters.length, 0.0, 0.1]
    return (
        BodyState("tug", "odom", q, TILT, v, 2 * v),
        BodyState("barge", "odom", behind, np.eye(4)[0], v + 1, np.zeros(3)),
    )


def look(parameters):
    def poses(p, q):
        bodies = tug_and_barge(p, q, np.zeros(3))
        still = {b.frame: Pose(b.position, np.eye(3)) for b in bodies}
        return still | {"mark": Pose(q + [0.0, 0.3, 0.0], np.eye(3))}

    return VisualModel(
        "odom",
        poses,
        (Shape("box", (0.2, 0.1, 0.1), (1.0, 0.0, 0.0), "tug", opacity=0.5),),
        trail="tug",
        cables=(Cable("tug", "barge"),),
        arrows=(Arrow("ahead", "tug", 0.1),),
        outline=("tug", "barge", "mark"),
    )


TOWING = Scenario(
    name="towing",
    title="Towing",
    parameters=Towing(),
    make_system=towing,
    integrators={"midpoint": midpoint},
    references={"climb": climb},
    weights=(np.eye(6), np.eye(4), np.eye(6)),
    to_bodies=tug_and_barge,
    visual=look,
    step_s=0.05,
)


def ran(scenario, **options):
    experiment = Experiment.make(scenario, **options)
    return Result(experiment, experiment.run(), experiment.run(feedback=False), 0.1)


@pytest.fixture(scope="module")
def towed():
    """A run whose rope is twice as long as the model's."""
    options = PlantOptions(parameters={"length": 1.0})
    return ran(TOWING, options=options, perturbation=Displacement(0.2, 0.1))


# --- in space ------------------------------------------------------------------------------------


def test_a_scene_is_of_the_plant_and_closes_its_outline(towed):
    x = towed.loop.trajectory.states[7]
    seen = scene.scene(towed.experiment, x)
    tug, barge = x[:3], x[:3] + [-1.0, 0.0, 0.1]
    np.testing.assert_allclose(seen.cables, [[tug, barge]])
    np.testing.assert_allclose(seen.outlines, [[tug, barge, tug + [0, 0.3, 0], tug]])
    directions = [line[1] - line[0] for line, _ in seen.axes]  # of the tug alone, which is driven
    np.testing.assert_allclose(
        np.array(directions) / scene.AXIS_M, [[1, 0, 0], [0, 0, 1], [0, -1, 0]], atol=1e-12
    )
    for points in (seen.cables[0], seen.outlines[0], seen.axes[1][0], seen.solids[0].faces[2]):
        assert all(np.any(np.all(seen.points == point, axis=1)) for point in points)
    tracks = scene.tracks(towed.experiment, towed.loop.trajectory.states)
    np.testing.assert_allclose(tracks["barge"] - tracks["tug"], [[-1.0, 0.0, 0.1]] * 41)
    bare = replace(TOWING, visual=None)
    seen = scene.scene(replace(towed.experiment, scenario=bare), x)
    assert len(seen.axes) == 6 and not seen.solids  # without a look, of all bodies


def test_a_trail_uses_the_parameters_of_the_plant():
    scenario = scenarios.get("pendulum_swing_up")
    model, length = scenario.model(), 1.7
    parameters = scenario.plant_parameters(PlantOptions(parameters={"l": length}))
    experiment = SimpleNamespace(scenario=scenario, model=model, plant_parameters=parameters)
    states = np.array([model.state([angle], [0.0]) for angle in (0.4, 0.4 + np.pi)])
    ((_, trail),) = scene.tracks(experiment, states).items()
    assert np.linalg.norm(trail[1] - trail[0]) == pytest.approx(2 * length)


def test_shapes_are_rolled_shifted_and_turned_in_this_order():
    shape = Shape("box", (0.2, 0.4, 0.6), (1.0, 0.0, 0.0), "it", (1.0, 0.0, 0.0), np.pi / 6)
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    pose = Pose(np.array([0.0, 0.0, 5.0]), turn)
    visual = VisualModel("odom", lambda p, q: {"it": pose}, (shape,))
    points = scene.visual_scene(visual, None, np.zeros(0)).points
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    corner = np.array([1.1, 0.2 * c - 0.3 * s, 0.2 * s + 0.3 * c])  # rolled from y to z
    expected = [-corner[1], corner[0], corner[2] + 5.0]
    assert np.abs(points - expected).max(axis=1).min() < 1e-12
    mirrored = [corner[1], corner[0], corner[2] + 5.0]
    assert np.abs(points - mirrored).max(axis=1).min() > 0.01


def test_a_scene_is_drawn_again_after_a_motion_relative_to_its_size():
    small = [
        scene.Scene(cables=[np.array([[x, 0, 0], [x + 1e-2, 0, 0]])]) for x in (0, 5e-4, 2e-3)
    ]
    assert scene.distinct_scenes(small) == [0, 2]


def test_the_view_of_a_path_follows_from_its_motion(towed, monkeypatch):
    """Motion in a vertical plane is seen from the side; any other motion is drawn in space."""
    for module in (planar, spatial, stick_figures, attitude):
        monkeypatch.setattr(module, "path", lambda *a, kind=module.__name__: (kind, a))
    one = replace(TOWING, to_bodies=lambda p, q, v: tug_and_barge(p, q, v)[:1])

    def seen(scenario, keep=(1.0, 1.0, 1.0), keep_target=None):
        e = replace(towed.experiment, scenario=scenario)
        scale = np.array([*keep, 1.0, 1.0, 1.0])
        states = towed.loop.trajectory.states * scale
        result = replace(
            towed,
            experiment=e,
            loop=replace(towed.loop, trajectory=replace(towed.loop.trajectory, states=states)),
        )
        wanted = towed.targets * np.array([*(keep_target or keep), 1.0, 1.0, 1.0])
        monkeypatch.setattr(Result, "targets", wanted)
        kind, given = gallery.path(result)
        return kind.rpartition(".")[2], given

    assert seen(one)[0] == "spatial" and seen(TOWING, (1, 0, 1))[0] == "spatial"
    kind, (_, run, target, plane) = seen(one, (1, 0, 1))
    assert (kind, plane, list(run), list(target)) == ("planar", (0, 2), ["tug"], ["tug"])
    assert seen(one, (1, 0, 1), (1, 1, 1))[0] == "spatial"
    assert (
        seen(one, (0, 0, 0))[0] == "attitude" and seen(one, (0, 0, 0), (1, 1, 1))[0] == "spatial"
    )
    assert seen(replace(TOWING, to_bodies=None))[0] == "stick_figures"
    ground = replace(TOWING, body=Body("base", "odom", ("z", "x", "y")))
    assert seen(ground)[1][3] == (0, 1)


def test_a_scenario_has_the_figures_of_its_declarations():
    names = ["path", "states", "inputs", "energy", "error"]
    found = gallery.figures(TOWING)
    assert list(found) == names and found["states"] is spatial.states
    jointed = replace(TOWING, joints=(Joint("j", "x"),))
    assert list(gallery.figures(jointed)) == [*names[:2], "joints", *names[2:]]
    alone = replace(jointed, to_bodies=None, visual=None)
    assert list(gallery.figures(alone)) == names  # sticks
    assert list(gallery.figures(replace(alone, visual=look))) == names
    assert gallery.figures(alone)["states"] is planar.states
    watched = replace(TOWING, monitor=scenarios.get("satellite").monitor)
    assert list(gallery.figures(watched)) == [*names, "speed_margin"]


def test_each_page_is_announced_and_saved_under_its_number(towed, monkeypatch, tmp_path):
    drawn, told = [], []
    monkeypatch.setattr(gallery, "save", lambda draw, file, style: drawn.append((file.name, draw)))
    monkeypatch.setattr(style, "PANELS", 2)
    files = gallery.save_all(towed, tmp_path, told.append)
    assert told == list(files) == ["path", "states", "inputs", "inputs_2", "energy", "error"]
    assert files["inputs_2"] == str(tmp_path / "inputs_2.png")
    pages = [draw for name, draw in drawn if name.startswith("inputs")]
    shown = [[p.get_ylabel() for p in page().axes] for page in pages]
    assert sorted(label.split()[0] for page in shown for label in page) == sorted(INPUTS)


# --- inputs, errors, gusts -----------------------------------------------------------------------


@pytest.mark.parametrize(("count", "columns"), [(3, 1), (4, 2), (5, 2)])
def test_up_to_three_inputs_stand_below_each_other(towed, count, columns, monkeypatch):
    monkeypatch.setattr(common, "_input", lambda result, i, panel: panel.plot([0, 1]))
    monkeypatch.setattr(common, "input_pages", lambda result: [list(range(count))])
    panels = common.inputs(towed).axes
    visible = [panel for panel in panels if panel.get_visible()]
    assert (
        len(visible) == count
        and len({p.get_subplotspec().colspan.start for p in visible}) == columns
    )
    assert len([p for p in visible if p.get_xlabel()]) >= 1


# --- on the ground -------------------------------------------------------------------------------


def test_states_are_beside_their_momenta_largest_motion_first(towed, monkeypatch):
    monkeypatch.setattr(style, "PANELS", 2)
    states = towed.loop.trajectory.states * [1e-3, 1.0, 1e3, 1e9, 1.0, 1.0]
    found = replace(
        towed, loop=replace(towed.loop, trajectory=replace(towed.loop.trajectory, states=states))
    )
    assert planar.state_pages(found) == [[2, 5], [1, 4], [0, 3]]
    jointed = replace(TOWING, joints=(Joint("j", "y"),))
    of_joints = replace(found, experiment=replace(towed.experiment, scenario=jointed))
    assert planar.joint_pages(of_joints) == [[1, 4]]


def test_a_stick_has_the_width_and_length_of_its_shape():
    flat = Shape("box", (0.02, 0.1, 1.0), (1.0, 0.0, 0.0), "it")
    visual = VisualModel("odom", lambda p, q: {}, (flat,))
    poses = {"it": Pose(np.zeros(3), np.eye(3))}
    (axes,) = stick_figures.draw(visual, [("now", poses, None)]).axes
    (stick,) = axes.collections
    (ends,) = stick.get_segments()
    width_m = stick.get_linewidths()[0] * np.ptp(axes.get_xlim()) / (72 * style.WIDTH)
    assert width_m == pytest.approx(0.1)
    assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(0.9 * np.cos(np.radians(15)))


# --- many methods --------------------------------------------------------------------------------


def test_styles_of_methods_differ_for_more_methods_than_colors():
    names = [f"method {i}" for i in range(2 * len(style.SERIES))]
    styles = [comparison.line_style(name, i, markers=False) for i, name in enumerate(names)]
    assert len({(one["color"], one["linestyle"]) for one in styles}) == len(names)
    assert "marker" not in styles[0] and "marker" in comparison.line_style("a", 0, markers=True)
    solvers = [comparison.line_style(name, 0, markers=False) for name in comparison.SCIPY]
    assert len({one["color"] for one in solvers}) == len(solvers)
    assert {one["linestyle"] for one in solvers} == {"--"}
