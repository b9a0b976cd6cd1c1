"""The parts of an optimal control problem that depend on its structure, but not on its numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from functools import cache, cached_property
from pathlib import Path
from threading import Lock

import casadi as ca
import numpy as np

from nh_control.control.constraints import rows_of
from nh_control.control.costs import Cost, compile_cost
from nh_control.control.optimal.fingerprints import Identity, of_expressions
from nh_control.control.optimal.formulation import Formulation
from nh_control.discrete.native_text import macros
from nh_control.numerics import compiled
from nh_control.numerics.amalgamation import NATIVE, amalgamation
from nh_control.numerics.compiled import Functions, Native
from nh_control.numerics.library import library

FOLDER = Path(__file__).parent / "native"
FILES = tuple(sorted(file.name for file in FOLDER.glob("*.c")))
SMALL = 8
"""Number of local coordinates of a state below which the solver is compiled for the sizes of a
problem. An MPC step then takes 0.7 to 0.8 of the time. For larger states, it would take 0.85 to 1
of the time.
"""
MOST = 32
"""Maximum number of stored structures."""


class Structure:
    """Functions, rows and sizes that all problems with the same structure share."""

    def __init__(self, problem: Formulation):
        d, states = problem.dsys, problem.states
        self._dsys, self._states, self._periodic = d, states, problem.periodic
        self._has_end = problem.end is not None or problem.periodic
        self._fixed = None if problem.fixed is None else tuple(problem.fixed)
        self._name, widths = d.system.name, [table.shape[1] for table in problem.tables]
        self._w = [ca.SX.sym(f"w{i}", width) for i, width in enumerate(widths)]
        self.x, self._u = ca.SX.sym("x", states.nx), ca.SX.sym("u", d.nu)
        state, theta, _ = states.split(self.x)
        parameters = [ca.vertcat(wk, theta) for wk in self._w[1:]]
        limited = np.isfinite(problem.state_limits)
        rows, self.counts = rows_of(d, limited, problem.constraints, state, self._u, parameters)
        of_constants = np.isfinite(problem.constant_limits)
        place = sum(self.counts) + len(d.state_names)
        constant_rows = states.rows(self.x, of_constants, place)
        self.rows = [*rows, *constant_rows]
        self._n_constant, self._n_node = len(constant_rows), sum(widths)
        self.places = np.array([row.place for row in self.rows], dtype=int)
        self.cost = self._compiled_cost(problem.cost)

    def _compiled_cost(self, cost: Cost) -> Functions:
        """The cost with its derivatives."""
        states = self._states
        if not (states.parameters or states.periodic):
            return compile_cost(self._dsys, cost).functions

        # the cost takes the system's state; the free parameters are at the end of its parameters
        def split(x: ca.SX, w: ca.SX) -> tuple[ca.SX, ca.SX]:
            state, theta, _ = states.split(x)
            return state, ca.vertcat(w, theta)

        def stage(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
            state, parameters = split(x, w)
            return cost.stage(state, u, parameters)

        def terminal(x: ca.SX, w: ca.SX) -> ca.SX:
            state, parameters = split(x, w)
            return cost.terminal(state, parameters)

        extended = Cost(stage, terminal, cost.parameters)
        return compile_cost(self._dsys, extended, (states, states.nx, states.ndx)).functions

    @cached_property
    def functions(self) -> Functions:
        """The functions of the rows, the end condition and the coordinates, by their names in
        layout.py.
        """
        space, x, u = self._states, self.x, self._u
        dx, y = ca.SX.sym("dx", space.ndx), ca.SX.sym("y", space.nx)
        lam, z, all_w = ca.SX.sym("l", len(self.rows)), ca.vertcat(dx, u), ca.vertcat(*self._w)

        def at_rest(*expressions: ca.SX) -> list[ca.SX]:
            return ca.substitute(list(expressions), [dx], [ca.SX.zeros(space.ndx)])

        functions = [ca.Function("transport", [x, y], [space.coordinate_change(x, y)])]
        nearby = space.retract(x, dx)
        if space.nx > self._dsys.nx:
            unused = ca.SX.sym("p")  # parameter argument; the coordinates do not use it
            functions += [ca.Function("retract", [x, dx, unused], [nearby])]
            functions += [ca.Function("local", [x, y, unused], [space.local(x, y)])]
        if self.rows:
            # derivatives with respect to (dx, u) at retract(x, dx), dx = 0
            value = ca.vertcat(*(row.value for row in self.rows))
            varied = ca.substitute(value, x, nearby)
            # curvature of the Lagrangian's term lam . rows
            bend = ca.hessian(ca.dot(lam, varied), z)[0]
            functions += [
                ca.Function("rows", [x, u, all_w], [value]),
                ca.Function("row_slopes", [x, u, all_w], at_rest(ca.jacobian(varied, z))),
                ca.Function("row_curvature", [x, u, all_w, lam], at_rest(bend)),
            ]
        if self._n_end:
            goal, nu = ca.SX.sym("goal", self._dsys.nx), ca.SX.sym("nu", self._n_end)
            # e(retract(x, dx)) = 0, and the curvature of nu . e
            e = self._end_condition(nearby, goal)
            slope, bend = ca.jacobian(e, dx), ca.hessian(ca.dot(nu, e), dx)[0]
            functions += [
                ca.Function("end", [x, goal], [self._end_condition(x, goal)]),
                ca.Function("end_derivatives", [x, goal, nu], at_rest(slope, bend)),
            ]
        return Functions(f"{self._name}_optimal", functions)

    @property
    def _n_end(self) -> int:
        """Number of rows of the end condition."""
        if not self._has_end:
            return 0
        return self._dsys.ndx if self._fixed is None else len(self._fixed)

    def _end_condition(self, x: ca.SX, goal: ca.SX) -> ca.SX:
        state, _, first = self._states.split(x)
        local = self._dsys.state_space.local(first if self._periodic else goal, state)
        names = self._dsys.state_space.tangent_names
        return local if self._fixed is None else local[[names.index(n) for n in self._fixed]]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The sizes by their names in layout.py."""
        d, s, rows = self._dsys, self._states, len(self.rows)
        sizes = {"n_x": s.nx, "n_dx": s.ndx, "n_u": d.nu, "n_y": s.ndx + d.nu}
        sizes |= {"n_step_x": d.nx, "n_step_dx": d.ndx, "n_parameters": len(s.parameters)}
        sizes |= {"n_columns": d.ndx + d.nu + len(d.parameter_names) * bool(s.parameters)}
        sizes |= {"n_node": self._n_node, "n_i": 2 * d.nu + rows, "n_rows": rows}
        sizes |= {"n_mixed": sum(row.mixed for row in self.rows)}
        return sizes | {"n_constant": self._n_constant, "n_end": self._n_end}

    @cached_property
    def _sized_solver(self) -> Native:
        """The solver, compiled for the sizes of a small problem."""
        text = _solver(tuple(self.sizes.items()))
        return Native("optimal", (), text, ("-O3", "-pthread"))

    @property
    def solver(self) -> ctypes.CDLL:
        """The solver that is compiled for the sizes of a small problem, once it is available.
        Until then, and for larger problems, the package's general solver.
        """
        return (self._states.ndx < SMALL and self._sized_solver.library) or library()


