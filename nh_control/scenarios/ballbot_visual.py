"""Visual model of the ballbot."""

from __future__ import annotations

from functools import partial

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.scenarios.declared_frames import FrameTree, fixed, floating, revolute
from nh_control.scenarios.visual_model import ORANGE, RUBBER, STEEL, Pose, Shape, VisualModel
from nh_control.systems.ballbot import BODY, CENTER, DRIVES, BallbotParameters, ballbot_model

WORLD = "odom"
NUMBERS = ("body_qw", "body_qx", "body_qy", "body_qz", "x", "y")


def frame_tree(parameters: BallbotParameters) -> FrameTree:
    """The body with its origin at the ball's center, and the drives on it."""
    p, model = parameters, ballbot_model(parameters)
    return FrameTree(
        model.space.names,
        (
            floating(BODY, WORLD, NUMBERS, partial(_placed, p.r)),
            fixed(CENTER, BODY, (0.0, 0.0, p.height)),
            *(revolute(name, BODY, name, axis) for name, axis in DRIVES.items()),
        ),
        model.bodies,
    )


def _placed(r: float, numbers: np.ndarray) -> Pose:
    return Pose.at((*numbers[4:], r), quat2mat(numbers[:4]))


def visual_model(parameters: BallbotParameters) -> VisualModel:
    """The ball, and the body up to twice the height of its center of mass: the collar of the
    drives, a column, and a head that is orange in front.
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
    return VisualModel(WORLD, frame_tree(parameters), shapes, trail=BODY)
