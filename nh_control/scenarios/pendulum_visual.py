"""The visual model of a pendulum, which swings in the x-z plane."""

from __future__ import annotations

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import FrameTree, fixed, revolute
from nh_control.scenarios.visual_model import ORANGE, STEEL, WOOD, Shape, VisualModel
from nh_control.systems import PendulumParameters

SWING_AXIS = (0.0, -1.0, 0.0)
"""Axis about which positive angles turn from the downward vertical towards x."""


def rod(length: float, frame: str) -> tuple[Shape, Shape]:
    """A rod that hangs from a frame's origin, with a ball at the tip."""
    return (
        Shape("box", (0.03 * length, 0.03 * length, length), WOOD, frame, (0.0, 0.0, -length / 2)),
        Shape("sphere", (0.16 * length,) * 3, ORANGE, frame, (0.0, 0.0, -length)),
    )


def frame_tree(parameters: PendulumParameters) -> FrameTree:
    """The pivot, the rod and its tip. The pivot is high enough that the pendulum stays above the
    ground.
    """
    end, pivot = (0.0, 0.0, -parameters.l), (0.0, 0.0, 1.2 * parameters.l)
    return FrameTree(
        ("theta",),
        (
            fixed("pivot", "odom", pivot),
            revolute("rod", "odom", "theta", SWING_AXIS, pivot),
            fixed("end", "rod", end),
        ),
        (Body("rod", parameters.m, end),),
    )


def visual_model(parameters: PendulumParameters) -> VisualModel:
    """The rod on a post."""
    l = parameters.l
    post = Shape("box", (0.05 * l, 0.05 * l, 1.2 * l), STEEL, "pivot", (0.0, 0.08 * l, -0.6 * l))
    return VisualModel("odom", frame_tree(parameters), (post, *rod(l, "rod")), trail="end")
