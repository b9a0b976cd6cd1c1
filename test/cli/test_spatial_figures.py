"""Figures of bodies in space show the positions and sizes of the run."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from transforms3d.quaternions import quat2mat

from nh_control import scenarios
from nh_control.figures import attitude, spatial, style
from nh_control.figures.scene import Scene, _axes, bodies_of, scene
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios.visual_model import Pose


@pytest.fixture(scope="module")
def turned():
    """A satellite that rotates in place."""
    satellite = scenarios.get("satellite")
    tilted = replace(satellite.perturbation, attitude=0.5)
    experiment = Experiment.make(satellite, duration_s=0.5, perturbation=tilted)
    return Result(experiment, experiment.run(), None, 0.1)


def test_of_bodies_in_space_is_shown_what_moves(turned):
    drawn = spatial.states(turned)
    (frame,) = [body.frame for body in bodies_of(turned.experiment, turned.experiment.x0)]
    assert [axes.get_ylabel() for axes in drawn.axes] == ["body z axis", "body rates (rad/s)"]
    assert [axes.get_title() for axes in drawn.axes] == [frame, ""]
    rates = bodies_of(turned.experiment, turned.loop.trajectory.states[-1])[0]
    ends = [curve.get_ydata()[-1] for curve in drawn.axes[1].lines[::2]]
    np.testing.assert_array_equal(ends, rates.angular_velocity_body)
    ends = [curve.get_ydata()[-1] for curve in drawn.axes[0].lines[::2]]
    axis = quat2mat(rates.quaternion_wxyz) @ [0.0, 0.0, 1.0]
    np.testing.assert_allclose(ends, axis, atol=1e-15)
    assert np.abs(axis - quat2mat(rates.quaternion_wxyz)[2]).max() > 0.1  # no symmetric turn


def test_the_system_is_drawn_in_front_of_its_track(turned):
    away = np.linspace([0.0, 0, 0], [10.0, 1, 2], len(turned.loop.trajectory) + 1)
    axes = spatial.path(turned, {"body": away}, {"body": away + [0, 1, 0]}).axes[0]
    solids = [part for part in axes.collections if isinstance(part, Poly3DCollection)]
    scenes = [scene(turned.experiment, turned.loop.trajectory.states[k]) for k in (0, -1)]
    faces = sum(len(solid.faces) for solid in scenes[0].solids)
    assert len(solids) >= 1 and all(len(part.get_facecolor()) == faces for part in solids)
    assert not axes.computed_zorder  # or matplotlib would sort by the distance alone
    assert min(part.zorder for part in solids) > min(one.zorder for one in axes.lines)


def test_axes_in_space_have_few_ticks_and_fit_the_figure():
    """Boxes with equal sides far from the origin, and flat boxes."""
    heights = {}
    for height in (1.0, 4.0):
        figure, low = Figure(), np.array([100.0, -50.0, 20.0])
        axes = spatial._axes(figure, low, low + [4.0, 4.0, height])
        heights[height] = figure.get_size_inches()[1]
        for axis in (axes.xaxis, axes.yaxis):
            assert 3 <= len(axis.get_major_locator()()) <= 9
        position = axes.get_position()
        assert position.width * style.WIDTH == pytest.approx(position.height * heights[height])
    assert heights[1.0] < heights[4.0] < 1.2 * style.WIDTH


def test_body_axes_begin_in_the_body_and_point_along_it():
    half = np.sqrt(0.5)
    turned = np.array([half, 0, 0, half])
    pose = Pose(np.array([1.0, 2, 3]), quat2mat(turned))
    for (line, _), direction in zip(_axes(pose), ([0, 1, 0], [-1, 0, 0], [0, 0, 1])):
        np.testing.assert_array_equal(line[0], pose.position)
        length = np.linalg.norm(line[1] - line[0])
        np.testing.assert_allclose((line[1] - line[0]) / length, direction, atol=1e-12)


def test_a_rotating_body_is_drawn_at_equal_times_in_one_cube(turned):
    drawn = attitude.path(turned)
    nodes = np.unique(np.linspace(0, len(turned.loop.trajectory), 8).round().astype(int))
    titles = [f"{t:.1f} s" for t in turned.loop.trajectory.times[nodes]]
    assert [axes.get_title() for axes in drawn.axes] == titles
    for axes, k in zip(drawn.axes, nodes):
        sizes = [np.ptp(limits) for limits in (axes.get_xlim(), axes.get_ylim(), axes.get_zlim())]
        np.testing.assert_allclose(sizes, sizes[0])
        drawn_lines = np.vstack(
            [
                np.vstack(part._segments3d)
                for part in axes.collections
                if hasattr(part, "_segments3d")
            ]
        )
        seen = scene(turned.experiment, turned.loop.trajectory.states[k])
        for axis, _ in seen.axes:
            assert np.abs(drawn_lines - axis[1]).max(axis=1).min() < 1e-12
        wanted = scene(turned.experiment, turned.targets[k]).solids[-1].faces[0]
        ghosts = np.vstack(axes.collections[0]._segments3d)
        assert max(np.abs(ghosts - point).max(axis=1).min() for point in wanted) < 1e-12
    legend = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert legend == ["tracked", "reference"]


def test_the_cube_holds_what_turns_and_its_ghost(turned, monkeypatch):
    """The reference may reach farther than the run."""

    def seen(_, x):
        size = 5.0 if any(np.array_equal(x, target) for target in targets) else 1.0
        return Scene(outlines=[np.array([[-size, 0.0, 0.0], [size, 0.0, 0.5]])])

    states, targets = turned.loop.trajectory.states, turned.targets
    assert not any(np.array_equal(x, target) for x in states for target in targets)
    monkeypatch.setattr(attitude, "scene", seen)
    axes = attitude.path(turned).axes[0]
    assert axes.get_xlim() == axes.get_ylim() == (-5.0, 5.0)
    assert axes.get_zlim() == (-4.75, 5.25)


@pytest.mark.parametrize(("steps", "rows"), [(1, 1), (4, 2), (5, 2)])
def test_of_a_short_run_every_node_is_seen_in_rows_of_four(turned, steps, rows):
    short = replace(turned.experiment, steps=steps)
    drawn = attitude.path(Result(short, short.run(), None, 0.1))
    places = [axes.get_subplotspec() for axes in drawn.axes]
    assert [(at.rowspan.start, at.colspan.start) for at in places] == [
        divmod(k, 4) for k in range(steps + 1)
    ]
    assert {at.get_gridspec().nrows for at in places} == {rows}
