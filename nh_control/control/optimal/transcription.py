"""An optimal control problem as a struct of native functions and arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from threading import RLock

import numpy as np

from nh_control.control.constraints import bounds_of
from nh_control.control.optimal.fingerprints import Identity
from nh_control.control.optimal.formulation import Formulation
from nh_control.control.optimal.layout import FILTER, MAX_THREADS, MIXED, STEPS, Horizon, Worker
from nh_control.control.optimal.structure import Structure, structures
from nh_control.discrete.step_routines import StepRoutines


@dataclass(frozen=True)
class Problem(Formulation):
    """A formulation with its structure and the numbers that are not part of the structure."""

    def prepare(self) -> None:
        """Find or create the structure, and read all numbers. Raises ValueError."""
        self.structure, self.bounds, self.parameters  # noqa: B018  (evaluates cached properties)

    @cached_property
    def structure(self) -> Structure:
        """The structure. Problems that differ only in numbers share it."""
        return structures.of(self)

    @cached_property
    def bounds(self) -> np.ndarray:
        """The bounds and weights (n, 3) of all bounded quantities (see `bounds_of`)."""
        limits = np.concatenate([self.state_limits, self.constant_limits])
        return bounds_of(self.dsys, self.constraints, self.structure.counts, limits)

    @cached_property
    def place(self) -> Hashable:
        """The fixed properties of a transcription: structure, system, steps, curvature and
        threads.
        """
        system = Identity(self.structure), Identity(self.dsys)
        return *system, self.steps, self.curved, self.threads

    @property
    def row_weights(self) -> np.ndarray:
        """The weights of violations of the rows, which are all inequalities except the input
        limits.
        """
        return self.bounds[self.structure.places, 2]

    @property
    def offsets(self) -> np.ndarray:
        """The offsets of the rows, which follow from their bounds."""
        return np.array([row.offset(self.bounds) for row in self.structure.rows])

    @cached_property
    def names(self) -> list[str]:
        """The names of all inequalities at a node, in the order of the native solver."""
        lower, upper = self.input_bounds
        both = [f"{n} >= {b:g}" for n, b in zip(self.dsys.inputs, lower)]
        both += [f"{n} <= {b:g}" for n, b in zip(self.dsys.inputs, upper)]
        return [*both, *(row.text(self.bounds) for row in self.structure.rows)]


CACHE_BYTES = 2**26
"""Maximum total memory of stored idle solvers."""


class Transcription:
    """The struct and the arrays of a problem, for the native solver. `call(name, *numbers)` calls
    a routine, and `array(name)` returns the array that currently has this name in the solver.
    """

    def __init__(self, problem: Problem):
        states = problem.states
        self.problem = problem
        self.routines = self._step_routines()
        threads = min(problem.threads, problem.steps, MAX_THREADS)
        # steps computed in Python do not run in parallel
        threads = threads if self.routines.are_native else 1
        self._routines = [self.routines, *(self._step_routines() for _ in range(threads - 1))]
        self._compiled = self._compiled_parts()
        self._thread_workers = [_worker(problem, each) for each in self._routines]
        self._workers = (Worker * threads)(*self._thread_workers)
        initial, computed = _initial_shapes(problem), _computed_shapes(problem)
        shapes = initial | computed
        self._memory, addresses = _arrays(shapes)
        self._initial = self._memory[: self._first(addresses[next(iter(computed))])]
        self.record = Horizon(
            **problem.structure.sizes,
            **{name: getattr(self.routines, name) for name in STEPS},
            **addresses,
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
        self._by_address = {
            addresses[name]: self._array(addresses[name], shape) for name, shape in shapes.items()
        }
        self._initial_record = bytes(self.record)
        self._write(problem)

    def load(self, problem: Problem) -> None:
        """Replace all numbers with those of another problem that has the same `place`. The result
        equals a new transcription.
        """
        # trials have exchanged addresses in the struct, which also contains the last barrier
        ctypes.memmove(self._address, self._initial_record, len(self._initial_record))
        self._initial.fill(0.0)
        for routines in self._routines:
            routines.reset()
        self.problem = problem
        self._write(problem)

    def _write(self, problem: Problem) -> None:
        states, first = problem.states, 2 * problem.dsys.nu
        self.array("lower")[:], self.array("upper")[:] = problem.input_bounds
        weight = self.array("weight")
        weight[:first] = np.inf
        if problem.structure.rows:
            weight[first:] = problem.row_weights
            self.array("offset")[:] = problem.offsets
        if problem.end is not None:
            self.array("goal")[:] = problem.end
        self.array("w")[...] = problem.parameters
        if states.free:
            self.array("moves")[...], self.array("places")[:] = states.moves, states.places

    @property
    def bytes(self) -> int:
        """The memory of the arrays in bytes."""
        return int(self._memory.nbytes)

    @property
    def is_current(self) -> bool:
        """Whether no function has been compiled since this transcription was created."""
        return self.routines.are_current and self._compiled == self._compiled_parts()

    def _compiled_parts(self) -> list[bool]:
        structure = self.problem.structure
        return [f.is_compiled for f in (structure.cost, structure.functions)]

    def array(self, name: str) -> np.ndarray:
        """An array by name. The solver exchanges a trial array with the array that it replaces."""
        return self._by_address[getattr(self.record, name)]

    def _array(self, address: int, shape: tuple[int, ...]) -> np.ndarray:
        first = self._first(address)
        return self._memory[first : first + int(np.prod(shape))].reshape(shape)

    def _first(self, address: int) -> int:
        """The index in the memory of the number at an address."""
        return (address - self._memory.ctypes.data) // 8

    def address(self, routine: str) -> int:
        """The address of a routine for native code."""
        solver = self.problem.structure.solver
        return ctypes.cast(solver[routine], ctypes.c_void_p).value or 0

    def call(self, name: str, *numbers: int) -> int:
        """The outcome of a routine. Raises the errors of Python code that the routine calls."""
        routine = _routine(self.problem.structure.solver, name, len(numbers))
        outcome = int(routine(self._address, *numbers))
        self.routines.check()
        return outcome

    def _step_routines(self) -> StepRoutines:
        problem = self.problem
        return StepRoutines(problem.dsys, problem.curved, bool(problem.states.parameters))


class Solvers:
    """Idle transcriptions, which are reused for the next problem with the same place."""

    def __init__(self) -> None:
        self._idle = dict[Hashable, Transcription]()  # the most recent ones are last
        self._lock = RLock()  # a tracker that ends while the lock is held gives solvers back

    def take(self, problem: Problem) -> Transcription:
        """A transcription for exclusive use."""
        place = problem.place  # its structure has a lock too
        with self._lock:
            # a solver is replaced if its functions have been compiled in the meantime
            solver = self._idle.pop(place, None)
        if solver is None or not solver.is_current:
            return Transcription(problem)
        solver.load(problem)
        return solver

    def give(self, solver: Transcription) -> None:
        """Store a transcription for the next problem, and discard the oldest ones if the total
        exceeds CACHE_BYTES.
        """
        place = solver.problem.place
        with self._lock:
            self._idle.pop(place, None)
            self._idle[place] = solver
            # a tracker that ends in this thread meanwhile changes the dictionary
            while sum([each.bytes for each in list(self._idle.values())]) > CACHE_BYTES:
                self._idle.pop(next(iter(self._idle)), None)

    @contextmanager
    def lease(self, problem: Problem) -> Iterator[Transcription]:
        """A context manager that yields a transcription for exclusive use."""
        solver = self.take(problem)
        try:
            yield solver
        finally:
            self.give(solver)


solvers = Solvers()


def _arrays(shapes: dict[str, tuple[int, ...]]) -> tuple[np.ndarray, dict[str, int]]:
    """Memory for arrays with the given shapes, and the addresses of the arrays, which differ even
    if arrays are empty.
    """
    # offsets, rounded up to a multiple of 8 numbers (64 bytes) with a gap
    ends = np.cumsum([0, *(8 * (int(np.prod(shape)) // 8 + 1) for shape in shapes.values())])
    memory = np.zeros(ends[-1])
    return memory, dict(zip(shapes, (memory.ctypes.data + 8 * ends).tolist()))


def _worker(problem: Problem, routines: StepRoutines) -> Worker:
    """The functions and the workspace of a thread that computes steps with the given routines."""
    functions = {name: problem.dsys.state_function(name) for name in ("local", "retract")}
    for home in (problem.structure.cost, problem.structure.functions):
        functions |= {name: home.function(name) for name in home.names}
    s = problem.structure.sizes
    workspace = np.empty(s["n_x"] + s["n_i"] + (s["n_dx"] + s["n_y"]) ** 2)
    worker = Worker(ctypes.addressof(routines.work.list), workspace.ctypes.data, **functions)
    worker.buffers = workspace, functions, routines
    return worker


@cache
def _routine(solver: ctypes.PyDLL, name: str, numbers: int) -> Callable[..., int]:
    """A routine of the solver; other threads can run during a call."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_int] * numbers)
    return kind((name, solver))


