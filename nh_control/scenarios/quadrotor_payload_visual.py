"""The visual model of quadrotors with a payload."""

from __future__ import annotations

from functools import partial

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import ORIGIN, FrameTree, floating
from nh_control.scenarios.quadrotor_visual import arms, quadrotor_shapes
from nh_control.scenarios.visual_model import ODOM, ORANGE, Arrow, Cable, Pose, Shape, VisualModel
from nh_control.systems.quadrotor_payload import QuadrotorPayloadParameters, payload_space
from nh_control.systems.rotor_mixing import RotorMixing

PROPELLER_M = 0.25


def frame_tree(parameters: QuadrotorPayloadParameters) -> FrameTree:
    """The payload, the quadrotors, which are floating frames at the ends of links, and their
    arms.
    """
    space = payload_space(parameters.n)
    payload, *others = (factor.names for factor in space.factors)
    frames = [floating("payload", ODOM, payload, Pose.at)]
    bodies = [Body("payload", parameters.payload_mass)]
    for i, (attitude, link, l) in enumerate(
        zip(others[: parameters.n], others[parameters.n :], parameters.lengths), 1
    ):
        on_link = floating(f"quad{i}", ODOM, (*payload, *link, *attitude), partial(_on_link, l))
        frames += [on_link, arms(f"quad{i}")]
        inertia = (parameters.Jx, parameters.Jy, parameters.Jz)
        bodies.append(
            Body(f"quad{i}", parameters.quadrotor_mass, ORIGIN, inertia, accept_any_inertia=True)
        )
    return FrameTree(space.names, frames, bodies)


def _on_link(l: float, c: np.ndarray) -> Pose:
    """The pose of a quadrotor at `y + l link`, with c = (y, link, attitude)."""
    return Pose(c[:3] + l * c[3:6], quat2mat(c[6:]))


def visual_model(parameters: QuadrotorPayloadParameters) -> VisualModel:
    """A ball on cables below quadrotors with four propeller discs each. The front discs are
    orange. A thrust arrow is 0.4 m long in hover with vertical links.
    """
    quads = [f"quad{i + 1}" for i in range(parameters.n)]
    arm = RotorMixing().arm
    share = (parameters.payload_mass / parameters.n + parameters.quadrotor_mass) * parameters.g
    parts = [Shape("sphere", (0.18, 0.18, 0.18), ORANGE, "payload")]
    for quad in quads:
        parts += quadrotor_shapes(quad, arm, PROPELLER_M)
    return VisualModel(
        parent=ODOM,
        poses=frame_tree(parameters),
        shapes=tuple(parts),
        trail="payload",
        cables=tuple(Cable("payload", quad, f"link{i + 1}") for i, quad in enumerate(quads)),
        arrows=tuple(Arrow(f"{quad}_thrust", quad, 0.4 / share, offset=0.08) for quad in quads),
        outline=tuple(quads),
    )
