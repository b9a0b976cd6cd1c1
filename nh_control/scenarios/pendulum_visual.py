"""Visual model of a pendulum: it swings in the x-z plane."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.visual_model import ORANGE, STEEL, WOOD, Pose, Shape, VisualModel
from nh_control.systems import PendulumParameters

SWING_AXIS = (0.0, -1.0, 0.0)
"""About which an angle from the downward vertical turns towards x."""


def rod(length: float, frame: str) -> tuple[Shape, Shape]:
    """A rod that hangs from a frame's origin, with a ball at its end."""
    return (
        Shape("box", (0.03 * length, 0.03 * length, length), WOOD, frame, (0.0, 0.0, -length / 2)),
        Shape("sphere", (0.16 * length,) * 3, ORANGE, frame, (0.0, 0.0, -length)),
    )


def poses(parameters: PendulumParameters, q: np.ndarray) -> dict[str, Pose]:
    """The pivot, at a height at which the pendulum stays above the ground, the rod, and its
    end.
    """
    pivot = Pose(np.array([0.0, 0.0, 1.2 * parameters.l]), np.eye(3))
    swung = pivot.rotated(q[0], (0.0, 0.0, 0.0), SWING_AXIS)
    return {"pivot": pivot, "rod": swung, "end": swung.rotated(0.0, (0.0, 0.0, -parameters.l))}


def visual_model(parameters: PendulumParameters) -> VisualModel:
    """The rod on a post."""
    l = parameters.l
    post = Shape("box", (0.05 * l, 0.05 * l, 1.2 * l), STEEL, "pivot", (0.0, 0.08 * l, -0.6 * l))
    return VisualModel("odom", poses, (post, *rod(l, "rod")), trail="end")
