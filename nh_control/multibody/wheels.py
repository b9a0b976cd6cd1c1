"""Wheels, balls and skates of a model that roll or glide on the ground without slipping."""

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
    """A part of a body that touches the `ground` at one place and does not slip there.

    `at` is the center of the shape, a point or a frame's origin. The `name` is by default that of
    the frame. The tree may keep it on the ground, as a planar joint does; otherwise the holonomic
    constraint `gap(q) = 0` does. With `friction`, the force along the ground is at most `friction
    * load`, with the `load` (N) that presses onto the ground, and it slips beyond, see
    `mechanics.contacts.Grip`.
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
        """The frames whose motion its rows depend on; those that carry them do not count."""
        return (self.point.frame,)

    @abstractmethod
    def touch(self, k: Kinematics) -> Touch:
        """The place that touches, at k."""

    @abstractmethod
    def directions(self, k: Kinematics, touch: Touch) -> ca.SX:
        """Unit vectors (rows, 3) along the ground in which it does not slip."""


@dataclass(frozen=True, kw_only=True)
class RollingWheel(Rolling):
    """A wheel or a ball that rolls without slipping: the material that touches the ground moves
    with it.

    The wheel is a disc of this `radius` (m) about an `axis` fixed in the frame, with a knife edge
    or a rim of the radius `rounding` (m). A `shape` takes its place: a `Sphere` or an
    `Ellipsoid`. The wheel slips "never", freely "sideways", or in "all" directions as a caster's
    ball does, which only stays on the ground. Of two wheels on one axle, one slips sideways: its
    row would follow from that of the other. Raises ValueError for numbers out of range.
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
                f"touches at {len(touches)}; take a Disc, a Sphere or an Ellipsoid"
            )
        return touches[0]

    def directions(self, k: Kinematics, touch: Touch) -> ca.SX:
        if self.slips == "all":
            return ca.SX(0, 3)
        if self.slips == "never" and not isinstance(self.outline, Disc):
            return touch.tangents
        # along the track and across it: the rows of a disc do not turn with its heading
        axis = k.rotation(self.point) @ constant(unit_vector(self.axis, str(self)))
        along = ca.cross(axis, touch.normal)
        along /= ca.norm_2(along)
        rows = (
            along if self.slips == "sideways" else ca.horzcat(along, ca.cross(touch.normal, along))
        )
        return rows.T


@dataclass(frozen=True, kw_only=True)
class Skate(Rolling):
    """A blade or a passive wheel without mass: a point that glides along the `direction`, fixed in
    its frame, and not sideways.
    """

    direction: str | Vector = "x"

    def __post_init__(self) -> None:
        super().__post_init__()
        unit_vector(self.direction, str(self))

    def touch(self, k: Kinematics) -> Touch:
        return next(Corner().touches(k, self.point, self.ground))

    def directions(self, k: Kinematics, touch: Touch) -> ca.SX:
        along = k.rotation(self.point) @ constant(unit_vector(self.direction, str(self)))
        sideways = ca.cross(touch.normal, along)
        return (sideways / ca.norm_2(sideways)).T
