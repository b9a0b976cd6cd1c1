"""One adaptive run, with its request, its sequence of native calls, and its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Request:
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
    atol: np.ndarray
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
        where = problem.name
        span = _numbers(where, "t_span", t_span, 2)
        x, inputs = _numbers(where, "x0", x0, problem.nx), _numbers(where, "u", u, problem.nu)
        default = np.zeros(0) if problem.parameters is None else problem.parameters
        parameters = _numbers(where, "p", default if p is None else p, problem.n_parameters)
        absolute = np.broadcast_to(atol, problem.nx) if np.ndim(atol) == 0 else np.asarray(atol)
        absolute = _numbers(where, "atol", absolute, problem.nx)
        if not (absolute > 0).all():
            raise ValueError(f"{where}: atol must be positive, got {atol!r}")
        if not MIN_RTOL <= rtol < math.inf:
            raise ValueError(f"{where}: rtol must be at least {MIN_RTOL:.2g}, got {rtol}")
        if not max_step > 0:
            raise ValueError(f"{where}: max_step must be positive, got {max_step}")
        t0, t1 = span.tolist()
        if first_step is not None and not 0 < first_step <= abs(t1 - t0):
            raise ValueError(
                f"{where}: first_step must be positive and no longer than the time span, got "
                f"{first_step}"
            )
        if problem.timed:
            x, absolute = np.append(x, t0), np.append(absolute, 1.0)
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
    array = np.asarray(value, dtype=float)
    if array.shape != (n,) or not np.isfinite(array).all():
        raise ValueError(f"{where}: {what} must be {n} finite numbers, got {value!r}")
    return array.copy()


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
        self._starts, self._accepted, self._trials = 0, 0, 0
        self._counts, self._record = np.zeros(len(events)), _Record()

    def solution(self, evaluations: int) -> Solution:
        """The result of the whole run. Each trial step evaluates the field `evaluations` times."""
        arrays = self._prepared()
        status = adaptive.UNFINISHED
        self._keep_start(arrays)
        while status == adaptive.UNFINISHED:
            status = self._steps.run(arrays)
            if self._keep(arrays):
                status = adaptive.STOPPED
        self._trials = int(arrays.counts[adaptive.TRIALS])
        return self._result(status, arrays, evaluations)

    def _prepared(self) -> Arrays:
        """Arrays that contain the initial state."""
        r, steps = self._request, self._steps
        arrays = Arrays(steps.sizes, BATCH_SIZE)
        arrays.x[:] = self._settled(r.x0)
        arrays.u[:], arrays.p[:], arrays.atol[:] = r.u, r.p, r.atol
        arrays.control[:] = r.t0, r.t1, r.first_step or 0.0, r.max_step, r.rtol, 0.0
        self._starts = steps.start(arrays)
        # the native loop stops at compiled terminal events
        compiled = [e for e in self._events if not e.numeric]
        arrays.directions[:] = [e.direction for e in compiled]
        arrays.limits[:] = [e.limit for e in compiled]
        return arrays

    def _settled(self, x0: np.ndarray) -> np.ndarray:
        # normalize removes round-off; a larger distance is a user error
        x = self._call("nh_normalize", x0)[0][:, 0]
        if not np.abs(x - x0).max(initial=0.0) <= MANIFOLD_TOLERANCE:
            raise ValueError(
                f"{self._problem.name}: x0 is not on the manifold (unit vectors must have length "
                f"1, and tangent vectors be normal to them), expected {x}, got {x0}"
            )
        return x

    def _keep_start(self, a: Arrays) -> None:
        r, record = self._request, self._record
        if r.t_eval is None or r.t0 in r.t_eval:
            record.t.append(np.array([r.t0]))
            record.x.append(a.x[None].copy())

    def _keep(self, a: Arrays) -> bool:
        """Store the requested states of a call's steps. Returns whether an event ends the run."""
        n = int(a.counts[adaptive.STORED])
        if not n:
            return False
        times, states = a.times[: n + 1].copy(), a.states[: n + 1].copy()
        # the arrays of the native loop are overwritten by the next call
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
        t = np.concatenate([np.zeros(0), *record.t])
        x = np.concatenate([np.zeros((0, len(r.x0))), *record.x])
        times = [
            [event.t for event, _ in record.located if event.k == k]
            for k in range(len(self._events))
        ]
        points = [
            np.array([x[:nx] for event, x in record.located if event.k == k]).reshape(-1, nx)
            for k in range(len(self._events))
        ]
        return Solution(
            t,
            x[:, :nx].T.copy(),
            self._whole(a, code) if r.dense_output else None,
            [np.array(row) for row in times] if self._events else None,
            points if self._events else None,
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
