"""The visual model of a snakeboard."""

from __future__ import annotations

import numpy as np

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import FrameTree, planar, remainder, revolute
from nh_control.scenarios.visual_model import ORANGE, RUBBER, STEEL, WOOD, Pose, Shape, VisualModel
from nh_control.systems import SnakeboardParameters

PART = 0.01
"""Fraction of the mass in the rotor and in each truck. The model only has a total mass."""


def frame_tree(parameters: SnakeboardParameters) -> FrameTree:
    """The board, the rotor and the trucks. The front truck rotates by -phi."""
    still = Pose.at((0.0, 0.0, 0.0))
    rear, front = (-parameters.l, 0.0, 0.0), (parameters.l, 0.0, 0.0)
    rotor, *trucks = (
        Body(frame, PART * parameters.m, inertia=(J / 2, J / 2, J))
        for frame, J in (
            ("rotor", parameters.I),
            ("rear_truck", parameters.J),
            ("front_truck", parameters.J),
        )
    )
    whole = Body("board", parameters.m, inertia=(parameters.m * parameters.l**2,) * 3)
    rest = remainder(whole, zip((rotor, *trucks), (still, Pose.at(rear), Pose.at(front))))
    return FrameTree(
        ("psi", "phi", "theta", "x", "y"),
        (
            planar("board", "odom"),
            revolute("rotor", "board", "psi"),
            revolute("rear_truck", "board", "phi", position=rear),
            revolute("front_truck", "board", "phi", position=front, ratio=-1.0),
        ),
        (rest, rotor, *trucks) if rest else (),
        "the total yaw inertia m l^2 is smaller than that of the rotor and the trucks",
    )


def visual_model(parameters: SnakeboardParameters) -> VisualModel:
    """A board of length 2 l, a truck with two wheels under each end, and a bar above the middle
    that represents the rotor. All sizes are proportional to l.
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
    return VisualModel("odom", frame_tree(parameters), tuple(parts), trail="board")
