"""The bodies of a robot's floating and planar joints, in messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from transforms3d.quaternions import mat2quat, qinverse, qmult, quat2mat

from nh_control.multibody import WORLD, Multibody
from nh_control.multibody.frames import Frame
from nh_control.multibody.joint_types import Floating, Planar
from nh_control.scenarios.shown import Body, BodyState, frame_id


@dataclass(frozen=True)
class FloatingBody:
    """The body of a floating joint: its `frame` in the frame `parent` of messages, in which the
    joint's origin has a position (3), rotation (3, 3) and quaternion (4); and the slices of its
    numbers in q and v.
    """

    frame: Frame
    parent: str
    position: np.ndarray
    rotation: np.ndarray
    quaternion: np.ndarray
    q: slice
    v: slice

    @staticmethod
    def of(model: Multibody, frame: Frame) -> FloatingBody:
        """The body of a floating frame; raises ValueError for one on a link that moves."""
        position, rotation = _origin(model, frame)
        slices = model.tree.slices(frame.coordinate)
        return FloatingBody(
            frame, root_frame(model), position, rotation, mat2quat(rotation), *slices
        )

    def axes_of_velocity(self, rotation: np.ndarray) -> np.ndarray:
        """The axes (3, 3) in which the linear velocity is given, in those of the parent, at a
        rotation (3, 3) of the body.
        """
        joint = self.frame.joint
        of_body = isinstance(joint, Floating) and joint.configuration_space == "SE3"
        return rotation if of_body else self.rotation


def root_frame(model: Multibody) -> str:
    """The frame in which poses are given: the root link, or the world if this moves."""
    root = model.frames[0]
    return root.name if root.parent == WORLD and root.is_fixed else WORLD


def floating_bodies(model: Multibody) -> list[FloatingBody]:
    """The bodies of floating joints; raises ValueError for one on a link that moves."""
    frames = (frame for frame in model.frames if isinstance(frame.joint, Floating))
    return [FloatingBody.of(model, frame) for frame in frames]


def planar_body(model: Multibody) -> Body | None:
    """The body of a planar joint, if there is one; raises ValueError for one that cannot be
    shown.
    """
    frames = [frame for frame in model.frames if isinstance(frame.joint, Planar)]
    if not frames:
        return None
    (frame, *others), (position, rotation) = frames, _origin(model, frames[0])
    moved = position[:2].any() or not np.allclose(rotation, np.eye(3))
    if others or floating_bodies(model) or moved or frame.joint != Planar((0.0, 0.0, 1.0)):
        raise ValueError(
            f"scenario urdf: {model.name}: the planar joint of {frame.name!r} cannot be shown as "
            "x, y and a heading: give it the axis 0 0 1 and an origin with z alone (a fixed joint "
            "after it may have any), and let no other planar or floating joint be there"
        )
    theta, x, y = frame.joint.space(frame.coordinate).names
    return Body(frame_id(frame.name), root_frame(model), (theta, x, y), float(position[2]))


def _origin(model: Multibody, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Position (3) and rotation (3, 3) of a joint's origin in the world; raises ValueError if it
    moves.
    """
    carrier, position, rotation = model.tree.anchors[frame.parent]
    if carrier != WORLD:
        raise ValueError(
            f"scenario urdf: {model.name}: {frame.name!r} is on a floating or planar joint on the "
            f"link {frame.parent!r}, which moves; only joints on a link that does not move can be "
            "shown in messages"
        )
    return position + rotation @ frame.position, rotation @ np.array(frame.rotation)


def to_bodies(
    floating: Sequence[FloatingBody], parameters: object, q: np.ndarray, v: np.ndarray
) -> tuple[BodyState, ...]:
    """The states of the bodies at a configuration q (nq) and velocity v (nw)."""
    bodies = []
    for one in floating:
        (quaternion, position), (omega, linear) = np.split(q[one.q], [4]), np.split(v[one.v], [3])
        rotation = one.rotation @ quat2mat(quaternion)
        bodies.append(
            BodyState(
                frame_id(one.frame.name),
                one.parent,
                one.position + one.rotation @ position,
                qmult(one.quaternion, quaternion),
                one.axes_of_velocity(rotation) @ linear,
                omega,
            )
        )
    return tuple(bodies)


def from_bodies(
    floating: Sequence[FloatingBody], bodies: Sequence[BodyState]
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the bodies in q and in v, which are the first ones."""
    q, v = list[np.ndarray](), list[np.ndarray]()
    for one, body in zip(floating, bodies):
        quaternion = np.divide(body.quaternion_wxyz, np.linalg.norm(body.quaternion_wxyz))
        axes = one.axes_of_velocity(quat2mat(quaternion))
        q += [qmult(qinverse(one.quaternion), quaternion)]
        q += [one.rotation.T @ (body.position - one.position)]
        v += [body.angular_velocity_body, body.linear_velocity @ axes]
    return np.concatenate(q), np.concatenate(v)
