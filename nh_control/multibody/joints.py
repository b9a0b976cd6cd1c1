"""Joints as constraints between two frames. They connect floating bodies and close loops."""

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
"""The rows of each kind of joint, in right-handed axes (0, 1, 2) where 2 is the joint axis. They
list the components of the vector between the points that stay zero, and the pairs (axis of a, axis
of b) that stay normal to each other. A helical joint has one more row, for its screw.
"""


@dataclass(frozen=True)
class JointConstraint(Constraint):
    """A joint of one of the JOINT_KINDS between points a and b (each a `Point` or a frame's name).
    The frame of b moves in the frame of a as a frame in a tree moves in its parent.

    The columns of `rotation` (3, 3) are b's axes in a's axes when the joint is at zero, and `axis`
    is in b's axes. With S = R_a^T R_b, the rows are components of `R_a^T (r_b - r_a)` and
    `e_i . S e_j`. If all three position components vanish, the rows are the components of
    `r_b - r_a` in the world axes instead. A universal joint turns about `axis`, fixed in a, and
    about `second_axis`, fixed in b, so that `axis . S second_axis` is constant. The last row of a
    helical joint is `displacement - pitch * angle` (m) modulo `2 pi pitch`, with `pitch` in m/rad,
    so it holds after any number of turns.

    The coordinate is the angle in (-pi, pi] for a revolute joint, the angle including full turns
    for a helical joint, and the displacement for a prismatic joint. Joint springs, dampers and
    inputs refer to these coordinates by the name of the constraint.

    Raises ValueError for an unknown kind, for parallel axes, for a helical joint with a zero or
    infinite pitch, and for any other kind of joint that has a pitch.
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
        if self.kind == "universal":
            first, second = self._universal_axes
            if not np.cross(first, second).any():
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
            # components of R_a^T (r_b - r_a) along the fixed directions
            distance = (R_a @ constant(self.positions)).T @ distance
        angles = [
            ca.dot(R_a @ constant(e_a), k.rotation(self.b) @ constant(e_b)) - cosine
            for e_a, e_b, cosine in self.directions
        ]
        rows = ca.vertcat(distance, *angles)
        if self.kind != "helical":
            return rows
        # the angle measured from displacement / pitch is also zero after every full turn
        return ca.vertcat(rows, -self.pitch * self._angle(k, self._displacement(k) / self.pitch))

    def wrench(self, k: Kinematics, multipliers: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Force (3, N) that the joint exerts on b's body at point b, and torque (3, N m) about
        that point, in the world axes, for the multipliers of the residual's rows.

        They are `sum lam_i R_a e_i` and `sum lam (R_b e_j) x (R_a e_i)`. The screw of a helical
        joint adds `lam R_a e_2` and `lam pitch (n x R_b e_0) / |n|^2`, where
        `n = R_a e_2 x R_b e_0`.
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
        """The coordinate at k. It is the angle `atan2(e_1 . S e_0, e_0 . S e_0)` (rad) of a
        revolute joint, or the displacement `e_2 . R_a^T (r_b - r_a)` (m) of a prismatic joint. For
        a helical joint, it is the angle plus the number of full turns that brings the sum closest
        to `displacement / pitch`.
        """
        if self.kind == "revolute":
            return self._angle(k)
        displacement = self._displacement(k)
        if self.kind == "prismatic":
            return displacement
        return displacement / self.pitch + self._angle(k, displacement / self.pitch)

    def rate(self, k: Kinematics) -> ca.SX:
        """The rate of the coordinate at k. It is the relative angular velocity about the axis or,
        for a prismatic joint, the relative velocity along the axis.
        """
        omega_a = k.angular_velocity(self.a)
        if self.kind != "prismatic":
            axis = k.rotation(self.b) @ constant(self._axes[:, 2])
            return ca.dot(axis, k.angular_velocity(self.b) - omega_a)
        distance = k.position(self.b) - k.position(self.a)
        # velocity in the rotating axes of a: v_b - v_a - omega_a x (r_b - r_a)
        relative = k.velocity(self.b) - k.velocity(self.a) - ca.cross(omega_a, distance)
        return ca.dot(k.rotation(self.a) @ constant(self._axes_in_a[:, 2]), relative)

    def _displacement(self, k: Kinematics) -> ca.SX:
        """The displacement from point a to point b along the axis."""
        axis = k.rotation(self.a) @ constant(self._axes_in_a[:, 2])
        return ca.dot(axis, k.position(self.b) - k.position(self.a))

    def _angle(self, k: Kinematics, start: ca.SX | float = 0.0) -> ca.SX:
        """The angle of b about the axis, relative to the angle `start`, in (-pi, pi]."""
        first, second = (k.rotation(self.a) @ constant(e) for e in self._axes_in_a.T[:2])
        first_b = self._first_axis_of_b(k)
        x, y = ca.dot(first, first_b), ca.dot(second, first_b)
        # rotate (x, y) by -start, so atan2 returns the angle relative to it
        c, s = ca.cos(start), ca.sin(start)
        return ca.atan2(c * y - s * x, c * x + s * y)

    def _first_axis_of_b(self, k: Kinematics) -> ca.SX:
        return k.rotation(self.b) @ constant(self._axes[:, 0])

    @property
    def screw_axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The joint axis and the zero-angle direction in a's axes, and the direction in b's axes
        that defines the angle.
        """
        return self._axes_in_a[:, 2], self._axes_in_a[:, 0], self._axes[:, 0]

    @property
    def _axes_in_a(self) -> np.ndarray:
        return np.asarray(self.rotation) @ self._axes

    @cached_property
    def _axes(self) -> np.ndarray:
        """The axes (3, 3) that JOINT_KINDS refers to, in b's axes. The last column is the joint
        axis.
        """
        axis = unit_vector(self.axis, f"constraint {self.name!r}")
        return np.column_stack([plane_axes(axis), axis])

    @property
    def positions(self) -> np.ndarray:
        """Directions (3, n), in a's axes, along which the distance between the points stays
        zero.
        """
        return self._axes_in_a[:, list(JOINT_KINDS[self.kind][0])]

    @property
    def directions(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Pairs of directions, one in a's axes and one in b's axes, and the constant cosine
        between them.
        """
        if self.kind == "universal":
            first, second = self._universal_axes
            return [(np.asarray(self.rotation) @ first, second, float(first @ second))]
        pairs = JOINT_KINDS[self.kind][1]
        return [(self._axes_in_a[:, i], self._axes[:, j], 0.0) for i, j in pairs]

    @property
    def _universal_axes(self) -> tuple[np.ndarray, np.ndarray]:
        where = f"constraint {self.name!r}"
        return unit_vector(self.axis, where), unit_vector(self.second_axis, where)
