"""Conversions between the package's frames and those of flight controllers, axis by axis."""

import numpy as np
import pytest
from transforms3d.axangles import axangle2mat
from transforms3d.quaternions import axangle2quat, mat2quat, quat2mat

from nh_control.autopilots.frames import attitude_to_ned, roll_pitch_yaw, to_frd, to_ned

RIGHT_ANGLE = np.pi / 2


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [((1, 0, 0), (1, 0, 0)), ((0, 1, 0), (0, -1, 0)), ((0, 0, 1), (0, 0, -1))],
    ids=["forward", "left", "up"],
)
def test_axes_of_the_body(ours, theirs):
    np.testing.assert_array_equal(to_frd(ours), theirs)
    np.testing.assert_array_equal(to_frd(theirs), ours)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [((1, 0, 0), (0, 1, 0)), ((0, 1, 0), (1, 0, 0)), ((0, 0, 1), (0, 0, -1))],
    ids=["east", "north", "up"],
)
def test_axes_of_the_world(ours, theirs):
    np.testing.assert_array_equal(to_ned(ours), theirs)
    np.testing.assert_array_equal(to_ned(theirs), ours)


@pytest.mark.parametrize(
    ("axis", "angle", "expected"),
    [  # roll, pitch and yaw of a craft whose nose points north before the turn
        ((0, 0, 1), 0.0, (0, 0, 0)),
        ((1, 0, 0), 0.3, (0.3, 0, 0)),  # right side down
        ((0, 1, 0), 0.3, (0, -0.3, 0)),  # nose down
        ((0, 0, 1), 0.3, (0, 0, -0.3)),  # turned left, to the west
    ],
    ids=["north", "roll", "pitch", "yaw"],
)
def test_rotations(axis, angle, expected):
    north = axangle2mat((0, 0, 1), RIGHT_ANGLE)
    ours = mat2quat(north @ axangle2mat(axis, angle))
    np.testing.assert_allclose(roll_pitch_yaw(attitude_to_ned(ours)), expected, atol=1e-12)


def test_a_nose_to_the_east_has_a_heading_of_90_degrees():
    turned = attitude_to_ned((1.0, 0.0, 0.0, 0.0))
    np.testing.assert_allclose(roll_pitch_yaw(turned), (0, 0, RIGHT_ANGLE), atol=1e-12)


def test_vectors_turn_with_the_attitude():
    """`ned(R a) = R' frd(a)` for any attitude, and the way back is the same."""
    draw = np.random.default_rng(0)
    for _ in range(10):
        ours = axangle2quat(draw.standard_normal(3), draw.uniform(0, np.pi))
        a, theirs = draw.standard_normal(3), attitude_to_ned(ours)
        np.testing.assert_allclose(to_ned(quat2mat(ours) @ a), quat2mat(theirs) @ to_frd(a))
        np.testing.assert_allclose(quat2mat(attitude_to_ned(theirs)), quat2mat(ours), atol=1e-12)
