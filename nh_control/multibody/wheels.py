"""Wheels, balls and skates that roll or glide on the ground without slipping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import casadi as ca

from nh_control.mechanics.contacts import require_number
from nh_control.multibody.contact_grounds import Ground, Plane
from nh_control.multibody.contact_shapes import Corner, Disc, Shape, Touch
from nh_control.multibody.frame_motion import constant, unit_vector
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.numerics.expressions import Vector

SLIPS = "never", "sideways", "all"
"""Directions in which a wheel slips freely."""


@dataclass(frozen=True, kw_only=True)
class Rolling(ABC):
    """A part of a body that touches the `ground` at one place and does not slip at that place.

    The center of the shape is `at`, a point or a frame's origin. The `name` defaults to the
    frame's name. The tree may hold the part on the ground, for example with a planar joint.
    Otherwise the holonomic constraint `gap(q) = 0` does. With `friction`, the force along the
    ground is at most `friction * load`, where the `load` (N) is the force that presses the part
    onto the ground. Beyond this bound, the part slips (see `mechanics.contacts.Grip`).
    """

    at: Point | str = ""
    ground: Ground = Plane()
    friction: float | None = None
    load: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.at, str):
            object.__setattr__(self, "at", Point(self.at))
        if not self.name:
            object.__setattr__(self, "name", self.point.frame)
        if (self.friction is None) != (self.load is None):
            raise ValueError(
                f"{self}: friction and load go together, got friction = {self.friction} and "
                f"load = {self.load}; the bound of the force is friction * load"
            )
        for what in ("friction", "load"):
            if (value := getattr(self, what)) is not None:
                require_number(self.name, what, value, 0.0)

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.name!r}"

    @property
    def point(self) -> Point:
        """The center of the shape."""
        return self.at if isinstance(self.at, Point) else Point(self.at)

    @property
    def frames(self) -> tuple[str, ...]:
        """The frames whose motion determines the part's rows, except the frames that carry
        them.
        """
        return (self.point.frame,)

    @abstractmethod
    def touch(self, k: Kinematics) -> Touch:
        """The place where the part touches the ground in the kinematics k."""

    @abstractmethod
    def directions(self, k: Kinematics, touch: Touch) -> ca.SX:
        """Unit vectors (rows, 3) along the ground in which the part does not slip."""


@dataclass(frozen=True, kw_only=True)
class RollingWheel(Rolling):
    """A wheel or a ball that rolls without slipping, so that the material that touches the ground
    moves with the ground.

    The wheel is a disc with the given `radius` (m) about an `axis` fixed in the frame. It has a
    knife edge or a rim rounded with the radius `rounding` (m). A `shape`, which is a `Sphere` or
    an `Ellipsoid`, replaces the disc. The wheel slips "never", freely "sideways", or in "all"
    directions. In the last case it only stays on the ground, like a caster ball. If two wheels
    share an axle, let one of them slip sideways, because its sideways constraint follows from the
    other wheel's. Raises ValueError for numbers out of range.
    """

    radius: float | None = None
    axis: str | Vector = "y"
    rounding: float = 0.0
    shape: Shape | None = None
    slips: str = "never"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.radius is None) == (self.shape is None):
            raise ValueError(f"{self}: give either a radius or a shape")
        if self.slips not in SLIPS:
            raise ValueError(f"{self}: slips must be one of {list(SLIPS)}, got {self.slips!r}")
        unit_vector(self.axis, str(self))
        self.outline  # noqa: B018  (refuses wrong numbers)

    @property
    def outline(self) -> Shape:
        """The shape that touches the ground."""
        if self.shape is not None:
            return self.shape
        return Disc(self.radius or 0.0, self.axis, self.rounding)

    def touch(self, k: Kinematics) -> Touch:
        shape = self.outline
        touches = list(shape.touches(k, self.point, self.ground))
        if len(touches) != 1:
            raise ValueError(
                f"{self}: its shape must touch at one place, a {type(shape).__name__} "
                f"touches at {len(touches)}; use a Disc, a Sphere or an Ellipsoid"
            )
        return touches[0]

    def directions(self, k: Kinematics, touch: Touch) -> ca.SX:
        if self.slips == "all":
            return ca.SX(0, 3)
        # a ball has no heading, so the ground's tangents serve as directions
        if self.slips == "never" and not isinstance(self.outline, Disc):
            return touch.tangents
        # unlike fixed tangents, the directions along and across the track turn with the disc
        axis = k.rotation(self.point) @ constant(unit_vector(self.axis, str(self)))
        along = ca.cross(axis, touch.normal)
        along /= ca.norm_2(along)
        rows = (
            along if self.slips == "sideways" else ca.horzcat(along, ca.cross(touch.normal, along))
        )
        return rows.T


@dataclass(frozen=True, kw_only=True)
class Skate(Rolling):
    """A blade or a massless passive wheel. It is a point that glides along the `direction`, which
    is fixed in its frame, but not sideways.
    """

    direction: str | Vector = "x"

    def __post_init__(self) -> None:
        super().__post_init__()
        unit_vector(self.direction, str(self))

    def touch(self, k: Kinematics) -> Touch:
        return next(Corner().touches(k, self.point, self.ground))

    def directions(self, k: Kinematics, touch: Touch) -> ca.SX:
        along = k.rotation(self.point) @ constant(unit_vector(self.direction, str(self)))
        # the direction may tilt out of the ground, but normal x direction is along the ground
        sideways = ca.cross(touch.normal, along)
        return (sideways / ca.norm_2(sideways)).T
