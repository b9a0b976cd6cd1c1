"""An optimal control problem as one record of native functions and arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint, Row, rows_of
from nh_control.control.costs import CompiledCost, Cost, LimitsByName, compile_cost, limit_bounds
from nh_control.control.optimal.extended import ExtendedStates
from nh_control.control.optimal.layout import FILTER, MAX_THREADS, STEPS, Horizon, Worker
from nh_control.discrete.native_text import macros
from nh_control.discrete.step_routines import StepRoutines
from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics.amalgamation import NATIVE, amalgamation
from nh_control.numerics.compiled import Functions, Native
from nh_control.numerics.library import library

FOLDER = Path(__file__).parent / "native"
FILES = tuple(sorted(file.name for file in FOLDER.glob("*.c")))
SMALL = 8
"""Local coordinates of a state below which the solver is compiled for the sizes of a problem: a
step of MPC then takes 0.7 to 0.8 of its time. From 8 on it would be 0.85 to 1.
"""


@dataclass(frozen=True)
class Problem:
    """Cost, limits, constraints and end condition of trajectories of `steps` steps of `dsys`, with
    `curved` second derivatives of steps and constraints or without.

    The first state is given but for its tangent coordinates `free`, whose limits then hold there,
    too; parameters of the steps among `free` are unknowns, see `ExtendedStates`. With a state
    `end` (nx), `local(end, x_N) = 0` in the tangent coordinates `fixed` (all by default); where
    the motion is `periodic`, the end is the first state. So many `threads`, at most 64 and one for
    each step, share the steps, unless Python makes these. Raises ValueError for wrong shapes,
    unknown names and no thread.
    """

    dsys: DiscreteSystem
    cost: Cost
    steps: int
    limits: LimitsByName = field(default_factory=dict)
    constraints: Sequence[Constraint] = ()
    end: ArrayLike | None = None
    fixed: Sequence[str] | None = None
    curved: bool = True
    free: Sequence[str] = ()
    periodic: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"{self.dsys}: threads must be at least 1, got {self.threads}")
        if not self.dsys.nu:
            raise ValueError(f"{self.dsys}: a system without inputs has nothing to optimize")
        if self.periodic and self.end is not None:
            raise ValueError(f"{self.dsys}: a periodic motion ends where it starts, not at an end")
        given = self.cost.parameters
        if given is not None and len(given) != self.steps + 1:
            raise ValueError(
                f"{self.dsys}: 'cost' is over {len(given) - 1} steps, the trajectory has "
                f"{self.steps}"
            )

    @cached_property
    def states(self) -> ExtendedStates:
        """The states of the solver."""
        return ExtendedStates(self.dsys, self.free, self.periodic)

    @cached_property
    def tables(self) -> list[np.ndarray]:
        """Parameters of all nodes (N + 1, n) of cost and constraints."""
        nodes, nrho, of_cost = self.steps + 1, self.dsys.system.nrho, self.cost.parameters
        first = np.zeros((nodes, 0)) if of_cost is None else of_cost
        return [first, *(c.table(nodes, nrho) for c in self.constraints)]

    @cached_property
    def symbols(self) -> tuple[ca.SX, ca.SX, list[ca.SX]]:
        """State, input, and the parameters of a node for cost and constraints."""
        w = [ca.SX.sym(f"w{i}", table.shape[1]) for i, table in enumerate(self.tables)]
        return ca.SX.sym("x", self.states.nx), ca.SX.sym("u", self.dsys.nu), w

    @cached_property
    def rows(self) -> list[Row]:
        """Inequalities beside the limits of inputs."""
        (x, u, w), limits = self.symbols, self.states.motion_limits(self.limits)
        state, p, _ = self.states.split(x)
        given = [ca.vertcat(wk, p) for wk in w[1:]]
        return [
            *rows_of(self.dsys, limits, self.constraints, state, u, given),
            *self.constant_rows,
        ]

    @cached_property
    def constant_rows(self) -> list[Row]:
        """Those of parameters, which are the last ones."""
        return self.states.rows(self.symbols[0], self.limits)

    @cached_property
    def input_bounds(self) -> np.ndarray:
        """Lower and upper limits of the inputs, (2, nu)."""
        limits = self.states.motion_limits(self.limits)
        return limit_bounds(self.dsys, limits)[0][self.dsys.nx :].T

    @cached_property
    def names(self) -> list[str]:
        """Names of all inequalities of a node, in the order of the native solver."""
        lower, upper = self.input_bounds
        both = [f"{n} >= {b:g}" for n, b in zip(self.dsys.inputs, lower)]
        both += [f"{n} <= {b:g}" for n, b in zip(self.dsys.inputs, upper)]
        return [*both, *(row.name for row in self.rows)]

    @cached_property
    def parameters(self) -> np.ndarray:
        """Parameters of all nodes, (N + 1, n)."""
        return np.hstack(self.tables)

    @cached_property
    def compiled_cost(self) -> CompiledCost:
        """The cost with its derivatives."""
        states, cost = self.states, self.cost
        if not (states.parameters or states.periodic):
            return compile_cost(self.dsys, cost)

        def of(x: ca.SX, w: ca.SX) -> tuple[ca.SX, ca.SX]:
            state, p, _ = states.split(x)
            return state, ca.vertcat(w, p)

        def stage(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
            state, given = of(x, w)
            return cost.stage(state, u, given)

        extended = Cost(stage, lambda x, w: cost.terminal(*of(x, w)), cost.parameters)
        return compile_cost(self.dsys, extended, (states, states.nx, states.ndx))

    @cached_property
    def functions(self) -> Functions:
        """Functions of rows, end and coordinates, by the names in layout.py."""
        space, (x, u, w) = self.states, self.symbols
        dx, y = ca.SX.sym("dx", space.ndx), ca.SX.sym("y", space.nx)
        lam, z, all_w = ca.SX.sym("l", len(self.rows)), ca.vertcat(dx, u), ca.vertcat(*w)

        def at_rest(*expressions: ca.SX) -> list[ca.SX]:
            return ca.substitute(list(expressions), [dx], [ca.SX.zeros(space.ndx)])

        made = [ca.Function("transport", [x, y], [space.coordinate_change(x, y)])]
        moved = space.retract(x, dx)
        if space.nx > self.dsys.nx:
            p = ca.SX.sym("p")  # the place of parameters, on which coordinates do not depend
            made += [ca.Function("retract", [x, dx, p], [moved])]
            made += [ca.Function("local", [x, y, p], [space.local(x, y)])]
        if self.rows:
            value = ca.vertcat(*(row.value for row in self.rows))
            varied = ca.substitute(value, x, moved)
            bend = ca.hessian(ca.dot(lam, varied), z)[0]
            made += [
                ca.Function("rows", [x, u, all_w], [value]),
                ca.Function("row_slopes", [x, u, all_w], at_rest(ca.jacobian(varied, z))),
                ca.Function("row_curvature", [x, u, all_w, lam], at_rest(bend)),
            ]
        if self.n_end:
            e, nu = self._end_condition(moved), ca.SX.sym("nu", self.n_end)
            slope, bend = ca.jacobian(e, dx), ca.hessian(ca.dot(nu, e), dx)[0]
            made += [
                ca.Function("end", [x], [self._end_condition(x)]),
                ca.Function("end_derivatives", [x, nu], at_rest(slope, bend)),
            ]
        return Functions(f"{self.dsys.system.name}_optimal", made)

    @cached_property
    def n_end(self) -> int:
        """Rows of the end condition."""
        if self.end is None and not self.periodic:
            return 0
        names, end = self.dsys.state_space.tangent_names, self.end
        unknown = [name for name in self.fixed or () if name not in names]
        fits = end is None or np.shape(end) == (self.dsys.nx,) and np.isfinite(end).all()
        if unknown or not fits:
            raise ValueError(
                f"{self.dsys}: end must be a finite state of shape ({self.dsys.nx},) with "
                f"coordinates fixed among {list(names)}, got {self.end}, fixed {self.fixed}"
            )
        return len(names) if self.fixed is None else len(self.fixed)

    def _end_condition(self, x: ca.SX) -> ca.SX:
        state, _, first = self.states.split(x)
        end = first if self.periodic else ca.SX(np.asarray(self.end, dtype=float))
        local = self.dsys.state_space.local(end, state)
        names = self.dsys.state_space.tangent_names
        return local if self.fixed is None else local[[names.index(n) for n in self.fixed]]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by the names in layout.py."""
        d, s, rows = self.dsys, self.states, len(self.rows)
        sizes = {"n_x": s.nx, "n_dx": s.ndx, "n_u": d.nu, "n_y": s.ndx + d.nu}
        sizes |= {"n_step_x": d.nx, "n_step_dx": d.ndx, "n_parameters": len(s.parameters)}
        sizes |= {"n_columns": d.ndx + d.nu + len(d.parameter_names) * bool(s.parameters)}
        sizes |= {"n_node": self.parameters.shape[1], "n_i": 2 * d.nu + rows, "n_rows": rows}
        sizes |= {"n_mixed": sum(row.mixed for row in self.rows)}
        return sizes | {"n_constant": len(self.constant_rows), "n_end": self.n_end}

    @cached_property
    def _sized_solver(self) -> Native:
        """The solver compiled for the sizes of a small problem."""
        text = _solver(tuple(self.sizes.items()))
        return Native("optimal", (), text, ("-O3", "-pthread"))

    @property
    def solver(self) -> ctypes.CDLL:
        """The package's solver, or that for the sizes of a small problem once it is compiled."""
        return (self.states.ndx < SMALL and self._sized_solver.library) or library()


