"""Visual model of a car."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    STEEL,
    Pose,
    Shape,
    VisualModel,
    wheel,
)
from nh_control.systems import CarParameters

GAUGE = 0.6
"""Distance between the wheels of an axle in axle distances."""
AXLE = (0.0, 1.0, 0.0)


def poses(parameters: CarParameters, q: np.ndarray) -> dict[str, Pose]:
    """The body, on the ground below the middle of its rear axle, and the wheels at configuration
    (wheel, delta, theta, x, y).

    Each front wheel is turned towards the common center of the curve (Ackermann steering); they
    are drawn without their rolling, which is no coordinate.
    """
    roll, delta, theta, x, y = q
    l, r, half = parameters.l, parameters.r, GAUGE * parameters.l / 2
    body = Pose.planar(theta, x, y)
    frames = {"body": body}
    for side, offset in (("left", half), ("right", -half)):
        angle = np.arctan2(l * np.sin(delta), l * np.cos(delta) - offset * np.sin(delta))
        frames[f"rear_{side}"] = body.rotated(roll, (0.0, offset, r), AXLE)
        frames[f"front_{side}"] = body.rotated(angle, (l, offset, r))
    return frames


def visual_model(parameters: CarParameters) -> VisualModel:
    """A chassis with a cabin on four wheels."""
    l, r = parameters.l, parameters.r
    gauge = GAUGE * l
    wheels = [
        shape
        for axle in ("rear", "front")
        for side in ("left", "right")
        for shape in wheel(f"{axle}_{side}", r, 0.6 * r)
    ]
    shapes = (
        Shape("box", (1.55 * l, 0.85 * gauge, 1.4 * r), BLUE, "body", (l / 2, 0.0, 1.6 * r)),
        Shape("box", (0.75 * l, 0.75 * gauge, 1.5 * r), STEEL, "body", (0.4 * l, 0.0, 3.0 * r)),
        Shape("box", (0.04 * l, 0.7 * gauge, 0.4 * r), ORANGE, "body", (1.27 * l, 0.0, 1.8 * r)),
    )
    return VisualModel("odom", poses, (*shapes, *wheels), trail="body")
