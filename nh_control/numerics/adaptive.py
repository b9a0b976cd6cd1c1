"""Variable step sizes with embedded pairs on any manifold. The loop is in native/adaptive.c, which
releases the interpreter lock.

A trial of size h returns the next point x1, the field f1 there and the differences e between x1
and the embedded solutions. The error is the root mean square of `e_i / s_i` over all entries i,
with `s_i = atol_i + rtol max(|x_b|, |x1_b|)`. Here, |x_b| is the Euclidean norm of the block that
contains entry i. Two embedded solutions with errors a and b have the error
`a^2 / sqrt(a^2 + (DAMPING b)^2)` [Hairer, Norsett, Wanner: Solving ODEs I, II.10]. A trial is
accepted if its error is at most 1. The next trial has the size

    h <- SAFETY (1 / error)^EXPONENT h,     EXPONENT = 1 / (1 + min(p, p~))    [celledoni2021] (33)

where the factor is between LEAST and MOST, and at most 1 after a rejected trial.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from nh_control.numerics.compiled import Functions
from nh_control.numerics.library import library
from nh_control.numerics.virtual_machine import FunctionData

SAFETY = 0.9
LEAST = 0.2
MOST = 10.0
"""Maximum ratio of successive step sizes; LEAST is the minimum."""
DAMPING = 0.1
STATUS = ("UNFINISHED", "FINISHED", "STOPPED", "UNDERFLOWN")
"""Results of a call: the arrays are full, the time span is finished, a terminal event has
occurred, or the step size is below ten times the spacing of floating-point numbers at t.
"""
UNFINISHED, FINISHED, STOPPED, UNDERFLOWN = range(4)
CONTROL = ("TIME", "END", "SIZE", "LARGEST", "RTOL", "ERROR")
TIME, END, SIZE, LARGEST, RTOL, ERROR = range(6)
COUNTS = ("TRIALS", "STORED")
TRIALS, STORED = range(2)
ARRAYS = (
    *("X", "F", "U", "P", "X1", "F1", "ERRORS", "DENSE", "CONTROL", "ATOL"),
    *("DIRECTIONS", "LIMITS", "SEEN", "TIMES", "STATES", "CURVES", "VALUES"),
)


def definitions() -> str:
    """The text of the header `adaptive_definitions.h`: the names and constants above."""
    names = {"array": ARRAYS, "status": STATUS, "control": CONTROL, "counts": COUNTS}
    lines = {name: "".join(f"    {place},\n" for place in names[name]) for name in names}
    enums = (f"enum {name} {{\n{text}}};\n\n" for name, text in lines.items())
    constants = ("SAFETY", "LEAST", "MOST", "DAMPING")
    defines = (f"#define {name} {globals()[name]}\n" for name in constants)
    return (
        "#ifndef NH_ADAPTIVE_DEFINITIONS_H\n#define NH_ADAPTIVE_DEFINITIONS_H\n"
        "/* Written by numerics/adaptive.py: `definitions`. */\n\n"
        f"{''.join(enums)}{''.join(defines)}#endif\n"
    )


Blocks: TypeAlias = Sequence[Sequence[int]]
"""The indices of the entries in each block."""


@cache
def _routines() -> tuple[Any, Any, Any]:
    """Routines for runs, their start, and points between steps. Unlike functions of
    `ctypes.PyDLL`, they release the interpreter lock.
    """
    run = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_longlong)
    start = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    points = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_longlong, *[ctypes.c_void_p] * 4)
    native = library()
    return (
        run(("nh_adaptive", native)),
        start(("nh_adaptive_start", native)),
        points(("nh_points", native)),
    )


class _EquationData(ctypes.Structure):
    """`struct equation` of adaptive.h."""

    _fields_ = [
        *((name, ctypes.c_int) for name in ("n_x", "n_f", "n_errors", "n_dense", "n_events")),
        ("n_blocks", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("blocks", "places")),
        ("exponent", ctypes.c_double),
        *((name, FunctionData) for name in ("trial", "point", "events", "start")),
    ]


class Arrays:
    """The arrays for a run of up to `capacity` steps: an attribute for each name in ARRAYS (in
    lower case), `counts`, and the `list` of their addresses.
    """

    def __init__(self, sizes: Mapping[str, int], capacity: int):
        nx, n_events, n_dense = sizes["N_X"], sizes["N_EVENTS"], sizes["N_DENSE"]
        self.capacity = capacity
        self.counts = np.zeros(len(COUNTS), dtype=np.int64)
        self.count_address = self.counts.ctypes.data
        self.x, self.x1, self.atol = (np.zeros(nx) for _ in range(3))
        self.f, self.f1 = np.zeros(sizes["N_F"]), np.zeros(sizes["N_F"])
        self.u, self.p = np.zeros(sizes["N_U"]), np.zeros(sizes["N_P"])
        self.errors, self.dense = np.zeros((sizes["N_ERRORS"], nx)), np.zeros(n_dense)
        self.control = np.zeros(len(CONTROL))
        self.directions, self.limits, self.seen = (np.zeros(n_events) for _ in range(3))
        self.times, self.states = np.zeros(capacity + 1), np.zeros((capacity + 1, nx))
        self.curves, self.values = (
            np.zeros((capacity, n_dense)),
            np.zeros((capacity + 1, n_events)),
        )
        self.list = (ctypes.c_void_p * len(ARRAYS))(
            *(getattr(self, name.lower()).ctypes.data for name in ARRAYS)
        )


class AdaptiveSteps:
    """The step loop, which calls four CasADi functions of column vectors.

    `nh_trial(x, f, u, p, h) -> (x1, f1, e, dense)` takes the field f at x and returns the
    differences e (embedded solutions, N_X). `nh_point(x, dense, theta)` interpolates between x
    (theta = 0) and x1 (theta = 1). `nh_events(t, x, u, p)` returns the event values.
    `nh_start(x, f, u, p, h)` returns the field and the rate of x at `tau(h f) . x`. `blocks`
    contains the indices of the entries in each block of the error norm (see the module's
    docstring), and `order` is min(p, p~) or its replacement.
    """

    def __init__(
        self,
        name: str,
        trial: ca.Function,
        point: ca.Function,
        events: ca.Function,
        start: ca.Function,
        blocks: Blocks,
        order: int,
    ):
        self._functions = (trial, point, events, start)
        self._name, self._blocks, self._exponent = name, blocks, 1 / (1 + order)
        self.sizes = {
            "N_X": trial.size1_in(0),
            "N_F": trial.size1_in(1),
            "N_U": trial.size1_in(2),
            "N_P": trial.size1_in(3),
            "N_ERRORS": trial.size1_out(2),
            "N_DENSE": trial.size1_out(3),
            "N_EVENTS": events.size1_out(0),
        }
        self._compiled = Functions(name, self._functions)
        self._of_thread, self._idle = threading.local(), list[Arrays]()

    def take(self, capacity: int) -> Arrays:
        """Arrays for exclusive use, those of an earlier run if possible. f, seen and counts are
        zero; the other arrays contain arbitrary numbers.
        """
        try:
            arrays = self._idle.pop()
        except IndexError:  # first run, or other runs use them
            return Arrays(self.sizes, capacity)
        if arrays.capacity != capacity:
            return Arrays(self.sizes, capacity)
        arrays.f.fill(0.0)
        arrays.seen.fill(0.0)
        arrays.counts.fill(0)
        return arrays

    def give(self, arrays: Arrays) -> None:
        """Store arrays for the next run."""
        self._idle[:] = (arrays,)

    def start(self, arrays: Arrays) -> int:
        """Set arrays.f to the field at arrays.x and, if control[SIZE] is 0, choose the size of the
        first trial [Hairer, Norsett, Wanner: Solving ODEs I, II.4]. Returns the number of field
        evaluations.
        """
        _, start, _ = _routines()
        return int(start(self._equation, arrays.list))

    def run(self, arrays: Arrays) -> int:
        """Step from arrays.x at control[TIME] until the time span is finished, a terminal event
        occurs, a step fails or the arrays are full, and return the status.

        Step k = 1 ... counts[STORED] ends at times[k] in states[k] with the event values values[k]
        and the dense output curves[k - 1]; row 0 contains the initial values. The next call
        continues from x, f, control and seen.
        """
        run, _, _ = _routines()
        return int(run(self._equation, arrays.list, arrays.count_address, arrays.capacity))

    def points(self, starts: np.ndarray, curves: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the points (n, N_X) at fractions theta (n) of steps that begin at `starts`
        (n, N_X) and have the dense outputs `curves` (n, N_DENSE).
        """
        starts, curves, theta = (np.ascontiguousarray(a) for a in (starts, curves, theta))
        points = np.empty_like(starts)
        _, _, fill = _routines()
        fill(
            self._equation,
            len(theta),
            starts.ctypes.data,
            curves.ctypes.data,
            theta.ctypes.data,
            points.ctypes.data,
        )
        return points

    @property
    def _equation(self) -> int:
        """The address of the equation with this thread's functions."""
        if not hasattr(self._of_thread, "data"):
            trial, point, events, start = (
                self._compiled.function(function.name()) for function in self._functions
            )
            blocks = np.array([len(block) for block in self._blocks], dtype=np.int32)
            places = np.array([i for block in self._blocks for i in block], dtype=np.int32)
            self._of_thread.data = _EquationData(
                n_x=self.sizes["N_X"],
                n_f=self.sizes["N_F"],
                n_errors=self.sizes["N_ERRORS"],
                n_dense=self.sizes["N_DENSE"],
                n_events=self.sizes["N_EVENTS"],
                n_blocks=len(blocks),
                blocks=blocks.ctypes.data,
                places=places.ctypes.data,
                exponent=self._exponent,
                trial=trial,
                point=point,
                events=events,
                start=start,
            )
            # the structure contains only addresses
            self._of_thread.references = trial, point, events, start, blocks, places
        return ctypes.addressof(self._of_thread.data)


def crossings(g: np.ndarray, g1: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return which events cross or reach zero between g and g1 in their direction: rising for a
    positive direction, falling for a negative direction, and either for direction zero. An event
    that is zero in g does not count.
    """
    # reaching zero counts, but leaving zero does not
    up, down = (g < 0) & (g1 >= 0), (g > 0) & (g1 <= 0)
    return (up & (directions >= 0)) | (down & (directions <= 0))
