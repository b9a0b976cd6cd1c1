"""The visual model of a quadrotor with diagonal arms."""

from __future__ import annotations

import numpy as np
from transforms3d.axangles import axangle2mat

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import Frame, FrameTree, fixed, floating
from nh_control.scenarios.visual_model import (
    BLUE,
    ODOM,
    ORANGE,
    RUBBER,
    STEEL,
    Arrow,
    Shape,
    VisualModel,
)
from nh_control.systems import QuadrotorParameters

BODY = "quadrotor"
ARM_M, PROPELLER_M = 0.2, 0.2
"""Length of an arm and diameter of a propeller (m)."""


def arms(quad: str) -> Frame:
    """The frame of a quadrotor's arms. Its x and y axes are along the arms."""
    return fixed(f"{quad}_arms", quad, rotation=axangle2mat((0.0, 0.0, 1.0), np.pi / 4))


def quadrotor_shapes(quad: str, arm: float, propeller: float) -> list[Shape]:
    """A quadrotor with the given arm length (m) and propeller diameter (m). The front propellers
    are orange.
    """
    shapes = [Shape("sphere", (0.12, 0.12, 0.07), RUBBER, quad)]
    for extents in ((2 * arm, 0.02, 0.015), (0.02, 2 * arm, 0.015)):
        shapes.append(Shape("box", extents, STEEL, f"{quad}_arms"))
    for x, y, color in (
        (arm, 0.0, ORANGE),
        (0.0, -arm, ORANGE),
        (-arm, 0.0, BLUE),
        (0.0, arm, BLUE),
    ):
        disc, place = (propeller, propeller, 0.01), (x, y, 0.04)
        shapes.append(Shape("cylinder", disc, color, f"{quad}_arms", place, opacity=0.6))
    return shapes


def frame_tree(parameters: QuadrotorParameters) -> FrameTree:
    """The quadrotor and its arms."""
    pose = ("x", "y", "z", "qw", "qx", "qy", "qz")
    return FrameTree(
        pose,
        (floating(BODY, ODOM, pose), arms(BODY)),
        (Body(BODY, parameters.m, inertia=(parameters.Jx, parameters.Jy, parameters.Jz)),),
    )


def visual_model(parameters: QuadrotorParameters) -> VisualModel:
    """The quadrotor, with an arrow that shows its thrust. The arrow is 0.4 m long in hover."""
    hover = parameters.m * parameters.g
    return VisualModel(
        ODOM,
        frame_tree(parameters),
        tuple(quadrotor_shapes(BODY, ARM_M, PROPELLER_M)),
        trail=BODY,
        arrows=(Arrow("thrust", BODY, 0.4 / hover, offset=0.08),),
    )
