"""Embedded pairs of Lie group methods with dense output, for steps of variable size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import casadi as ca
import numpy as np

from nh_control.geometry.homogeneous import HomogeneousSpace
from nh_control.integrators.lie_stages import (
    CommutatorFreeStages,
    Field,
    commutator_free_stages,
    munthe_kaas_stages,
)
from nh_control.integrators.lie_tableaux import (
    TABLES,
    CommutatorFree,
    MuntheKaas,
    Table,
    Weights,
    munthe_kaas,
)
from nh_control.numerics.expressions import Graph

CUBIC = 3
"""Degree of Hermite's curve."""


@dataclass(frozen=True)
class Pair:
    """A table with an embedded method (ValueError without one); errors are of order `order` + 1
    in h.

    Munthe-Kaas tables may have the weights `second` of one more embedded method, and the `curve`
    `u(theta) = sum_ij curve_ij k_i B_j(theta)` with `tau(u(theta)) . x` between the ends and B_j
    from `basis`, for which stages with the rows `more` follow those of the table.
    """

    table: Table
    order: int
    second: Weights | None = None
    more: tuple[Weights, ...] = ()
    curve: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not self.table.embedded_order:
            raise ValueError(
                f"{self.table.name} has no embedded method, from which a step's error is estimated"
            )

    @property
    def degree(self) -> int:
        """Degree of the curve."""
        return CUBIC if self.curve is None else len(self.curve[0])


@dataclass(frozen=True)
class Trial:
    """One step: its end x1 (nx), the field f1 (dim) there, the embedded ends less x1
    (embedded methods, nx), and the data from which `point` interpolates.
    """

    x1: Graph
    f1: Graph
    errors: Graph
    dense: Graph


def trial(
    pair: Pair,
    action: HomogeneousSpace,
    field: Field,
    x: Graph,
    f: Graph,
    h: Graph,
    dense: bool,
) -> Trial:
    """A step h of `x' = generator(x) field(x)` from x (nx), where the field is f (dim); only
    with `dense` are the further stages of the interpolation evaluated.
    """
    if isinstance(pair.table, MuntheKaas):
        return _munthe_kaas(pair, pair.table, action, field, x, f, h, dense)
    stages = commutator_free_stages(pair.table, action, field, x, h, f)
    x1 = stages.moved(pair.table.end)
    f1 = field(x1)
    error = stages.moved(pair.table.embedded or pair.table.end) - x1
    curve = _hermite_after(stages, pair.table, h * f1) if dense else type(x)(0, 1)
    return Trial(action.normalize(x1), f1, error.T, curve)


def point(pair: Pair, action: HomogeneousSpace, x: Graph, dense: Graph, theta: Graph) -> Graph:
    """The point at a fraction theta of a step from x, by the interpolant `dense` of `trial`:
    algebra elements whose flows scale with theta, and the coefficients of a polynomial.
    """
    first = dense.numel() // action.dim - pair.degree
    columns: Graph = ca.reshape(dense, action.dim, first + pair.degree)
    for i in range(first):
        x = action.act(theta * columns[:, i], x)
    return action.normalize(
        action.act(columns[:, first:] @ ca.vertcat(*basis(theta, pair.degree)), x)
    )


def basis(theta: Graph, degree: int) -> list[Graph]:
    """Polynomials of degree 1, 2, ...: `theta, theta (1 - theta), theta^2 (1 - theta), ...`; all
    but the first are zero at both ends.
    """
    polynomials = [theta]
    for k in range(1, degree):
        polynomials.append(polynomials[-1] * (1 - theta if k % 2 else theta))
    return polynomials


