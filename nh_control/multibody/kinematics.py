"""A tree of frames with its configuration space, and the poses and velocities of the frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Product, Rn, Space
from nh_control.multibody.frame_motion import FrameMotion, constant, three_numbers
from nh_control.multibody.frames import ORIGIN, WORLD, Frame
from nh_control.numerics.expressions import Vector


@dataclass(frozen=True)
class Point:
    """A point fixed in a frame, with its `position` (3, m) in the frame's axes."""

    frame: str
    position: Vector = ORIGIN

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "position", three_numbers(self.position, f"point in {self.frame!r}: position")
        )


class ConstrainedJoint(Protocol):
    """A constraint between two frames whose coordinate is a function of their motions."""

    @property
    def effort(self) -> tuple[str, str]:
        """Name and unit of the effort on the coordinate."""

    def coordinate(self, k: Kinematics) -> ca.SX:
        """The coordinate at k."""

    def rate(self, k: Kinematics) -> ca.SX:
        """The rate of the coordinate at k."""


class Anchor(NamedTuple):
    """The moving frame (or the world) that carries a frame, and the frame's constant position (3)
    and rotation (3, 3) in the moving frame. A moving frame is its own anchor.
    """

    frame: str
    position: np.ndarray
    rotation: np.ndarray


class Tree:
    """A tree of frames with its configuration space. Each frame is listed after its parent.

    The space consists of the joints on manifolds, in order, followed by one Rn for the joints with
    one coordinate. The Rn lists the coordinates in order, with the prescribed coordinates last. A
    prescribed name that does not belong to a joint is an additional coordinate.
    `constraint_joints` are constraints with one coordinate that is a function of the
    configuration. `anchors` maps the name of each frame to its `Anchor`.

    Raises ValueError for duplicate or unknown names, and for a frame that is listed before its
    parent. The latter excludes cycles.
    """

    def __init__(
        self,
        name: str,
        frames: Sequence[Frame],
        prescribed: Sequence[str],
        constraint_joints: Mapping[str, ConstrainedJoint],
    ):
        self.name, self.prescribed = name, tuple(prescribed)
        self.constraint_joints = constraint_joints
        self.frames = {f.name: f for f in frames}
        self._check_frames(frames)
        spaces = {
            f.coordinate: f.joint.space(f.coordinate)
            for f in frames
            if not (f.mimic or f.is_fixed)
        }
        scalars = [c for c, space in spaces.items() if isinstance(space, Rn)]
        poses = [space for space in spaces.values() if not isinstance(space, Rn)]
        self._check_prescribed(scalars, poses)
        # prescribed coordinates come last, so their rates are the last columns of the mass matrix
        self.scalars = (*(c for c in scalars if c not in self.prescribed), *self.prescribed)
        self._check_mimics(frames)
        if not (poses or self.scalars):
            raise ValueError(f"{name}: the model has no coordinates; add a joint")
        self.space: Space = _product(poses, self.scalars)
        self._slices = _slices(spaces, poses, self.scalars)
        self.anchors = _anchors(frames)

    def scalar_indices(self, coordinate: str) -> tuple[int, int]:
        """Indices in q and v of the coordinate of a joint with one coordinate. Raises ValueError
        for an unknown name.
        """
        if coordinate not in self.scalars:
            raise ValueError(
                f"{self.name}: unknown coordinate {coordinate!r}; "
                f"{self._among((*self.scalars, *self.constraint_joints))}"
            )
        q, v = self.slices(coordinate)
        return q.start, v.start

    def slices(self, coordinate: str) -> tuple[slice, slice]:
        """Slices of q and v for the joint with the given coordinate name."""
        return self._slices[coordinate]

    def effort(self, coordinate: str) -> tuple[str, str]:
        """Name and unit of the effort on a coordinate, e.g. ("torque", "N m"). Raises ValueError
        if no joint has the coordinate.
        """
        if coordinate in self.constraint_joints and coordinate not in self.scalars:
            return self.constraint_joints[coordinate].effort
        for frame in self.frames.values():
            if frame.coordinate == coordinate and not frame.mimic and not frame.is_fixed:
                return frame.joint.effort
        raise ValueError(
            f"{self.name}: no joint has the coordinate {coordinate!r}; {self._among(self.scalars)}"
        )

    @property
    def length_coordinates(self) -> tuple[str, ...]:
        """Prescribed coordinates that do not belong to a joint. They are lengths of `Distance`
        constraints.
        """
        joints = {f.coordinate for f in self.frames.values() if not (f.mimic or f.is_fixed)}
        return tuple(name for name in self.prescribed if name not in joints)

    def checked_frame(self, name: str) -> str:
        """The name, unchanged. Raises ValueError if no frame has it."""
        if name not in self.anchors:
            raise ValueError(f"{self.name}: unknown frame {name!r}; {self._among(self.anchors)}")
        return name

    def motion_in_parent(self, frame: Frame, q: ca.SX, v: ca.SX) -> FrameMotion:
        """Motion of a frame in its parent at the configuration q (nq) and velocity v (nv)."""
        placement = FrameMotion.constant_pose(frame.rotation, frame.position)
        if frame.is_fixed:
            return placement
        in_q, in_v = self._slices[frame.mimic.coordinate if frame.mimic else frame.coordinate]
        q, v = q[in_q], v[in_v]
        if frame.mimic:
            # q = ratio q_leader + offset
            q, v = frame.mimic.ratio * q + frame.mimic.offset, frame.mimic.ratio * v
        return placement.compose(frame.joint.motion(q, v))

    def _check_frames(self, frames: Sequence[Frame]) -> None:
        # since each parent is listed first, cycles are excluded
        known, coordinates = [WORLD], []
        for f in frames:
            if f.name in known:
                raise ValueError(f"{self.name}: two frames are named {f.name!r}")
            if f.parent not in known:
                raise ValueError(
                    f"{self.name}: frame {f.name!r} has the unknown parent {f.parent!r}; list a "
                    f"frame after its parent, the frames so far are {known}"
                )
            known.append(f.name)
            if f.mimic or f.is_fixed:
                continue
            if f.coordinate in coordinates:
                raise ValueError(
                    f"{self.name}: frame {f.name!r} has the same coordinate {f.coordinate!r} as "
                    f"another frame; use a Mimic to follow it"
                )
            coordinates.append(f.coordinate)

    def _check_prescribed(self, scalars: Iterable[str], poses: Iterable[Space]) -> None:
        pose_names = {name for space in poses for name in space.names}
        for name in self.prescribed:
            if self.prescribed.count(name) > 1:
                raise ValueError(f"{self.name}: the coordinate {name!r} is prescribed twice")
            if name in pose_names:
                raise ValueError(
                    f"{self.name}: {name!r} belongs to a joint with several coordinates, which "
                    f"cannot be prescribed; choose from {list(scalars)}"
                )

    def _check_mimics(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if frame.mimic and frame.mimic.coordinate not in self.scalars:
                raise ValueError(
                    f"{self.name}: frame {frame.name!r} mimics the unknown coordinate "
                    f"{frame.mimic.coordinate!r}; {self._among(self.scalars)}"
                )

    def _among(self, names: Iterable[str]) -> str:
        return f"choose one of {list(names)}"


class Kinematics:
    """Motions of a tree's frames in the world at configuration q (nq) and velocity v (nw).

    A recursion from the root composes the motions along the chain of each requested frame
    [featherstone2008, ch. 4]. Each frame is composed once, so N frames need O(N) expressions.
    """

    def __init__(self, tree: Tree, q: ca.SX, v: ca.SX):
        self._tree, self._q, self._v = tree, q, v
        self._motions = {WORLD: FrameMotion.constant_pose()}

    def motion(self, frame: str) -> FrameMotion:
        """Motion of a frame."""
        name, frames, chain = self._tree.checked_frame(frame), self._tree.frames, list[Frame]()
        # collect the chain back to the nearest frame whose motion is known
        while name not in self._motions:
            chain.append(frames[name])
            name = chain[-1].parent
        for each in reversed(chain):
            relative = self._tree.motion_in_parent(each, self._q, self._v)
            self._motions[each.name] = self._motions[each.parent].compose(relative)
        return self._motions[frame]

    def position(self, point: Point | str) -> ca.SX:
        """Position (3) of a point, or of a frame's origin, in the world."""
        frame, offset = _frame_and_offset(point)
        return self.motion(frame).point(offset)

    def velocity(self, point: Point | str, axes: str = "world") -> ca.SX:
        """Velocity (3) of a point in the world axes, or in the axes of its frame for "body"."""
        frame, offset = _frame_and_offset(point)
        motion = self.motion(frame)
        # v + omega x offset in the axes of the frame
        velocity = motion.v + ca.cross(motion.omega, ca.SX(constant(offset)))
        return velocity if axes == "body" else motion.R @ velocity

    def squared_speed(self, point: Point | str) -> ca.SX:
        """`|velocity|^2` of a point, computed in the axes that give the smaller expression."""
        frame, offset = _frame_and_offset(point)
        motion = self.motion(frame)
        if motion.outer_v is not None and not constant(offset).nnz():
            return ca.sumsqr(motion.outer_v)
        return ca.sumsqr(self.velocity(point, "body"))

    def angular_velocity(self, point: Point | str, axes: str = "world") -> ca.SX:
        """Angular velocity (3) of a point's frame in the world axes, or in the frame's axes for
        "body".
        """
        motion = self.motion(_frame_and_offset(point)[0])
        return motion.omega if axes == "body" else motion.R @ motion.omega

    def rotation(self, point: Point | str) -> ca.SX:
        """Rotation matrix (3, 3) of a point's frame."""
        return self.motion(_frame_and_offset(point)[0]).R

    def coordinate(self, name: str) -> ca.SX:
        """The coordinate of a joint with one coordinate."""
        if joint := self._constraint_joint(name):
            return joint.coordinate(self)
        return self._q[self._tree.scalar_indices(name)[0]]

    def rate(self, name: str) -> ca.SX:
        """The rate of the coordinate of a joint with one coordinate."""
        if joint := self._constraint_joint(name):
            return joint.rate(self)
        return self._v[self._tree.scalar_indices(name)[1]]

    def _constraint_joint(self, name: str) -> ConstrainedJoint | None:
        return None if name in self._tree.scalars else self._tree.constraint_joints.get(name)


def _frame_and_offset(point: Point | str) -> tuple[str, Vector]:
    return (point.frame, point.position) if isinstance(point, Point) else (point, ORIGIN)


def _anchors(frames: Sequence[Frame]) -> dict[str, Anchor]:
    anchors = {WORLD: Anchor(WORLD, np.zeros(3), np.eye(3))}
    for frame in frames:
        carrier, position, rotation = anchors[frame.parent]
        anchors[frame.name] = (
            Anchor(
                carrier,
                # a fixed frame: r = r_parent + R_parent r_frame, R = R_parent R_frame
                position + rotation @ frame.position,
                rotation @ np.array(frame.rotation),
            )
            if frame.is_fixed
            else Anchor(frame.name, np.zeros(3), np.eye(3))
        )
    return anchors


def _product(poses: Sequence[Space], scalars: Sequence[str]) -> Space:
    factors = [*poses, Rn(*scalars)] if scalars else list(poses)
    return factors[0] if len(factors) == 1 else Product(*factors)


def _slices(
    spaces: dict[str, Space], poses: Sequence[Space], scalars: Sequence[str]
) -> dict[str, tuple[slice, slice]]:
    """Slices of q and v for every joint, by coordinate name."""
    slices, i, j = {}, 0, 0
    for name, space in spaces.items():
        if space in poses:
            slices[name] = slice(i, i + space.nq), slice(j, j + space.nw)
            i, j = i + space.nq, j + space.nw
    # the scalar coordinates follow the joints on manifolds
    return slices | {
        name: (slice(i + k, i + k + 1), slice(j + k, j + k + 1)) for k, name in enumerate(scalars)
    }
