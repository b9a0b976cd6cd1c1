"""Declared constraints on trajectories: values between bounds, hard or soft with a weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem


@dataclass(frozen=True)
class Constraint:
    """`lower <= f(x, u, w) <= upper` at every node, with a CasADi expression f (n) of state x
    (nx), input u (nu) and the node's parameters w.

    Rows that contain u apply at all nodes but the last. Other rows apply at all nodes but the
    first, because the first state is prescribed. Without a `weight`, the constraint is hard. With
    a weight, it is soft: a violation t costs `weight t`, and t is 0 if the constraint can be
    satisfied and the weight exceeds its multiplier. `parameters` (N + 1, n_parameters) are the
    w_k; a constraint without parameters can be used with trajectories of any length. If the
    constraint is `disturbed`, the parameters in w are followed by the forces (nrho) that an
    `MpcTracker` estimates; without an `MpcTracker` these forces are zero. The unknown parameters
    of `nh.optimize` are at the end of w. The bounds and the weight are numbers or arrays of shape
    (n); `rows` are the names (n) that appear in messages and figures. Raises ValueError if lower <
    upper does not hold, if both bounds are infinite, if a weight is not positive, or if the
    parameters have the wrong shape.
    """

    name: str
    f: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf
    weight: ArrayLike = np.inf
    parameters: np.ndarray | None = None
    disturbed: bool = False
    rows: Sequence[str] = ()

    def __post_init__(self) -> None:
        lower, upper = np.broadcast_arrays(self.lower, self.upper)
        if not (lower < upper).all():
            raise ValueError(
                f"constraint {self.name!r}: bounds must be lower < upper, got {self.lower} and "
                f"{self.upper}; for equality constraints at the end, use `end`"
            )
        if not (np.isfinite(lower) | np.isfinite(upper)).all():
            raise ValueError(f"constraint {self.name!r}: set a finite lower or upper bound")
        if not (np.asarray(self.weight) > 0).all():
            raise ValueError(
                f"constraint {self.name!r}: the weight must be positive, got {self.weight}"
            )
        if self.parameters is not None and (
            np.ndim(self.parameters) != 2 or not np.isfinite(self.parameters).all()
        ):
            raise ValueError(
                f"constraint {self.name!r}: parameters must be finite with shape "
                f"(N + 1, n_parameters), got {np.shape(self.parameters)}"
            )

    def row_names(self, n: int) -> list[str]:
        """The names of n rows, which are numbers if `rows` is empty. Raises ValueError if the
        number of names is not n.
        """
        if self.rows and len(self.rows) != n:
            raise ValueError(
                f"constraint {self.name!r} has {n} rows but {len(self.rows)} row names: "
                f"{', '.join(self.rows)}"
            )
        return list(self.rows) or [str(i) for i in range(n)]

    def table(self, nodes: int, nrho: int) -> np.ndarray:
        """The parameters w (nodes, n) at all nodes, with zero disturbances of the nrho momenta.
        Raises ValueError if `parameters` has a different number of nodes.
        """
        parameters = np.zeros((nodes, 0)) if self.parameters is None else self.parameters
        if len(parameters) != nodes:
            raise ValueError(
                f"constraint {self.name!r} covers {len(parameters) - 1} steps, the trajectory has "
                f"{nodes - 1}"
            )
        # w = (parameters, forces)
        return np.hstack([parameters, np.zeros((nodes, nrho if self.disturbed else 0))])


@dataclass(frozen=True)
class Row:
    """One inequality, `value + offset >= 0`.

    `name` is the name of the bounded quantity. `value` is the quantity, negated for an `upper`
    bound; `place` is the index of the quantity among all bounded quantities (see `bounds_of`).
    `mixed` tells whether the quantity depends on an input.
    """

    name: str
    value: ca.SX
    upper: bool
    place: int
    mixed: bool

    def offset(self, bounds: np.ndarray) -> float:
        """The offset of this row, computed from the bounds (n, 3) of all values."""
        return float(bounds[self.place, 1] if self.upper else -bounds[self.place, 0])

    def text(self, bounds: np.ndarray) -> str:
        """The inequality in words."""
        sign = "<=" if self.upper else ">="
        return f"{self.name} {sign} {bounds[self.place, int(self.upper)]:g}"


def rows_of(
    dsys: DiscreteSystem,
    limited: np.ndarray,
    constraints: Sequence[Constraint],
    x: ca.SX,
    u: ca.SX,
    w: Sequence[ca.SX],
) -> tuple[list[Row], list[int]]:
    """All inequalities except the input limits, and the number of values of each constraint.

    The inequalities are those of the constraints, each with its parameters w, and those lower and
    upper limits of the states where `limited` (nx, 2) is true. Rows that depend on inputs come
    first. Raises ValueError if two constraints have the same name.
    """
    names = [constraint.name for constraint in constraints]
    if len(set(names)) < len(names):
        raise ValueError(f"{dsys}: constraint names must differ, got {names}")
    rows, counts = list[Row](), list[int]()
    for c, wk in zip(constraints, w):
        value = _value(dsys, c, x, u, wk)
        n = value.shape[0]
        bounds = _bounds(dsys, c, n)
        for i, row_name in enumerate(c.row_names(n)):
            name = c.name if n == 1 else f"{c.name}[{row_name}]"
            # rows that depend on u are not imposed at the last node
            mixed = bool(ca.depends_on(value[i], u)) if u.numel() else False
            rows += between(name, value[i], np.isfinite(bounds[i, :2]), sum(counts) + i, mixed)
        counts.append(n)
    for i, name in enumerate(dsys.state_names):
        # places: the rows of all constraints, then the bounded states
        rows += between(name, x[i], limited[i], sum(counts) + i, False)
    return sorted(rows, key=lambda row: not row.mixed), counts


def bounds_of(
    dsys: DiscreteSystem,
    constraints: Sequence[Constraint],
    counts: Sequence[int],
    limits: np.ndarray,
) -> np.ndarray:
    """The lower bound, the upper bound and the weight (n + m, 3) of each bounded quantity: the n
    values of the constraints, then the m quantities with hard `limits` (m, 2). `counts` contains
    the number of values of each constraint.
    """
    bounds, first = np.empty((sum(counts) + len(limits), 3)), 0
    for c, n in zip(constraints, counts):
        bounds[first : first + n] = _bounds(dsys, c, n)
        first += n
    # limits are hard
    bounds[first:, :2], bounds[first:, 2] = limits, np.inf
    return bounds


def _value(dsys: DiscreteSystem, c: Constraint, x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
    value = ca.SX(c.f(x, u, w))
    if value.shape[1] != 1:
        raise ValueError(
            f"{dsys}: constraint {c.name!r} must be one expression or a column, got shape "
            f"{value.shape}"
        )
    return value


def _bounds(dsys: DiscreteSystem, c: Constraint, n: int) -> np.ndarray:
    """The lower bounds, upper bounds and weights (n, 3) of a constraint with n values."""
    bounds = np.empty((n, 3))
    try:
        bounds[:, 0], bounds[:, 1], bounds[:, 2] = c.lower, c.upper, c.weight
    except ValueError:
        raise ValueError(
            f"{dsys}: constraint {c.name!r} has {n} rows; bounds and weight must be numbers or "
            f"have shape ({n},)"
        ) from None
    return bounds


def between(name: str, value: ca.SX, finite: np.ndarray, place: int, mixed: bool) -> list[Row]:
    """The inequalities of a value: one for its lower and one for its upper bound, if they are
    `finite`.
    """
    # value - lower >= 0 and upper - value >= 0
    both = Row(name, value, False, place, mixed), Row(name, -value, True, place, mixed)
    return [row for row, is_finite in zip(both, finite) if is_finite]
