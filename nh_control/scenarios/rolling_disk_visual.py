"""The visual model of a rolling disk."""

from __future__ import annotations

import numpy as np

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import ORIGIN, FrameTree, planar, revolute
from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Shape, VisualModel
from nh_control.systems import RollingDiskParameters


def frame_tree(parameters: RollingDiskParameters) -> FrameTree:
    """The contact point, with x along the direction of motion, and the disk."""
    inertia = (parameters.J_theta, parameters.J_phi, parameters.J_theta)
    return FrameTree(
        ("phi", "theta", "x", "y"),
        (
            planar("contact", "odom"),
            revolute("disk", "contact", "phi", (0.0, 1.0, 0.0), (0.0, 0.0, parameters.r)),
        ),
        (Body("disk", parameters.m, ORIGIN, inertia, accept_any_inertia=True),),
    )


def visual_model(parameters: RollingDiskParameters) -> VisualModel:
    """An upright disk with a bar across it and a mark on its rim."""
    r = parameters.r
    shapes = (
        Shape("cylinder", (2 * r, 2 * r, 0.12 * r), BLUE, "disk", roll=np.pi / 2),
        Shape("box", (1.8 * r, 0.16 * r, 0.1 * r), STEEL, "disk"),
        Shape("box", (0.25 * r, 0.2 * r, 0.25 * r), ORANGE, "disk", (0.8 * r, 0.0, 0.0)),
    )
    return VisualModel("odom", frame_tree(parameters), shapes, trail="contact")
