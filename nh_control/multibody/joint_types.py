"""Joint types with their configuration spaces and motions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn, Space
from nh_control.multibody.frame_motion import FrameMotion, plane_axes, rotation_about

CONFIGURATION_SPACES = ("SE3", "SO3xR3")
"""Configuration spaces of a floating frame."""


class Joint(ABC):
    """The motion of a frame relative to its placement. A joint has a configuration space and
    returns the pose and velocity for each state.
    """

    effort = ("force", "N")
    """Name and unit of the effort on a joint with one coordinate."""

    @abstractmethod
    def space(self, coordinate: str) -> Space:
        """Configuration space of the joint. `coordinate` is the name of its coordinate, or the
        prefix of the names if there are several.
        """

    @abstractmethod
    def motion(self, q: ca.SX, v: ca.SX) -> FrameMotion:
        """Motion relative to the placement at the joint's configuration q and velocity v."""


@dataclass(frozen=True)
class Fixed(Joint):
    """A joint without motion."""

    def space(self, coordinate: str) -> Rn:
        return Rn()

    def motion(self, q: ca.SX, v: ca.SX) -> FrameMotion:
        return FrameMotion.constant_pose()


@dataclass(frozen=True)
class ScalarJoint(Joint):
    """A joint with one coordinate q along a constant twist. It rotates by q about the axis if
    `rotates` is true, and translates by `slide * q` along the axis.
    """

    axis: tuple[float, float, float]
    rotates: ClassVar[bool] = True
    """Whether the joint turns about its axis."""

    @property
    def slide(self) -> float:
        """Translation along the axis per unit of the coordinate."""
        return 0.0 if self.rotates else 1.0

    def space(self, coordinate: str) -> Rn:
        return Rn(coordinate)

    def motion(self, q: ca.SX, v: ca.SX) -> FrameMotion:
        axis = ca.sparsify(ca.SX(np.array(self.axis)))
        still = ca.SX(3, 1)
        R = rotation_about(np.array(self.axis), q) if self.rotates else ca.SX.eye(3)
        omega = axis * v if self.rotates else still
        # structural zeros keep the expressions for revolute joints small
        if self.slide == 0.0:
            return FrameMotion(R, still, omega, still)
        return FrameMotion(R, axis * (self.slide * q), omega, axis * (self.slide * v))


@dataclass(frozen=True)
class Revolute(ScalarJoint):
    """Rotation about a constant axis. The angle (rad) is not bounded."""

    effort = ("torque", "N m")


@dataclass(frozen=True)
class Prismatic(ScalarJoint):
    """Translation along a constant axis, in m."""

    rotates = False


@dataclass(frozen=True)
class Helical(ScalarJoint):
    """A screw that rotates by q (rad) about a constant axis and translates by `pitch * q` along
    it, with `pitch` in m/rad [featherstone2008, section 4.4].
    """

    pitch: float
    effort = ("torque", "N m")

    @property
    def slide(self) -> float:
        """The pitch."""
        return self.pitch


@dataclass(frozen=True)
class Planar(Joint):
    """Motion in the plane normal to a constant axis, on SE(2). It consists of rotation about the
    axis and translation along the plane's x and y axes.
    """

    axis: tuple[float, float, float]

    def space(self, coordinate: str) -> SE2:
        return SE2(
            tuple(f"{coordinate}_{c}" for c in ("theta", "x", "y")),
            tuple(f"{coordinate}_{c}" for c in ("omega", "v_forward", "v_side")),
        )

    def motion(self, q: ca.SX, v: ca.SX) -> FrameMotion:
        axis = np.array(self.axis)
        # v_forward and v_side are body velocities along the plane's axes
        plane = ca.sparsify(ca.DM(plane_axes(axis)))
        return FrameMotion(
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

    def motion(self, q: ca.SX, v: ca.SX) -> FrameMotion:
        return FrameMotion(quaternion.matrix(q), ca.SX(3, 1), v, ca.SX(3, 1))


@dataclass(frozen=True)
class Floating(Joint):
    """Free motion, with the retraction "exp" or "cay". On "SE3", velocities are in the frame's
    axes. On "SO3xR3", the linear velocity is the time derivative of the position, in the axes of
    the placement [mueller2013 2].
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

    def motion(self, q: ca.SX, v: ca.SX) -> FrameMotion:
        R, position, omega, linear = quaternion.matrix(q[:4]), q[4:7], v[:3], v[3:6]
        if self.configuration_space == "SE3":
            return FrameMotion(R, position, omega, linear)
        # v = R^T r', and outer_v = r' avoids the product R v in energies
        return FrameMotion(R, position, omega, R.T @ linear, outer_v=linear)
