"""Figures of bodies in space show the positions and sizes of the run."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from transforms3d.quaternions import quat2mat

from nh_control import scenarios
from nh_control.figures import attitude, spatial, style
from nh_control.figures.scene import Scene, _axes, scene
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios.visual_model import Pose


@pytest.fixture(scope="module")
def turned():
    """A satellite that rotates in place."""
    satellite = scenarios.get("satellite")
    tilted = replace(satellite.perturbation, attitude=0.5)
    experiment = Experiment.make(satellite, duration_s=0.5, perturbation=tilted)
    return Result(experiment, experiment.run(), None, 0.1)


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
