"""The visual model of a car."""

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
"""Track width divided by the wheelbase."""
AXLE = (0.0, 1.0, 0.0)
COORDINATES = ("wheel", "delta", "theta", "x", "y")


PART = 0.01
"""Fraction of the mass in each wheel and in the steering. The model only has a total mass."""


def frame_tree(parameters: CarParameters) -> FrameTree:
    """The body, the wheels and the steering. The origin of the body is on the ground below the
    midpoint of the rear axle.

    Each front wheel is perpendicular to the line between the wheel and the center of the curve
    (Ackermann steering). The front wheels do not roll in the drawing, because their roll angles
    are not coordinates. The frame `steering` carries the inertia about the steering axis.
    """
    half = GAUGE * parameters.l / 2
    frames = [
        planar("body", "odom"),
        revolute("steering", "body", "delta", position=(parameters.l, 0, parameters.r)),
    ]
    for side, offset in (("left", half), ("right", -half)):
        rear, front = f"rear_{side}", f"front_{side}"
        frames.append(revolute(rear, "body", "wheel", AXLE, (0.0, offset, parameters.r)))
        turned = partial(_turned, parameters.l, offset)
        frames.append(
            floating(front, "body", ["delta"], turned, (parameters.l, offset, parameters.r))
        )
    small, J = PART * parameters.m, parameters.J_wheel / 2
    parts = [
        Body(
            "steering",
            small,
            inertia=(parameters.J_steer / 2, parameters.J_steer / 2, parameters.J_steer),
        )
    ]
    parts += [Body(f"rear_{side}", small, inertia=(J / 2, J, J / 2)) for side in ("left", "right")]
    # The body is the whole car without the wheels and the steering.
    still = FrameTree(COORDINATES, frames)(None, np.zeros(5))
    whole = Body("body", parameters.m, (parameters.b, 0.0, parameters.r), (parameters.I,) * 3)
    rest = remainder(whole, [(part, still[part.frame]) for part in parts])
    return FrameTree(
        COORDINATES,
        frames,
        (rest, *parts) if rest else (),
        "the yaw inertia I is smaller than that of the wheels and the steering",
    )


def _turned(l: float, offset: float, delta: np.ndarray) -> Pose:
    """The rotation of a front wheel at a given steering angle. The wheel is `offset` (m) to the
    left of the middle.
    """
    s, c = np.sin(delta[0]), np.cos(delta[0])
    # Ackermann: tan(delta_i) = l / (l / tan(delta) - offset).
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
