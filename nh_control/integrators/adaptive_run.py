"""One adaptive run, with its request, its sequence of native calls, and its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nh_control.integrators.adaptive_results import DenseOutput, Solution
from nh_control.integrators.events import Event, LocatedEvent, locate_events, until_terminal
from nh_control.integrators.lie_problem import LieProblem
from nh_control.numerics import adaptive
from nh_control.numerics.adaptive import AdaptiveSteps, Arrays
from nh_control.numerics.compiled import Functions

BATCH_SIZE = 1000
"""Number of steps in one native call. Interrupts and numeric events are handled between calls."""
MIN_RTOL = 100 * float(np.finfo(float).eps)
MANIFOLD_TOLERANCE = 1e-6
"""Maximum distance of x0 from the manifold."""


class Request(NamedTuple):
    """The request for a run. If the state contains the time, it is the last component of x0, and
    atol has an entry for it.
    """

    t0: float
    t1: float
    x0: np.ndarray
    u: np.ndarray
    p: np.ndarray
    t_eval: np.ndarray | None
    dense_output: bool
    rtol: float
    atol: np.ndarray | float
    first_step: float | None
    max_step: float

    @classmethod
    def checked(
        cls,
        problem: LieProblem,
        t_span: Sequence[float],
        x0: ArrayLike,
        u: ArrayLike,
        t_eval: ArrayLike | None,
        dense_output: bool,
        rtol: float,
        atol: ArrayLike,
        first_step: float | None,
        max_step: float,
        p: ArrayLike | None,
    ) -> Request:
        """The checked request. For wrong shapes or values, raises a ValueError that states the
        problem.
        """
        where, nx = problem.name, problem.nx
        t0, t1 = _numbers(where, "t_span", t_span, 2).tolist()
        x, inputs = _numbers(where, "x0", x0, nx), _numbers(where, "u", u, problem.nu)
        p = problem.parameters if p is None else p
        parameters = _numbers(where, "p", np.zeros(0) if p is None else p, problem.n_parameters)
        absolute: Any = atol
        if type(atol) is not float or not 0 < atol < math.inf:
            absolute = np.full(nx, atol) if np.ndim(atol) == 0 else np.asarray(atol)
            absolute = _numbers(where, "atol", absolute, nx)
            if not (absolute > 0).all():
                raise ValueError(f"{where}: atol must be positive, got {atol!r}")
        if not MIN_RTOL <= rtol < math.inf:
            raise ValueError(f"{where}: rtol must be at least {MIN_RTOL:.2g}, got {rtol}")
        if not max_step > 0:
            raise ValueError(f"{where}: max_step must be positive, got {max_step}")
        if first_step is not None and not 0 < first_step <= abs(t1 - t0):
            raise ValueError(
                f"{where}: first_step must be positive and no longer than the time span, got "
                f"{first_step}"
            )
        if problem.timed:
            x, absolute = np.append(x, t0), np.append(np.broadcast_to(absolute, nx), 1.0)
        return cls(
            t0=t0,
            t1=t1,
            x0=x,
            u=inputs,
            p=parameters,
            t_eval=None if t_eval is None else _sorted_times(where, t_eval, t0, t1),
            dense_output=bool(dense_output),
            rtol=float(rtol),
            atol=absolute,
            first_step=first_step,
            max_step=max_step,
        )


def _numbers(where: str, what: str, value: ArrayLike, n: int) -> np.ndarray:
    array = np.array(value, dtype=float)
    # a finite sum of squares has finite terms; a sum that overflows, of which np.vdot does not
    # warn, needs a closer look
    is_finite = math.isfinite(np.vdot(array, array)) or np.isfinite(array).all()
    if array.shape != (n,) or not is_finite:
        raise ValueError(f"{where}: {what} must be {n} finite numbers, got {value!r}")
    return array


def _sorted_times(where: str, t_eval: ArrayLike, t0: float, t1: float) -> np.ndarray:
    times = np.asarray(t_eval, dtype=float)
    forward = 1.0 if t1 >= t0 else -1.0
    inside = times.ndim == 1 and ((forward * (times - t0) >= 0) & (forward * (t1 - times) >= 0))
    if not np.all(inside) or (forward * np.diff(times) <= 0).any():
        raise ValueError(
            f"{where}: t_eval must be a row of times from {t0:g} to {t1:g} in their order, got "
            f"{t_eval!r}"
        )
    return times


@dataclass
class _Record:
    """The record of a run, with one entry for each native call."""

    t: list[np.ndarray] = field(default_factory=list)
    x: list[np.ndarray] = field(default_factory=list)
    interpolants: list[DenseOutput] = field(default_factory=list)
    located: list[tuple[LocatedEvent, np.ndarray]] = field(default_factory=list)


class AdaptiveRun:
    """One run with compiled steps."""

    def __init__(
        self,
        request: Request,
        problem: LieProblem,
        steps: AdaptiveSteps,
        functions: Functions,
        events: Sequence[Event],
    ):
        self._request, self._problem, self._steps = request, problem, steps
        self._call, self._events = functions, events
        # whether the result consists of the ends of steps and nothing else
        self._plain = request.t_eval is None and not (request.dense_output or events)
        self._starts, self._accepted, self._trials = 0, 0, 0
        self._counts, self._record = np.zeros(len(events)), _Record()

    def solution(self, evaluations: int) -> Solution:
        """The result of the whole run. Each trial step evaluates the field `evaluations` times."""
        arrays = self._steps.take(BATCH_SIZE)
        self._prepare(arrays)
        status = adaptive.UNFINISHED
        self._keep_start(arrays)
        while status == adaptive.UNFINISHED:
            status = self._steps.run(arrays)
            if self._keep(arrays):
                status = adaptive.STOPPED
        self._trials = int(arrays.counts[adaptive.TRIALS])
        result = self._result(status, arrays, evaluations)
        self._steps.give(arrays)
        return result

    def _prepare(self, arrays: Arrays) -> None:
        """Write the initial state to the arrays."""
        r, steps = self._request, self._steps
        arrays.x[:] = self._settled()
        arrays.u[:], arrays.p[:], arrays.atol[:] = r.u, r.p, r.atol
        arrays.control[:] = r.t0, r.t1, r.first_step or 0.0, r.max_step, r.rtol, 0.0
        self._starts = steps.start(arrays)
        # the native loop stops at compiled terminal events
        if self._events:
            compiled = [e for e in self._events if not e.numeric]
            arrays.directions[:] = [e.direction for e in compiled]
            arrays.limits[:] = [e.limit for e in compiled]

    def _settled(self) -> np.ndarray:
        """The initial state without impulses of constraints and on the manifold."""
        r = self._request
        settled, x = (column[:, 0] for column in self._call("nh_settle", r.x0, r.p))
        # normalize removes round-off; a larger distance is a user error
        off = x - settled
        square, bound = np.vdot(off, off), MANIFOLD_TOLERANCE
        if not (square <= bound**2 or np.abs(off).max() <= bound):
            raise ValueError(
                f"{self._problem.name}: x0 is not on the manifold (unit vectors must have length "
                f"1, and tangent vectors be normal to them), expected {x}, got {settled}"
            )
        return x

    def _keep_start(self, a: Arrays) -> None:
        r, record = self._request, self._record
        if not self._plain and (r.t_eval is None or r.t0 in r.t_eval):
            record.t.append(np.array([r.t0]))
            record.x.append(a.x[None].copy())

    def _keep(self, a: Arrays) -> bool:
        """Store the requested states of a call's steps. Returns whether an event ends the run."""
        n = int(a.counts[adaptive.STORED])
        if self._plain:
            # row 0 is the end of the previous call
            rows = slice(1 if self._record.t else 0, n + 1)
            self._record.t.append(a.times[rows].copy())
            self._record.x.append(a.states[rows].copy())
            self._accepted += n
            return False
        if not n:
            return False
        # the arrays of the native loop are overwritten by the next call
        times, states = a.times[: n + 1].copy(), a.states[: n + 1].copy()
        interpolant = DenseOutput(
            self._steps.points, states.shape[1], times, states[:-1], a.curves[:n].copy(), times[-1]
        )
        located, stopped = self._events_in(interpolant, a, n)
        self._record.located += [(event, interpolant(event.t)) for event in located]
        # steps after a terminal event do not count
        last = located[-1].t if stopped else float(times[-1])
        self._accepted += _steps_until(times, last)
        self._keep_states(interpolant, states, last, stopped)
        if self._request.dense_output:
            self._record.interpolants.append(interpolant)
        return stopped

    def _keep_states(
        self, interpolant: DenseOutput, states: np.ndarray, last: float, stopped: bool
    ) -> None:
        t_eval, record = self._request.t_eval, self._record
        if t_eval is None:
            # without t_eval, keep the ends of all steps and the end of the run
            n = _steps_until(interpolant.times, last)
            record.t += [interpolant.times[1:n], np.array([last])]
            record.x += [states[1:n], interpolant(last)[None] if stopped else states[n : n + 1]]
            return
        forward = 1.0 if interpolant.times[-1] > interpolant.times[0] else -1.0
        times = t_eval[
            (forward * t_eval > forward * interpolant.times[0])
            & (forward * t_eval <= forward * last)
        ]
        record.t.append(times)
        record.x.append(interpolant(times).T)

    def _events_in(
        self, interpolant: DenseOutput, a: Arrays, n: int
    ) -> tuple[list[LocatedEvent], bool]:
        """The events in a call's steps up to the first terminal event, and whether there is a
        terminal event.
        """
        if not self._events:
            return [], False
        numeric = [k for k, e in enumerate(self._events) if e.numeric]
        compiled = [k for k, e in enumerate(self._events) if not e.numeric]
        # the native loop returns the compiled events' values at the nodes; add the numeric events'
        # values
        values = np.empty((n + 1, len(self._events)))
        values[:, compiled] = a.values[: n + 1]
        states = [*interpolant.starts, interpolant(interpolant.times[-1])] if numeric else []
        for i, x in enumerate(states):
            values[i, numeric] = [self._number(k, interpolant.times[i], x) for k in numeric]

        def evaluate(k: int, t: float, x: np.ndarray) -> float:
            if k in numeric:
                return self._number(k, t, x)
            column = self._call("nh_events", [t], x, a.u, a.p)[0]
            return float(column[compiled.index(k), 0])

        located = locate_events(interpolant, values, self._events, evaluate)
        return until_terminal(located, self._events, self._counts)

    def _number(self, k: int, t: float, x: np.ndarray) -> float:
        return float(self._events[k].g(float(t), x[: self._problem.nx]))

    def _result(self, status: int, a: Arrays, evaluations: int) -> Solution:
        r, record, nx = self._request, self._record, self._problem.nx
        # SciPy's status codes
        code = {adaptive.FINISHED: 0, adaptive.STOPPED: 1, adaptive.UNDERFLOWN: -1}[status]
        if len(record.t) == 1:
            (t,), (x,) = record.t, record.x
        else:
            t = np.concatenate([np.zeros(0), *record.t])
            x = np.concatenate([np.zeros((0, len(r.x0))), *record.x])
        times: list[np.ndarray] | None = None
        points: list[np.ndarray] | None = None
        if self._events:
            located = [
                [(event.t, x[:nx]) for event, x in record.located if event.k == k]
                for k in range(len(self._events))
            ]
            times = [np.array([t for t, _ in events]) for events in located]
            points = [np.array([x for _, x in events]).reshape(-1, nx) for events in located]
        return Solution(
            t,
            x[:, :nx].T.copy(),
            self._whole(a, code) if r.dense_output else None,
            times,
            points,
            self._starts + self._trials * evaluations,
            self._accepted,
            self._trials - self._accepted,
            code,
            self._message(status, a),
        )

    def _whole(self, a: Arrays, code: int) -> DenseOutput:
        """The dense output over all steps, or a constant if there are no steps."""
        interpolants, nx = self._record.interpolants, self._problem.nx
        if not interpolants:
            t, x = self._request.t0, a.x[None].copy()
            curves = np.zeros((1, a.curves.shape[1]))
            return DenseOutput(self._steps.points, nx, np.array([t, t]), x, curves, t)
        times = np.concatenate(
            [interpolants[0].times[:1], *(part.times[1:] for part in interpolants)]
        )
        starts, curves = (
            np.concatenate([getattr(part, name) for part in interpolants])
            for name in ("starts", "curves")
        )
        end = self._record.located[-1][0].t if code == 1 else float(times[-1])
        return DenseOutput(self._steps.points, nx, times, starts, curves, end)

    def _message(self, status: int, a: Arrays) -> str:
        if status == adaptive.FINISHED:
            return "the end of the time span is reached"
        t, _, size, _, rtol, error = a.control.tolist()
        if status == adaptive.STOPPED:
            return f"a terminal event occurred at t = {self._record.located[-1][0].t:g}"
        why = (
            f"the error remains {error:.1e} times as large as rtol = {rtol:g} and atol allow: a "
            "singularity, or tolerances that are too small"
            if math.isfinite(error)
            else "the field or a step is not finite there"
        )
        return f"steps became too small at t = {t:g}: {why}"


def _steps_until(times: np.ndarray, t: float) -> int:
    """Number of steps that begin before the time t."""
    # searchsorted needs increasing times, so change the sign in a backward run
    sign = 1.0 if times[-1] >= times[0] else -1.0
    return int(np.searchsorted(sign * times, sign * t))
