"""Visual model of the ballbot."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.declared_frames import FrameTree, floating
from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    RUBBER,
    STEEL,
    Pose,
    Shape,
    VisualModel,
)
from nh_control.systems.ballbot import BALL, BODY, BallbotParameters, ballbot_model
from transforms3d.quaternions import quat2mat

WORLD = "odom"


def frame_tree(parameters: BallbotParameters) -> FrameTree:
    """Ball and body, both with their origin at the ball's center."""
    model, r = ballbot_model(parameters), parameters.r
    frames = []
    for name in (BALL, BODY):
        numbers = (*(f"{name}_q{c}" for c in "wxyz"), "x", "y")
        frames.append(floating(name, WORLD, numbers, lambda c: _placed(c, r)))
    return FrameTree(model.space.names, frames, model.bodies)


def _placed(c: np.ndarray, r: float) -> Pose:
    return Pose.at((c[4], c[5], r), quat2mat(c[:4]))


def visual_model(parameters: BallbotParameters) -> VisualModel:
    """The ball with two hoops that show its turning, the column of the body up to twice the height
    of its center of mass on three drives, and a head that is orange in front; all scale with r and
    this height.
    """
    r, top = parameters.r, 2 * parameters.height
    ring = (2.02 * r, 2.02 * r, 0.12 * r)
    shapes = [
        Shape("sphere", (2 * r,) * 3, RUBBER, BALL),
        Shape("cylinder", ring, ORANGE, BALL),
        Shape("cylinder", ring, BLUE, BALL, roll=np.pi / 2),
        Shape("cylinder", (1.7 * r, 1.7 * r, 0.3 * r), STEEL, BODY, (0.0, 0.0, 1.2 * r)),
        Shape(
            "cylinder", (0.8 * r, 0.8 * r, top - 1.2 * r), STEEL, BODY, (0, 0, top / 2 + 0.6 * r)
        ),
        Shape("box", (1.4 * r, 1.8 * r, 1.2 * r), STEEL, BODY, (0.0, 0.0, top)),
        Shape("box", (0.2 * r, 1.4 * r, 0.7 * r), ORANGE, BODY, (0.72 * r, 0.0, top)),
    ]
    return VisualModel(WORLD, frame_tree(parameters), tuple(shapes), trail=BALL)
