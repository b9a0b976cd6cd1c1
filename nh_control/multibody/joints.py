"""Joints as constraints between two frames: they connect floating bodies and close loops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.constraints import Constraint
from nh_control.multibody.frames import NO_ROTATION
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.multibody.motion import constant, plane_axes, unit_vector
from nh_control.numerics.expressions import Vector

ALL, ACROSS, ALONG = (0, 1, 2), (0, 1), (2,)
ALIGNED, LOCKED = ((0, 2), (1, 2)), ((0, 1), (0, 2), (1, 2))

JOINT_KINDS = {
    "spherical": (ALL, ()),
    "revolute": (ALL, ALIGNED),
    "universal": (ALL, ()),
    "cylindrical": (ACROSS, ALIGNED),
    "prismatic": (ACROSS, LOCKED),
    "planar": (ALONG, ALIGNED),
    "fixed": (ALL, LOCKED),
}
"""The rows of every kind of joint, in right-handed axes (0, 1, 2) of which 2 is the joint axis:
the components of the distance between the points that stay zero, and the pairs of an axis of a and
an axis of b that stay normal to each other.
"""


@dataclass(frozen=True)
class JointConstraint(Constraint):
    """A joint of one of JOINT_KINDS between points a and b (a `Point` or a frame's name): b's
    frame moves in a's as the frame of a tree moves in its parent.

    `rotation` (3, 3) has b's axes in a's axes where the joint is at zero; `axis` is in b's axes.
    With S = R_a^T R_b the rows are components of `R_a^T (p_b - p_a)` (of `p_b - p_a`, in the axes
    of the world, where all three vanish), and `e_i . S e_j`. A universal joint turns about `axis`,
    fixed in a, and about `second_axis`, fixed in b: `axis . S second_axis` keeps its value at
    zero. The coordinate of a revolute joint is its angle in (-pi, pi], the coordinate of a
    prismatic joint its displacement; joint springs, dampers and inputs refer to them by the name
    of the constraint. Raises ValueError for an unknown kind and for parallel axes.
    """

    kind: str
    a: Point | str
    b: Point | str
    axis: str | Vector = "z"
    rotation: ArrayLike = NO_ROTATION
    second_axis: str | Vector = "x"

    def __post_init__(self) -> None:
        if self.kind not in JOINT_KINDS:
            raise ValueError(
                f"constraint {self.name!r}: unknown kind of joint {self.kind!r}, choose one of "
                f"{', '.join(JOINT_KINDS)}"
            )
        if self.kind == "universal" and not np.cross(*self._universal_axes).any():
            raise ValueError(
                f"constraint {self.name!r}: the two axes of a universal joint must not be "
                f"parallel, both are {self.second_axis}"
            )

    def residual(self, k: Kinematics) -> ca.SX:
        R_a, distance = k.rotation(self.a), k.position(self.b) - k.position(self.a)
        if len(self.positions.T) < 3:
            distance = (R_a @ constant(self.positions)).T @ distance
        angles = [
            ca.dot(R_a @ constant(e_a), k.rotation(self.b) @ constant(e_b)) - cosine
            for e_a, e_b, cosine in self.directions
        ]
        return ca.vertcat(distance, *angles)

    def wrench(self, k: Kinematics, multipliers: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Force (3, N) on b's body at its point and torque (3, N m) about it that the joint
        exerts, in the axes of the world, for the multipliers of the residual's rows.

        `sum lam_i R_a e_i` and `sum lam (R_b e_j) x (R_a e_i)`.
        """
        n, R_a = self.positions.shape[1], k.rotation(self.a)
        force, torque = multipliers[:n], ca.SX.zeros(3)
        if n < 3:
            force = R_a @ constant(self.positions) @ force
        for i, (e_a, e_b, _) in enumerate(self.directions):
            axis = ca.cross(k.rotation(self.b) @ constant(e_b), R_a @ constant(e_a))
            torque += multipliers[n + i] * axis
        return force, torque

    @property
    def has_one_coordinate(self) -> bool:
        """Whether the joint has one coordinate."""
        return self.kind in ("revolute", "prismatic")

    @property
    def effort(self) -> tuple[str, str]:
        """Name and unit of the effort on the coordinate."""
        return ("torque", "N m") if self.kind == "revolute" else ("force", "N")

    def coordinate(self, k: Kinematics) -> ca.SX:
        """The coordinate: the angle `atan2(e_1 . S e_0, e_0 . S e_0)` (rad) of a revolute joint,
        or the displacement `e_2 . R_a^T (p_b - p_a)` (m) of a prismatic joint.
        """
        first, second, axis = (k.rotation(self.a) @ constant(e) for e in self._axes_in_a.T)
        if self.kind == "prismatic":
            return ca.dot(axis, k.position(self.b) - k.position(self.a))
        first_b = k.rotation(self.b) @ constant(self._axes[:, 0])
        return ca.atan2(ca.dot(second, first_b), ca.dot(first, first_b))

    def rate(self, k: Kinematics) -> ca.SX:
        """The rate of the coordinate: the relative angular velocity along the axis, or relative
        velocity along it.
        """
        omega_a = k.angular_velocity(self.a)
        if self.kind == "revolute":
            axis = k.rotation(self.b) @ constant(self._axes[:, 2])
            return ca.dot(axis, k.angular_velocity(self.b) - omega_a)
        distance = k.position(self.b) - k.position(self.a)
        relative = k.velocity(self.b) - k.velocity(self.a) - ca.cross(omega_a, distance)
        return ca.dot(k.rotation(self.a) @ constant(self._axes_in_a[:, 2]), relative)

    @property
    def _axes_in_a(self) -> np.ndarray:
        return np.asarray(self.rotation) @ self._axes

    @cached_property
    def _axes(self) -> np.ndarray:
        """The axes (3, 3) of JOINT_KINDS in b's axes; the joint axis is the last."""
        axis = unit_vector(self.axis, f"constraint {self.name!r}")
        return np.column_stack([plane_axes(axis), axis])

    @property
    def positions(self) -> np.ndarray:
        """Directions (3, n), in a's axes, in which the distance of the points stays zero."""
        return self._axes_in_a[:, list(JOINT_KINDS[self.kind][0])]

    @property
    def directions(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Pairs of directions, in a's and in b's axes, and the constant cosine between them."""
        if self.kind == "universal":
            first, second = self._universal_axes
            return [(np.asarray(self.rotation) @ first, second, float(first @ second))]
        pairs = JOINT_KINDS[self.kind][1]
        return [(self._axes_in_a[:, i], self._axes[:, j], 0.0) for i, j in pairs]

    @property
    def _universal_axes(self) -> tuple[np.ndarray, np.ndarray]:
        where = f"constraint {self.name!r}"
        return unit_vector(self.axis, where), unit_vector(self.second_axis, where)
