"""Declarations of contacts and friction: gaps that never become negative, and wheels that slip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

from nh_control.numerics.expressions import Returned

Coefficient: TypeAlias = float | Callable[[Any], Returned]
"""A number, or a function of the system's parameters."""

BOUNCE_SPEED = 0.05
"""Approach speed (m/s) below which bodies do not bounce."""


@dataclass(frozen=True)
class UnilateralConstraint:
    """A constraint `gap(q) >= 0` (m), with Coulomb friction along k = 1 or 2 tangents.

    The normal impulse lam acts along the gradient of the gap. The friction impulse g, which is at
    most `friction * lam`, acts against the slip velocity. There are two ways to declare the slip
    velocity:

    - `point(q)` (k, m) contains the coordinates of a material point along the surface. The slip
      velocity is then `(point(q1) - point(q0)) / h`.
    - `slip(q)` (k, nw) is for contact points that move over the body, as on wheels and balls. The
      slip velocity is then `slip(q) v` (m/s) at the midpoint of the step. With `slips_at_start`,
      it is evaluated at the beginning of the step. Use this for contact points that jump as the
      bodies rotate, such as the closest points of two rods.

    A conveyor moves with `surface_velocity` (k, m/s). A body that approaches faster than
    `bounce_speed` (m/s) leaves with `restitution` times its speed. `place(q)` (3, 2 + k), for
    pictures and messages, contains the world position (m) and the unit vectors of lam and g. If
    the system has parameters, functions take them as their last argument. `friction` and
    `restitution` are numbers or functions of the parameters.

    Raises ValueError for values out of range, and for friction without a `point` or a `slip`.
    """

    name: str
    gap: Callable[..., Returned]
    point: Callable[..., Returned] | None = None
    slip: Callable[..., Returned] | None = None
    friction: Coefficient = 0.0
    restitution: Coefficient = 0.0
    surface_velocity: tuple[float, ...] = ()
    bounce_speed: float = BOUNCE_SPEED
    place: Callable[..., Returned] | None = None
    slips_at_start: bool = False

    def __post_init__(self) -> None:
        require_number(self.name, "friction", self.friction, 0.0)
        require_number(self.name, "restitution", self.restitution, 0.0, 1.0)
        require_number(self.name, "bounce_speed", self.bounce_speed, 0.0)
        if self.has_friction and (self.point is None) == (self.slip is None):
            raise ValueError(
                f"contact {self.name!r}: friction needs either point(q), the coordinates of a "
                "material point along the surface, or slip(q), the rows of a sliding velocity"
            )

    @property
    def has_friction(self) -> bool:
        """Whether the friction is not zero."""
        return callable(self.friction) or self.friction != 0

    @property
    def bounces(self) -> bool:
        """Whether the restitution is not zero."""
        return callable(self.restitution) or self.restitution != 0


@dataclass(frozen=True)
class Grip:
    """Rows of a system's velocity constraint with forces of at most `friction * load` (N), for
    wheels and skates that skid.

    The one or two rows belong to one wheel, and their force has the same bound in all directions.
    `load` (N) presses the wheel onto the ground, and `friction` is Coulomb's coefficient. Both are
    numbers or functions of the parameters. A slipping row dissipates as much energy as possible.
    The momenta of slipping motions are part of the state, so these rows do not reduce the state.
    `place(q)` (3, 1 + rows), for pictures and messages, contains the world position (m) and the
    unit vectors of the forces. Raises ValueError for any other number of rows, and for values out
    of range.
    """

    rows: tuple[int, ...]
    load: Coefficient
    friction: Coefficient
    place: Callable[..., Returned] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        if not 1 <= len(set(self.rows)) == len(self.rows) <= 2 or min(self.rows) < 0:
            raise ValueError(
                "grip: rows must be one or two different rows of velocity_constraint, counted "
                f"from 0, got {self.rows}; declare one Grip per wheel"
            )
        for what in ("load", "friction"):
            value = getattr(self, what)
            require_number(f"rows {self.rows}", what, value, 0.0)
            if value == 0:
                raise ValueError(
                    f"grip of rows {self.rows}: {what} must be positive, got 0; omit rows without "
                    "a force from velocity_constraint"
                )


def require_number(
    name: str, what: str, value: Coefficient, least: float, most: float = float("inf")
) -> None:
    """Raise ValueError for a number that is not finite or out of range."""
    if callable(value):
        return
    if not isinstance(value, Real) or not (least <= value <= most and value < float("inf")):
        bounds = f"from {least:g} to {most:g}" if most < float("inf") else f">= {least:g}, finite"
        raise ValueError(f"contact {name!r}: {what} must be {bounds}, got {value}")
