"""Visual model of a rolling ball."""

from __future__ import annotations

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.scenarios.visual_model import BLUE, ORANGE, RUBBER, STEEL, Pose, Shape, VisualModel
from nh_control.systems import RollingBallParameters


def poses(parameters: RollingBallParameters, q: np.ndarray) -> dict[str, Pose]:
    """The ball and its point of contact at configuration (unit quaternion, x, y)."""
    ground = np.array([q[4], q[5], 0.0])
    return {
        "contact": Pose(ground, np.eye(3)),
        "ball": Pose(ground + [0.0, 0.0, parameters.r], quat2mat(q[:4])),
    }


def visual_model(parameters: RollingBallParameters) -> VisualModel:
    """A ball with marks where its axes leave it."""
    r = parameters.r
    marks = (
        Shape("sphere", (0.24 * r,) * 3, color, "ball", tuple(sign * 0.88 * r * axis))
        for axis, color in zip(np.eye(3), (ORANGE, STEEL, RUBBER))
        for sign in (-1.0, 1.0)
    )
    ball = Shape("sphere", (2 * r,) * 3, BLUE, "ball")
    return VisualModel("odom", poses, (ball, *marks), trail="contact")
