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
"""Degree of the Hermite curve."""


@dataclass(frozen=True)
class Pair:
    """A table with an embedded method. Errors are of order `order` + 1 in h. Raises ValueError for
    a table without an embedded method.

    Munthe-Kaas tables may have the weights `second` of another embedded method, and a `curve`
    `u(theta) = sum_ij curve_ij k_i B_j(theta)` with B_j from `basis`. The solution within the step
    is then `tau(u(theta)) . x`. The curve may need additional stages with the rows `more`.
    """

    table: Table
    order: int
    second: Weights | None = None
    more: tuple[Weights, ...] = ()
    curve: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not self.table.embedded_order:
            raise ValueError(
                f"{self.table.name} has no embedded method, which is needed to estimate a "
                "step's error"
            )

    @property
    def degree(self) -> int:
        """The degree of the curve."""
        return CUBIC if self.curve is None else len(self.curve[0])


@dataclass(frozen=True)
class Trial:
    """One step. It contains the final state x1 (nx), the field f1 (dim) at x1, the embedded final
    states minus x1 (embedded methods, nx), and the data that `point` interpolates.
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
    """A step h of `x' = generator(x) field(x)` from x (nx), where the field is f (dim). The
    additional stages for the interpolation are evaluated only if `dense` is true.
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
    """The point at a fraction theta of a step from x. The interpolant `dense` of `trial` consists
    of the coefficients of a polynomial and of algebra elements whose flows scale with theta.
    """
    first = dense.numel() // action.dim - pair.degree
    columns: Graph = ca.reshape(dense, action.dim, first + pair.degree)
    for i in range(first):
        x = action.act(theta * columns[:, i], x)
    return action.normalize(
        action.act(columns[:, first:] @ ca.vertcat(*basis(theta, pair.degree)), x)
    )


def basis(theta: Graph, degree: int) -> list[Graph]:
    """Polynomials of degree 1, 2, ..., namely
    `theta, theta (1 - theta), theta^2 (1 - theta), ...`. All except the first are zero at both
    ends.
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
    # additional stages for the dense output
    longer = replace(table, a=(*table.a, *(pair.more if dense else ())))
    stages = munthe_kaas_stages(longer, action, field, x, h, f)
    u = stages.end(table.b)
    x1 = action.act(u, x)
    last = table.a[-1] == table.b[: s - 1] and not table.b[-1]  # first same as last
    f1 = stages.fields[s - 1] if last else field(x1)
    hats = [b for b in (table.b_hat, pair.second) if b]
    errors = ca.horzcat(*(action.act(stages.end(b), x) - x1 for b in hats)).T
    if not dense:
        return Trial(action.normalize(x1), f1, errors, type(x)(0, 1))
    if pair.curve is not None:
        columns = ca.horzcat(*stages.derivatives) @ ca.sparsify(ca.DM(pair.curve))
    else:
        # u' = dtau^-1_u(h f) at both ends; dtau_0 is the identity
        columns = _hermite(h * f, u, action.dtau_inverse(u, h * f1))
    return Trial(action.normalize(x1), f1, errors, ca.vec(columns))


def _hermite(start: Graph, u: Graph, end: Graph) -> Graph:
    """Coefficients (dim, 3), in `basis`, of the cubic from 0 to u with the given derivatives at
    its ends.
    """
    return ca.horzcat(u, start - u, 2 * u - start - end)


def _hermite_after(stages: CommutatorFreeStages, table: CommutatorFree, end: Graph) -> Graph:
    """Elements v_1 ... v_{r-1} and the Hermite cubic v(theta) of the curve
    `tau(v(theta)) tau(theta v_{r-1}) ... tau(theta v_1) . x`. The curve passes through both ends,
    where it has the derivatives given by the field. For coordinates other than "exp", the
    derivative at the final end is accurate up to order 3.

    If w is the derivative at the final end of all factors except tau(v), then
    `dtau_v(v') + Ad_{tau(v)} w = h f1`, and `dtau^{-1}_v Ad_{tau(v)} = dtau^{-1}_{-v}`.
    """
    action = stages.action
    *before, v = stages.exponents(table.end)
    start, w = stages.derivatives[0], 0 * v
    for element in before:
        start, w = start - element, element + _carried(action, element, w)
    derivative = action.dtau_inverse(v, end) - action.dtau_inverse(-v, w)
    return ca.vertcat(*before, ca.vec(_hermite(start, v, derivative)))


def _carried(action: HomogeneousSpace, v: Graph, w: Graph) -> Graph:
    """`Ad_{exp(v)} w = w + [v, w] + [v, [v, w]] / 2 + ...`, up to v^3."""
    total, power = w, w
    for k in range(1, 4):
        power = action.bracket(v, power) / k
        total += power
    return total


@cache
def _dormand_prince_853() -> Pair:
    """The method of order 8 with embedded methods of orders 5 and 3 and a curve of order 7
    [Hairer, Norsett, Wanner: Solving ODEs I, II.5, II.6, II.10], with SciPy's coefficients.
    """
    from scipy.integrate import DOP853  # slower to import than everything else

    s = len(DOP853.B)
    b = np.append(DOP853.B, 0)
    a = np.vstack([np.column_stack([DOP853.A, np.zeros((s, 1))]), b])
    table = munthe_kaas(
        "rkmk853", 8, a, b, b - DOP853.E5, 5, source="celledoni2021 4.1, Dormand and Prince"
    )
    more = [tuple(map(float, row[:n])) for n, row in enumerate(DOP853.A_EXTRA, s + 1)]
    return Pair(table, 7, tuple(map(float, b - DOP853.E3)), tuple(more), _curve(b, DOP853.D))


def _curve(b: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Coefficients (s, degree) for weights b and rows `more` (degree - 3, s). They consist of a
    Hermite cubic and additional terms of higher degree. The derivatives of the cubic are k_0 and
    the last stage in b, which is at the end of the step.
    """
    total, start, end = np.zeros((3, more.shape[1]))
    total[: len(b)], start[0], end[len(b) - 1] = b, 1, 1
    return np.column_stack([total, start - total, 2 * total - start - end, *more])


def pair_of(table: Table) -> Pair:
    """The pair of a table with an embedded method. Raises ValueError for other tables."""
    return Pair(table, min(table.order, table.embedded_order))


def pairs() -> dict[str, Pair]:
    """All pairs by name."""
    from scipy.integrate import RK45  # as above

    by_name = {name: pair_of(table) for name, table in TABLES.items() if table.embedded_order}
    # coefficients of theta^4; only the last polynomial in `basis` contains theta^4
    fourth = RK45.P[:, 3:].T
    by_name["rkmk54"] = replace(by_name["rkmk54"], curve=_curve(np.append(RK45.B, 0), fourth))
    return {**by_name, "rkmk853": _dormand_prince_853()}