def _munthe_kaas(
    pair: Pair,
    table: MuntheKaas,
    action: HomogeneousSpace,
    field: Field,
    x: Graph,
    f: Graph,
    h: Graph,
    dense: bool,
) -> Trial:
    s = len(table.a)
    longer = replace(table, a=(*table.a, *(pair.more if dense else ())))
    stages = munthe_kaas_stages(longer, action, field, x, h, f)
    u = stages.end(table.b)
    x1 = action.act(u, x)
    last = table.a[-1] == table.b[: s - 1] and not table.b[-1]  # the last stage is the end
    f1 = stages.fields[s - 1] if last else field(x1)
    hats = [b for b in (table.b_hat, pair.second) if b]
    errors = ca.horzcat(*(action.act(stages.end(b), x) - x1 for b in hats)).T
    if not dense:
        return Trial(action.normalize(x1), f1, errors, type(x)(0, 1))
    if pair.curve is not None:
        columns = ca.horzcat(*stages.derivatives) @ ca.sparsify(ca.DM(pair.curve))
    else:
        columns = _hermite(h * f, u, action.dtau_inverse(u, h * f1))
    return Trial(action.normalize(x1), f1, errors, ca.vec(columns))


def _hermite(start: Graph, u: Graph, end: Graph) -> Graph:
    """Coefficients (dim, 3) of the cubic from 0 to u with these derivatives."""
    return ca.horzcat(u, start - u, 2 * u - start - end)


def _hermite_after(stages: CommutatorFreeStages, table: CommutatorFree, end: Graph) -> Graph:
    """Elements v_1 ... v_{r-1} and Hermite's cubic v(theta) of the curve
    `tau(v(theta)) tau(theta v_{r-1}) ... tau(theta v_1) . x` through both ends with the
    derivatives of the field there (at the end, for coordinates that are not "exp", up to order 3).

    With w the derivative of all but v at the end, `dtau_v(v') + Ad_{tau(v)} w = h f1`, and
    `dtau^{-1}_v Ad_{tau(v)} = dtau^{-1}_{-v}`.
    """
    action = stages.action
    *before, v = stages.exponents(table.end)
    start, w = stages.derivatives[0], 0 * v
    for element in before:
        start, w = start - element, element + _carried(action, element, w)
    derivative = action.dtau_inverse(v, end) - action.dtau_inverse(-v, w)
    return ca.vertcat(*before, ca.vec(_hermite(start, v, derivative)))


def _carried(action: HomogeneousSpace, v: Graph, w: Graph) -> Graph:
    """Ad_{exp(v)} w, up to v^3."""
    total, power = w, w
    for k in range(1, 4):
        power = action.bracket(v, power) / k
        total += power
    return total


@cache
def _dormand_prince_853() -> Pair:
    """Order 8 with embedded methods of orders 5 and 3 and a curve of order 7 [Hairer, Norsett,
    Wanner: Solving ODEs I, II.5, II.6, II.10], with SciPy's numbers.
    """
    from scipy.integrate import DOP853  # takes longer to import than all others

    s = len(DOP853.B)
    b = np.append(DOP853.B, 0)
    a = np.vstack([np.column_stack([DOP853.A, np.zeros((s, 1))]), b])
    table = munthe_kaas(
        "rkmk853", 8, a, b, b - DOP853.E5, 5, source="celledoni2021 4.1, Dormand and Prince"
    )
    more = [tuple(map(float, row[:n])) for n, row in enumerate(DOP853.A_EXTRA, s + 1)]
    return Pair(table, 7, tuple(map(float, b - DOP853.E3)), tuple(more), _curve(b, DOP853.D))


def _curve(b: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Coefficients (s, degree) for weights b and rows `more` (degree - 3, s): Hermite's cubic with
    the derivatives k_0 and the last stage of b, which is the end, and the terms that are added to
    it.
    """
    total, start, end = np.zeros((3, more.shape[1]))
    total[: len(b)], start[0], end[len(b) - 1] = b, 1, 1
    return np.column_stack([total, start - total, 2 * total - start - end, *more])


def pair_of(table: Table) -> Pair:
    """The pair of a table with an embedded method; raises ValueError for another."""
    return Pair(table, min(table.order, table.embedded_order))


def pairs() -> dict[str, Pair]:
    """All pairs by name."""
    from scipy.integrate import RK45  # as above

    by_name = {name: pair_of(table) for name, table in TABLES.items() if table.embedded_order}
    fourth = RK45.P[:, 3:].T  # of theta^4, which only the last of `basis` has
    by_name["rkmk54"] = replace(by_name["rkmk54"], curve=_curve(np.append(RK45.B, 0), fourth))
    return {**by_name, "rkmk853": _dormand_prince_853()}
