"""Spheres and capsules of two bodies against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from nh_control.multibody.contact_shapes import Capsule, Shape, Sphere, Touch
from nh_control.multibody.frame_motion import constant, unit_vector
from nh_control.multibody.kinematics import Kinematics, Point

POLE = (-0.48, -0.6, -0.64)
"""The one normal at which tangents jump: an oblique one, which no usual arrangement has."""
PARALLEL = 0.01
"""Squared sine below which the axes of two capsules count as nearly parallel: their closest
points, which would leap from end to end, move to the middle, and the ends carry. There capsules
may overlap by 0.15 PARALLEL times half a length squared over the sum of the diameters.
"""


@dataclass(frozen=True)
class BodySurface:
    """A sphere or capsule on another body, in place of the ground of a contact: its `shape` around
    `at`, a point or a frame's origin. Raises ValueError for another shape.
    """

    at: Point | str
    shape: Sphere | Capsule

    def __post_init__(self) -> None:
        if isinstance(self.at, str):
            object.__setattr__(self, "at", Point(self.at))
        round_shape(f"surface of {self.point.frame!r}", self.shape)

    @property
    def point(self) -> Point:
        """The center of the shape."""
        return self.at if isinstance(self.at, Point) else Point(self.at)

    def touches(self, k: Kinematics, point: Point, shape: Shape) -> Iterator[Touch]:
        """The places where a sphere or capsule whose center is at a point may touch: of two
        capsules the closest points of their axes, and the ends of each against the other.
        """
        one, other = _Bar.of(k, point, shape), _Bar.of(k, self.point, self.shape)
        for near, far in _closest(one, other):
            yield _touch(one, other, near, far)


def round_shape(owner: str, shape: Shape) -> Sphere | Capsule:
    """The shape; raises ValueError, with the owner, for one that is neither a sphere nor a
    capsule.
    """
    if isinstance(shape, (Sphere, Capsule)):
        return shape
    raise ValueError(
        f"{owner}: two bodies touch as spheres and capsules, got {shape!r}; put some of these in "
        "its place"
    )


class _Bar(NamedTuple):
    """A sphere (`half` is None) or a capsule in the world: the center and half the axis (3, m)
    with the radius, and the motion of its body.
    """

    center: ca.SX
    half: ca.SX | None
    radius: float
    velocity: ca.SX
    spin: ca.SX

    @classmethod
    def of(cls, k: Kinematics, point: Point, shape: Shape) -> _Bar:
        shape, half = round_shape(f"contact at {point.frame!r}", shape), None
        if isinstance(shape, Capsule):
            axis = unit_vector(shape.axis, "Capsule")
            half = k.rotation(point) @ constant(shape.length / 2 * axis)
        radius = float(shape.radius)
        return cls(k.position(point), half, radius, k.velocity(point), k.angular_velocity(point))

    def ends(self) -> list[ca.SX]:
        """The centers of its half balls, or of the ball."""
        if self.half is None:
            return [self.center]
        return [self.center - self.half, self.center + self.half]

    def nearest(self, position: ca.SX) -> ca.SX:
        """The point of the axis next to a position."""
        if self.half is None:
            return self.center
        along = ca.dot(position - self.center, self.half) / ca.sumsqr(self.half)
        return self.center + _clipped(along) * self.half

    def velocity_at(self, position: ca.SX) -> ca.SX:
        """Velocity of the body's material at a position."""
        return self.velocity + ca.cross(self.spin, position - self.center)


def _closest(one: _Bar, other: _Bar) -> Iterator[tuple[ca.SX, ca.SX]]:
    """Pairs of points on both axes, each next to the other's axis."""
    if one.half is not None and other.half is not None:
        yield _crossing(one.center, one.half, other)
        yield from ((end, other.nearest(end)) for end in one.ends())
        yield from ((one.nearest(end), end) for end in other.ends())
    elif other.half is None:
        yield one.nearest(other.center), other.center
    else:
        yield one.center, other.nearest(one.center)


def _crossing(center: ca.SX, half: ca.SX, other: _Bar) -> tuple[ca.SX, ca.SX]:
    """The closest points of two axes, `center + s half` and one of `other`, with s, t in [-1, 1]
    [ericson2005 5.1.9].
    """
    direction = other.half
    if direction is None:
        return center, other.center
    # |center + s half - other - t direction|^2 is least where both derivatives vanish
    between = center - other.center
    a, e, b = ca.sumsqr(half), ca.sumsqr(direction), ca.dot(half, direction)
    c, f = ca.dot(half, between), ca.dot(direction, between)
    s = _clipped((b * f - c * e) / ca.fmax(a * e - b * b, PARALLEL * a * e))
    far = other.nearest(center + s * half)
    near = center + _clipped(ca.dot(far - center, half) / a) * half
    return near, far


def _touch(one: _Bar, other: _Bar, near: ca.SX, far: ca.SX) -> Touch:
    """The touch between the balls around two points of the axes."""
    between = near - far
    distance = ca.norm_2(between)
    normal = between / distance
    gap = distance - one.radius - other.radius
    # one position for both bodies, so that impulses keep the angular momentum
    position = far + (other.radius + gap / 2) * normal
    velocity = one.velocity_at(position) - other.velocity_at(position)
    return Touch(gap, position, velocity, normal, _tangents(normal), False)


def _tangents(normal: ca.SX) -> ca.SX:
    """Two unit tangents (2, 3) that change smoothly with the normal but at POLE: the shortest
    rotation of -POLE to the normal, of the two axes next to it.
    """
    z = -np.array(POLE) / np.linalg.norm(POLE)
    x = np.cross(z, [1.0, 0.0, 0.0])
    x /= np.linalg.norm(x)
    middle = constant(z) + normal
    # R e = e - (e . n) (z + n) / (1 + z . n) for e across z
    rows = [
        constant(e) - ca.dot(constant(e), normal) * middle / (1 + ca.dot(constant(z), normal))
        for e in (x, np.cross(z, x))
    ]
    return ca.horzcat(*rows).T


def _clipped(value: ca.SX) -> ca.SX:
    return ca.fmax(-1, ca.fmin(1, value))
