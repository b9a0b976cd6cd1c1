"""The visual model of the continuous gearbox."""

from __future__ import annotations

from nh_control.scenarios.declared_frames import FrameTree, fixed, prismatic, revolute
from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    STEEL,
    WOOD,
    Cable,
    Shape,
    VisualModel,
)
from nh_control.systems import GearboxParameters

WALL, ASIDE = 3.0, 0.8
"""Distance (m) of the walls to which the springs are attached, and lateral distance (m) of the
oscillators.
"""


def frame_tree() -> FrameTree:
    """The pendulum, which stands upright at theta = 0, the oscillators on both sides of the
    pendulum, and the walls to which the springs are attached.
    """
    upright = (0.0, 1.0, 0.0)  # the angle is measured from the upward vertical, towards x
    return FrameTree(
        ("x_1", "x_2", "theta"),
        (
            revolute("pendulum", "odom", "theta", upright, (0.0, 0.0, 0.3)),
            fixed("bob", "pendulum", (0.0, 0.0, 1.0)),
            prismatic("first", "odom", "x_1", position=(0.0, ASIDE, 0.15)),
            prismatic("second", "odom", "x_2", position=(0.0, -ASIDE, 0.15)),
            fixed("first_wall", "odom", (-WALL, ASIDE, 0.15)),
            fixed("second_wall", "odom", (-WALL, -ASIDE, 0.15)),
        ),
    )


def visual_model(parameters: GearboxParameters) -> VisualModel:
    """Two sliding masses with their springs, drawn as lines, and a pendulum of 1 m between the
    masses.
    """
    shapes = [
        Shape("box", (0.06, 0.06, 1.0), STEEL, "pendulum", (0.0, 0.0, 0.5)),
        Shape("sphere", (0.25, 0.25, 0.25), ORANGE, "bob"),
    ]
    for name in ("first", "second"):
        shapes.append(Shape("box", (0.4, 0.4, 0.3), BLUE, name))
        shapes.append(Shape("box", (0.1, 0.6, 0.6), WOOD, f"{name}_wall"))
    cables = (Cable("first_wall", "first"), Cable("second_wall", "second"))
    return VisualModel("odom", frame_tree(), tuple(shapes), trail="bob", cables=cables)
