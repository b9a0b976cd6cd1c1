"""The visual model of a roller racer."""

from __future__ import annotations

from nh_control.scenarios.declared_frames import FrameTree, fixed, planar, revolute
from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    STEEL,
    Shape,
    VisualModel,
    wheel,
)
from nh_control.systems import RollerRacerParameters


def frame_tree(parameters: RollerRacerParameters) -> FrameTree:
    """The seat, the handlebar at its pivot, and the wheels. The origin of the seat is on the
    ground below the midpoint of its axle. The roll angles of the wheels are not coordinates.
    """
    side, radius = 0.4 * parameters.d1, _radius(parameters)
    return FrameTree(
        ("phi", "theta", "x", "y"),
        (
            planar("seat", "odom"),
            revolute("bar", "seat", "phi", position=(parameters.d1, 0.0, 0.0)),
            *(
                fixed(f"{name}_{hand}", frame, (ahead, offset, radius))
                for name, frame, ahead in (("rear", "seat", 0.0), ("front", "bar", parameters.d2))
                for hand, offset in (("left", side), ("right", -side))
            ),
        ),
    )


def visual_model(parameters: RollerRacerParameters) -> VisualModel:
    """A seat and a handlebar with two wheels each, connected by a pivot."""
    d1, d2, r = parameters.d1, parameters.d2, _radius(parameters)
    shapes = [
        Shape("box", (1.1 * d1, 0.15 * d1, 0.06 * d1), STEEL, "seat", (0.45 * d1, 0.0, 1.5 * r)),
        Shape("box", (0.5 * d1, 0.5 * d1, 0.1 * d1), BLUE, "seat", (0.0, 0.0, 2.4 * r)),
        Shape("box", (d2 + 0.1 * d1, 0.1 * d1, 0.06 * d1), ORANGE, "bar", (d2 / 2, 0.0, 2.0 * r)),
        Shape("box", (0.08 * d1, 0.9 * d1, 0.06 * d1), ORANGE, "bar", (0.0, 0.0, 2.6 * r)),
    ]
    for end in ("rear_left", "rear_right", "front_left", "front_right"):
        shapes += wheel(end, r, 0.6 * r)
    return VisualModel("odom", frame_tree(parameters), tuple(shapes), trail="seat")


def _radius(parameters: RollerRacerParameters) -> float:
    return 0.16 * parameters.d1
