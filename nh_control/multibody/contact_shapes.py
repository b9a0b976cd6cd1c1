"""Shapes on frames, with the places where they may touch the ground."""

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
    """One place where a shape may touch: the gap (m), the position (3), the velocity (3) there of
    the body's material against the other's, the unit normal (3) towards the body and two unit
    tangents (2, 3), and whether it is always the same material.
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
        axes = ground.normal(position), ground.tangents(position)
        return cls(gap, position, velocity, *axes, is_material and ground.is_flat)


class Shape(ABC):
    """A shape on a frame, with the places where it may touch the ground."""

    @abstractmethod
    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        """The places of the shape whose center is at a point."""


@dataclass(frozen=True)
class Corner(Shape):
    """A point of a body: a foot's corner, a stick's end."""

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        position = k.position(point)
        yield Touch.on(ground, ground.gap(position), position, k.velocity(point), True)


@dataclass(frozen=True)
class Sphere(Shape):
    """A ball of this `radius` (m) around a point."""

    radius: float

    def __post_init__(self) -> None:
        _require_positive("Sphere", "radius", self.radius)

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        center = k.position(point)
        arm = -self.radius * ground.normal(center)
        velocity = k.velocity(point) + ca.cross(k.angular_velocity(point), arm)
        yield Touch.on(ground, ground.gap(center) - self.radius, center + arm, velocity)


@dataclass(frozen=True)
class Disc(Shape):
    """A wheel: a disc of this `radius` (m) around a point, with its `axis` fixed in the frame; its
    rim is a knife edge, or round with the radius `rounding` (m). One that falls onto its side has
    no lowest point, and its step fails; an `Ellipsoid` may.
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
        # the lowest point of the rim lies against the normal's part in the plane of the disc
        tilted = ca.dot(axis, normal)
        upright = ca.sqrt(1 - tilted**2)
        middle = self.radius - self.rounding  # the circle in the middle of a round rim
        arm = -middle * (normal - tilted * axis) / upright - self.rounding * normal
        velocity = k.velocity(point) + ca.cross(k.angular_velocity(point), arm)
        gap = ground.gap(center) - middle * upright - self.rounding
        yield Touch.on(ground, gap, center + arm, velocity)


@dataclass(frozen=True)
class Ellipsoid(Shape):
    """An ellipsoid with these half axes (3, m), around a point, along the axes of the frame: flat
    ones are coins, and wheels that may fall onto their sides.
    """

    radii: Vector

    def __post_init__(self) -> None:
        for radius in three_numbers(self.radii, "Ellipsoid: radii"):
            _require_positive("Ellipsoid", "radii", radius)

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        center = k.position(point)
        normal = ground.normal(center)
        # the lowest point is -A^2 n / |A n|, with A the half axes and n in the frame's axes
        rotation, squares = k.rotation(point), constant(np.square(self.radii))
        inner = squares * (rotation.T @ normal)
        height = ca.sqrt(ca.dot(rotation.T @ normal, inner))
        arm = -(rotation @ inner) / height
        velocity = k.velocity(point) + ca.cross(k.angular_velocity(point), arm)
        yield Touch.on(ground, ground.gap(center) - height, center + arm, velocity)


@dataclass(frozen=True)
class _Bar(Shape):
    """A shape along an `axis` of the frame that touches at both ends, `length` (m) apart, with the
    shape `end`.
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
        """The shape at both ends."""

    def touches(self, k: Kinematics, point: Point, ground: Ground) -> Iterator[Touch]:
        half = self.length / 2 * unit_vector(self.axis, type(self).__name__)
        for side in (-half, half):
            place = Point(point.frame, tuple(np.asarray(point.position) + side))
            yield from self.end.touches(k, place, ground)


@dataclass(frozen=True)
class Capsule(_Bar):
    """A cylinder of this `length` (m) with half balls of this `radius` (m) at its ends, along an
    `axis` of the frame; on a plane its ends touch.
    """

    @property
    def end(self) -> Shape:
        """A ball."""
        return Sphere(self.radius)


@dataclass(frozen=True)
class Cylinder(_Bar):
    """A cylinder of this `radius` and `length` (m) around a point, along an `axis` of the frame:
    the rims of its ends touch, as those of two `Disc`. One that stands on an end has no lowest
    point there, and its step fails.
    """

    @property
    def end(self) -> Shape:
        """A rim."""
        return Disc(self.radius, self.axis)


@dataclass(frozen=True)
class BoxCorners(Shape):
    """The eight corners of a box with these lengths of its edges (3, m), around a point, along the
    axes of the frame, or along the columns of a `rotation` (3, 3) in the frame.
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
