"""Holonomic constraints between points in a tree of frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.multibody.frame_motion import constant, unit_vector
from nh_control.multibody.frames import WORLD
from nh_control.multibody.kinematics import Kinematics, Point


@dataclass(frozen=True)
class Constraint(ABC):
    """Named equations h(q) = 0."""

    name: str

    @abstractmethod
    def residual(self, k: Kinematics) -> ca.SX:
        """h (rows) at k."""


@dataclass(frozen=True)
class Distance(Constraint):
    """A rod or a taut string between two points, with `h = |a - b|^2 - length^2`. `length` (m) is
    a number, or the name of a coordinate if a winch reels in the string.
    """

    a: Point | str
    b: Point | str
    length: float | str

    def __post_init__(self) -> None:
        if not isinstance(self.length, str) and not (np.isfinite(self.length) and self.length > 0):
            raise ValueError(
                f"constraint {self.name!r}: length must be positive and finite or the name of a "
                f"coordinate, got {self.length}"
            )

    def residual(self, k: Kinematics) -> ca.SX:
        length = k.coordinate(self.length) if isinstance(self.length, str) else self.length
        # unlike the distance, its square is differentiable where the points coincide
        return ca.sumsqr(k.position(self.a) - k.position(self.b)) - length**2


@dataclass(frozen=True)
class PointOnPlane(Constraint):
    """A constraint that keeps a point on a plane, with `h = normal . (point - plane)`. The plane
    contains the point `plane`, and its `normal` is fixed in that point's frame.
    """

    point: Point | str
    plane: Point | str = WORLD
    normal: str | Sequence[float] = "z"

    def residual(self, k: Kinematics) -> ca.SX:
        # the normal rotates with the plane's frame
        normal = k.rotation(self.plane) @ constant(
            unit_vector(self.normal, f"constraint {self.name!r}")
        )
        return ca.dot(normal, k.position(self.point) - k.position(self.plane))


@dataclass(frozen=True)
class Coincident(Constraint):
    """A constraint that makes two points coincide, like a ball joint that closes a loop. It has
    one row of `h = a - b` for each world axis in `along` (all three by default).
    """

    a: Point | str
    b: Point | str
    along: str = "xyz"

    def __post_init__(self) -> None:
        if (
            not self.along
            or len(set(self.along)) != len(self.along)
            or not set(self.along) <= set("xyz")
        ):
            raise ValueError(
                f"constraint {self.name!r}: along must name some of the axes x, y and z, e.g. "
                f"'xz', got {self.along!r}"
            )

    def residual(self, k: Kinematics) -> ca.SX:
        return (k.position(self.a) - k.position(self.b))[
            ["xyz".index(axis) for axis in self.along]
        ]
