"""Visual model of a rolling disk."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Pose, Shape, VisualModel
from nh_control.systems import RollingDiskParameters


def poses(parameters: RollingDiskParameters, q: np.ndarray) -> dict[str, Pose]:
    """The point of contact, x forward, and the disk at configuration (phi, theta, x, y)."""
    contact = Pose.planar(*q[1:])
    return {
        "contact": contact,
        "disk": contact.rotated(q[0], (0.0, 0.0, parameters.r), (0.0, 1.0, 0.0)),
    }


def visual_model(parameters: RollingDiskParameters) -> VisualModel:
    """An upright disk with a line across it and a mark at its rim."""
    r = parameters.r
    shapes = (
        Shape("cylinder", (2 * r, 2 * r, 0.12 * r), BLUE, "disk", roll=np.pi / 2),
        Shape("box", (1.8 * r, 0.16 * r, 0.1 * r), STEEL, "disk"),
        Shape("box", (0.25 * r, 0.2 * r, 0.25 * r), ORANGE, "disk", (0.8 * r, 0.0, 0.0)),
    )
    return VisualModel("odom", poses, shapes, trail="contact")
