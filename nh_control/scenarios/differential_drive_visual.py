"""Visual model of a differential drive."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    RUBBER,
    STEEL,
    Pose,
    Shape,
    VisualModel,
    wheel,
)
from nh_control.systems import DifferentialDriveParameters

AXLE = (0.0, 1.0, 0.0)


def poses(parameters: DifferentialDriveParameters, q: np.ndarray) -> dict[str, Pose]:
    """The body, on the ground below the middle of its axle, and the wheels at configuration (left,
    right, theta, x, y).
    """
    left, right, theta, x, y = q
    body = Pose.planar(theta, x, y)
    return {
        "body": body,
        "left_wheel": body.rotated(left, (0.0, parameters.b, parameters.r), AXLE),
        "right_wheel": body.rotated(right, (0.0, -parameters.b, parameters.r), AXLE),
    }


def visual_model(parameters: DifferentialDriveParameters) -> VisualModel:
    """A round body with its nose forward between two wheels, and a caster behind."""
    b, r = parameters.b, parameters.r
    radius = 0.85 * b
    shapes = (
        Shape("cylinder", (2 * radius, 2 * radius, r), BLUE, "body", (0.0, 0.0, 1.3 * r)),
        Shape("box", (0.7 * radius, 0.25 * b, 0.3 * r), ORANGE, "body", (radius, 0.0, 1.5 * r)),
        Shape("sphere", (0.6 * r,) * 3, STEEL, "body", (-0.75 * radius, 0.0, 0.3 * r)),
        Shape("cylinder", (0.4 * b, 0.4 * b, 0.3 * r), RUBBER, "body", (0.0, 0.0, 1.95 * r)),
        *wheel("left_wheel", r, 0.2 * b),
        *wheel("right_wheel", r, 0.2 * b),
    )
    return VisualModel("odom", poses, shapes, trail="body")
