"""Visual model of a quadrotor, whose arms stand diagonally."""

from __future__ import annotations

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.scenarios.visual_model import (
    BLUE,
    ORANGE,
    RUBBER,
    STEEL,
    Arrow,
    Pose,
    Shape,
    VisualModel,
)
from nh_control.systems import QuadrotorParameters

WORLD, BODY = "odom", "quadrotor"
ARM_M, PROPELLER_M = 0.2, 0.2
"""Length of an arm and diameter of a propeller."""


def with_arms(quad: str, pose: Pose) -> dict[str, Pose]:
    """The frame of a quadrotor and that of its arms, in which x and y lie along them."""
    return {quad: pose, f"{quad}_arms": pose.rotated(np.pi / 4, (0.0, 0.0, 0.0))}


def quadrotor_shapes(quad: str, arm: float, propeller: float) -> list[Shape]:
    """A quadrotor with arms (m) that carry propellers (m), those in front orange."""
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


def poses(parameters: QuadrotorParameters, q: np.ndarray) -> dict[str, Pose]:
    """The quadrotor and its arms at a configuration."""
    return with_arms(BODY, Pose(q[:3], quat2mat(q[3:])))


def visual_model(parameters: QuadrotorParameters) -> VisualModel:
    """The quadrotor with its thrust, an arrow of 0.4 m in hover."""
    hover = parameters.m * parameters.g
    return VisualModel(
        WORLD,
        poses,
        tuple(quadrotor_shapes(BODY, ARM_M, PROPELLER_M)),
        trail=BODY,
        arrows=(Arrow("thrust", BODY, 0.4 / hover, offset=0.08),),
    )
