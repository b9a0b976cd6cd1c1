"""Derivatives of the Lagrangian in the equations of a step. They are symbols while a method builds
the equations, and become functions in the complete equations.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import casadi as ca

from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph

SEEDS = 4
"""Number of directions in one call to a directional derivative."""
LARGE = 150_000
"""Limit for the number of instructions in the Lagrangian's gradient times the number of its
arguments. Above this limit, the Hessian is evaluated by directions. A smaller Hessian is written
out. This is faster (47 instead of 57 us for a step of a planar chain with 32 links), but the
compile time grows with the square of the size.
"""


class GradientSymbols:
    """The gradients `(dL/dq, dL/dv)` at (q, v) while a method builds its equations. Every new
    point is stored in `points` and gets symbols for its gradients. At a point that depends on
    earlier gradients, such as a later stage in an explicit method, the gradients are written out.
    """

    def __init__(self, system: System):
        self._system, self._nq = system, system.space.nq
        self._points: list[ca.SX] = []
        self._symbols: list[ca.SX] = []

    def __call__(self, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        point = ca.vertcat(q, v)
        if self._symbols and ca.depends_on(point, self.symbols):
            gradients = self._system.mechanics.gradients
            known = ca.SX(0, 1)
            for earlier in self._points:
                dq, dv = gradients(earlier[: self._nq], earlier[self._nq :])
                known = ca.vertcat(known, dq, dv)
            # replace symbols for earlier gradients by expressions
            point = ca.substitute(point, self.symbols, known)
            return gradients(point[: self._nq], point[self._nq :])
        # a point that is equal to an earlier one shares its symbols
        pairs = (ca.cse([point, known]) for known in self._points)
        same = (ca.is_equal(a, b, 0) for a, b in pairs)
        place = next((i for i, equal in enumerate(same) if equal), len(self._points))
        if place == len(self._points):
            self._points.append(point)
            self._symbols.append(ca.SX.sym(f"c{place}", point.shape[0]))
        symbol = self._symbols[place]
        return symbol[: self._nq], symbol[self._nq :]

    @property
    def points(self) -> ca.SX:
        """All points, stacked."""
        return ca.vertcat(ca.SX(0, 1), *self._points)

    @property
    def symbols(self) -> ca.SX:
        """All symbols, stacked."""
        return ca.vertcat(ca.SX(0, 1), *self._symbols)


class LagrangianDerivatives:
    """First to third derivatives of the Lagrangian, summed over the points that are stacked in a
    (n). They are functions of b = (a, p), where p are the system's parameters.

    Small derivatives are written out where they are used. With large derivatives (see LARGE), the
    equations become CasADi MX graphs with function calls. Products with the second and third
    derivatives are then computed from directional derivatives in a loop, SEEDS at a time, so the
    code grows with the Lagrangian, not with its square. A direction has the size of a, or that of
    b if it also varies the parameters.
    """

    def __init__(self, system: System, n: int):
        nq, step = system.space.nq, system.space.nq + system.space.nw
        self._a = ca.SX.sym("a", n)
        self._b = ca.vertcat(self._a, system.parameter_symbols)
        points = ((self._a[i : i + nq], self._a[i + nq : i + step]) for i in range(0, n, step))
        self._value = sum((system.lagrangian_at(q, v) for q, v in points), ca.SX(0))
        derivatives = ca.gradient(self._value, self._a)
        self.first = ca.Function("derivatives", [self._b], [derivatives], {"cse": True})
        self.called = self.first.n_instructions() * n > LARGE
        self.kind: Any = ca.MX if self.called else ca.SX

    def second_times(self, b: Graph, directions: Graph) -> Graph:
        """The product `L_ab(b) directions` (n, m)."""
        functions = self._along(directions)
        if self.called:
            return self._times(functions.along, b, directions)
        return functions.hessian(b) @ directions

    def third_times(self, b: Graph, k: Graph, directions: Graph) -> Graph:
        """The product `(d/de L_bb(b + e k)) directions` for k (n), with the size of the
        directions.
        """
        functions = self._along(directions)
        if self.called:
            return self._times(functions.along_twice, ca.vertcat(b, k), directions)
        return functions.third(b, k) @ directions

    def _along(self, directions: Graph) -> _DirectionalDerivatives:
        return self._by_points if directions.shape[0] == self._a.shape[0] else self._by_all

    @cached_property
    def _by_points(self) -> _DirectionalDerivatives:
        return _DirectionalDerivatives(self._value, self._a, self._b, self._a)

    @cached_property
    def _by_all(self) -> _DirectionalDerivatives:
        return _DirectionalDerivatives(self._value, self._a, self._b, self._b)

    @staticmethod
    def _times(product: ca.Function, point: Graph, directions: Graph) -> Graph:
        """The products with all columns of `directions` that are not zero."""
        columns = sorted(set(directions.sparsity().get_col()))
        result = ca.MX(product.size1_out(0), directions.shape[1])
        if not columns:
            return result
        # pad to a multiple of SEEDS columns, then map one function over the groups
        calls = -(-len(columns) // SEEDS)
        seeds = ca.horzcat(
            ca.densify(directions[:, columns]),
            ca.MX.zeros(directions.shape[0], calls * SEEDS - len(columns)),
        )
        result[:, columns] = product.map("products", "serial", calls, [0], [])(point, seeds)[
            :, : len(columns)
        ]
        return result


class _DirectionalDerivatives:
    """Derivatives along v of the gradient of a value with respect to a, at b."""

    def __init__(self, value: ca.SX, a: ca.SX, b: ca.SX, v: ca.SX):
        self._value, self._a, self._b, self._v = value, a, b, v
        self._k = ca.SX.sym("k", a.shape[0])
        self._seeds = ca.SX.sym("seeds", v.shape[0], SEEDS)

    @cached_property
    def hessian(self) -> ca.Function:
        """`L_av`."""
        # the rows for a, which come first in v
        derivatives = ca.hessian(self._value, self._v)[0][: self._a.shape[0], :]
        return ca.Function("hessian", [self._b], [derivatives])

    @cached_property
    def third(self) -> ca.Function:
        """`L_avv k`."""
        gradient = ca.jtimes(self._value, self._a, self._k)
        return ca.Function("third", [self._b, self._k], [ca.hessian(gradient, self._v)[0]])

    @cached_property
    def along(self) -> ca.Function:
        """`L_av seeds`."""
        derivatives = ca.jtimes(ca.gradient(self._value, self._a), self._v, self._seeds)
        return ca.Function("along", [self._b, self._seeds], [derivatives], {"cse": True})

    @cached_property
    def along_twice(self) -> ca.Function:
        """`L_avv k seeds`."""
        # directional derivative along k, then along the seeds
        gradient = ca.gradient(ca.jtimes(self._value, self._a, self._k), self._v)
        point = ca.vertcat(self._b, self._k)
        derivatives = ca.jtimes(gradient, self._v, self._seeds)
        return ca.Function("along_twice", [point, self._seeds], [derivatives], {"cse": True})


def inertia(system: System) -> ca.Function:
    """The function `inertia(x, p) -> M, b, X, c` (see `Mechanics.inertia`) at parameters p. The
    mass matrix `M = X^T L_vv X` is evaluated with `LagrangianDerivatives`, so its code stays small
    for a large Lagrangian.
    """
    nq, nw, n = system.space.nq, system.space.nw, system.nrho
    derivatives, p_ = LagrangianDerivatives(system, nq + nw), system.parameter_symbols
    x_, mass_ = ca.SX.sym("x", system.mechanics.state_space.nq), ca.SX.sym("mass", n, n)
    mechanics, rest = system.mechanics, ca.SX.zeros(nw)
    q, rho = mechanics.components_of(x_)
    (basis,) = mechanics.at_signs([mechanics.admissible_basis(q)], q)
    along = ca.vertcat(ca.SX(nq, n), basis)
    directions = ca.Function("directions", [x_, p_], [ca.vertcat(q, rest, p_), basis, along])
    values = mechanics.at_signs(mechanics.inertia(q, rho, mass_), q)
    system_of = ca.Function("system_of", [x_, p_, mass_], values)
    x, p = derivatives.kind.sym("x", x_.shape[0]), derivatives.kind.sym("p", p_.shape[0])
    point, basis, along = directions(x, p)
    # M = X^T L_vv X from directional derivatives along (0, X)
    mass = basis.T @ derivatives.second_times(point, along)[nq:, :]
    names = ["mass", "momentum", "basis", "prescribed"]
    return ca.Function("inertia", [x, p], system_of(x, p, ca.densify(mass)), ["x", "p"], names)
