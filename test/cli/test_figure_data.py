"""Figures show the numbers of the run: the drawn data are compared with the run."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.image import imread

from nh_control import scenarios
from nh_control.figures import common, comparison, planar, stick_figures, style
from nh_control.figures.gallery import figures
from nh_control.figures.scene import Scene
from nh_control.integrators import midpoint
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import Joint, MonitoredOutput, Scenario
from nh_control.scenarios.perturbation import Displacement
from nh_control.scenarios.visual_model import Cable, Pose, Shape, VisualModel
from nh_control.studies.comparison import Comparison, Drift, WorkPoint
from nh_control.studies.motion import Motion
from nh_control.systems import PendulumParameters, pendulum, snakeboard

LIMIT = 2.0


def swing(model):
    return model.simulate(model.state([0.5], [0.0]), np.full((50, 1), 0.1))


SWING = Scenario(
    name="swing",
    title="A pendulum",
    parameters=PendulumParameters(),
    make_system=lambda parameters: replace(pendulum(parameters), input_limits=[[-LIMIT, LIMIT]]),
    integrators={"midpoint": midpoint},
    references={"swing": swing},
    weights=(np.diag([1e4, 1.0]), np.eye(1), np.eye(2)),
    joints=(Joint("pivot", "theta"),),
)


def run_of(scenario, feedback=True, **options):
    experiment = Experiment.make(scenario, **options)
    return Result(
        experiment, experiment.run(feedback), experiment.run(feedback=False), 0.1, feedback
    )


@pytest.fixture(scope="module")
def run():
    """A pendulum that starts 0.4 rad off its reference, with its input at the limit for some
    time.
    """
    found = run_of(SWING, perturbation=Displacement(0.4))
    assert 0 < found.loop.saturated.sum() < len(found.loop.saturated)
    return found


def line(panel, label):
    """Return the data of the only line of a panel with this label."""
    (found,) = [one for one in panel.lines if one.get_label() == label]
    return np.asarray(found.get_xdata(), dtype=float), np.asarray(found.get_ydata(), dtype=float)


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_states_are_drawn_over_the_reference(run):
    drawn = figures(SWING)["states"](run)
    for i, panel in enumerate(drawn.axes):
        for label, states in (
            ("tracked", run.loop.trajectory.states),
            ("reference", run.targets),
        ):
            times, values = line(panel, label)
            np.testing.assert_array_equal(times, run.loop.trajectory.times)
            np.testing.assert_array_equal(values, states[:, i])
    assert drawn.axes[-1].get_xlabel() == "time (s)"
    assert legend(drawn) == ["tracked", "reference"]


def test_a_constant_is_drawn_as_a_line():
    for change, height in ((1e-15, 1.0), (0.1, 0.1)):
        panel = Figure().subplots()
        panel.plot([0, 1], [0.0, change])
        style.keep_readable(panel)
        assert np.ptp(panel.get_ylim()) == pytest.approx(height, rel=0.2)


def test_every_column_has_a_time_axis(run):
    """Three states: the second column has one panel less."""
    first, second, third, empty = planar._curves(run, [[0, 1, 0]], 0).axes
    panels = sorted((first, second, third), key=lambda panel: panel.get_position().x0)
    assert not empty.get_visible() and all(panel.get_visible() for panel in panels)
    labeled = [panel for panel in panels if panel.get_xlabel() == "time (s)"]
    assert len(labeled) == 2
    for panel in labeled:
        assert panel.xaxis.get_tick_params()["labelbottom"]


def test_inputs_are_drawn_as_steps_with_marks_at_saturation(run):
    (panel,) = figures(SWING)["inputs"](run).axes
    trajectory, met = run.loop.trajectory, run.loop.saturated[:, 0]
    (curve,) = [one for one in panel.lines if one.get_label() == "tracked"]
    assert curve.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(curve.get_ydata(), trajectory.inputs[:, 0])
    np.testing.assert_array_equal(curve.get_xdata(), trajectory.times[:-1])
    np.testing.assert_array_equal(line(panel, "reference")[1], np.full(50, 0.1))
    times, values = line(panel, "saturated")
    np.testing.assert_array_equal(times, trajectory.times[:-1][met])
    np.testing.assert_array_equal(np.abs(values), LIMIT)
    assert panel.get_title(loc="right") == f"{met.sum()} of 50 steps at the limit"
    limits = [one.get_ydata()[0] for one in panel.lines if one.get_label() == "limit"]
    assert limits == [-LIMIT, LIMIT]
    assert panel.get_ylabel() == "torque (N m)"


def test_the_energy_figure_shows_plant_and_reference(run):
    e = run.experiment
    heavier = replace(run, experiment=replace(e, plant=e.plant.with_parameters(m=2.0)))
    (panel,) = figures(SWING)["energy"](heavier).axes  # the reference is one of the model
    np.testing.assert_array_equal(line(panel, "tracked")[1], run.loop.energy)
    theta, p = run.targets.T
    expected = p**2 / 2 - 9.8 * np.cos(theta)
    np.testing.assert_allclose(line(panel, "reference")[1], expected, rtol=1e-12)


def test_residuals_of_constraints_are_the_largest_in_every_step():
    resting = {"rest": lambda model: model.simulate(np.zeros(model.nx), np.zeros((50, 2)))}
    found = run_of(replace(scenarios.get("differential_drive"), references=resting))
    rows = np.arange(1, len(found.loop.constraint) + 1)[:, None]
    residuals = 1e-15 * rows * np.linspace(-1, 0.5, found.loop.constraint.shape[1])
    found = replace(found, loop=replace(found.loop, constraint=residuals))
    _, panel = figures(found.experiment.scenario)["energy"](found).axes
    points, accepted = panel.lines
    np.testing.assert_array_equal(points.get_xdata(), found.loop.trajectory.times[1:])
    np.testing.assert_allclose(points.get_ydata(), 1e-15 * rows[:, 0], rtol=1e-12)
    assert accepted.get_ydata()[0] == 1e-12 and panel.get_yscale() == "log"
    assert [text.get_text() for text in panel.texts] == ["accepted: 1e-12"]
    assert panel.get_ylabel() == "constraint residual (m)"
    assert panel.get_ylim()[1] == pytest.approx(1e-11)  # what is accepted is near the top


def test_the_error_figure_shows_the_configuration_the_open_loop_and_parts(run):
    whole, parts = figures(SWING)["error"](run).axes
    errors = np.abs(run.loop.errors)
    errors[errors == 0] = np.nan  # a gap on a logarithmic axis
    np.testing.assert_allclose(line(whole, "tracked")[1], errors[:, 0], rtol=1e-12)
    opened = np.abs(run.open_loop.errors[:, 0])
    np.testing.assert_allclose(line(whole, "open loop, same start")[1], opened, rtol=1e-12)
    np.testing.assert_allclose(line(parts, "theta (rad)")[1], errors[:, 0], rtol=1e-12)
    np.testing.assert_allclose(line(parts, "momenta (SI)")[1], errors[:, 1], rtol=1e-12)
    assert whole.get_ylabel() == "configuration error (rad)"
    assert {panel.get_yscale() for panel in (whole, parts)} == {"log"}
    assert not whole.texts  # the reference does not end before the run


def test_the_end_of_the_reference_is_marked_if_the_run_continues():
    resting = replace(
        SWING,
        references={"rest": lambda model: model.simulate(model.state([0.0], [0.0]), np.zeros(20))},
    )
    found = run_of(resting, duration_s=0.6, perturbation=Displacement(0.1))
    end = 20 * found.experiment.model.h
    for panel in figures(resting)["error"](found).axes:
        assert [text.get_text() for text in panel.texts] == [" reference ends"]
        assert panel.texts[0].xy[0] == pytest.approx(end)
        (mark,) = [one for one in panel.lines if one.get_linestyle() == ":"]
        assert mark.get_xdata() == pytest.approx([end, end])
    np.testing.assert_array_equal(found.feedforward[20:], 0.0)


def test_a_failed_open_loop_is_labeled(run):
    failed = replace(run.open_loop, failure=RuntimeError("a step failed"))
    drawn = figures(SWING)["error"](replace(run, open_loop=failed))
    assert "open loop, same start (fails)" in legend(drawn)
    alone = replace(run, loop=run.open_loop, feedback=False)
    whole, _ = figures(SWING)["error"](alone).axes
    assert [one.get_label() for one in whole.lines] == ["open loop"]


def test_titles_say_when_a_run_was_cut_short(run):
    assert style.title(run) == "swing, swing"
    assert style.title(replace(run, stopped="Ctrl-C")) == "swing, swing (stopped early)"


def test_a_monitored_output_is_drawn_above_its_line(run):
    monitor = MonitoredOutput(
        "angle", ("a", "b"), "rad", lambda p, q, v, u, w: np.array([q[0], v[0]]), -0.5, "too low"
    )
    watched = replace(SWING, monitor=monitor)
    found = replace(run, experiment=replace(run.experiment, scenario=watched))
    (panel,) = common.monitored(found, monitor).axes
    theta, p = run.loop.trajectory.states[:-1].T
    np.testing.assert_allclose(line(panel, "a")[1], theta)
    np.testing.assert_allclose(line(panel, "b")[1], p)
    assert line(panel, "below: too low")[1].tolist() == [-0.5, -0.5]
    assert panel.get_ylabel() == "angle (rad)"


def test_cusps_are_reversals_along_the_heading():
    forth = np.column_stack([np.linspace(0, 1, 11), np.zeros(11)])
    back = forth[-2::-1]
    xy = np.vstack([forth, back, forth[1:]])
    assert planar.cusps(xy, np.zeros(len(xy))).tolist() == [10, 20]
    turned = np.linspace(0, np.pi, len(forth))
    circle = np.column_stack([np.sin(turned), 1 - np.cos(turned)])
    assert len(planar.cusps(circle, turned)) == 0
    pausing = np.vstack([forth, np.tile(forth[-1], (5, 1)), back])
    assert planar.cusps(pausing, np.zeros(len(pausing))).tolist() == [12]  # of 10 ... 15


def planar_path(run, target_y=0.5):
    """The figure of a box that slides along x, and its reference."""
    track = np.column_stack([run.loop.trajectory.states[:, 0], np.zeros((51, 2))])
    return planar.path(run, {"box": track}, {"box": track + [0, target_y, 0]}, (0, 1))


def box(parameters, q):
    return {"box": Pose(np.array([q[0], 0.0, 0.0]), np.eye(3))}


def test_a_planar_path_shows_the_system_by_time_and_the_reference_dashed(run):
    shape = Shape("box", (0.1, 0.2, 0.3), (1.0, 0.0, 0.0), "box")
    shown = replace(SWING, visual=lambda p: VisualModel("odom", box, (shape,), trail="box"))
    found = replace(run, experiment=replace(run.experiment, scenario=shown))
    axes = planar_path(found).axes[0]
    x = run.loop.trajectory.states[:, 0]
    np.testing.assert_array_equal(line(axes, "tracked")[0], x)
    np.testing.assert_array_equal(line(axes, "reference")[1], np.full(51, 0.5))
    ghosts = [one for one in axes.patches if one.get_facecolor()[3] == 0]
    solids = [one for one in axes.patches if one.get_facecolor()[3] > 0]
    assert len(ghosts) == len(solids) > 1
    centers = [one.get_path().get_extents().get_points().mean(axis=0)[0] for one in solids]
    nodes = [int(np.argmin(np.abs(x - center))) for center in centers]
    np.testing.assert_allclose(x[nodes], centers, atol=1e-12)
    places = [one.get_path().get_extents().get_points().mean(axis=0)[0] for one in ghosts]
    np.testing.assert_allclose(places, run.targets[nodes, 0], atol=1e-12)
    assert all(one.get_linestyle() != "-" for one in ghosts)
    clock = style.Clock(found)
    assert set(nodes) <= set(clock.nodes)
    for one, k in zip(solids, nodes):
        assert same_color(one.get_edgecolor(), clock.color(k))
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert low < x.min() - 0.05 and x.max() + 0.05 < high and bottom < 0 and top > 0.5
    assert axes.get_aspect() == 1.0


def test_lines_are_drawn_in_the_plane_that_is_seen():
    """Cables and outlines, from the side and from above."""
    cable, outline = np.arange(6.0).reshape(2, 3), 10 + np.arange(9.0).reshape(3, 3)
    for plane in ([0, 2], [0, 1]):
        axes = Figure().add_subplot()
        planar._draw(axes, Scene(cables=[cable], outlines=[outline]), Scene(), "red", plane)
        for drawn, of in zip(axes.lines, (cable, outline), strict=True):
            np.testing.assert_array_equal(drawn.get_xydata(), of[:, plane])


def test_a_path_is_drawn_at_equal_times_from_the_first_node_to_the_last(run):
    nodes = style.Clock(run).nodes
    assert (nodes[0], nodes[-1], len(nodes)) == (0, 50, 9)
    assert np.ptp(np.diff(nodes)) <= 1
    assert style.Clock(run, 3).nodes.tolist() == [0, 25, 50]
    low, high = (np.array(style.Clock(run).color(k)) for k in (0, 50))
    np.testing.assert_allclose(low[:3], (0.267, 0.005, 0.329), atol=1e-3)  # viridis begins
    assert high[1] > 0.8  # and ends in yellow


def test_sticks_are_the_projected_longest_axes():
    rod = Shape("cylinder", (0.1, 0.1, 1.1), (1.0, 0.0, 0.0), "rod")
    poses = {"rod": Pose(np.array([0.0, 0.0, 1.0]), np.eye(3)), "end": Pose(np.ones(3), np.eye(3))}
    visual = VisualModel(
        "odom", lambda p, q: poses, (rod,), trail="rod", cables=(Cable("rod", "end", ""),)
    )
    stick, cable = stick_figures._flat(visual, poses)
    elevation, azimuth = np.radians([15.0, 40.0])
    np.testing.assert_allclose(
        stick, [[0, 0.5 * np.cos(elevation)], [0, 1.5 * np.cos(elevation)]], atol=1e-12
    )
    right = np.cos(azimuth) - np.sin(azimuth)
    depth = np.cos(azimuth) + np.sin(azimuth)
    rise = -np.sin(elevation) * depth
    np.testing.assert_allclose(cable[1] - cable[0], [right, rise], atol=1e-12)


def test_a_stick_has_the_pose_of_its_shape():
    """The frame is rotated: a shape along its x axis is drawn along y."""
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    ends = []
    for offset, position in (((0.3, 0.0, 0.5), (1.0, 2.0, 3.0)), ((0, 0, 0), (1.0, 2.3, 3.5))):
        rod = Shape("cylinder", (0.1, 0.1, 1.1), (1.0, 0.0, 0.0), "rod", offset=offset)
        visual = VisualModel("odom", lambda p, q: {}, (rod,), trail="rod")
        ends.append(stick_figures._flat(visual, {"rod": Pose(np.array(position), quarter)}))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)


def test_stick_figures_are_side_by_side_with_their_references():
    rod = Shape("box", (0.2, 0.2, 1.0), (1.0, 0.0, 0.0), "rod")
    at = {x: {"rod": Pose(np.array([x, 0.0, 0.0]), np.eye(3))} for x in (0.0, 1.0)}
    visual = VisualModel("odom", lambda p, q: at[0.0], (rod,), trail="rod")
    figure = stick_figures.draw(
        visual, [("t = 0.0 s", at[0.0], at[1.0]), ("t = 1.0 s", at[1.0], None)]
    )
    (axes,) = figure.axes
    one, ghost, other = (np.array(part.get_segments()) for part in axes.collections)
    width = axes.get_xlim()[1] / 2
    aside = np.sin(np.radians(40.0))
    np.testing.assert_allclose((ghost - one)[..., 0], -aside, atol=1e-12)
    np.testing.assert_allclose((other - ghost)[..., 0], width, atol=1e-12)
    assert [text.get_text() for text in axes.texts] == ["t = 0.0 s", "t = 1.0 s"]
    assert one[..., 0].max() < width < other[..., 0].min()


@pytest.fixture(scope="module")
def compared():
    """A comparison with invented numbers."""
    motion = Motion(pendulum(), np.array([0.5]), np.array([0.0]), 2.0, np.zeros(1))
    work = {
        name: tuple(WorkPoint(10**k, scale * 10.0**k, 10.0 ** (-2 * k)) for k in (1, 2, 3))
        for name, scale in (("midpoint", 1e-6), ("DOP853", 2e-6))
    }
    times = np.array([0.0, 1.0, 2.0])
    drift = Drift(times, np.array([0.0, -1e-6, 1e-5]), np.array([1e-9, 0.0, 1e-8]))
    return Comparison(motion, 1e-11, 0.01, work, {"midpoint": drift}, {})


def test_the_work_precision_figure_shows_the_comparison(compared):
    drawn = comparison.work_precision(compared)
    (panel,) = drawn.axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    for name, points in compared.work.items():
        times, errors = line(panel, name)
        np.testing.assert_allclose(times, [1e3 * p.seconds for p in points])
        np.testing.assert_allclose(errors, [p.error for p in points])
    solver = next(one for one in panel.lines if one.get_label() == "DOP853")
    assert solver.get_linestyle() == "--" and same_color(solver.get_color(), "#222222")
    assert [one.get_ydata()[0] for one in panel.lines][-1] == 1e-11
    assert (panel.get_xlabel(), panel.get_ylabel()) == (
        "processor time (ms)",
        "error of the configuration (rad, m)",
    )
    assert drawn.get_suptitle() == "pendulum, 2 s"


def test_absolute_energy_errors_are_drawn_with_gaps_at_zero(compared):
    drawn = comparison.energy(compared)
    (panel,) = drawn.axes  # a pendulum has no constraints
    np.testing.assert_array_equal(line(panel, "midpoint")[1], [np.nan, 1e-6, 1e-5])
    assert drawn.get_suptitle() == "pendulum, h = 0.01 s" and legend(drawn) == ["midpoint"]


def test_constraints_have_a_panel_if_the_system_has_constraints(compared):
    board = snakeboard()
    motion = Motion(board, np.zeros(5), np.zeros(5), 2.0, np.zeros(2))
    energy, constraint = comparison.energy(replace(compared, motion=motion)).axes
    drift = compared.drifts["midpoint"]
    np.testing.assert_array_equal(constraint.lines[0].get_ydata(), [1e-9, np.nan, 1e-8])
    np.testing.assert_array_equal(constraint.lines[0].get_xdata(), drift.times)
    assert (energy.get_ylabel(), constraint.get_ylabel()) == (
        "energy error",
        "constraint at the nodes",
    )


def test_a_figure_has_its_size_in_dots(tmp_path):
    def draw():
        figure = Figure(figsize=(2, 1))
        figure.subplots().plot([0, 1])
        return figure

    style.save(draw, tmp_path / "one.png")
    height, width, _ = imread(tmp_path / "one.png").shape
    assert (width, height) == (260, 130)


def test_scenes_without_points_are_empty():
    assert Scene().points.shape == (0, 3)
