"""Visual model of a snakeboard."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.visual_model import ORANGE, RUBBER, STEEL, WOOD, Pose, Shape, VisualModel
from nh_control.systems import SnakeboardParameters


def poses(parameters: SnakeboardParameters, q: np.ndarray) -> dict[str, Pose]:
    """The board, its rotor and its trucks at configuration (psi, phi, theta, x, y)."""
    psi, phi, theta, x, y = q
    board = Pose.planar(theta, x, y)
    return {
        "board": board,
        "rotor": board.rotated(psi, (0.0, 0.0, 0.0)),
        "rear_truck": board.rotated(phi, (-parameters.l, 0.0, 0.0)),
        "front_truck": board.rotated(-phi, (parameters.l, 0.0, 0.0)),
    }


def visual_model(parameters: SnakeboardParameters) -> VisualModel:
    """Board of length 2 l, a truck with two wheels under either end, the rotor's bar above the
    middle; all scale with l.
    """
    l = parameters.l
    wheel, gauge, height = 0.1 * l, 0.3 * l, 0.14 * l
    parts = [
        Shape("box", (2.0 * l, 0.12 * l, 0.03 * l), WOOD, "board", (0.0, 0.0, height)),
        Shape(
            "cylinder",
            (0.06 * l, 0.06 * l, 0.16 * l),
            STEEL,
            "board",
            (0.0, 0.0, height + 0.08 * l),
        ),
        Shape(
            "box", (0.9 * l, 0.08 * l, 0.05 * l), ORANGE, "rotor", (0.0, 0.0, height + 0.18 * l)
        ),
    ]
    for truck in ("rear_truck", "front_truck"):
        parts.append(Shape("box", (0.3 * l, 0.36 * l, 0.03 * l), WOOD, truck, (0.0, 0.0, height)))
        parts.append(
            Shape("box", (0.05 * l, gauge, 0.03 * l), STEEL, truck, (0.0, 0.0, wheel / 2))
        )
        for side in (-1, 1):
            parts.append(
                Shape(
                    "cylinder",
                    (wheel, wheel, 0.05 * l),
                    RUBBER,
                    truck,
                    (0.0, side * gauge / 2, wheel / 2),
                    roll=np.pi / 2,
                )
            )
    return VisualModel("odom", poses, tuple(parts), trail="board")
