"""Visual model of the body of the Suslov problem."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.declared_frames import FrameTree, fixed, floating
from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Shape, VisualModel
from nh_control.systems import SuslovParameters


def frame_tree() -> FrameTree:
    """The body about its fixed point, and the end of its third axis."""
    attitude = ("qw", "qx", "qy", "qz")
    return FrameTree(
        attitude, (floating("body", "odom", attitude), fixed("axis", "body", (0.0, 0.0, 1.0)))
    )


def visual_model(parameters: SuslovParameters) -> VisualModel:
    """The box, the longest side 1 m, that has the body's moments of inertia about its axes, and a
    shaft along the axis about which it cannot turn.
    """
    moments = np.array([parameters.I11, parameters.I22, parameters.I33])
    sides = np.sqrt(np.maximum(moments.sum() / 2 - moments, 0.02 * moments.max()))
    shapes = (
        Shape("box", tuple(sides / sides.max()), BLUE, "body"),
        Shape("cylinder", (0.05, 0.05, 1.0), STEEL, "body", (0.0, 0.0, 0.5)),
        Shape("sphere", (0.1, 0.1, 0.1), ORANGE, "axis"),
    )
    return VisualModel("odom", frame_tree(), shapes, trail="axis")
