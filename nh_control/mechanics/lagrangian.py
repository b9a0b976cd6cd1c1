"""The slopes of the Lagrangian as a step's equations use them: symbols while the equations are
written, functions when they are put together.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from nh_control.mechanics.system import System

SEEDS = 4
"""Directions that one call of a derivative takes at once."""
LARGE = 150_000
"""Instructions of the Lagrangian's slopes, once for every argument, beyond which its Hessian is
evaluated direction by direction instead of being written out. The written one is faster (measured
on planar chains: 47 against 57 us a step of 32 links), but its compilation grows with the square
of the size."""


class SlopesAt:
    """`(dL/dq, dL/dv)` at (q, v) for a method that is being written: a symbol for every new point,
    which is noted in `points`.
    """

    def __init__(self, system: System):
        self._nq, self._points, self._symbols = system.space.nq, [], []

    def __call__(self, q, v) -> tuple[ca.SX, ca.SX]:
        at = ca.vertcat(q, v)
        same = (ca.is_equal(*ca.cse([at, known]), 0) for known in self._points)
        place = next((i for i, equal in enumerate(same) if equal), len(self._points))
        if place == len(self._points):
            self._points.append(at)
            self._symbols.append(ca.SX.sym(f"c{place}", at.shape[0]))
        symbol = self._symbols[place]
        return symbol[: self._nq], symbol[self._nq :]

    points = property(
        lambda self: ca.vertcat(ca.SX(0, 1), *self._points), doc="All points, one below the other."
    )
    symbols = property(
        lambda self: ca.vertcat(ca.SX(0, 1), *self._symbols),
        doc="All symbols, one below the other.",
    )


class Slopes:
    """First to third derivative of the Lagrangian, summed over the points that are stacked in a
    (n).

    Small ones are written out where they are used. For large ones (see LARGE) the equations become
    CasADi's MX graphs with calls, and products with the second and third derivative are evaluated
    by directional derivatives, SEEDS at a time in a loop, so that the code grows with the
    Lagrangian, not with its square.
    """

    def __init__(self, system: System, n: int):
        nq, step = system.space.nq, system.space.nq + system.space.nw
        self._a = ca.SX.sym("a", n)
        self._value = sum(
            (
                system.lagrangian(self._a[i : i + nq], self._a[i + nq : i + step])
                for i in range(0, n, step)
            ),
            ca.SX(0),
        )
        self.first = ca.Function(
            "slopes", [self._a], [ca.gradient(self._value, self._a)], {"cse": True}
        )
        self.called = self.first.n_instructions() * n > LARGE
        self.kind = ca.MX if self.called else ca.SX

    def second_times(self, a, directions):
        """L_aa(a) directions, (n, m)."""
        return (
            self._times(self._along, a, directions)
            if self.called
            else self._hessian(a) @ directions
        )

    def third_times(self, a, k, directions):
        """(d/de L_aa(a + e k)) directions, (n, m)."""
        return (
            self._times(self._along_twice, ca.vertcat(a, k), directions)
            if self.called
            else self._third(a, k) @ directions
        )

    @cached_property
    def _hessian(self) -> ca.Function:
        return ca.Function("hessian", [self._a], [ca.hessian(self._value, self._a)[0]])

    @cached_property
    def _third(self) -> ca.Function:
        k = ca.SX.sym("k", self._a.shape[0])
        return ca.Function(
            "third", [self._a, k], [ca.hessian(ca.jtimes(self._value, self._a, k), self._a)[0]]
        )

    @cached_property
    def _along(self) -> ca.Function:
        seeds = ca.SX.sym("seeds", self._a.shape[0], SEEDS)
        slopes = ca.jtimes(ca.gradient(self._value, self._a), self._a, seeds)
        return ca.Function("along", [self._a, seeds], [slopes], {"cse": True})

    @cached_property
    def _along_twice(self) -> ca.Function:
        n = self._a.shape[0]
        k, seeds = ca.SX.sym("k", n), ca.SX.sym("seeds", n, SEEDS)
        slope = ca.gradient(ca.jtimes(self._value, self._a, k), self._a)
        return ca.Function(
            "along_twice",
            [ca.vertcat(self._a, k), seeds],
            [ca.jtimes(slope, self._a, seeds)],
            {"cse": True},
        )

    @staticmethod
    def _times(product: ca.Function, at, directions):
        """The product with every column of `directions` that is not zero."""
        columns = sorted(set(directions.sparsity().get_col()))
        result = ca.MX(*directions.shape)
        if not columns:
            return result
        calls = -(-len(columns) // SEEDS)
        seeds = ca.horzcat(
            ca.densify(directions[:, columns]),
            ca.MX.zeros(directions.shape[0], calls * SEEDS - len(columns)),
        )
        result[:, columns] = product.map("products", "serial", calls, [0], [])(at, seeds)[
            :, : len(columns)
        ]
        return result


def inertia(system: System) -> ca.Function:
    """`inertia(x) -> M, b, X, c` of `System.inertia`, with a mass matrix `M = X^T L_vv X` that is
    evaluated like the other second derivatives.
    """
    nq, nw, n = system.space.nq, system.space.nw, system.n_rho
    slopes = Slopes(system, nq + nw)
    x_, mass_ = ca.SX.sym("x", system.state_space.nq), ca.SX.sym("mass", n, n)
    q, rest = x_[:nq], ca.SX.zeros(nw)
    basis = system.admissible_basis(q)
    directions = ca.Function(
        "directions", [x_], [ca.vertcat(q, rest), basis, ca.vertcat(ca.SX(nq, n), basis)]
    )
    system_of = ca.Function("system_of", [x_, mass_], system.inertia(q, x_[nq:], mass_))
    x = slopes.kind.sym("x", x_.shape[0])
    at, basis, along = directions(x)
    mass = basis.T @ slopes.second_times(at, along)[nq:, :]
    return ca.Function(
        "inertia",
        [x],
        system_of(x, ca.densify(mass)),
        ["x"],
        ["mass", "momentum", "basis", "prescribed"],
    )
