"""Visual model of a car."""

from __future__ import annotations

from functools import partial

import numpy as np

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import (
    FrameTree,
    floating,
    planar,
    remainder,
    revolute,
)
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
COORDINATES = ("wheel", "delta", "theta", "x", "y")


PART = 0.01
"""Fraction of the mass in a wheel and in the steering: the model has the total mass alone."""


def frame_tree(parameters: CarParameters) -> FrameTree:
    """The body, on the ground below the middle of its rear axle, the wheels, and the steering.

    Each front wheel is turned towards the common center of the curve (Ackermann steering); they
    are drawn without their rolling, which is no coordinate. The inertia about the steering angle
    is that of the frame `steering`.
    """
    p, half = parameters, GAUGE * parameters.l / 2
    frames = [
        planar("body", "odom"),
        revolute("steering", "body", "delta", position=(p.l, 0, p.r)),
    ]
    for side, offset in (("left", half), ("right", -half)):
        rear, front = f"rear_{side}", f"front_{side}"
        frames.append(revolute(rear, "body", "wheel", AXLE, (0.0, offset, p.r)))
        turned = partial(_turned, p.l, offset)
        frames.append(floating(front, "body", ["delta"], turned, (p.l, offset, p.r)))
    small, J = PART * p.m, p.J_wheel / 2
    parts = [Body("steering", small, inertia=(p.J_steer / 2, p.J_steer / 2, p.J_steer))]
    parts += [Body(f"rear_{side}", small, inertia=(J / 2, J, J / 2)) for side in ("left", "right")]
    still = FrameTree(COORDINATES, frames)(None, np.zeros(5))
    whole = Body("body", p.m, (p.b, 0.0, p.r), (p.I,) * 3)
    rest = remainder(whole, [(part, still[part.frame]) for part in parts])
    return FrameTree(
        COORDINATES,
        frames,
        (rest, *parts) if rest else (),
        "the yaw inertia I is smaller than that of the wheels and the steering",
    )


def _turned(l: float, offset: float, delta: np.ndarray) -> Pose:
    """The turn of a front wheel at this distance from the middle at a steering angle."""
    s, c = np.sin(delta[0]), np.cos(delta[0])
    return Pose.planar(np.arctan2(l * s, l * c - offset * s), 0.0, 0.0)


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
    return VisualModel("odom", frame_tree(parameters), (*shapes, *wheels), trail="body")
