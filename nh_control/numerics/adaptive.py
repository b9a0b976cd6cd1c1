"""Variable step sizes with embedded pairs, on any manifold: the loop in Python, and the same loop
in C (native/adaptive.c), which releases the interpreter lock.

A trial of size h gives the next point x1, the field f1 there and the differences e of x1 and the
embedded solutions. The error is the root mean square of `e_i / s_i` over the stored numbers, `s_i
= atol_i + rtol max(|x_b|, |x1_b|)`, where |x_b| is the Euclidean norm of the block of numbers that
contains i. Two embedded solutions with errors a and b have the error `a^2 / sqrt(a^2 + (DAMPING
b)^2)` [Hairer, Norsett, Wanner: Solving ODEs I, II.10]. A trial is accepted if its error is at
most 1; the next trial has the size

    h <- SAFETY (1 / error)^EXPONENT h,     EXPONENT = 1 / (1 + min(p, p~))    [celledoni2021] (33)

with a factor between LEAST and MOST, and without growth after a rejected trial.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from nh_control.numerics.amalgamation import amalgamation
from nh_control.numerics.compiled import Functions, Native

SAFETY = 0.9
LEAST = 0.2
MOST = 10.0
"""Limits of the ratio of successive step sizes, see above."""
DAMPING = 0.1
STATUS = ("UNFINISHED", "FINISHED", "STOPPED", "UNDERFLOWN")
"""Results of a call: no room for more steps, the end of the time span, a terminal event, or a step
size below ten times the spacing of numbers at t.
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

Blocks: TypeAlias = Sequence[Sequence[int]]
"""Indices of the numbers of each block."""

_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong)
_POINTS = ctypes.CFUNCTYPE(None, ctypes.c_longlong, *[ctypes.c_void_p] * 4)
"""Function types that release the interpreter lock; functions of `ctypes.PyDLL` do not."""


class Arrays:
    """The arrays of one run, with room for `room` steps: an attribute for each name in ARRAYS (in
    small letters), `counts`, and `list`, their addresses.
    """

    def __init__(self, sizes: Mapping[str, int], room: int):
        nx, n_events, n_dense = sizes["N_X"], sizes["N_EVENTS"], sizes["N_DENSE"]
        self.room = room
        self.counts = np.zeros(len(COUNTS), dtype=np.int64)
        self.x, self.x1, self.atol = (np.zeros(nx) for _ in range(3))
        self.f, self.f1 = np.zeros(sizes["N_F"]), np.zeros(sizes["N_F"])
        self.u, self.p = np.zeros(sizes["N_U"]), np.zeros(sizes["N_P"])
        self.errors, self.dense = np.zeros((sizes["N_ERRORS"], nx)), np.zeros(n_dense)
        self.control = np.zeros(len(CONTROL))
        self.directions, self.limits, self.seen = (np.zeros(n_events) for _ in range(3))
        self.times, self.states = np.zeros(room + 1), np.zeros((room + 1, nx))
        self.curves, self.values = np.zeros((room, n_dense)), np.zeros((room + 1, n_events))
        self.list = (ctypes.c_void_p * len(ARRAYS))(
            *(getattr(self, name.lower()).ctypes.data for name in ARRAYS)
        )


