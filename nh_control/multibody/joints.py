"""Joints as constraints between two frames: they connect floating bodies and close loops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.constraints import Constraint
from nh_control.multibody.frame_motion import constant, plane_axes, unit_vector
from nh_control.multibody.frames import NO_ROTATION
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.numerics.expressions import Vector

ALL, ACROSS, ALONG = (0, 1, 2), (0, 1), (2,)
ALIGNED, LOCKED = ((0, 2), (1, 2)), ((0, 1), (0, 2), (1, 2))

JOINT_KINDS = {
    "spherical": (ALL, ()),
    "revolute": (ALL, ALIGNED),
    "universal": (ALL, ()),
    "cylindrical": (ACROSS, ALIGNED),
    "helical": (ACROSS, ALIGNED),
    "prismatic": (ACROSS, LOCKED),
    "planar": (ALONG, ALIGNED),
    "fixed": (ALL, LOCKED),
}
"""The rows of every kind of joint, in right-handed axes (0, 1, 2) of which 2 is the joint axis:
the components of the distance between the points that stay zero, and the pairs of an axis of a and
an axis of b that stay normal to each other. A helical joint has one more row, that of its screw.
"""


@dataclass(frozen=True)
class JointConstraint(Constraint):
    """A joint of one of JOINT_KINDS between points a and b (a `Point` or a frame's name): b's
    frame moves in a's as the frame of a tree moves in its parent.

    `rotation` (3, 3) has b's axes in a's axes where the joint is at zero; `axis` is in b's axes.
    With S = R_a^T R_b the rows are components of `R_a^T (p_b - p_a)` (of `p_b - p_a`, in the axes
    of the world, where all three vanish), and `e_i . S e_j`. A universal joint turns about `axis`,
    fixed in a, and about `second_axis`, fixed in b: `axis . S second_axis` keeps its value at
    zero. The last row of a helical joint is `displacement - pitch * angle` (m) modulo
    `2 pi pitch`, `pitch` in m/rad: it holds after any number of turns. The coordinate of a
    revolute joint is its angle in (-pi, pi], that of a helical joint its angle with all turns,
    that of a prismatic joint its displacement; joint springs, dampers and inputs refer to them by
    the name of the constraint. Raises ValueError for an unknown kind, for parallel axes, and for a
    pitch that is zero or infinite, or of another kind of joint.
    """

    kind: str
    a: Point | str
    b: Point | str
    axis: str | Vector = "z"
    rotation: ArrayLike = NO_ROTATION
    second_axis: str | Vector = "x"
    pitch: float = 0.0

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
        if self.kind == "helical" and not (self.pitch and np.isfinite(self.pitch)):
            raise ValueError(
                f"constraint {self.name!r}: the pitch of a helical joint must be finite and not "
                f"zero, got {self.pitch}; without pitch it is a revolute joint"
            )
        if self.kind != "helical" and self.pitch:
            raise ValueError(
                f"constraint {self.name!r}: a {self.kind} joint has no pitch, got {self.pitch}; "
                f"only helical joints have one"
            )

    def residual(self, k: Kinematics) -> ca.SX:
        R_a, distance = k.rotation(self.a), k.position(self.b) - k.position(self.a)
        if len(self.positions.T) < 3:
            distance = (R_a @ constant(self.positions)).T @ distance
        angles = [
            ca.dot(R_a @ constant(e_a), k.rotation(self.b) @ constant(e_b)) - cosine
            for e_a, e_b, cosine in self.directions
        ]
        rows = ca.vertcat(distance, *angles)
        if self.kind != "helical":
            return rows
        return ca.vertcat(rows, -self.pitch * self._angle(k, self._displacement(k) / self.pitch))

    def wrench(self, k: Kinematics, multipliers: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Force (3, N) on b's body at its point and torque (3, N m) about it that the joint
        exerts, in the axes of the world, for the multipliers of the residual's rows.

        `sum lam_i R_a e_i` and `sum lam (R_b e_j) x (R_a e_i)`; the screw of a helical joint adds
        `lam R_a e_2` and `lam pitch (n x R_b e_0) / |n|^2`, `n = R_a e_2 x R_b e_0`.
        """
        n, R_a = self.positions.shape[1], k.rotation(self.a)
        force, torque = multipliers[:n], ca.SX.zeros(3)
        if n < 3:
            force = R_a @ constant(self.positions) @ force
        for i, (e_a, e_b, _) in enumerate(self.directions):
            axis = ca.cross(k.rotation(self.b) @ constant(e_b), R_a @ constant(e_a))
            torque += multipliers[n + i] * axis
        if self.kind == "helical":
            axis, first_b = R_a @ constant(self._axes_in_a[:, 2]), self._first_axis_of_b(k)
            normal = ca.cross(axis, first_b)
            force += multipliers[-1] * axis
            torque += multipliers[-1] * self.pitch * ca.cross(normal, first_b) / ca.sumsqr(normal)
        return force, torque

    @property
    def has_one_coordinate(self) -> bool:
        """Whether the joint has one coordinate."""
        return self.kind in ("revolute", "prismatic", "helical")

    @property
    def effort(self) -> tuple[str, str]:
        """Name and unit of the effort on the coordinate."""
        return ("force", "N") if self.kind == "prismatic" else ("torque", "N m")

    def coordinate(self, k: Kinematics) -> ca.SX:
        """The coordinate: the angle `atan2(e_1 . S e_0, e_0 . S e_0)` (rad) of a revolute joint,
        for a helical joint with the full turns that are closest to `displacement / pitch`, or the
        displacement `e_2 . R_a^T (p_b - p_a)` (m) of a prismatic joint.
        """
        if self.kind == "revolute":
            return self._angle(k)
        displacement = self._displacement(k)
        if self.kind == "prismatic":
            return displacement
        return displacement / self.pitch + self._angle(k, displacement / self.pitch)

    def rate(self, k: Kinematics) -> ca.SX:
        """The rate of the coordinate: the relative angular velocity along the axis, or relative
        velocity along it.
        """
        omega_a = k.angular_velocity(self.a)
        if self.kind != "prismatic":
            axis = k.rotation(self.b) @ constant(self._axes[:, 2])
            return ca.dot(axis, k.angular_velocity(self.b) - omega_a)
        distance = k.position(self.b) - k.position(self.a)
        relative = k.velocity(self.b) - k.velocity(self.a) - ca.cross(omega_a, distance)
        return ca.dot(k.rotation(self.a) @ constant(self._axes_in_a[:, 2]), relative)

    def _displacement(self, k: Kinematics) -> ca.SX:
        """The distance of the points along the axis."""
        axis = k.rotation(self.a) @ constant(self._axes_in_a[:, 2])
        return ca.dot(axis, k.position(self.b) - k.position(self.a))

    def _angle(self, k: Kinematics, start: ca.SX | float = 0.0) -> ca.SX:
        """The angle of b about the axis from a start angle, in (-pi, pi]."""
        first, second = (k.rotation(self.a) @ constant(e) for e in self._axes_in_a.T[:2])
        first_b = self._first_axis_of_b(k)
        x, y = ca.dot(first, first_b), ca.dot(second, first_b)
        c, s = ca.cos(start), ca.sin(start)
        return ca.atan2(c * y - s * x, c * x + s * y)

    def _first_axis_of_b(self, k: Kinematics) -> ca.SX:
        return k.rotation(self.b) @ constant(self._axes[:, 0])

    @property
    def screw_axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Directions of the axis and of angle zero in a's axes, and of b's angle in b's axes."""
        return self._axes_in_a[:, 2], self._axes_in_a[:, 0], self._axes[:, 0]

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
