"""Visual model of a differential drive."""

from __future__ import annotations

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import ORIGIN, FrameTree, planar, revolute
from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    RUBBER,
    STEEL,
    Shape,
    VisualModel,
    wheel,
)
from nh_control.systems import DifferentialDriveParameters

AXLE = (0.0, 1.0, 0.0)


def frame_tree(parameters: DifferentialDriveParameters) -> FrameTree:
    """The body, on the ground below the middle of its axle, and the wheels."""
    p, inertia = parameters, (parameters.J_yaw, parameters.J_roll, parameters.J_yaw)
    sides = (("left", p.b), ("right", -p.b))
    wheels = [f"{side}_wheel" for side, _ in sides]
    return FrameTree(
        ("left", "right", "theta", "x", "y"),
        (
            planar("body", "odom"),
            *(
                revolute(wheel, "body", side, AXLE, (0.0, offset, p.r))
                for wheel, (side, offset) in zip(wheels, sides)
            ),
        ),
        (
            Body("body", p.m_body, (p.d, 0.0, p.r), (p.I_body / 2, p.I_body / 2, p.I_body)),
            *(
                Body(wheel, p.m_wheel, ORIGIN, inertia, accept_any_inertia=True)
                for wheel in wheels
            ),
        ),
    )


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
    return VisualModel("odom", frame_tree(parameters), shapes, trail="body")
