"""The visual model of a satellite with reaction wheels."""

from __future__ import annotations

import numpy as np
from transforms3d.axangles import axangle2mat

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import FrameTree, floating, remainder, revolute
from nh_control.scenarios.visual_model import (
    BLUE,
    ODOM,
    ORANGE,
    RUBBER,
    STEEL,
    Pose,
    Shape,
    VisualModel,
)
from nh_control.systems.satellite import SatelliteParameters, axles

BODY_M, WHEEL_M, OUT_M = 0.6, 0.18, 0.2
"""Side of the body, diameter of a wheel, and distance between a wheel and the center (m)."""


def frame_tree(parameters: SatelliteParameters) -> FrameTree:
    """The satellite and its wheels. The z axis of each wheel is along its axle.

    The model has no masses, because the center does not move. The body is given the mass of a cube
    that has the drawn size and the body's mean inertia. The wheels are given the masses of discs
    with the drawn size.
    """
    attitude = ("qw", "qx", "qy", "qz")
    frames, parts = [floating("satellite", ODOM, attitude)], []
    for i, (axle, J) in enumerate(
        zip(np.asarray(axles(parameters)).T, parameters.wheel_inertias), 1
    ):
        across, tilt = (-axle[1], axle[0], 0.0), np.arctan2(np.hypot(axle[0], axle[1]), axle[2])
        wheel, place = f"wheel{i}", tuple(OUT_M * axle)
        pose = Pose.at(place, axangle2mat(across, tilt))
        frames.append(revolute(wheel, "satellite", wheel, position=place, rotation=pose.rotation))
        # A disc of diameter d has J = m d^2 / 8 about its axle, and a cube of side a has
        # J = m a^2 / 6.
        parts.append((Body(wheel, 8 * J / WHEEL_M**2, inertia=(J / 2, J / 2, J)), pose))
    inertia = np.array(
        [parameters.Jx, parameters.Jy, parameters.Jz]
    )  # includes the wheels, except about their axles
    about = sum(
        J * np.outer(a, a)
        for J, a in zip(parameters.wheel_inertias, np.asarray(axles(parameters)).T)
    )
    mass = 6 * inertia.mean() / BODY_M**2 + sum(part.mass for part, _ in parts)
    rest = remainder(Body("satellite", mass, inertia=np.diag(inertia) + about), parts)
    return FrameTree(
        (*attitude, *(frame.name for frame in frames[1:])),
        frames,
        (rest, *(part for part, _ in parts)) if rest else (),
        "the inertias Jx, Jy and Jz are too small for wheels of the drawn size",
    )


def visual_model(parameters: SatelliteParameters) -> VisualModel:
    """A transparent box with solar panels on both sides and a telescope along x. It contains the
    wheels, each of which has a spoke.
    """
    shapes = [
        Shape("box", (BODY_M,) * 3, STEEL, "satellite", opacity=0.35),
        Shape("box", (0.3, 0.12, 0.12), ORANGE, "satellite", (0.4, 0.0, 0.0)),
    ]
    for side in (1.0, -1.0):
        shapes.append(Shape("box", (0.4, 1.2, 0.02), BLUE, "satellite", (0.0, 1.0 * side, 0.0)))
    for i in range(parameters.n):
        shapes.append(Shape("cylinder", (WHEEL_M, WHEEL_M, 0.04), RUBBER, f"wheel{i + 1}"))
        shapes.append(Shape("box", (0.95 * WHEEL_M, 0.02, 0.05), STEEL, f"wheel{i + 1}"))
    return VisualModel(parent=ODOM, poses=frame_tree(parameters), shapes=tuple(shapes))