class AdaptiveSteps:
    """The loop around three CasADi functions on column vectors; in C, or in Python without a
    compiler.

    `nh_trial(x, f, u, p, h) -> (x1, f1, e, dense)` has the field f at x and the differences e
    (embedded solutions, N_X); `nh_point(x, dense, theta)` interpolates between x (theta = 0) and
    x1 (theta = 1); `nh_events(t, x, u, p)` gives the event values. `blocks` contains the indices
    of the numbers in each block of the error norm, see above, and `order` is min(p, p~) or its
    replacement.
    """

    def __init__(
        self,
        name: str,
        trial: ca.Function,
        point: ca.Function,
        events: ca.Function,
        blocks: Blocks,
        order: int,
    ):
        self._functions = (trial, point, events)
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
        library = Native(name, self._functions, self._text()).library
        self._library: Any = library and {
            "run": _RUN(("nh_adaptive", library)),
            "points": _POINTS(("nh_points", library)),
        }

    def run(self, arrays: Arrays) -> int:
        """Step from arrays.x at control[TIME] until the end, a terminal event, a failure or the
        end of the room; returns the status.

        Step k = 1 ... counts[STORED] ends at times[k] in states[k] with the event values values[k]
        and the dense output curves[k - 1]; row 0 is the start. The next call continues from x, f,
        control and seen.
        """
        if self._library:
            return self._library["run"](arrays.list, arrays.counts.ctypes.data, arrays.room)
        return _Loop(self._interpreted, arrays, self._blocks, self._exponent).run()

    def points(self, starts: np.ndarray, curves: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return points (n, N_X) at fractions theta (n) of steps with starts (n, N_X) and dense
        outputs (n, N_DENSE).
        """
        starts, curves, theta = (np.ascontiguousarray(a) for a in (starts, curves, theta))
        points = np.empty_like(starts)
        if self._library:
            addresses = (a.ctypes.data for a in (starts, curves, theta, points))
            self._library["points"](len(theta), *addresses)
            return points
        for k, arguments in enumerate(zip(starts, curves, theta[:, None])):
            points[k] = self._interpreted("nh_point", *arguments)[0][:, 0]
        return points

    @cached_property
    def _interpreted(self) -> Functions:
        return Functions(self._name, self._functions)

    def _text(self) -> str:
        """Return the loop's C source after its constants."""
        constants: dict[str, object] = {
            **self.sizes,
            **{
                name: k
                for names in (ARRAYS, CONTROL, COUNTS, STATUS)
                for k, name in enumerate(names)
            },
            "BLOCKS": ", ".join(str(len(block)) for block in self._blocks),
            "PLACES": ", ".join(str(i) for block in self._blocks for i in block),
            "EXPONENT": self._exponent,
            **{name: globals()[name] for name in ("SAFETY", "LEAST", "MOST", "DAMPING")},
        }
        defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
        return amalgamation(["adaptive.c"], {"adaptive_system.h": defines})


class _Loop:
    """The loop of native/adaptive.c in Python."""

    def __init__(self, call: Functions, arrays: Arrays, blocks: Blocks, exponent: float):
        self._call, self._a = call, arrays
        self._blocks, self._exponent = blocks, exponent

    def run(self) -> int:
        a = self._a
        c = a.control
        a.times[0], a.states[0], a.values[0] = c[TIME], a.x, self._events()
        k = a.counts[STORED] = 0
        while c[TIME] != c[END]:
            if k == a.room:
                return UNFINISHED
            status = self._accepted_step()
            if status != UNFINISHED:
                return status
            a.x[:], a.f[:] = a.x1, a.f1
            a.curves[k] = a.dense
            k = a.counts[STORED] = k + 1
            a.times[k], a.states[k], a.values[k] = c[TIME], a.x, self._events()
            if self._stopping(a.values[k - 1], a.values[k]):
                return STOPPED
        return FINISHED

    def _accepted_step(self) -> int:
        a = self._a
        c = a.control
        t, forward = float(c[TIME]), 1.0 if c[END] > c[TIME] else -1.0
        least = 10.0 * abs(math.nextafter(t, forward * math.inf) - t)
        size, rejected = max(float(c[SIZE]), least), False
        while True:
            size = min(size, float(c[LARGEST]))
            # The step size must exceed ten spacings of numbers at t.
            if size < least:
                return UNDERFLOWN
            # Do not step past the end.
            t1 = t + forward * size
            if forward * (t1 - c[END]) > 0.0:
                t1 = float(c[END])
            h = t1 - t
            size = abs(h)
            error = c[ERROR] = self._trial(h)
            a.counts[TRIALS] += 1
            factor = self._factor(error)
            # Accept the trial, or repeat it with a smaller step [celledoni2021] (33).
            if error <= 1.0:
                c[SIZE] = size * (min(factor, 1.0) if rejected else factor)
                c[TIME] = t1
                return UNFINISHED
            size, rejected = size * factor, True

    def _factor(self, error: float) -> float:
        if error == 0.0:
            return MOST
        factor = SAFETY * error**-self._exponent
        return min(factor, MOST) if factor > LEAST else LEAST  # also for NaN

    def _trial(self, h: float) -> float:
        a = self._a
        results = self._call("nh_trial", a.x, a.f, a.u, a.p, [h])
        a.x1[:], a.f1[:], a.dense[:] = (results[k][:, 0] for k in (0, 1, 3))
        a.errors[:] = results[2]
        first = self._weighted(a.errors[0])
        if len(a.errors) == 1 or first == 0.0:
            return first
        # Two embedded solutions: a^2 / sqrt(a^2 + (DAMPING b)^2), see the module's docstring.
        second = self._weighted(a.errors[1])
        return first * (first / math.hypot(first, DAMPING * second))

    def _weighted(self, e: np.ndarray) -> float:
        a = self._a
        return weighted_error(e, (a.x, a.x1), a.atol, float(a.control[RTOL]), self._blocks)

    def _events(self) -> np.ndarray:
        a = self._a
        return self._call("nh_events", [a.control[TIME]], a.x, a.u, a.p)[0][:, 0]

    def _stopping(self, g: np.ndarray, g1: np.ndarray) -> bool:
        a = self._a
        a.seen += crossings(g, g1, a.directions)
        return bool((a.seen >= a.limits).any())


def weighted_error(
    e: np.ndarray,
    points: Sequence[np.ndarray],
    atol: np.ndarray,
    rtol: float,
    blocks: Blocks,
) -> float:
    """Return the root mean square of `e_i / (atol_i + rtol max |x_b|)` with the largest norm of
    the points x, see above; the order of summation is that of native/adaptive.c.
    """
    total = 0.0
    for block in blocks:
        rows = list(block)
        size = rtol * math.sqrt(max(sum(v * v for v in x[rows].tolist()) for x in points))
        for part, absolute in zip(e[rows].tolist(), atol[rows].tolist()):
            relative = part / (absolute + size)
            total += relative * relative
    return math.sqrt(total / sum(map(len, blocks)))


def crossings(g: np.ndarray, g1: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the events whose value crosses or reaches zero between g and g1 in their direction:
    rising for a positive direction, falling for a negative one, both for zero. A zero at the start
    does not count.
    """
    up, down = (g < 0) & (g1 >= 0), (g > 0) & (g1 <= 0)
    return (up & (directions >= 0)) | (down & (directions <= 0))
