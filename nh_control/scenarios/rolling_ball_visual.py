"""The visual model of a rolling ball."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.declared_frames import FrameTree, floating
from nh_control.scenarios.visual_model import BLUE, ORANGE, RUBBER, STEEL, Pose, Shape, VisualModel
from nh_control.systems import RollingBallParameters


def frame_tree(parameters: RollingBallParameters) -> FrameTree:
    """The contact point, and the ball above it."""
    attitude = ("qw", "qx", "qy", "qz")
    return FrameTree(
        (*attitude, "x", "y"),
        (
            floating("contact", "odom", ("x", "y"), lambda c: Pose.planar(0.0, c[0], c[1])),
            floating("ball", "contact", attitude, position=(0.0, 0.0, parameters.r)),
        ),
    )


def visual_model(parameters: RollingBallParameters) -> VisualModel:
    """A ball with marks where its axes intersect the surface."""
    r = parameters.r
    marks = (
        Shape("sphere", (0.24 * r,) * 3, color, "ball", tuple(sign * 0.88 * r * axis))
        for axis, color in zip(np.eye(3), (ORANGE, STEEL, RUBBER))
        for sign in (-1.0, 1.0)
    )
    ball = Shape("sphere", (2 * r,) * 3, BLUE, "ball")
    return VisualModel("odom", frame_tree(parameters), (ball, *marks), trail="contact")
