"""Visual model of an acrobot: it swings in the x-z plane."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.pendulum_visual import SWING_AXIS
from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    RUBBER,
    STEEL,
    WOOD,
    Pose,
    Shape,
    VisualModel,
)
from nh_control.systems import AcrobotParameters


def poses(parameters: AcrobotParameters, q: np.ndarray) -> dict[str, Pose]:
    """The pivot, at a height at which both links stay above the ground, the links, and the tip."""
    p = parameters
    pivot = Pose(np.array([0.0, 0.0, 1.1 * (p.l1 + p.l2)]), np.eye(3))
    upper = pivot.rotated(q[0], (0.0, 0.0, 0.0), SWING_AXIS)
    lower = upper.rotated(q[1], (0.0, 0.0, -p.l1), SWING_AXIS)
    return {
        "pivot": pivot,
        "upper_link": upper,
        "lower_link": lower,
        "tip": lower.rotated(0.0, (0.0, 0.0, -p.l2)),
    }


def visual_model(parameters: AcrobotParameters) -> VisualModel:
    """Two bars beside each other, the motor between them, and a post behind."""
    width, height = 0.06, 1.1 * (parameters.l1 + parameters.l2)
    shapes = [
        Shape("box", (width, width, height), STEEL, "pivot", (0.0, 1.6 * width, -height / 2)),
        Shape("sphere", (2 * width,) * 3, ORANGE, "tip"),
    ]
    for frame, length, color, y in (
        ("upper_link", parameters.l1, WOOD, width / 2),
        ("lower_link", parameters.l2, BLUE, -width / 2),
    ):
        bar = (width, 0.9 * width, length)
        shapes.append(Shape("box", bar, color, frame, (0.0, y, -length / 2)))
        hinge = (1.8 * width, 1.8 * width, 2.2 * width)
        shapes.append(Shape("cylinder", hinge, RUBBER, frame, roll=np.pi / 2))
    return VisualModel("odom", poses, tuple(shapes), trail="tip")