def _initial_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays that are zero before a problem is solved, by their names in
    layout.py.
    """
    d, s, steps = problem.dsys, problem.states, problem.steps
    n, rows = problem.structure.sizes["n_end"], len(problem.structure.rows)
    nx, ndx, nu, nz, nodes = s.nx, s.ndx, d.nu, d.method.nz, steps + 1
    ni = 2 * nu + rows
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
        "offset": (rows,),
        "goal": (d.nx,),
        "lower": (nu,),
        "upper": (nu,),
        "weight": (ni,),
        "least_weight": (ni,),
        "drift": (ndx,),
        "drift_next": (ndx,),
        "start": (ndx,),
        "state": (nx,),
        "moves": s.moves.shape,
        "places": (len(s.places),),
    }
    return shapes | {"nu": (n,), "nu_next": (n,), "e": (n,), "e_trial": (n,)}


def _computed_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays that the solver writes before it reads them."""
    d, s, steps = problem.dsys, problem.states, problem.steps
    n, rows = problem.structure.sizes["n_end"], len(problem.structure.rows)
    ndx, nu, nodes = s.ndx, d.nu, steps + 1
    ny = ndx + nu
    step = nodes * ny + steps * ndx
    return {
        "ab": (steps, ndx, ny),
        "dz": (steps, d.method.nz, problem.structure.sizes["n_columns"]),
        "g": (steps, ny),
        "h": (steps, ny, ny),
        "g_end": (ndx,),
        "h_end": (ndx, ndx),
        "bend": (steps, ny, ny),
        "slopes": (nodes, rows, ny),
        "e_slope": (n, ndx),
        "dx": (nodes, ndx),
        "du": (steps, nu),
        "K": (steps, nu, ndx),
        "feed": (steps, nu),
        "L": (steps, nu, nu),
        "P": (steps, ndx, ndx),
        "p": (steps, ndx),
        "P_start": (ndx, ndx),
        "p_start": (ndx,),
        "total": (step,),
        "newton": (step,),
        "step_changes": (MIXED, step),
        "point_changes": (MIXED, step),
        "filter": (FILTER, 2),
    }
