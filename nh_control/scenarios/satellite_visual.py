"""Visual model of a satellite with reaction wheels."""

from __future__ import annotations

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.scenarios.visual_model import BLUE, ORANGE, RUBBER, STEEL, Pose, Shape, VisualModel
from nh_control.systems.satellite import SatelliteParameters, axles

WORLD = "odom"
BODY_M, WHEEL_M, OUT_M = 0.6, 0.18, 0.2
"""Side of the body, diameter of a wheel and its distance from the center."""


def poses(parameters: SatelliteParameters, q: np.ndarray) -> dict[str, Pose]:
    """The satellite and its wheels, z along their axles."""
    body = Pose(np.zeros(3), quat2mat(q[:4]))
    frames = {"satellite": body}
    for i, axle in enumerate(np.asarray(axles(parameters)).T):
        across = np.array([-axle[1], axle[0], 0.0])
        tilt = np.arctan2(np.hypot(*axle[:2]), axle[2])
        wheel = body.rotated(tilt, tuple(OUT_M * axle), tuple(across))
        frames[f"wheel{i + 1}"] = wheel.rotated(q[4 + i], (0.0, 0.0, 0.0))
    return frames


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
    return VisualModel(parent=WORLD, poses=poses, shapes=tuple(shapes))
