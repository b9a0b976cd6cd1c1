"""Visual model of quadrotors with a payload."""

from __future__ import annotations

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.scenarios.quadrotor_visual import quadrotor_shapes, with_arms
from nh_control.scenarios.visual_model import ORANGE, Arrow, Cable, Pose, Shape, VisualModel
from nh_control.systems.quadrotor_payload import QuadrotorPayloadParameters, split_configuration
from nh_control.systems.rotor_mixing import RotorMixing

WORLD = "odom"
PROPELLER_M = 0.25


def poses(parameters: QuadrotorPayloadParameters, q: np.ndarray) -> dict[str, Pose]:
    """The payload, the quadrotors and their arms, which stand diagonally, at a configuration."""
    y, attitudes, links = split_configuration(q, parameters.n)
    frames = {"payload": Pose(y, np.eye(3))}
    for i, (l, link, attitude) in enumerate(zip(parameters.lengths, links, attitudes)):
        frames |= with_arms(f"quad{i + 1}", Pose(y + l * link, quat2mat(attitude)))
    return frames


def visual_model(parameters: QuadrotorPayloadParameters) -> VisualModel:
    """A ball on cables under quadrotors with four propeller discs each, those in front orange; a
    thrust arrow is 0.4 m long in hover without formation.
    """
    quads = [f"quad{i + 1}" for i in range(parameters.n)]
    arm = RotorMixing().arm
    share = (parameters.payload_mass / parameters.n + parameters.quadrotor_mass) * parameters.g
    parts = [Shape("sphere", (0.18, 0.18, 0.18), ORANGE, "payload")]
    for quad in quads:
        parts += quadrotor_shapes(quad, arm, PROPELLER_M)
    return VisualModel(
        parent=WORLD,
        poses=poses,
        shapes=tuple(parts),
        trail="payload",
        cables=tuple(Cable("payload", quad, f"link{i + 1}") for i, quad in enumerate(quads)),
        arrows=tuple(Arrow(f"{quad}_thrust", quad, 0.4 / share, offset=0.08) for quad in quads),
        outline=tuple(quads),
    )