@cache
def _solver(sizes: tuple[tuple[str, int], ...]) -> str:
    """C text of the solver with constant sizes."""
    constants = macros({name.upper(): size for name, size in sizes})
    return amalgamation(FILES, {"sizes.h": constants}, (FOLDER, NATIVE))


class Transcription:
    """A problem's record and arrays for the native solver: `call(name, *numbers)` runs a routine
    of it, `array(name)` is the array that the solver has under this name now.
    """

    def __init__(self, problem: Problem):
        states = problem.states
        self.problem = problem
        self.routines = self._routines()
        threads = min(problem.threads, problem.steps, MAX_THREADS)
        threads = threads if self.routines.are_native else 1
        routines = [self.routines, *(self._routines() for _ in range(threads - 1))]
        self._kept = [_worker(problem, each) for each in routines]
        self._workers = (Worker * threads)(*self._kept)
        self._arrays = {name: np.zeros(shape) for name, shape in _shapes(problem).items()}
        self.record = Horizon(
            **problem.sizes,
            **{name: getattr(self.routines, name) for name in STEPS},
            **{name: array.ctypes.data for name, array in self._arrays.items()},
            steps=problem.steps,
            nz=problem.dsys.method.nz,
            curved=problem.curved,
            n_free=states.moves.shape[1],
            from_first=bool(states.starts),
            reuses=self.routines.takes_solutions,
            threads=threads,
            workers=ctypes.addressof(self._workers),
        )
        self._address = ctypes.addressof(self.record)
        self._by_address = {array.ctypes.data: array for array in self._arrays.values()}
        lower, upper = problem.input_bounds
        self.array("lower")[:], self.array("upper")[:] = lower, upper
        self.array("weight")[:] = np.inf
        self.array("weight")[2 * problem.dsys.nu :] = [row.weight for row in problem.rows]
        self.array("w")[...] = problem.parameters
        self.array("moves")[...], self.array("places")[:] = states.moves, states.places

    def array(self, name: str) -> np.ndarray:
        """An array; a trial and the array that it replaces change places."""
        return self._by_address[getattr(self.record, name)]

    def address(self, routine: str) -> int:
        """Where native code finds a routine."""
        return ctypes.cast(self.problem.solver[routine], ctypes.c_void_p).value or 0

    def call(self, name: str, *numbers: int) -> int:
        """The outcome of a routine; raises the error of Python code that it called."""
        outcome = int(_routine(self.problem.solver, name, len(numbers))(self._address, *numbers))
        self.routines.check()
        return outcome

    def _routines(self) -> StepRoutines:
        p = self.problem
        return StepRoutines(p.dsys, p.curved, bool(p.states.parameters))


