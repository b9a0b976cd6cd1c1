"""Frames of a tree: a constant placement in the parent, then the motion of a joint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn, Space
from nh_control.multibody.motion import (
    Motion,
    plane_axes,
    rotation_about,
    three_numbers,
    unit_vector,
)
from nh_control.numerics.expressions import Vector

WORLD = "world"
"""Name of the root frame, which does not move."""
ORIGIN = (0.0, 0.0, 0.0)
NO_ROTATION = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
CONFIGURATION_SPACES = ("SE3", "SO3xR3")
"""Configuration spaces of a floating frame."""


class Joint(ABC):
    """The motion of a frame in its placement: its configuration space and its motion there."""

    effort = ("force", "N")
    """Name and unit of the effort on a joint with one coordinate."""

    @abstractmethod
    def space(self, coordinate: str) -> Space:
        """Configuration space of the joint; `coordinate` is the name of its coordinate, or the
        prefix of the names of several.
        """

    @abstractmethod
    def motion(self, q: ca.SX, v: ca.SX) -> Motion:
        """Motion in the placement at the joint's configuration q and velocity v."""


@dataclass(frozen=True)
class Fixed(Joint):
    """No motion."""

    def space(self, coordinate: str) -> Rn:
        return Rn()

    def motion(self, q: ca.SX, v: ca.SX) -> Motion:
        return Motion.constant_pose()


@dataclass(frozen=True)
class ScalarJoint(Joint):
    """A joint with one coordinate q along a constant unit twist: rotation by q about the axis, if
    it `rotates`, and translation by `slide * q` along it.
    """

    axis: tuple[float, float, float]
    rotates: ClassVar[bool] = True
    """Whether the joint turns about its axis."""

    @property
    def slide(self) -> float:
        """Translation along the axis by a unit of the coordinate."""
        return 0.0 if self.rotates else 1.0

    def space(self, coordinate: str) -> Rn:
        return Rn(coordinate)

    def motion(self, q: ca.SX, v: ca.SX) -> Motion:
        axis = ca.sparsify(ca.SX(np.array(self.axis)))
        still = ca.SX(3, 1)
        R = rotation_about(np.array(self.axis), q) if self.rotates else ca.SX.eye(3)
        omega = axis * v if self.rotates else still
        if self.slide == 0.0:
            return Motion(R, still, omega, still)
        return Motion(R, axis * (self.slide * q), omega, axis * (self.slide * v))


@dataclass(frozen=True)
class Revolute(ScalarJoint):
    """Rotation about a constant axis; the angle (rad) is not bounded."""

    effort = ("torque", "N m")


@dataclass(frozen=True)
class Prismatic(ScalarJoint):
    """Translation along a constant axis, in m."""

    rotates = False


@dataclass(frozen=True)
class Helical(ScalarJoint):
    """A screw: rotation by q (rad) about a constant axis with a translation `pitch * q` along it,
    `pitch` in m/rad [featherstone2008, section 4.4].
    """

    pitch: float
    effort = ("torque", "N m")

    @property
    def slide(self) -> float:
        """The pitch."""
        return self.pitch


@dataclass(frozen=True)
class Planar(Joint):
    """Motion in the plane normal to a constant axis, on SE(2): rotation about the axis,
    translation along the plane's x and y.
    """

    axis: tuple[float, float, float]

    def space(self, coordinate: str) -> SE2:
        return SE2(
            tuple(f"{coordinate}_{c}" for c in ("theta", "x", "y")),
            tuple(f"{coordinate}_{c}" for c in ("omega", "v_forward", "v_side")),
        )

    def motion(self, q: ca.SX, v: ca.SX) -> Motion:
        axis = np.array(self.axis)
        plane = ca.sparsify(ca.DM(plane_axes(axis)))
        return Motion(
            rotation_about(axis, q[0]),
            plane @ q[1:3],
            ca.sparsify(ca.SX(axis)) * v[0],
            plane @ v[1:3],
        )


@dataclass(frozen=True)
class Spherical(Joint):
    """Rotation about a point, on SO(3) with the retraction "exp" or "cay"."""

    retraction: str = "exp"

    def space(self, coordinate: str) -> SO3:
        return SO3(f"{coordinate}_", self.retraction)

    def motion(self, q: ca.SX, v: ca.SX) -> Motion:
        return Motion(quaternion.matrix(q), ca.SX(3, 1), v, ca.SX(3, 1))


@dataclass(frozen=True)
class Floating(Joint):
    """Any motion, on "SE3" with velocities in the frame's axes, or on "SO3xR3" with the linear
    velocity in the axes of the placement, `v = p'` [mueller2013 2]; with the retraction "exp" or
    "cay".
    """

    retraction: str = "exp"
    configuration_space: str = "SE3"

    def space(self, coordinate: str) -> Space:
        if self.configuration_space == "SE3":
            return SE3(f"{coordinate}_", self.retraction)
        position = Rn(
            *(f"{coordinate}_{c}" for c in "xyz"),
            velocity_names=tuple(f"{coordinate}_v_{c}" for c in "xyz"),
        )
        return Product(SO3(f"{coordinate}_", self.retraction), position)

    def motion(self, q: ca.SX, v: ca.SX) -> Motion:
        R, position, omega, linear = quaternion.matrix(q[:4]), q[4:7], v[:3], v[3:6]
        if self.configuration_space == "SE3":
            return Motion(R, position, omega, linear)
        return Motion(R, position, omega, R.T @ linear, outer_v=linear)


