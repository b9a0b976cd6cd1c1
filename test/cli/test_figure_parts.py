"""Every body, input and curve is drawn as its own: figures of a run in space, with several inputs,
and of one on the ground, whose plants are not quite their models.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

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
from nh_control.scenarios import disturbance as disturbances
from nh_control.scenarios.visual_model import Arrow, Cable, Pose, Shape, VisualModel
from nh_control.studies.comparison import Drift
from nh_control.studies.motion import Motion


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


def line(panel, label):
    (found,) = [one for one in panel.lines if one.get_label() == label]
    if hasattr(found, "get_data_3d"):
        return np.array(found.get_data_3d())
    return np.array(found.get_data(), dtype=float)


def segments(axes, kind=Line3DCollection):
    return [s for c in axes.collections if type(c) is kind for s in c._segments3d]


def among(points, some):
    """Return whether one of the lines has these points."""
    return any(len(points) == len(one) and np.allclose(points, one) for one in some)


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


def test_a_planar_body_without_a_visual_model_is_drawn_by_its_axes():
    """x points along the heading, y to the left."""
    sled = nh.System("sled", nh.SE2(), lambda q, v: ca.sumsqr(v) / 2, inputs=("push",),
                     force=lambda q, v, u: ca.vertcat(0, u, 0))  # fmt: skip
    bare = ran(
        Scenario(
            name="sled",
            title="A sled",
            parameters=None,
            make_system=lambda parameters: sled,
            integrators={"midpoint": midpoint},
            references={"slide": lambda m: m.simulate(m.state([0.3, 1.0, 2.0], [1.0, 0.5, 0.1]),
                                                      np.zeros((10, 1)))},
            weights=(np.eye(6), np.eye(1), np.eye(6)),
            body=Body("base_link", "odom"),
            step_s=0.05,
        )
    )  # fmt: skip
    x = bare.loop.trajectory.states[-1]
    names = bare.experiment.model.state_names
    theta, *place = (x[names.index(name)] for name in bare.experiment.scenario.body.coordinates)
    forward, left, _ = (axis for axis, _ in scene.scene(bare.experiment, x).axes)
    turn = [[np.cos(theta), np.sin(theta)], [-np.sin(theta), np.cos(theta)]]
    for axis, direction in zip((forward, left), turn):
        np.testing.assert_allclose(axis[0], [*place, 0.0])
        np.testing.assert_allclose(axis[1, :2] - axis[0, :2], scene.AXIS_M * np.array(direction))
    shown = [np.array(one.get_data()).T for one in gallery.path(bare).axes[0].lines]
    first = scene.scene(bare.experiment, bare.loop.trajectory.states[0])
    assert all(among(axis[:, :2], shown) for axis, _ in first.axes)


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


def test_a_path_in_space_shows_run_reference_other_bodies_and_shadow(towed):
    states, targets = towed.loop.trajectory.states, towed.targets
    axes, bar = gallery.path(towed).axes
    np.testing.assert_allclose(line(axes, "tug, tracked"), states[:, :3].T)
    np.testing.assert_allclose(line(axes, "reference"), targets[:, :3].T)
    np.testing.assert_allclose(line(axes, "barge"), (states[:, :3] + [-1.0, 0.0, 0.1]).T)
    shadow = line(axes, "shadow")
    np.testing.assert_allclose(shadow[:2], states[:, :2].T)
    assert np.ptp(shadow[2]) == 0 and shadow[2, 0] == axes.get_zlim()[0]
    assert shadow[2, 0] < min(states[:, 2].min(), targets[:, 2].min())
    drawn = segments(axes)
    for x in (states[0], targets[0]):
        seen = scene.scene(towed.experiment, x)
        assert among(seen.cables[0], drawn) and among(seen.outlines[0], drawn)
    assert among(scene.scene(towed.experiment, states[0]).axes[0][0], drawn)
    assert not among(scene.scene(towed.experiment, targets[0]).axes[0][0], drawn)
    solids = [part for part in axes.collections if isinstance(part, Poly3DCollection)]
    assert solids[0].get_facecolor()[0] == pytest.approx([1, 0, 0, 0.5 * spatial.FILL])
    for limits, column in zip((axes.get_xlim(), axes.get_ylim(), axes.get_zlim()), states.T):
        assert limits[0] < column.min() and column.max() < limits[1]
    assert bar.get_ylabel() == "time (s)"


def test_motions_of_bodies_are_drawn_by_components_with_references(towed):
    states, targets, model = towed.loop.trajectory.states, towed.targets, towed.experiment.model
    drawn = spatial.states(towed)
    shown = [panel for panel in drawn.axes if panel.get_visible()]
    labels = [panel.get_ylabel() for panel in shown if panel.get_ylabel()]
    assert labels == ["position (m)", "velocity (m/s)", "body rates (rad/s)"]
    assert [p.get_title() for p in shown if p.get_title()] == ["tug", "barge"]
    velocities, wanted = (np.array([model.velocity(x) for x in xs]) for xs in (states, targets))
    tug = states[:, :3], targets[:, :3]
    barge = tuple(q + [-1.0, 0.0, 0.1] for q in tug)
    expected = [tug, barge, (velocities, wanted), (velocities + 1, wanted + 1)]
    expected.append((2 * velocities, 2 * wanted))
    assert len(shown) == 5  # the barge does not turn
    for panel, (run, target) in zip(shown, expected):
        curves = np.array([curve.get_ydata() for curve in panel.lines])
        np.testing.assert_allclose(curves[::2], run.T, atol=1e-12)
        np.testing.assert_allclose(curves[1::2], target.T, atol=1e-12)
        np.testing.assert_array_equal(panel.lines[0].get_xdata(), towed.loop.trajectory.times)
    assert [p.get_xlabel() for p in shown].count("time (s)") == 2
    named = dict(zip("xyz", [curve.get_color() for curve in shown[0].lines[::2]]))
    *components, _ = drawn.legends[0].legend_handles
    labels = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert labels == ["x, tracked", "y, tracked", "z, tracked", "reference"]
    assert [handle.get_color() for handle in components] == list(named.values())


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


def test_inputs_are_drawn_with_their_references_in_two_columns(towed, monkeypatch):
    monkeypatch.setattr(common, "input_units", lambda scenario, system: ["N", "m", "rad", ""])
    saturated = np.arange(40)[:, None] // 10 == np.arange(4)
    towed = replace(towed, loop=replace(towed.loop, saturated=saturated))
    drawn = common.inputs(towed)
    times, inputs = towed.loop.trajectory.times[:-1], towed.loop.trajectory.inputs
    assert len(drawn.axes) == 4 and all(panel.get_visible() for panel in drawn.axes)
    panels = sorted(drawn.axes, key=lambda panel: panel.get_position().x0)  # in columns
    for i, (panel, name) in enumerate(zip(panels, INPUTS)):
        unit = ("N", "m", "rad", "")[i]
        assert panel.get_ylabel() == (f"{name} ({unit})" if unit else name)
        np.testing.assert_array_equal(line(panel, "tracked"), [times, inputs[:, i]])
        np.testing.assert_array_equal(line(panel, "reference")[1], towed.feedforward[:, i])
        np.testing.assert_array_equal(line(panel, "saturated")[0], times[10 * i : 10 * i + 10])
        below = panel.get_subplotspec().is_last_row()
        assert (panel.get_xlabel() == "time (s)") == below


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


def test_gusts_end_with_the_run_and_are_named_once(towed):
    texts = ("x:gust:1,start=0.5", "y:gust:1,start=1.5,duration=9", "x:sine:1")
    pushes = tuple(disturbances.parse(text) for text in texts)
    options = replace(towed.experiment.options, disturbances=pushes)
    found = replace(towed, experiment=replace(towed.experiment, options=options))
    panels = Figure().subplots(2, 1)
    common.show_intervals(found, *panels)
    end = towed.loop.trajectory.duration
    for panel in panels:
        spans = [(p.get_x(), p.get_x() + p.get_width()) for p in panel.patches]
        np.testing.assert_allclose(spans, [(0.5, end), (1.5, end)])
    named = [[p.get_label() for p in panel.patches] for panel in panels]
    assert named[0] == ["gust on x", "gust on y"] and not {"gust on x"} & set(named[1])


@pytest.fixture(scope="module")
def rolled():
    """A point on a sphere, whose configuration has one number more than its tangent vectors."""
    ball = nh.System(
        name="ball",
        space=nh.S2("link"),
        inputs=("push",),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2,
        force=lambda q, v, u: ca.vertcat(u, 0, 0),
    )
    start = np.array([0.0, 0.0, 1.0]), np.array([0.3, 0.2, 0.0])
    scenario = Scenario(
        name="ball",
        title="A ball",
        parameters=None,
        make_system=lambda parameters: ball,
        integrators={"midpoint": midpoint},
        references={"roll": lambda m: m.simulate(m.state(*start), np.zeros((10, 1)))},
        weights=(np.eye(4), np.eye(1), np.eye(4)),
        step_s=0.05,
    )
    return ran(scenario, perturbation=Displacement(0.1, 0.5))


def test_errors_of_momenta_begin_after_the_configuration_s(rolled):
    whole, parts = common.error(rolled).axes
    (momenta,) = [c for c in parts.lines if c.get_label().startswith("momenta")]
    expected = np.linalg.norm(rolled.loop.errors[:, 2:], axis=1)
    np.testing.assert_allclose(momenta.get_ydata(), expected)


def test_errors_are_drawn_over_nine_decades(rolled):
    errors = rolled.loop.errors.copy()
    errors[3] = 1e-30
    found = replace(rolled, loop=replace(rolled.loop, errors=errors))
    largest = found.configuration_error().max()
    for panel in common.error(found).axes:
        assert panel.get_ylim()[0] == pytest.approx(1e-9 * largest)


@pytest.mark.parametrize("size", [1e-16, 1e-10])
def test_distances_from_the_manifold_are_drawn_with_their_limit(rolled, size, monkeypatch):
    residual = size * np.arange(1.0, 12.0)
    monkeypatch.setattr(Result, "manifold_residual", residual)
    energy, panel = common.energy(rolled).axes
    points, accepted = panel.lines
    np.testing.assert_array_equal(points.get_data(), [rolled.loop.trajectory.times, residual])
    assert accepted.get_ydata()[0] == 1e-14
    assert [text.get_text() for text in panel.texts] == ["accepted: 1e-14"]
    assert panel.get_ylim() == pytest.approx((1e-18, 10 * max(1e-14, residual.max())))
    assert (panel.get_ylabel(), energy.get_ylabel()) == ("distance from manifold", "energy (J)")


# --- on the ground -------------------------------------------------------------------------------


def test_cusps_follow_the_heading_and_shapes_keep_their_colors():
    """A sled that moves forward along its heading and back, with a rope and an outline."""
    x = np.r_[np.linspace(0, 1, 26), np.linspace(1, 0.9, 25)]
    states = np.zeros((51, 8))
    states[:, 2], states[:, 3], states[:, 4] = np.pi / 2, 3.0, x

    def poses(p, q):
        body = Pose.planar(*q[2:])
        return {"body": body, "end": body.rotated(0.0, (-0.5, 0.0, 0.0))}

    def visual(p):
        box = Shape("box", (0.3, 0.2, 0.1), (0.0, 1.0, 0.0), "body", opacity=0.5)
        more = Shape("box", (0.1, 0.1, 0.1), (0.0, 0.0, 1.0), "end")
        ropes = (Cable("body", "end"),)
        return VisualModel("odom", poses, (box, more), "body", ropes, outline=("body", "end"))

    board = replace(scenarios.get("snakeboard"), visual=visual)
    reference = {
        "still": lambda m: m.simulate(m.state(np.zeros(5), np.zeros(5)), np.zeros((50, 2)))
    }
    found = ran(replace(board, references=reference, perturb=lambda m, x, p: x))
    trajectory = replace(found.loop.trajectory, states=states)
    found = replace(found, loop=replace(found.loop, trajectory=trajectory), feedback=False)
    axes = gallery.path(found).axes[0]
    np.testing.assert_allclose(line(axes, "open loop"), [states[:, 3], states[:, 4]])
    np.testing.assert_allclose(line(axes, "cusps"), [[3.0], [1.0]], atol=0.05)
    ghosts = [one for one in axes.patches if one.get_facecolor()[3] == 0]
    solids = [one for one in axes.patches if one.get_facecolor()[3] > 0]
    assert len(solids) == 2 * len(ghosts)  # of ghosts the first solid alone
    assert {round(one.get_facecolor()[3], 9) for one in solids} == {planar.FILL, planar.FILL / 2}
    ropes = [one for one in axes.lines if len(one.get_xdata()) == 2]
    rings = [one for one in axes.lines if len(one.get_xdata()) == 3]
    assert len(ropes) == len(rings) == len(ghosts)
    np.testing.assert_allclose(ropes[0].get_ydata(), [0.0, -0.5], atol=1e-12)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (m)", "y (m)")


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


def test_stick_figures_are_at_equal_times_over_their_reference(towed, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        stick_figures, "draw", lambda visual, shots: drawn.append(shots) or Figure()
    )
    alone = replace(TOWING, to_bodies=None)
    found = replace(towed, experiment=replace(towed.experiment, scenario=alone))
    title = stick_figures.path(found).get_suptitle()
    (shots,) = drawn
    assert title == "towing, climb: tracked, dashed: reference"
    assert [text for text, _, _ in shots] == [f"t = {t:.1f} s" for t in (0, 0.4, 0.8, 1.2, 1.6, 2)]
    for k, (_, poses, ghost) in zip((0, 8, 16, 24, 32, 40), shots):
        np.testing.assert_allclose(poses["tug"].position, towed.loop.trajectory.states[k, :3])
        np.testing.assert_allclose(ghost["tug"].position, towed.targets[k, :3])


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


def test_holonomic_constraints_are_drawn_like_velocity_constraints():
    rope = nh.System(
        name="rope",
        space=nh.Rn("x", "y"),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: ca.sumsqr(q) - 1,
    )
    motion = Motion(rope, np.array([1.0, 0.0]), np.zeros(2), 1.0, np.zeros(0))
    drift = Drift(np.arange(3.0), np.ones(3), np.array([1e-9, 2e-9, 3e-9]))
    found = comparison.Comparison(motion, 1e-9, 0.01, {}, {"midpoint": drift}, {})
    _, panel = comparison.energy(found).axes
    np.testing.assert_array_equal(panel.lines[0].get_ydata(), drift.constraint)
