"""The slopes of the Lagrangian as a step's equations use them: symbols while the equations are written, functions when they are put together."""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from nh_control.system import System

SEEDS = 8
"""Directions that one call of a derivative takes at once."""
LARGE = 300_000
"""Estimated instructions of the Lagrangian's Hessian beyond which it is evaluated direction by direction instead of being written out."""


class SlopesAt:
    """`(dL/dq, dL/dv)` at (q, v) for a method that is being written: a symbol for every new point, which is noted in `points`."""

    def __init__(self, system: System):
        self._nq, self._points, self._symbols = system.space.nq, [], []

    def __call__(self, q, v) -> tuple[ca.SX, ca.SX]:
        at = ca.vertcat(q, v)
        for known, symbol in zip(self._points, self._symbols):
            if ca.is_equal(*ca.cse([at, known]), 0):
                break
        else:
            symbol = ca.SX.sym(f"c{len(self._points)}", at.shape[0])
            self._points.append(at)
            self._symbols.append(symbol)
        return symbol[: self._nq], symbol[self._nq :]

    points = property(lambda self: ca.vertcat(ca.SX(0, 1), *self._points), doc="All points, one below the other.")
    symbols = property(lambda self: ca.vertcat(ca.SX(0, 1), *self._symbols), doc="All symbols, one below the other.")


class Slopes:
    """First to third derivative of the Lagrangian, summed over the points that are stacked in a (n).

    Small ones are written out where they are used. For large ones (see LARGE) the equations become CasADi's MX graphs with calls, and products with the second
    and third derivative are evaluated by directional derivatives, SEEDS at a time in a loop, so that the code grows with the Lagrangian, not with its square.
    """

    def __init__(self, system: System, n: int):
        nq, step = system.space.nq, system.space.nq + system.space.nw
        self._a = ca.SX.sym("a", n)
        self._value = sum((system.lagrangian(self._a[i : i + nq], self._a[i + nq : i + step]) for i in range(0, n, step)), ca.SX(0))
        self.first = ca.Function("slopes", [self._a], [ca.gradient(self._value, self._a)], {"cse": True})
        self.called = self.first.n_instructions() * n > LARGE
        self.kind = ca.MX if self.called else ca.SX

    def second_times(self, a, directions):
        """L_aa(a) directions, (n, m)."""
        return self._times(self._along, a, directions) if self.called else self._hessian(a) @ directions

    def third_times(self, a, k, directions):
        """(d/de L_aa(a + e k)) directions, (n, m)."""
        return self._times(self._along_twice, ca.vertcat(a, k), directions) if self.called else self._third(a, k) @ directions

    @cached_property
    def _hessian(self) -> ca.Function:
        return ca.Function("hessian", [self._a], [ca.hessian(self._value, self._a)[0]])

    @cached_property
    def _third(self) -> ca.Function:
        k = ca.SX.sym("k", self._a.shape[0])
        return ca.Function("third", [self._a, k], [ca.hessian(ca.jtimes(self._value, self._a, k), self._a)[0]])

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
        return ca.Function("along_twice", [ca.vertcat(self._a, k), seeds], [ca.jtimes(slope, self._a, seeds)], {"cse": True})

    @staticmethod
    def _times(product: ca.Function, at, directions):
        """The product with every column of `directions` that is not zero."""
        columns = sorted(set(directions.sparsity().get_col()))
        result = ca.MX(*directions.shape)
        if not columns:
            return result
        calls = -(-len(columns) // SEEDS)
        seeds = ca.horzcat(ca.densify(directions[:, columns]), ca.MX.zeros(directions.shape[0], calls * SEEDS - len(columns)))
        result[:, columns] = product.map("products", "serial", calls, [0], [])(at, seeds)[:, : len(columns)]
        return result