@dataclass(frozen=True)
class Mimic:
    """The coordinate of a joint that follows another one: `ratio * coordinate + offset`."""

    coordinate: str
    ratio: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Limits:
    """Range of a joint's coordinate (rad or m) and its largest speed, for planners and
    controllers; the dynamics have no stops. Raises ValueError for an empty range.
    """

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf

    def __post_init__(self) -> None:
        if not (self.lower <= self.upper and self.velocity >= 0):
            raise ValueError(
                f"Limits: expected lower <= upper and velocity >= 0, got {self.lower}, "
                f"{self.upper} and {self.velocity}"
            )


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Frame:
    """A frame with a constant placement in its parent, `position` (3, m) and `rotation` (3, 3),
    that its joint moves from there; `coordinate` names the joint's coordinates (by default the
    frame's name). `fixed`, `revolute`, `prismatic`, `helical`, `planar`, `spherical` and
    `floating` make one frame, `universal` and `cylindrical` make two.
    """

    name: str
    parent: str
    joint: Joint
    position: Vector = ORIGIN
    rotation: ArrayLike = NO_ROTATION
    coordinate: str = ""
    mimic: Mimic | None = None
    limits: Limits = NO_LIMITS

    def __post_init__(self) -> None:
        rotation = np.array(self.rotation, dtype=float)
        if (
            rotation.shape != (3, 3)
            or not np.allclose(rotation @ rotation.T, np.eye(3), rtol=0, atol=1e-9)
            or np.linalg.det(rotation) < 0
        ):
            raise ValueError(
                f"frame {self.name!r}: rotation must be a (3, 3) rotation matrix, got "
                f"{rotation.tolist()}"
            )
        object.__setattr__(
            self, "position", three_numbers(self.position, f"frame {self.name!r}: position")
        )
        object.__setattr__(self, "rotation", tuple(map(tuple, rotation.tolist())))
        object.__setattr__(self, "coordinate", self.coordinate or self.name)

    @property
    def is_fixed(self) -> bool:
        """Whether the frame does not move in its parent."""
        return isinstance(self.joint, Fixed)


def fixed(
    name: str,
    parent: str = WORLD,
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
) -> Frame:
    """A frame at a constant pose in its parent."""
    return Frame(name, parent, Fixed(), position, rotation)


def revolute(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "z",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    mimic: Mimic | None = None,
    limits: Limits = NO_LIMITS,
) -> Frame:
    """A frame that turns about an axis ("x", "-z", ... or three numbers). It may follow another
    coordinate (`Mimic`) and have `Limits`.
    """
    return Frame(
        name, parent, Revolute(_axis(name, axis)), position, rotation, coordinate, mimic, limits
    )


def helical(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "z",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    mimic: Mimic | None = None,
    limits: Limits = NO_LIMITS,
    *,
    pitch: float,
) -> Frame:
    """A frame on a screw: it turns by q (rad) about an axis ("x", "-z", ... or three numbers) and
    moves by `pitch * q` along it, `pitch` in m/rad. It may follow another coordinate (`Mimic`) and
    have `Limits`. Raises ValueError for a pitch that is not finite.
    """
    if not np.isfinite(pitch):
        raise ValueError(f"frame {name!r}: pitch must be finite, got {pitch}")
    joint = Helical(_axis(name, axis), float(pitch))
    return Frame(name, parent, joint, position, rotation, coordinate, mimic, limits)


def prismatic(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "x",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    mimic: Mimic | None = None,
    limits: Limits = NO_LIMITS,
) -> Frame:
    """A frame that slides along an axis ("x", "-z", ... or three numbers). It may follow another
    coordinate (`Mimic`) and have `Limits`.
    """
    return Frame(
        name, parent, Prismatic(_axis(name, axis)), position, rotation, coordinate, mimic, limits
    )


def planar(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "z",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
) -> Frame:
    """A frame that slides and turns in the plane normal to an axis: coordinates (theta, x, y),
    velocities in the frame's own axes.
    """
    return Frame(name, parent, Planar(_axis(name, axis)), position, rotation, coordinate)


def spherical(
    name: str,
    parent: str = WORLD,
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    retraction: str = "exp",
) -> Frame:
    """A frame that turns about its origin: a unit quaternion, and the angular velocity in the
    frame's axes. `retraction` is "exp" or "cay", as for `SO3`.
    """
    return Frame(name, parent, Spherical(retraction), position, rotation, coordinate)


def floating(
    name: str,
    parent: str = WORLD,
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    retraction: str = "exp",
    space: str = "SE3",
) -> Frame:
    """A frame that moves freely: a unit quaternion and a position, the angular velocity in the
    frame's axes, and the linear velocity in the frame's axes on the `space` "SE3", in the axes of
    the placement on "SO3xR3". `retraction` is "exp" or "cay", as for `SE3`. Raises ValueError for
    another space.
    """
    if space not in CONFIGURATION_SPACES:
        raise ValueError(
            f"frame {name!r}: unknown space {space!r} of a floating frame, choose one of "
            f"{', '.join(CONFIGURATION_SPACES)}"
        )
    return Frame(name, parent, Floating(retraction, space), position, rotation, coordinate)


def universal(
    name: str,
    parent: str = WORLD,
    axes: tuple[str | Vector, str | Vector] = ("x", "y"),
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
) -> tuple[Frame, Frame]:
    """Two frames: `<name>_cross` turns about the first axis, the frame itself about the second
    axis through the same point.
    """
    cross = revolute(f"{name}_cross", parent, axes[0], position, rotation)
    return cross, revolute(name, cross.name, axes[1])


def cylindrical(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "z",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
) -> tuple[Frame, Frame]:
    """Two frames: `<name>_slide` slides along an axis, the frame itself turns about it."""
    slide = prismatic(f"{name}_slide", parent, axis, position, rotation)
    return slide, revolute(name, slide.name, axis)


def _axis(name: str, axis: str | Vector) -> tuple[float, float, float]:
    x, y, z = unit_vector(axis, f"frame {name!r}").tolist()
    return x, y, z
