"""Visual model of a satellite with reaction wheels."""

from __future__ import annotations

import numpy as np
from transforms3d.axangles import axangle2mat

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import FrameTree, floating, remainder, revolute
from nh_control.scenarios.visual_model import BLUE, ORANGE, RUBBER, STEEL, Pose, Shape, VisualModel
from nh_control.systems.satellite import SatelliteParameters, axles

WORLD = "odom"
BODY_M, WHEEL_M, OUT_M = 0.6, 0.18, 0.2
"""Side of the body, diameter of a wheel and its distance from the center."""


def frame_tree(parameters: SatelliteParameters) -> FrameTree:
    """The satellite and its wheels, z along their axles.

    The model has no masses, because the center does not move: the body has that of a cube of the
    drawn size with its mean inertia, the wheels those of discs of the drawn size.
    """
    p, attitude = parameters, ("qw", "qx", "qy", "qz")
    frames, parts = [floating("satellite", WORLD, attitude)], []
    for i, (axle, J) in enumerate(zip(np.asarray(axles(p)).T, p.wheel_inertias), 1):
        across, tilt = (-axle[1], axle[0], 0.0), np.arctan2(np.hypot(*axle[:2]), axle[2])
        wheel, place = f"wheel{i}", tuple(OUT_M * axle)
        pose = Pose.at(place, axangle2mat(across, tilt))
        frames.append(revolute(wheel, "satellite", wheel, position=place, rotation=pose.rotation))
        parts.append((Body(wheel, 8 * J / WHEEL_M**2, inertia=(J / 2, J / 2, J)), pose))
    inertia = np.array([p.Jx, p.Jy, p.Jz])  # with that of the wheels, except about their axles
    about = sum(J * np.outer(a, a) for J, a in zip(p.wheel_inertias, np.asarray(axles(p)).T))
    mass = 6 * inertia.mean() / BODY_M**2 + sum(part.mass for part, _ in parts)
    rest = remainder(Body("satellite", mass, inertia=np.diag(inertia) + about), parts)
    return FrameTree(
        (*attitude, *(frame.name for frame in frames[1:])),
        frames,
        (rest, *(part for part, _ in parts)) if rest else (),
        "the inertias Jx, Jy and Jz are too small for wheels of the drawn size",
    )


def visual_model(parameters: SatelliteParameters) -> VisualModel:
    """A box with a solar panel to either side, a telescope that looks along x, and inside the
    wheels with a spoke each.
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
    return VisualModel(parent=WORLD, poses=frame_tree(parameters), shapes=tuple(shapes))
