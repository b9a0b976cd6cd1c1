"""Geometry of scenes: faces of shapes, and boxes around points."""

from itertools import pairwise

import numpy as np
import pytest

from nh_control.figures import attitude, planar, spatial
from nh_control.figures.scene import _faces
from nh_control.scenarios.visual_model import Shape

EXTENTS = (0.4, 0.6, 2.0)


def faces(kind):
    return _faces(Shape(kind, EXTENTS, (1.0, 0.0, 0.0), "rod"))


@pytest.mark.parametrize(("kind", "number"), [("box", 6), ("cylinder", 4), ("sphere", 3)])
def test_faces_of_shapes_have_the_extents_of_the_shapes(kind, number):
    found = faces(kind)
    assert len(found) == number
    points = np.vstack(found)
    np.testing.assert_allclose(points.max(axis=0), np.array(EXTENTS) / 2, rtol=0.02)
    np.testing.assert_allclose(points.min(axis=0), -np.array(EXTENTS) / 2, rtol=0.02)


@pytest.mark.parametrize(("kind", "flat"), [("box", 6), ("cylinder", 2)])
def test_rectangles_have_four_corners_and_neighbors_share_a_side(kind, flat):
    rectangles = [face for face in faces(kind) if len(face) == 4]
    assert len(rectangles) == flat
    for face in rectangles:
        sides = [b - a for a, b in pairwise([*face, face[0]])]
        assert all(np.linalg.norm(side) > 0 for side in sides)
        for side, following in pairwise([*sides, sides[0]]):
            assert side @ following == pytest.approx(0.0, abs=1e-12)
    if kind == "box":
        normals = {
            tuple(np.sign(np.round(face.sum(axis=0), 9)).astype(int)) for face in rectangles
        }
        assert len(normals) == 6


POINTS = np.array([[1.0, 2.0, 3.0], [4.0, 2.5, 3.0], [2.0, 2.0, 4.0]])


@pytest.mark.parametrize("bounds", [spatial._bounds, attitude._bounds, planar._bounds])
def test_bounds_are_centered_about_their_points(bounds):
    points = POINTS[:, :2] if bounds is planar._bounds else POINTS
    low, high = bounds(points)
    assert (low <= points.min(axis=0)).all() and (high >= points.max(axis=0)).all()
    np.testing.assert_allclose(low + high, points.min(axis=0) + points.max(axis=0))
    size, longest = high - low, np.ptp(points, axis=0).max()
    assert longest <= size.max() <= 1.04 * longest + 0.11
    least = {
        spatial._bounds: longest / 3,
        attitude._bounds: longest,
        planar._bounds: 0.2 * longest,
    }
    assert size.min() >= least[bounds]


def test_a_flat_path_is_drawn_in_a_box_that_is_not():
    low, high = planar._bounds(np.array([[0.0, 0.0], [10.0, 0.1]]))
    assert (high - low)[1] == pytest.approx(0.2 * (high - low)[0])
