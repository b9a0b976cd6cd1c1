"""The visual model of an acrobot, which swings in the x-z plane."""

from __future__ import annotations

import numpy as np

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import FrameTree, fixed, revolute
from nh_control.scenarios.pendulum_visual import SWING_AXIS
from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    RUBBER,
    STEEL,
    WOOD,
    Shape,
    VisualModel,
)
from nh_control.systems import AcrobotParameters

WIDTH_M = 0.06
"""Width (m) of the links in the drawing."""


def frame_tree(parameters: AcrobotParameters) -> FrameTree:
    """The pivot, the two links, which are uniform bars, and the tip. The pivot is high enough that
    the links stay above the ground.
    """
    height = 1.1 * (parameters.l1 + parameters.l2)
    return FrameTree(
        ("shoulder", "elbow"),
        (
            fixed("pivot", "odom", (0.0, 0.0, height)),
            revolute("upper_link", "odom", "shoulder", SWING_AXIS, (0.0, 0.0, height)),
            revolute("lower_link", "upper_link", "elbow", SWING_AXIS, (0.0, 0.0, -parameters.l1)),
            fixed("tip", "lower_link", (0.0, 0.0, -parameters.l2)),
        ),
        (
            _bar("upper_link", parameters.m1, parameters.l1),
            _bar("lower_link", parameters.m2, parameters.l2),
        ),
    )


def _bar(frame: str, mass: float, length: float) -> Body:
    # A uniform bar: m l^2 / 12 about its transverse axes, m w^2 / 6 about its length.
    across, along = mass * length**2 / 12, mass * WIDTH_M**2 / 6
    return Body(frame, mass, (0.0, 0.0, -length / 2), (across, across, along))


def visual_model(parameters: AcrobotParameters) -> VisualModel:
    """Two bars next to each other, their hinges, a weight at the tip, and a post behind them."""
    width, height = WIDTH_M, 1.1 * (parameters.l1 + parameters.l2)
    shapes = [
        Shape("box", (width, width, height), STEEL, "pivot", (0.0, 1.6 * width, -height / 2)),
        Shape("sphere", (2 * width,) * 3, ORANGE, "tip"),
    ]
    for frame, length, color, y in (
        ("upper_link", parameters.l1, WOOD, width / 2),
        ("lower_link", parameters.l2, BLUE, -width / 2),
    ):
        bar = (width, 0.9 * width, length)
        shapes.append(Shape("box", bar, color, frame, (0.0, y, -length / 2)))
        hinge = (1.8 * width, 1.8 * width, 2.2 * width)
        shapes.append(Shape("cylinder", hinge, RUBBER, frame, roll=np.pi / 2))
    return VisualModel("odom", frame_tree(parameters), tuple(shapes), trail="tip")
