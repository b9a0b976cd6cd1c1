"""The axes of a model's frames in the linear-time tree kernel."""

from __future__ import annotations

import numpy as np

from nh_control.multibody.frame_motion import plane_axes
from nh_control.multibody.frames import WORLD, Frame
from nh_control.multibody.joint_types import Planar, Prismatic, Revolute, ScalarJoint
from nh_control.multibody.parts import MultibodyParts

PARALLEL = 1e-13
"""Sine of the angle up to which axes count as parallel. It allows for round-off in rotations."""


def normals(model: MultibodyParts, frames: list[Frame]) -> dict[str, np.ndarray]:
    """The normal of the plane in which all bodies move, in the axes of the world and of each
    moving frame in `frames`. Revolute joints turn about the normal, and prismatic joints slide
    orthogonally to it. The result is empty if the bodies move in space.
    """
    turns = {WORLD: np.eye(3)}
    axes: list[tuple[Frame, np.ndarray]] = []
    for frame in frames:
        if not isinstance(frame.joint, (Revolute, Prismatic)):
            return {}
        parent, _, rotation = model.tree.anchors[frame.parent]
        turns[frame.name] = turns[parent] @ rotation @ np.array(frame.rotation)
        # all coordinates are zero here; planar motion does not change the axes of revolute joints
        axes.append((frame, turns[frame.name] @ np.array(frame.joint.axis)))
    normal = next((axis for frame, axis in axes if isinstance(frame.joint, Revolute)), None)
    if normal is None:
        return {}
    for frame, axis in axes:
        turning = isinstance(frame.joint, Revolute)
        # parallel means axis x normal = 0, and orthogonal means axis . normal = 0
        off = np.cross(axis, normal) if turning else axis @ normal
        if np.abs(off).max() > PARALLEL:
            return {}
    return {name: rotation.T @ normal for name, rotation in turns.items()}


def axes_of(frame: Frame, normal: np.ndarray | None = None) -> np.ndarray:
    """The kernel's axes (3, 3) in the frame's axes. The z axis is the axis of a revolute or planar
    joint. For a prismatic joint, the x axis is its axis, and z is the `normal` of the plane of
    motion.
    """
    if isinstance(frame.joint, ScalarJoint) and not frame.joint.rotates:
        axis = np.array(frame.joint.axis)
        if normal is None:
            return np.column_stack([axis, plane_axes(axis)])
        return np.column_stack([axis, np.cross(normal, axis), normal])
    if isinstance(frame.joint, (ScalarJoint, Planar)):
        return upright(np.array(frame.joint.axis))
    return np.eye(3)


def upright(axis: np.ndarray) -> np.ndarray:
    """Axes (3, 3) with the `axis` as the z axis."""
    return np.column_stack([plane_axes(axis), axis])
