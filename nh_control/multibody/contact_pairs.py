"""Contact between spheres and capsules on two bodies."""

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
"""The only normal at which the tangents jump. It is oblique, so it rarely occurs in practice."""
PARALLEL = 0.01
"""Squared sine of the angle below which the axes of two capsules count as nearly parallel. The
closest points of parallel axes would jump from end to end. They therefore move to the middle, and
the ends carry the load. Such capsules may overlap by 0.15 PARALLEL times the squared half-length,
divided by the sum of the diameters.
"""


@dataclass(frozen=True)
class BodySurface:
    """A sphere or capsule on another body that a contact uses instead of the ground. The center
    of its `shape` is `at`, a point or a frame's origin. Raises ValueError for other shapes.
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
        """The places where a sphere or capsule with its center at a point may touch this surface.
        Two capsules may touch where their axes are closest and at the ends of each capsule.
        """
        bar, other = _Bar.of(k, point, shape), _Bar.of(k, self.point, self.shape)
        for near, far in _closest(bar, other):
            yield _touch(bar, other, near, far)


def round_shape(owner: str, shape: Shape) -> Sphere | Capsule:
    """The shape. If it is neither a sphere nor a capsule, raises a ValueError that names the
    owner.
    """
    if isinstance(shape, (Sphere, Capsule)):
        return shape
    raise ValueError(
        f"{owner}: contact between two bodies needs a Sphere or a Capsule, got {shape!r}; use one "
        "of these instead"
    )


class _Bar(NamedTuple):
    """A sphere (`half` is None) or a capsule in the world, with its center (3, m), half its axis
    (3, m), its radius (m) and the motion of its body.
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
        """The centers of the hemispheres, or the center of the sphere."""
        if self.half is None:
            return [self.center]
        return [self.center - self.half, self.center + self.half]

    def nearest(self, position: ca.SX) -> ca.SX:
        """The point of the axis nearest to a position."""
        if self.half is None:
            return self.center
        # s = (r - center) . half / |half|^2, limited to the axis
        along = ca.dot(position - self.center, self.half) / ca.sumsqr(self.half)
        return self.center + _clipped(along) * self.half

    def velocity_at(self, position: ca.SX) -> ca.SX:
        """Velocity of the body's material at a position."""
        return self.velocity + ca.cross(self.spin, position - self.center)


def _closest(bar: _Bar, other: _Bar) -> Iterator[tuple[ca.SX, ca.SX]]:
    """Pairs of points on the two axes. In each pair, one point is the nearest to the other."""
    if bar.half is not None and other.half is not None:
        yield _crossing(bar.center, bar.half, other)
        yield from ((end, other.nearest(end)) for end in bar.ends())
        yield from ((bar.nearest(end), end) for end in other.ends())
    elif other.half is None:
        yield bar.nearest(other.center), other.center
    else:
        yield bar.center, other.nearest(bar.center)


def _crossing(center: ca.SX, half: ca.SX, other: _Bar) -> tuple[ca.SX, ca.SX]:
    """The closest points of two axes, `center + s half` and `other.center + t direction`, where s
    and t are in [-1, 1] [ericson2005 5.1.9].
    """
    direction = other.half
    if direction is None:
        return center, other.center
    # |center + s half - other - t direction|^2 is minimal where both derivatives vanish
    between = center - other.center
    a, e, b = ca.sumsqr(half), ca.sumsqr(direction), ca.dot(half, direction)
    c, f = ca.dot(half, between), ca.dot(direction, between)
    # the bound on the denominator handles nearly parallel axes (see PARALLEL)
    s = _clipped((b * f - c * e) / ca.fmax(a * e - b * b, PARALLEL * a * e))
    far = other.nearest(center + s * half)
    near = center + _clipped(ca.dot(far - center, half) / a) * half
    return near, far


def _touch(bar: _Bar, other: _Bar, near: ca.SX, far: ca.SX) -> Touch:
    """The touch between the balls around two points of the axes."""
    between = near - far
    distance = ca.norm_2(between)
    normal = between / distance
    gap = distance - bar.radius - other.radius
    # both bodies use the same position, so impulses conserve the angular momentum
    position = far + (other.radius + gap / 2) * normal
    velocity = bar.velocity_at(position) - other.velocity_at(position)
    return Touch(gap, position, velocity, normal, _tangents(normal), False)


def _tangents(normal: ca.SX) -> ca.SX:
    """Two unit tangents (2, 3) that change smoothly with the normal except at POLE. They are the
    images of two fixed axes under the shortest rotation from -POLE to the normal.
    """
    z = -np.array(POLE) / np.linalg.norm(POLE)
    x = np.cross(z, [1.0, 0.0, 0.0])
    x /= np.linalg.norm(x)
    middle = constant(z) + normal
    # R e = e - (e . n) (z + n) / (1 + z . n) for e orthogonal to z
    rows = [
        constant(e) - ca.dot(constant(e), normal) * middle / (1 + ca.dot(constant(z), normal))
        for e in (x, np.cross(z, x))
    ]
    return ca.horzcat(*rows).T


def _clipped(value: ca.SX) -> ca.SX:
    return ca.fmax(-1, ca.fmin(1, value))
