"""The bodies on a robot's floating and planar joints, in the form used by messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from transforms3d.quaternions import mat2quat, qinverse, qmult, quat2mat

from nh_control.multibody import WORLD, Multibody
from nh_control.multibody.frames import Frame
from nh_control.multibody.joint_types import Floating, Planar
from nh_control.scenarios.shown import BodyState, PlanarBody, frame_id


@dataclass(frozen=True)
class FloatingBody:
    """The body on a floating joint: its `frame`, the `parent` frame in its messages, the position
    (3), rotation (3, 3) and quaternion (4) of the joint's origin in this parent, and the slices of
    the body's coordinates in q and velocities in v.
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
        """Return the body of a floating frame. Raises ValueError if its parent link moves."""
        position, rotation = _origin(model, frame)
        q, v = model.tree.slices(frame.coordinate)
        return FloatingBody(frame, root_frame(model), position, rotation, mat2quat(rotation), q, v)

    def axes_of_velocity(self, rotation: np.ndarray) -> np.ndarray:
        """The axes (3, 3), expressed in parent axes, in which v contains the linear velocity.
        `rotation` (3, 3) is the rotation of the body.
        """
        joint = self.frame.joint
        of_body = isinstance(joint, Floating) and joint.configuration_space == "SE3"
        return rotation if of_body else self.rotation


def root_frame(model: Multibody) -> str:
    """The frame to which poses in messages refer: the root link, or the world if the root link
    moves.
    """
    root = model.frames[0]
    return root.name if root.parent == WORLD and root.is_fixed else WORLD


def floating_bodies(model: Multibody) -> list[FloatingBody]:
    """The bodies on floating joints. Raises ValueError if the parent link of such a body moves."""
    frames = (frame for frame in model.frames if isinstance(frame.joint, Floating))
    return [FloatingBody.of(model, frame) for frame in frames]


def planar_body(model: Multibody) -> PlanarBody | None:
    """The body on a planar joint, or None if there is no planar joint. Raises ValueError for a
    joint that messages cannot represent.
    """
    frames = [frame for frame in model.frames if isinstance(frame.joint, Planar)]
    if not frames:
        return None
    (frame, *others), (position, rotation) = frames, _origin(model, frames[0])
    moved = position[:2].any() or not np.allclose(rotation, np.eye(3))
    if others or floating_bodies(model) or moved or frame.joint != Planar((0.0, 0.0, 1.0)):
        raise ValueError(
            f"scenario urdf: {model.name}: the planar joint of {frame.name!r} cannot be shown as "
            "x, y and a heading: use the axis 0 0 1, an origin with only z (a fixed joint after "
            "it may have any origin), and no other planar or floating joint"
        )
    theta, x, y = frame.joint.space(frame.coordinate).names
    return PlanarBody(frame_id(frame.name), root_frame(model), (theta, x, y), float(position[2]))


def _origin(model: Multibody, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The position (3) and rotation (3, 3) of a joint's origin in the world. Raises ValueError if
    the origin moves.
    """
    carrier, position, rotation = model.tree.anchors[frame.parent]
    if carrier != WORLD:
        raise ValueError(
            f"scenario urdf: {model.name}: the floating or planar joint of {frame.name!r} is on "
            f"the link {frame.parent!r}, which moves; messages can only show such joints on links "
            "that do not move"
        )
    return position + rotation @ frame.position, rotation @ np.array(frame.rotation)


def to_bodies(
    floating: Sequence[FloatingBody], parameters: object, q: np.ndarray, v: np.ndarray
) -> tuple[BodyState, ...]:
    """The states of the bodies at a configuration q (nq) with a velocity v (nw)."""
    bodies = []
    for base in floating:
        # The pose in the parent is the joint's origin composed with the joint's pose: R = R0 R(q),
        # x = x0 + R0 x(q).
        quaternion, position = np.split(q[base.q], [4])
        omega, linear = np.split(v[base.v], [3])
        rotation = base.rotation @ quat2mat(quaternion)
        bodies.append(
            BodyState(
                frame_id(base.frame.name),
                base.parent,
                base.position + base.rotation @ position,
                qmult(base.quaternion, quaternion),
                base.axes_of_velocity(rotation) @ linear,
                omega,
            )
        )
    return tuple(bodies)


def from_bodies(
    floating: Sequence[FloatingBody], bodies: Sequence[BodyState]
) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates and velocities of the bodies. They come first in q and v."""
    q, v = list[np.ndarray](), list[np.ndarray]()
    for base, body in zip(floating, bodies):
        # As the inverse of `to_bodies`, remove the joint's origin from the pose.
        quaternion = np.divide(body.quaternion_wxyz, np.linalg.norm(body.quaternion_wxyz))
        axes = base.axes_of_velocity(quat2mat(quaternion))
        q += [qmult(qinverse(base.quaternion), quaternion)]
        q += [base.rotation.T @ (body.position - base.position)]
        v += [body.angular_velocity_body, body.linear_velocity @ axes]
    return np.concatenate(q), np.concatenate(v)
