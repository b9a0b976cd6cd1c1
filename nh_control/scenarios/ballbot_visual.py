"""The visual model of the ballbot."""

from __future__ import annotations

from functools import partial

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.scenarios.declared_frames import FrameTree, fixed, floating, revolute
from nh_control.scenarios.visual_model import ODOM, ORANGE, RUBBER, STEEL, Pose, Shape, VisualModel
from nh_control.systems.ballbot import BODY, CENTER, DRIVES, BallbotParameters, ballbot_model

NUMBERS = ("body_qw", "body_qx", "body_qy", "body_qz", "x", "y")


def frame_tree(parameters: BallbotParameters) -> FrameTree:
    """The body, with its origin at the center of the ball, and the drives on the body."""
    model = ballbot_model(parameters)
    return FrameTree(
        model.space.names,
        (
            floating(BODY, ODOM, NUMBERS, partial(_placed, parameters.r)),
            fixed(CENTER, BODY, (0.0, 0.0, parameters.height)),
            *(revolute(name, BODY, name, axis) for name, axis in DRIVES.items()),
        ),
        model.bodies,
    )


def _placed(r: float, numbers: np.ndarray) -> Pose:
    return Pose.at((*numbers[4:], r), quat2mat(numbers[:4]))


def visual_model(parameters: BallbotParameters) -> VisualModel:
    """The ball and the body. The body is twice as high as its center of mass. The body consists of
    the collar of the drives, a column, and a head with an orange front.
    """
    r, top = parameters.r, 2 * parameters.height
    column = top - 1.2 * r
    shapes = (
        Shape("sphere", (2 * r,) * 3, RUBBER, BODY),
        Shape("cylinder", (1.7 * r, 1.7 * r, 0.4 * r), STEEL, BODY, (0.0, 0.0, 1.1 * r)),
        Shape("cylinder", (0.6 * r, 0.6 * r, column), STEEL, BODY, (0.0, 0.0, top - column / 2)),
        Shape("box", (1.4 * r, 1.8 * r, 1.2 * r), STEEL, BODY, (0.0, 0.0, top)),
        Shape("box", (0.2 * r, 1.4 * r, 0.6 * r), ORANGE, BODY, (0.72 * r, 0.0, top)),
    )
    return VisualModel(ODOM, frame_tree(parameters), shapes, trail=BODY)