@cache
def _solver(sizes: tuple[tuple[str, int], ...]) -> str:
    """The C source of the solver with constant sizes."""
    constants = macros({name.upper(): size for name, size in sizes})
    return amalgamation(FILES, {"sizes.h": constants}, (FOLDER, NATIVE))


class Structures:
    """The structures of the most recent problems, by their keys."""

    def __init__(self) -> None:
        self._by_key = dict[Hashable, Structure]()  # the most recent ones are last
        self._lock = Lock()

    def of(self, problem: Formulation) -> Structure:
        """The structure of a problem. It is created if it does not exist yet."""
        key = _key(problem)
        with self._lock:
            structure = self._by_key.pop(key, None)
            if structure is not None:
                self._by_key[key] = structure
                return structure
        structure = Structure(problem)  # slow, so not under the lock
        with self._lock:
            self._by_key[key] = structure
            while len(self._by_key) > MOST:
                # discard the least recently used structure
                del self._by_key[next(iter(self._by_key))]
        return structure


structures = Structures()


def _key(problem: Formulation) -> Hashable:
    """A key that is equal for problems with the same structure."""
    d, m = problem.dsys, len(problem.states.parameters)
    widths = [table.shape[1] for table in problem.tables]
    sizes = {"x": d.nx, "u": d.nu, "w": widths[0] + m}
    of_end = {"x": d.nx, "w": widths[0] + m}
    system = d.code, Identity(d.state_space), compiled.compiler(), tuple(problem.free)
    fixed = None if problem.fixed is None else tuple(problem.fixed)
    end = problem.periodic, problem.end is None, fixed
    stage = of_expressions(problem.cost.stage, sizes)
    cost = stage, of_expressions(problem.cost.terminal, of_end), widths[0]
    limited = tuple(
        np.isfinite(limits).tobytes() for limits in (problem.state_limits, problem.constant_limits)
    )
    constraints = []
    for c, width in zip(problem.constraints, widths[1:]):
        values = of_expressions(c.f, {"x": d.nx, "u": d.nu, "w": width + m}), width
        bounds = tuple((np.shape(b), np.isfinite(b).tobytes()) for b in (c.lower, c.upper))
        constraints.append((c.name, tuple(c.rows), values, bounds, np.shape(c.weight)))
    return system, end, cost, limited, tuple(constraints)