def _worker(problem: Problem, routines: StepRoutines) -> Worker:
    """What a thread needs to make steps by these routines."""
    functions = {name: problem.dsys.state_function(name) for name in ("local", "retract")}
    for home in (problem.compiled_cost.functions, problem.functions):
        functions |= {name: home.function(name) for name in home.names}
    s = problem.sizes
    room = np.empty(s["n_x"] + s["n_i"] + (s["n_dx"] + s["n_y"]) ** 2)
    worker = Worker(ctypes.addressof(routines.work.list), room.ctypes.data, **functions)
    worker.kept = room, functions, routines
    return worker


@cache
def _routine(solver: ctypes.PyDLL, name: str, numbers: int) -> Callable[..., int]:
    """A routine of the solver, which lets other threads run."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_int] * numbers)
    return kind((name, solver))


def _shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by the names in layout.py."""
    d, s, n, steps, rows = (
        *(problem.dsys, problem.states),
        *(problem.n_end, problem.steps, len(problem.rows)),
    )
    nx, ndx, nu, nz, nodes = s.nx, s.ndx, d.nu, d.method.nz, steps + 1
    ny, ni = ndx + nu, 2 * nu + rows
    shapes: dict[str, tuple[int, ...]] = {"w": (nodes, problem.parameters.shape[1])}
    for trial in ("", "_trial"):
        shapes |= {f"x{trial}": (nodes, nx), f"u{trial}": (steps, nu), f"z{trial}": (steps, nz)}
        shapes |= {f"y{trial}": (steps, nx), f"s{trial}": (nodes, ni), f"t{trial}": (nodes, ni)}
    shapes |= {name: (nodes, ni) for name in ("c", "c_trial", "lam", "ds", "dt", "dl")}
    shapes |= {name: (nodes, ni) for name in ("aim_s", "aim_t")}
    shapes |= {name: (steps, ndx) for name in ("pi", "pi_next", "gap", "gap_trial")}
    shapes |= {
        "sizes": (nz,),
        "no_input": (nu,),
        "lower": (nu,),
        "upper": (nu,),
        "weight": (ni,),
        "least_weight": (ni,),
        "drift": (ndx,),
        "start": (ndx,),
    }
    shapes |= {"nu": (n,), "nu_next": (n,), "e": (n,), "e_trial": (n,), "e_slope": (n, ndx)}
    shapes |= {"ab": (steps, ndx, ny), "g": (steps, ny), "h": (steps, ny, ny)}
    shapes |= {"g_end": (ndx,), "h_end": (ndx, ndx), "bend": (steps, ny, ny)}
    shapes |= {"slopes": (nodes, rows, ny), "dx": (nodes, ndx), "du": (steps, nu)}
    shapes |= {"K": (steps, nu, ndx), "feed": (steps, nu), "L": (steps, nu, nu)}
    shapes |= {
        "P": (steps, ndx, ndx),
        "p": (steps, ndx),
        "P_start": (ndx, ndx),
        "p_start": (ndx,),
        "moves": s.moves.shape,
        "places": (len(s.places),),
        "drift_next": (ndx,),
        "state": (nx,),
    }
    return shapes | {"total": (nodes, ny), "filter": (FILTER, 2)}
