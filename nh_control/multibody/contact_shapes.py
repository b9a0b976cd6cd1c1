"""Shapes on frames and the places where they may touch the ground."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.contact_grounds import Ground
from nh_control.multibody.frame_motion import constant, three_numbers, unit_vector
from nh_control.multibody.frames import NO_ROTATION, rotation_rows
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.numerics.expressions import Vector


class Touch(NamedTuple):
    """One place where a shape may touch. It contains the gap (m), the position (3), the velocity
    (3) of the body's material at that position relative to the other body, the unit normal (3)
    toward the body, two unit tangents (2, 3), and whether the same material always touches.
    """

    gap: ca.SX
    position: ca.SX
    velocity: ca.SX
    normal: ca.SX
    tangents: ca.SX
    is_material: bool

    @classmethod
    def on(
        cls,
        ground: Ground,
        gap: ca.SX,
        position: ca.SX,
        velocity: ca.SX,
        is_material: bool = False,
    ) -> Touch:
        """A touch with the ground at a position."""
        normal, tangents = ground.normal(position), ground.tangents(position)
        return cls(gap, position, velocity, normal, tangents, is_material and ground.is_flat)


class Shape(ABC):
    """A shape on a frame that may touch the ground."""

    @abstractmethod
    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        """The places where the shape touches if its center is at a point."""


@dataclass(frozen=True)
class Corner(Shape):
    """A point on a body, such as the corner of a foot or the tip of a stick."""

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        position = k.position(point)
        yield Touch.on(ground, ground.gap(position), position, k.velocity(point), True)


@dataclass(frozen=True)
class Sphere(Shape):
    """A ball with the given `radius` (m) around a point."""

    radius: float

    def __post_init__(self) -> None:
        _require_positive("Sphere", "radius", self.radius)

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        center = k.position(point)
        # the lowest point is center - radius n, and its velocity is v + omega x arm
        arm = -self.radius * ground.normal(center)
        velocity = k.velocity(point) + ca.cross(k.angular_velocity(point), arm)
        yield Touch.on(ground, ground.gap(center) - self.radius, center + arm, velocity)


@dataclass(frozen=True)
class Disc(Shape):
    """A wheel, modeled as a disc with the given `radius` (m) around a point and an `axis` that is
    fixed in the frame. The rim is a knife edge, or it is rounded with the radius `rounding` (m). A
    disc that lies on its side has no lowest point, so the step fails. Use an `Ellipsoid` instead.
    """

    radius: float
    axis: str | Vector = "y"
    rounding: float = 0.0

    def __post_init__(self) -> None:
        _require_positive("Disc", "radius", self.radius)
        if not 0.0 <= self.rounding < self.radius:
            raise ValueError(
                f"Disc: rounding must be at least 0 and less than the radius {self.radius}, got "
                f"{self.rounding}"
            )
        unit_vector(self.axis, "Disc")

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        center = k.position(point)
        normal = ground.normal(center)
        axis = k.rotation(point) @ constant(unit_vector(self.axis, "Disc"))
        # the lowest point of the rim is opposite to the component of the normal in the disc's
        # plane
        tilted = ca.dot(axis, normal)
        upright = ca.sqrt(1 - tilted**2)
        middle = self.radius - self.rounding  # the circle in the middle of a round rim
        arm = -middle * (normal - tilted * axis) / upright - self.rounding * normal
        velocity = k.velocity(point) + ca.cross(k.angular_velocity(point), arm)
        gap = ground.gap(center) - middle * upright - self.rounding
        yield Touch.on(ground, gap, center + arm, velocity)


@dataclass(frozen=True)
class Ellipsoid(Shape):
    """An ellipsoid around a point, with the semi-axes `radii` (3, m) along the frame's axes. Flat
    ellipsoids can model coins and wheels that may fall onto their sides.
    """

    radii: Vector

    def __post_init__(self) -> None:
        for radius in three_numbers(self.radii, "Ellipsoid: radii"):
            _require_positive("Ellipsoid", "radii", radius)

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        center = k.position(point)
        normal = ground.normal(center)
        # the lowest point is -A^2 n / |A n|, with the semi-axes A and n in the frame's axes
        rotation, squares = k.rotation(point), constant(np.square(self.radii))
        inner = squares * (rotation.T @ normal)
        height = ca.sqrt(ca.dot(rotation.T @ normal, inner))
        arm = -(rotation @ inner) / height
        velocity = k.velocity(point) + ca.cross(k.angular_velocity(point), arm)
        yield Touch.on(ground, ground.gap(center) - height, center + arm, velocity)


@dataclass(frozen=True)
class _Bar(Shape):
    """A shape along an `axis` of the frame. The shape `end` touches at both of its ends, which are
    `length` (m) apart.
    """

    radius: float
    length: float
    axis: str | Vector = "z"

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for what in ("radius", "length"):
            _require_positive(owner, what, getattr(self, what))
        unit_vector(self.axis, owner)

    @property
    @abstractmethod
    def end(self) -> Shape:
        """The shape that touches at each end."""

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        half = self.length / 2 * unit_vector(self.axis, type(self).__name__)
        for side in (-half, half):
            place = Point(point.frame, tuple(np.asarray(point.position) + side))
            yield from self.end.touches(k, place, ground)


@dataclass(frozen=True)
class Capsule(_Bar):
    """A cylinder with the given `length` (m), with hemispheres of the given `radius` (m) at its
    ends, along an `axis` of the frame. On a plane, it touches with its ends.
    """

    @property
    def end(self) -> Shape:
        """A ball."""
        return Sphere(self.radius)


@dataclass(frozen=True)
class Cylinder(_Bar):
    """A cylinder with the given `radius` and `length` (m) around a point, along an `axis` of the
    frame. The rims of its ends touch like the rims of two discs. If the cylinder stands on one
    end, that end has no lowest point, and the step fails.
    """

    @property
    def end(self) -> Shape:
        """A rim."""
        return Disc(self.radius, self.axis)


@dataclass(frozen=True)
class BoxCorners(Shape):
    """The eight corners of a box around a point. The edges have the lengths `size` (3, m). They
    are parallel to the frame's axes or to the columns of a `rotation` (3, 3) in the frame.
    """

    size: Vector
    rotation: ArrayLike = NO_ROTATION

    def __post_init__(self) -> None:
        for length in three_numbers(self.size, "BoxCorners: size"):
            _require_positive("BoxCorners", "size", length)
        object.__setattr__(self, "rotation", rotation_rows(self.rotation, "BoxCorners"))

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        edges = np.asarray(self.rotation) * np.asarray(self.size)
        for signs in product((-0.5, 0.5), repeat=3):
            corner = np.asarray(point.position) + edges @ np.array(signs)
            yield from Corner().touches(k, Point(point.frame, tuple(corner)), ground)


def _require_positive(owner: str, what: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{owner}: {what} must be positive and finite, got {value}")
