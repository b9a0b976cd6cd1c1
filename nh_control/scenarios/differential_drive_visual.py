"""The visual model of a differential drive."""

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
    """The body and the wheels. The body's origin is on the ground below the midpoint of the
    axle.
    """
    inertia = (parameters.J_yaw, parameters.J_roll, parameters.J_yaw)
    sides = (("left", parameters.b), ("right", -parameters.b))
    wheels = [f"{side}_wheel" for side, _ in sides]
    return FrameTree(
        ("left", "right", "theta", "x", "y"),
        (
            planar("body", "odom"),
            *(
                revolute(wheel, "body", side, AXLE, (0.0, offset, parameters.r))
                for wheel, (side, offset) in zip(wheels, sides)
            ),
        ),
        (
            Body(
                "body",
                parameters.m_body,
                (parameters.d, 0.0, parameters.r),
                (parameters.I_body / 2, parameters.I_body / 2, parameters.I_body),
            ),
            *(
                Body(wheel, parameters.m_wheel, ORIGIN, inertia, accept_any_inertia=True)
                for wheel in wheels
            ),
        ),
    )


def visual_model(parameters: DifferentialDriveParameters) -> VisualModel:
    """A round body between two wheels, with a nose at the front and a caster at the rear."""
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
