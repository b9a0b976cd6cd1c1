"""The ground, which is a plane or a height field."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import casadi as ca
import numpy as np

from nh_control.multibody.frame_motion import constant, three_numbers, unit_vector
from nh_control.numerics.expressions import Expression, Vector


class Ground(ABC):
    """A surface in the world. A flat surface may move within its plane."""

    is_flat: ClassVar[bool] = False

    @property
    def sliding(self) -> tuple[float, ...]:
        """Velocity (2, m/s) of the surface along its tangents, or empty if it is at rest."""
        return ()

    @property
    def moves(self) -> bool:
        """Whether the surface moves within its plane."""
        return bool(self.sliding)

    def velocity(self, position: ca.SX) -> ca.SX:
        """Velocity (3, m/s) of the surface at a position (3)."""
        return ca.SX.zeros(3)

    @abstractmethod
    def gap(self, position: ca.SX) -> ca.SX:
        """Distance (m) of a position (3) from the surface, negative below it."""

    @abstractmethod
    def normal(self, position: ca.SX) -> ca.SX:
        """Unit normal (3) of the surface near a position (3). It points away from the ground."""

    @abstractmethod
    def tangents(self, position: ca.SX) -> ca.SX:
        """Two unit tangents, (2, 3), near a position (3)."""


@dataclass(frozen=True)
class Plane(Ground):
    """The half-space below `normal . p = height` (m), by default below z = 0.

    The surface moves within its plane at `surface_velocity` (3, m/s), like a conveyor, and rotates
    at `turn_rate` (rad/s) about the normal through `center` (3, m), like a turntable. Raises
    ValueError if the normal is zero or if the velocity has a component along it.
    """

    normal_axis: str | Vector = "z"
    height: float = 0.0
    surface_velocity: Vector = (0.0, 0.0, 0.0)
    turn_rate: float = 0.0
    center: Vector = (0.0, 0.0, 0.0)
    is_flat: ClassVar[bool] = True
    _axes: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        normal = unit_vector(self.normal_axis, "plane")
        velocity = np.array(three_numbers(self.surface_velocity, "plane: surface_velocity"))
        if abs(normal @ velocity) > 1e-12 * np.linalg.norm(velocity):
            raise ValueError(
                f"plane: surface_velocity must lie in the plane with the normal "
                f"{normal.tolist()}, got {velocity.tolist()}"
            )
        three_numbers(self.center, "plane: center")
        for what in ("height", "turn_rate"):
            if not np.isfinite(getattr(self, what)):
                raise ValueError(f"plane: {what} must be finite, got {getattr(self, what)}")
        # the first tangent is the coordinate axis farthest from the normal, orthogonalized, and
        # the second is normal x first
        axis = np.eye(3)[np.argmin(np.abs(normal))]
        first = np.cross(axis, normal) if abs(normal[2]) < 0.5 else axis - (axis @ normal) * normal
        first /= np.linalg.norm(first)
        object.__setattr__(self, "_axes", np.array([normal, first, np.cross(normal, first)]))

    def gap(self, position: ca.SX) -> ca.SX:
        return ca.dot(constant(self._axes[0]), position) - self.height

    def normal(self, position: ca.SX) -> ca.SX:
        return ca.SX(constant(self._axes[0]))

    def tangents(self, position: ca.SX) -> ca.SX:
        return ca.SX(constant(self._axes[1:]))

    @property
    def moves(self) -> bool:
        return bool(self.sliding) or self.turn_rate != 0.0

    def velocity(self, position: ca.SX) -> ca.SX:
        arm = position - constant(self.center)
        # v = v_surface + rate n x (r - center)
        turning = self.turn_rate * ca.cross(constant(self._axes[0]), arm)
        return turning + constant(self.surface_velocity)

    @property
    def sliding(self) -> tuple[float, ...]:
        velocity = self._axes[1:] @ np.asarray(self.surface_velocity, dtype=float)
        return tuple(velocity.tolist()) if velocity.any() else ()


@dataclass(frozen=True)
class HeightField(Ground):
    """The ground below z = `height(x, y)` (m), a CasADi expression.

    The gap is `(z - height) / |normal|`, the distance to first order. A ball therefore touches as
    if the slope below its center continued everywhere.
    """

    height: Callable[[ca.SX, ca.SX], Expression]

    def gap(self, position: ca.SX) -> ca.SX:
        above = position[2] - self.height(position[0], position[1])
        return above / ca.sqrt(1 + ca.sumsqr(self._slope(position)))

    def normal(self, position: ca.SX) -> ca.SX:
        slope = self._slope(position)
        return ca.vertcat(-slope, 1) / ca.sqrt(1 + ca.sumsqr(slope))

    def tangents(self, position: ca.SX) -> ca.SX:
        # the first tangent follows the slope along x, the second is n x first
        slope, normal = self._slope(position), self.normal(position)
        first = ca.vertcat(1, 0, slope[0]) / ca.sqrt(1 + slope[0] ** 2)
        return ca.horzcat(first, ca.cross(normal, first)).T

    def _slope(self, position: ca.SX) -> ca.SX:
        """(dz/dx, dz/dy) below a position."""
        xy = ca.SX.sym("xy", 2)
        slope = ca.gradient(ca.SX(self.height(xy[0], xy[1])), xy)
        return ca.substitute(slope, xy, position[:2])
