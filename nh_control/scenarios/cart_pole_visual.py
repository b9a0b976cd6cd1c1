"""The visual model of a cart that moves along x, with a pole that swings in the x-z plane."""

from __future__ import annotations

import numpy as np
from transforms3d.axangles import axangle2mat

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import FrameTree, fixed, prismatic, revolute
from nh_control.scenarios.pendulum_visual import SWING_AXIS, rod
from nh_control.scenarios.visual_model import BLUE, RUBBER, STEEL, Arrow, Shape, VisualModel
from nh_control.systems import CartPoleParameters

TRACK_M, TRACK_HEIGHT = 2.4, 1.5
"""Length (m) of the track in the drawing, and height of the track in pole lengths."""


def frame_tree(parameters: CartPoleParameters) -> FrameTree:
    """The track, the cart, the pole and its tip, and a frame `push` whose z axis is along the
    force.
    """
    height = (0.0, 0.0, TRACK_HEIGHT * parameters.l)
    return FrameTree(
        ("x", "theta"),
        (
            fixed("track", "odom", height),
            prismatic("cart", "odom", "x", position=height),
            revolute("pole", "cart", "theta", SWING_AXIS),
            fixed("pole_end", "pole", (0.0, 0.0, -parameters.l)),
            fixed("push", "cart", rotation=axangle2mat((0.0, 1.0, 0.0), np.pi / 2)),
        ),
        (
            Body("cart", parameters.m_cart),
            Body("pole", parameters.m_pole, (0.0, 0.0, -parameters.l)),
        ),
    )


def visual_model(parameters: CartPoleParameters) -> VisualModel:
    """The cart on its track behind the pole. An arrow shows the force."""
    l = parameters.l
    behind = 0.16 * l
    shapes = (
        Shape("box", (TRACK_M, 0.06 * l, 0.04 * l), STEEL, "track", (0.0, behind, -0.12 * l)),
        Shape("box", (0.5 * l, 0.16 * l, 0.2 * l), BLUE, "cart", (0.0, behind, 0.0)),
        Shape(
            "cylinder",
            (0.1 * l, 0.1 * l, 0.3 * l),
            RUBBER,
            "cart",
            (0.0, 0.06 * l, 0.0),
            roll=np.pi / 2,
        ),
    )
    return VisualModel(
        "odom",
        frame_tree(parameters),
        (*shapes, *rod(l, "pole")),
        trail="pole_end",
        arrows=(Arrow("force", "push", 0.05),),
    )
