"""Constraints of trajectories that are declared: rows between bounds, hard or with a weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.costs import LimitsByName, limit_bounds
from nh_control.discrete.system import DiscreteSystem


@dataclass(frozen=True)
class Constraint:
    """`lower <= f(x, u, w) <= upper` at every node, with a CasADi expression f (n) of state x
    (nx), input u (nu) and the node's parameters w.

    Rows that contain u hold at all nodes but the last, other rows at all nodes but the first,
    whose state is given. Without a `weight` the constraint is hard. With a weight it is soft: a
    violation t costs `weight t`, and t stays 0 if it can and the weight exceeds the multiplier.
    `parameters` (N + 1, n_parameters) are the w_k; a constraint without them fits trajectories of
    any length. If the constraint is `disturbed`, w contains next the forces (nrho) that an
    `MpcTracker` estimates, zero elsewhere. It ends with the unknown parameters of `nh.optimize`.
    Bounds and weight are numbers or have shape (n); `rows` are names (n) for messages and figures.
    Raises ValueError for bounds that are not lower < upper or both infinite, weights that are not
    positive, and parameters of another shape.
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
                f"{self.upper}; what shall hold as an equation at the end is `end`"
            )
        if not (np.isfinite(lower) | np.isfinite(upper)).all():
            raise ValueError(f"constraint {self.name!r}: give a finite lower or upper bound")
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
        """The names of n rows, or their numbers. Raises ValueError for another number of names."""
        if self.rows and len(self.rows) != n:
            raise ValueError(
                f"constraint {self.name!r} has {n} rows and {len(self.rows)} names of them, "
                f"{', '.join(self.rows)}"
            )
        return list(self.rows) or [str(i) for i in range(n)]

    def table(self, nodes: int, nrho: int) -> np.ndarray:
        """The parameters w of some nodes (nodes, n), without disturbances of the nrho momenta.
        Raises ValueError for parameters of another number of nodes.
        """
        given = np.zeros((nodes, 0)) if self.parameters is None else self.parameters
        if len(given) != nodes:
            raise ValueError(
                f"constraint {self.name!r} is over {len(given) - 1} steps, the trajectory has "
                f"{nodes - 1}"
            )
        return np.hstack([given, np.zeros((nodes, nrho if self.disturbed else 0))])


@dataclass(frozen=True)
class Row:
    """One inequality `value >= 0`: its name, weight, and whether an input occurs in it."""

    name: str
    value: ca.SX
    weight: float
    mixed: bool


def rows_of(
    dsys: DiscreteSystem,
    limits: LimitsByName,
    constraints: Sequence[Constraint],
    x: ca.SX,
    u: ca.SX,
    w: Sequence[ca.SX],
) -> list[Row]:
    """All inequalities without the limits of inputs: constraints, with parameters w each, and
    limits of states; rows with inputs come first. Raises ValueError for equal names.
    """
    names = [constraint.name for constraint in constraints]
    if len(set(names)) < len(names):
        raise ValueError(f"{dsys}: two constraints have one name, got {names}")
    rows = [row for c, wk in zip(constraints, w) for row in _rows(dsys, c, x, u, wk)]
    of_states = limit_bounds(dsys, limits)[0][: dsys.nx]
    for name, value, bounds in zip(dsys.state_names, ca.vertsplit(x), of_states):
        rows += between(name, value, bounds[0], bounds[1], np.inf, False)
    return sorted(rows, key=lambda row: not row.mixed)


def _rows(dsys: DiscreteSystem, c: Constraint, x: ca.SX, u: ca.SX, w: ca.SX) -> list[Row]:
    value = ca.SX(c.f(x, u, w))
    n = value.shape[0]
    if value.shape[1] != 1:
        raise ValueError(
            f"{dsys}: constraint {c.name!r} must be one expression or a column, got shape "
            f"{value.shape}"
        )
    try:
        lower, upper, weight = (np.broadcast_to(a, n) for a in (c.lower, c.upper, c.weight))
    except ValueError:
        raise ValueError(
            f"{dsys}: constraint {c.name!r} has {n} rows; bounds and weight must be numbers or "
            f"have shape ({n},)"
        ) from None
    rows = []
    for i, row_name in enumerate(c.row_names(n)):
        name = c.name if n == 1 else f"{c.name}[{row_name}]"
        mixed = bool(ca.depends_on(value[i], u)) if u.numel() else False
        rows += between(name, value[i], lower[i], upper[i], float(weight[i]), mixed)
    return rows


def between(
    name: str, value: ca.SX, lower: float, upper: float, weight: float, mixed: bool
) -> list[Row]:
    """The inequalities of a value between its finite bounds."""
    both = ((f"{name} >= {lower:g}", value - lower), (f"{name} <= {upper:g}", upper - value))
    return [
        Row(text, slack, weight, mixed)
        for (text, slack), bound in zip(both, (lower, upper))
        if np.isfinite(bound)
    ]
