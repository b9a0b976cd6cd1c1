"""The visual model of the body in the Suslov problem."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.declared_frames import FrameTree, fixed, floating
from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Shape, VisualModel
from nh_control.systems import SuslovParameters


def frame_tree() -> FrameTree:
    """The body, which rotates about a fixed point, and the tip of its third axis."""
    attitude = ("qw", "qx", "qy", "qz")
    return FrameTree(
        attitude, (floating("body", "odom", attitude), fixed("axis", "body", (0.0, 0.0, 1.0)))
    )


def visual_model(parameters: SuslovParameters) -> VisualModel:
    """A box whose moments of inertia have the same ratios as the body's, and a shaft along the
    axis about which the body cannot rotate. The longest side of the box is 1 m.
    """
    moments = np.array([parameters.I11, parameters.I22, parameters.I33])
    # A box has I_i = m (a_j^2 + a_k^2) / 12, so a_i^2 is proportional to sum(I) / 2 - I_i.
    sides = np.sqrt(np.maximum(moments.sum() / 2 - moments, 0.02 * moments.max()))
    shapes = (
        Shape("box", tuple(sides / sides.max()), BLUE, "body"),
        Shape("cylinder", (0.05, 0.05, 1.0), STEEL, "body", (0.0, 0.0, 0.5)),
        Shape("sphere", (0.1, 0.1, 0.1), ORANGE, "axis"),
    )
    return VisualModel("odom", frame_tree(), shapes, trail="axis")
