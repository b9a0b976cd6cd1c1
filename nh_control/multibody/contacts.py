"""Contacts of bodies with the ground: shapes on frames, a plane or a height field."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.contacts import BOUNCE_SPEED, require_number
from nh_control.multibody.frames import NO_ROTATION, rotation_rows
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.multibody.motion import constant, three_numbers, unit_vector
from nh_control.numerics.expressions import Expression, Vector


class Ground(ABC):
    """A surface of the world; a flat one may move in itself."""

    is_flat: ClassVar[bool] = False

    @property
    def sliding(self) -> tuple[float, ...]:
        """Velocity (2, m/s) of the surface along its tangents; empty at rest."""
        return ()

    @abstractmethod
    def gap(self, position: ca.SX) -> ca.SX:
        """Distance (m) of a position (3) from the surface, negative below."""

    @abstractmethod
    def normal(self, position: ca.SX) -> ca.SX:
        """Unit normal (3) of the surface next to a position (3), away from the ground."""

    @abstractmethod
    def tangents(self, position: ca.SX) -> ca.SX:
        """Two unit tangents, (2, 3), next to a position (3)."""


@dataclass(frozen=True)
class Plane(Ground):
    """The half space below `normal . p = height` (m), by default below z = 0.

    The surface moves in itself with `surface_velocity` (3, m/s), as a conveyor does. Raises
    ValueError for a normal of length zero and for a velocity out of the plane.
    """

    normal_axis: str | Vector = "z"
    height: float = 0.0
    surface_velocity: Vector = (0.0, 0.0, 0.0)
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
        if not np.isfinite(self.height):
            raise ValueError(f"plane: height must be finite, got {self.height}")
        # tangents: the axis that the normal is farthest from, made orthogonal, and the third one
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
    def sliding(self) -> tuple[float, ...]:
        velocity = self._axes[1:] @ np.asarray(self.surface_velocity, dtype=float)
        return tuple(velocity.tolist()) if velocity.any() else ()


@dataclass(frozen=True)
class HeightField(Ground):
    """The ground below z = `height(x, y)` (m), an expression of CasADi.

    Gaps are `(z - height) / |normal|`, distances to first order: a ball touches where the slope is
    that below its center.
    """

    height: Callable[[ca.SX, ca.SX], Expression]

    def gap(self, position: ca.SX) -> ca.SX:
        above = position[2] - self.height(position[0], position[1])
        return above / ca.sqrt(1 + ca.sumsqr(self._slope(position)))

    def normal(self, position: ca.SX) -> ca.SX:
        slope = self._slope(position)
        return ca.vertcat(-slope, 1) / ca.sqrt(1 + ca.sumsqr(slope))

    def tangents(self, position: ca.SX) -> ca.SX:
        slope, normal = self._slope(position), self.normal(position)
        first = ca.vertcat(1, 0, slope[0]) / ca.sqrt(1 + slope[0] ** 2)
        return ca.horzcat(first, ca.cross(normal, first)).T

    def _slope(self, position: ca.SX) -> ca.SX:
        """(dz/dx, dz/dy) below a position."""
        at = ca.SX.sym("at", 2)
        slope = ca.gradient(ca.SX(self.height(at[0], at[1])), at)
        return ca.substitute(slope, at, position[:2])


class Touch(NamedTuple):
    """One place where a shape may touch: the gap (m), the position (3) and the velocity (3) of the
    body's material there, and whether it is always the same material.
    """

    gap: ca.SX
    position: ca.SX
    velocity: ca.SX
    is_material: bool


class Shape(ABC):
    """A shape on a frame, with the places where it may touch the ground."""

    @abstractmethod
    def touches(self, k: Kinematics, at: Point, ground: Ground) -> Iterator[Touch]:
        """The places of the shape whose center is at a point."""


@dataclass(frozen=True)
class Corner(Shape):
    """A point of a body: a foot's corner, a stick's end."""

    def touches(self, k: Kinematics, at: Point, ground: Ground) -> Iterator[Touch]:
        position = k.position(at)
        yield Touch(ground.gap(position), position, k.velocity(at), True)


@dataclass(frozen=True)
class Sphere(Shape):
    """A ball of this `radius` (m) around a point."""

    radius: float

    def __post_init__(self) -> None:
        _require_positive("Sphere", "radius", self.radius)

    def touches(self, k: Kinematics, at: Point, ground: Ground) -> Iterator[Touch]:
        center = k.position(at)
        arm = -self.radius * ground.normal(center)
        velocity = k.velocity(at) + ca.cross(k.angular_velocity(at), arm)
        yield Touch(ground.gap(center) - self.radius, center + arm, velocity, False)


@dataclass(frozen=True)
class Disc(Shape):
    """A wheel: a disc of this `radius` (m) around a point, with its `axis` fixed in the frame. One
    that falls onto its side has no lowest point, and its step fails.
    """

    radius: float
    axis: str | Vector = "y"

    def __post_init__(self) -> None:
        _require_positive("Disc", "radius", self.radius)
        unit_vector(self.axis, "Disc")

    def touches(self, k: Kinematics, at: Point, ground: Ground) -> Iterator[Touch]:
        center = k.position(at)
        normal = ground.normal(center)
        axis = k.rotation(at) @ constant(unit_vector(self.axis, "Disc"))
        # the lowest point of the rim lies against the normal's part in the plane of the disc
        tilted = ca.dot(axis, normal)
        upright = ca.sqrt(1 - tilted**2)
        arm = -self.radius * (normal - tilted * axis) / upright
        velocity = k.velocity(at) + ca.cross(k.angular_velocity(at), arm)
        yield Touch(ground.gap(center) - self.radius * upright, center + arm, velocity, False)


@dataclass(frozen=True)
class Capsule(Shape):
    """A cylinder of this `length` (m) with half balls of this `radius` (m) at its ends, along an
    `axis` of the frame; on a plane its ends touch.
    """

    radius: float
    length: float
    axis: str | Vector = "z"

    def __post_init__(self) -> None:
        for what in ("radius", "length"):
            _require_positive("Capsule", what, getattr(self, what))
        unit_vector(self.axis, "Capsule")

    def touches(self, k: Kinematics, at: Point, ground: Ground) -> Iterator[Touch]:
        yield from _at_ends(Sphere(self.radius), self, k, at, ground)


@dataclass(frozen=True)
class Cylinder(Shape):
    """A cylinder of this `radius` and `length` (m) around a point, along an `axis` of the frame:
    the rims of its ends touch, as those of two `Disc`. One that stands on an end has no lowest
    point there, and its step fails.
    """

    radius: float
    length: float
    axis: str | Vector = "z"

    def __post_init__(self) -> None:
        for what in ("radius", "length"):
            _require_positive("Cylinder", what, getattr(self, what))
        unit_vector(self.axis, "Cylinder")

    def touches(self, k: Kinematics, at: Point, ground: Ground) -> Iterator[Touch]:
        yield from _at_ends(Disc(self.radius, self.axis), self, k, at, ground)


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

    def touches(self, k: Kinematics, at: Point, ground: Ground) -> Iterator[Touch]:
        edges = np.asarray(self.rotation) * np.asarray(self.size)
        for signs in product((-0.5, 0.5), repeat=3):
            corner = np.asarray(at.position) + edges @ np.array(signs)
            yield from Corner().touches(k, Point(at.frame, tuple(corner)), ground)


@dataclass(frozen=True)
class Contact:
    """A shape on a body that touches the ground, with Coulomb's `friction` and Newton's
    `restitution`.

    `at` is the center of the shape, a point or a frame's origin. Without friction bodies slide
    freely. Meshes, edges against edges, rolling and torsional friction are not known. The `name`
    is by default that of the frame. Raises ValueError for numbers out of range.
    """

    at: Point | str
    shape: Shape = Corner()
    friction: float = 0.0
    restitution: float = 0.0
    ground: Ground = Plane()
    name: str = ""
    bounce_speed: float = BOUNCE_SPEED

    def __post_init__(self) -> None:
        if isinstance(self.at, str):
            object.__setattr__(self, "at", Point(self.at))
        if not self.name:
            object.__setattr__(self, "name", self.point.frame)
        require_number(self.name, "friction", self.friction, 0.0)
        require_number(self.name, "restitution", self.restitution, 0.0, 1.0)
        if not isinstance(self.shape, Shape):
            raise ValueError(
                f"contact {self.name!r}: shape must be a Corner, Sphere, Disc, Capsule, "
                f"Cylinder or BoxCorners, got {self.shape!r}; meshes are not known, put shapes in "
                "their place"
            )

    @property
    def constant(self) -> str:
        """The name in the names of its parameters, `<constant>_friction`."""
        return re.sub(r"\W", "_", self.name)

    @property
    def point(self) -> Point:
        """The center of the shape."""
        return self.at if isinstance(self.at, Point) else Point(self.at)

    def touches(self, k: Kinematics) -> list[Touch]:
        """All places where the shape may touch, at k."""
        return list(self.shape.touches(k, self.point, self.ground))


def _at_ends(
    shape: Shape, bar: Capsule | Cylinder, k: Kinematics, at: Point, ground: Ground
) -> Iterator[Touch]:
    """The touches of a shape at both ends of a bar whose center is at a point."""
    half = bar.length / 2 * unit_vector(bar.axis, type(bar).__name__)
    for side in (-half, half):
        end = Point(at.frame, tuple(np.asarray(at.position) + side))
        yield from shape.touches(k, end, ground)


def _require_positive(owner: str, what: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{owner}: {what} must be positive and finite, got {value}")
