"""Visual model of a Chaplygin sleigh."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.visual_model import ORANGE, STEEL, WOOD, Pose, Shape, VisualModel
from nh_control.systems import ChaplyginSleighParameters


def poses(parameters: ChaplyginSleighParameters, q: np.ndarray) -> dict[str, Pose]:
    """The body, below its center of mass, and the skate at configuration (theta, x, y)."""
    body = Pose.planar(*q)
    return {"body": body, "skate": body.rotated(0.0, (-parameters.a, 0.0, 0.0))}


def visual_model(parameters: ChaplyginSleighParameters) -> VisualModel:
    """A board on the skate's blade behind and two sliding feet in front, the center of mass
    marked; all scale with a.
    """
    a = parameters.a
    shapes = [
        Shape("box", (1.6 * a, 0.2 * a, 0.06 * a), WOOD, "body", (-0.3 * a, 0.0, 0.2 * a)),
        Shape("box", (0.2 * a, 1.0 * a, 0.06 * a), WOOD, "body", (0.4 * a, 0.0, 0.2 * a)),
        Shape("cylinder", (0.3 * a, 0.3 * a, 0.1 * a), ORANGE, "body", (0.0, 0.0, 0.28 * a)),
        Shape("box", (0.5 * a, 0.03 * a, 0.18 * a), STEEL, "skate", (0.0, 0.0, 0.09 * a)),
    ]
    for side in (-0.45 * a, 0.45 * a):
        shapes.append(Shape("sphere", (0.17 * a,) * 3, STEEL, "body", (0.4 * a, side, 0.085 * a)))
    return VisualModel("odom", poses, tuple(shapes), trail="skate")
