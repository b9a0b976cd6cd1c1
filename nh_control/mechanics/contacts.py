"""Contacts and friction as a system declares them: gaps that stay open, and wheels that slip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

from nh_control.numerics.expressions import Returned

Coefficient: TypeAlias = float | Callable[[Any], Returned]
"""A number, or a function of the system's parameters."""

BOUNCE_SPEED = 0.05
"""Speed (m/s) of an approach below which nothing bounces."""


@dataclass(frozen=True)
class UnilateralConstraint:
    """A gap that stays open, `gap(q) >= 0` (m), with Coulomb friction along k = 1 or 2 tangents.

    The normal impulse lam pushes along the gradient of the gap, and the friction g, at most
    `friction * lam`, against the slip. The slip over a step is that of a material point,
    `(point(q1) - point(q0)) / h` with `point(q)` (k, m) its coordinates along the surface; or,
    where the place of contact wanders over the body, as on wheels and balls, `slip(q) v` (m/s)
    with `slip(q)` (k, nw) at the step's middle, or at its start with `slips_at_start`: for places
    that jump as the bodies turn, as the closest points of two rods. A conveyor moves with
    `surface_velocity` (k, m/s). A body that comes faster than `bounce_speed` (m/s) leaves with
    `restitution` times its speed. `place(q)` (3, 2 + k), for pictures and messages, has the
    position (m) in the world and the unit vectors of lam and g. Functions take the system's
    parameters as a last argument where it has some; `friction` and `restitution` are numbers or
    functions of them.

    Raises ValueError for numbers out of range, and for friction without a `point` or a `slip`.
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
                f"contact {self.name!r}: friction needs point(q), the coordinates along the "
                "surface of a material point, or slip(q), the rows of a sliding velocity, and "
                "not both"
            )

    @property
    def has_friction(self) -> bool:
        """Whether a friction other than zero is declared."""
        return callable(self.friction) or self.friction != 0

    @property
    def bounces(self) -> bool:
        """Whether a restitution other than zero is declared."""
        return callable(self.restitution) or self.restitution != 0


@dataclass(frozen=True)
class Grip:
    """Rows of a system's velocity constraint that hold only as long as their force is at most
    `friction * load` (N): wheels and skates that skid.

    The rows, one or two, are those of one wheel: their force is bounded in all directions alike.
    `load` (N) presses the wheel onto the ground, `friction` is Coulomb's coefficient; both are
    numbers or functions of the parameters. While a row slips it dissipates the most. Momenta of
    slipping motions are part of the state, so that gripped rows do not reduce it. `place(q)`
    (3, 1 + rows), for pictures and messages, has the position (m) in the world and the unit
    vectors of the rows' forces. Raises ValueError for other numbers of rows, and for numbers out
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
                f"from 0, got {self.rows}; declare a Grip for every wheel"
            )
        for what in ("load", "friction"):
            value = getattr(self, what)
            require_number(f"rows {self.rows}", what, value, 0.0)
            if value == 0:
                raise ValueError(
                    f"grip of rows {self.rows}: {what} must be positive, got 0; leave rows "
                    "without a force out of velocity_constraint"
                )


def require_number(
    name: str, what: str, value: Coefficient, least: float, most: float = float("inf")
) -> None:
    """Raise ValueError for a number that is not finite or out of its range."""
    if callable(value):
        return
    if not isinstance(value, Real) or not (least <= value <= most and value < float("inf")):
        bounds = f"from {least:g} to {most:g}" if most < float("inf") else f">= {least:g}, finite"
        raise ValueError(f"contact {name!r}: {what} must be {bounds}, got {value}")
