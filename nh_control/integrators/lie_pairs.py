"""Embedded pairs of Lie group methods, with the curves between their ends: what steps of variable
size are made of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import casadi as ca
import numpy as np
from numpy.polynomial import polynomial
from scipy.integrate import DOP853, RK45

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
    Weights,
    munthe_kaas,
)

CUBIC = 3
"""Degree of Hermite's curve."""


@dataclass(frozen=True)
class Pair:
    """A table with an embedded method; errors are of order `order` + 1 in h.

    Munthe-Kaas tables may have the weights `second` of one more embedded method, and the `curve`
    `u(theta) = sum_ij curve_ij k_i theta^(j + 1)` with `tau(u(theta)) . x` between the ends, for
    which stages with the rows `more` follow those of the table.
    """

    table: MuntheKaas | CommutatorFree
    order: int
    second: Weights | None = None
    more: tuple[Weights, ...] = ()
    curve: np.ndarray | None = None

    @property
    def degree(self) -> int:
        """Degree of the curve."""
        return CUBIC if self.curve is None else self.curve.shape[1]


@dataclass(frozen=True)
class Trial:
    """One step: its end x1 (nx), the field f1 (dim) there, the embedded ends less x1
    (embedded methods, nx), and what `point` takes of the way between.
    """

    x1: ca.SX
    f1: ca.SX
    errors: ca.SX
    dense: ca.SX


def trial(
    pair: Pair,
    action: HomogeneousSpace,
    field: Field,
    x: ca.SX,
    f: ca.SX,
    h: ca.SX,
    dense: bool,
) -> Trial:
    """A step h of `x' = generator(x) field(x)` from x (nx), where the field is f (dim); without
    `dense` no more is taken than what x1 and its errors need.
    """
    if isinstance(pair.table, MuntheKaas):
        return _munthe_kaas(pair, pair.table, action, field, x, f, h, dense)
    stages = commutator_free_stages(pair.table, action, field, x, h, f)
    x1 = stages.moved(pair.table.end)
    f1 = field(x1)
    error = stages.moved(pair.table.embedded) - x1
    curve = _hermite_after(stages, pair.table, h * f1) if dense else ca.SX(0, 1)
    return Trial(action.settle(x1), f1, error.T, curve)


def point(pair: Pair, action: HomogeneousSpace, x: ca.SX, dense: ca.SX, theta: ca.SX) -> ca.SX:
    """The point at a fraction theta of a step from x, by what `trial` gave as `dense`: elements
    that are passed through in proportion to theta, and the coefficients of a polynomial.
    """
    first = dense.numel() // action.dim - pair.degree
    columns = ca.reshape(dense, action.dim, first + pair.degree)
    for i in range(first):
        x = action.act(theta * columns[:, i], x)
    powers = ca.vertcat(*(theta ** (j + 1) for j in range(pair.degree)))
    return action.settle(action.act(columns[:, first:] @ powers, x))


def _munthe_kaas(
    pair: Pair,
    table: MuntheKaas,
    action: HomogeneousSpace,
    field: Field,
    x: ca.SX,
    f: ca.SX,
    h: ca.SX,
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
        return Trial(action.settle(x1), f1, errors, ca.SX(0, 1))
    if pair.curve is not None:
        columns = ca.horzcat(*stages.slopes) @ ca.sparsify(ca.DM(pair.curve))
    else:
        columns = _hermite(h * f, u, action.dtau_inverse(u, h * f1))
    return Trial(action.settle(x1), f1, errors, ca.vec(columns))


def _hermite(start: ca.SX, u: ca.SX, end: ca.SX) -> ca.SX:
    """Coefficients (dim, 3) of the cubic from 0 to u with these slopes."""
    return ca.horzcat(start, 3 * u - 2 * start - end, start + end - 2 * u)


def _hermite_after(stages: CommutatorFreeStages, table: CommutatorFree, end: ca.SX) -> ca.SX:
    """Elements v_1 ... v_{r-1} and Hermite's cubic v(theta) of the curve
    `tau(v(theta)) tau(theta v_{r-1}) ... tau(theta v_1) . x` through both ends with the slopes of
    the field there (at the end, for coordinates that are not "exp", up to order 3).

    With w the slope of all but v at the end, `dtau_v(v') + Ad_{tau(v)} w = h f1`, and
    `dtau^{-1}_v Ad_{tau(v)} = dtau^{-1}_{-v}`.
    """
    action = stages.action
    *before, v = stages.exponents(table.end)
    start, w = stages.slopes[0], ca.SX(action.dim, 1)
    for element in before:
        start, w = start - element, element + _carried(action, element, w)
    slope = action.dtau_inverse(v, end) - action.dtau_inverse(-v, w)
    return ca.vertcat(*before, ca.vec(_hermite(start, v, slope)))


def _carried(action: HomogeneousSpace, v: ca.SX, w: ca.SX) -> ca.SX:
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
    s = len(DOP853.B)
    b = np.append(DOP853.B, 0)
    a = np.vstack([np.column_stack([DOP853.A, np.zeros((s, 1))]), b])
    table = munthe_kaas(
        "rkmk853", 8, a, b, b - DOP853.E5, 5, source="celledoni2021 4.1, Dormand and Prince"
    )
    more = [tuple(map(float, row[:n])) for n, row in enumerate(DOP853.A_EXTRA, s + 1)]
    return Pair(table, 7, tuple(map(float, b - DOP853.E3)), tuple(more), _curve_853(b))


def _curve_853(b: np.ndarray) -> np.ndarray:
    """Coefficients (16, 7) of `u = theta (F0 + (1 - theta) (F1 + theta (F2 + ...)))` with
    `F0 = sum b_i k_i,  F1 = k_0 - F0,  F2 = 2 F0 - k_0 - k_12,  F3 ... = sum D_i k_i`.
    """
    n = DOP853.D.shape[1]
    total, start, end = np.zeros((3, n))
    total[: len(b)], start[0], end[len(b) - 1] = b, 1, 1
    parts = [total, start - total, 2 * total - start - end, *DOP853.D]
    curve, basis = np.zeros((n, len(parts))), np.ones(1)
    for k, part in enumerate(parts):
        basis = polynomial.polymul(basis, [1, -1] if k % 2 else [0, 1])
        curve[:, : len(basis) - 1] += np.outer(part, basis[1:])
    return curve


def pairs() -> dict[str, Pair]:
    """All pairs by name."""
    embedded = {name: t for name, t in TABLES.items() if t.embedded_order}
    found = {name: Pair(t, min(t.order, t.embedded_order)) for name, t in embedded.items()}
    found["rkmk54"] = replace(found["rkmk54"], curve=RK45.P)
    return {**found, "rkmk853": _dormand_prince_853()}
