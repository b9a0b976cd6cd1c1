"""Figures show the numbers of the run: the drawn data are compared with the run."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from nh_control.figures import planar, stick_figures, style
from nh_control.figures.scene import Scene
from nh_control.integrators import midpoint
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import Joint, Scenario
from nh_control.scenarios.perturbation import Displacement
from nh_control.scenarios.visual_model import Cable, Pose, Shape, VisualModel
from nh_control.systems import PendulumParameters, pendulum

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
