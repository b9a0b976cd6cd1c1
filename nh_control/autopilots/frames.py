"""Conversions between the frames in this package and those in flight controllers. In this package,
the world is east-north-up and bodies are forward-left-up. In flight controllers, the world is
north-east-down and bodies are forward-right-down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from transforms3d.quaternions import qmult

BODY = np.diag([1.0, -1.0, -1.0])
"""Matrix from forward-left-up to forward-right-down axes, which is its own inverse."""
ENU_TO_NED = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
"""Matrix from east-north-up to north-east-down axes, which is its own inverse."""
_BODY_TURN = np.array([0.0, 1.0, 0.0, 0.0])
"""BODY as a quaternion: a half turn about the forward axis."""
_ENU_TO_NED_TURN = np.array([0.0, 1.0, 1.0, 0.0]) / np.sqrt(2)
"""ENU_TO_NED as a quaternion: a half turn about the axis halfway between east and north."""


def to_frd(vector: ArrayLike) -> np.ndarray:
    """Convert a vector (3) from forward-left-up to forward-right-down body axes, or back."""
    return BODY @ np.asarray(vector, dtype=float)


def to_ned(vector: ArrayLike) -> np.ndarray:
    """Convert a vector (3) from east-north-up to north-east-down world axes, or back."""
    return ENU_TO_NED @ np.asarray(vector, dtype=float)


def attitude_to_ned(quaternion: ArrayLike) -> np.ndarray:
    """Convert an attitude (4, wxyz) between the conventions. The rotation from forward-left-up to
    east-north-up becomes the rotation from forward-right-down to north-east-down, or the reverse,
    with w >= 0.
    """
    # q_ned = q_world q q_body, where q and -q are the same attitude
    converted = qmult(qmult(_ENU_TO_NED_TURN, np.asarray(quaternion, dtype=float)), _BODY_TURN)
    return converted if converted[0] >= 0 else -converted


def roll_pitch_yaw(quaternion: ArrayLike) -> np.ndarray:
    """Roll, pitch and yaw (3, rad) of an attitude (4, wxyz) in north-east-down axes. The rotations
    are about the down axis (yaw), then the right axis (pitch), then the forward axis (roll).
    """
    w, x, y, z = np.asarray(quaternion, dtype=float)
    return np.array(
        [
            np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
            np.arcsin(np.clip(2 * (w * y - z * x), -1.0, 1.0)),
            np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
        ]
    )
