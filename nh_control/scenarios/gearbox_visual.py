"""Visual model of the continuous gearbox."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.pendulum_visual import SWING_AXIS
from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    STEEL,
    WOOD,
    Cable,
    Pose,
    Shape,
    VisualModel,
)
from nh_control.systems import GearboxParameters

WALL, ASIDE = 3.0, 0.8
"""Distance of the springs' other ends, and of the oscillators from the pendulum (m)."""


def poses(parameters: GearboxParameters, q: np.ndarray) -> dict[str, Pose]:
    """The oscillators on both sides of the pendulum, which stands up at theta = 0, and the walls
    that their springs hold to, at configuration (x_1, x_2, theta).
    """
    middle = Pose(np.zeros(3), np.eye(3))
    pendulum = middle.rotated(q[2], (0.0, 0.0, 0.3), (-np.array(SWING_AXIS)).tolist())
    return {
        "pendulum": pendulum,
        "bob": pendulum.rotated(0.0, (0.0, 0.0, 1.0)),
        "first": middle.rotated(0.0, (q[0], ASIDE, 0.15)),
        "second": middle.rotated(0.0, (q[1], -ASIDE, 0.15)),
        "first_wall": middle.rotated(0.0, (-WALL, ASIDE, 0.15)),
        "second_wall": middle.rotated(0.0, (-WALL, -ASIDE, 0.15)),
    }


def visual_model(parameters: GearboxParameters) -> VisualModel:
    """Two sliding masses with their springs as lines, and a pendulum of 1 m between them."""
    shapes = [
        Shape("box", (0.06, 0.06, 1.0), STEEL, "pendulum", (0.0, 0.0, 0.5)),
        Shape("sphere", (0.25, 0.25, 0.25), ORANGE, "bob"),
    ]
    for name in ("first", "second"):
        shapes.append(Shape("box", (0.4, 0.4, 0.3), BLUE, name))
        shapes.append(Shape("box", (0.1, 0.6, 0.6), WOOD, f"{name}_wall"))
    cables = (Cable("first_wall", "first"), Cable("second_wall", "second"))
    return VisualModel("odom", poses, tuple(shapes), trail="bob", cables=cables)
