"""One adaptive run: its request, its native calls one after another, and its result."""

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
from nh_control.numerics.adaptive import AdaptiveSteps, Arrays, weighted_error
from nh_control.numerics.compiled import Functions

ROOM = 1000
"""Number of steps of one native call; interrupts and numeric events are handled between calls."""
LEAST_RTOL = 100 * float(np.finfo(float).eps)
OFF = 1e-6
"""Largest distance of x0 from the manifold."""


@dataclass(frozen=True)
class Request:
    """The request of a run. With the time in the state, it is the last number of x0 and atol."""

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
        """The request; raises ValueError, with the problem's name, for values that do not fit."""
        where = problem.name
        span = _numbers(where, "t_span", t_span, 2)
        x, inputs = _numbers(where, "x0", x0, problem.nx), _numbers(where, "u", u, problem.nu)
        own = np.zeros(0) if problem.parameters is None else problem.parameters
        numbers = _numbers(where, "p", own if p is None else p, problem.n_parameters)
        absolute = np.broadcast_to(atol, problem.nx) if np.ndim(atol) == 0 else np.asarray(atol)
        absolute = _numbers(where, "atol", absolute, problem.nx)
        if not (absolute > 0).all():
            raise ValueError(f"{where}: atol must be positive, got {atol!r}")
        if not LEAST_RTOL <= rtol < math.inf:
            raise ValueError(f"{where}: rtol must be at least {LEAST_RTOL:.2g}, got {rtol}")
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
        wanted_times = None if t_eval is None else _sorted_times(where, t_eval, t0, t1)
        return cls(
            *(t0, t1, x, inputs, numbers, wanted_times, bool(dense_output)),
            *(float(rtol), absolute, first_step, max_step),
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
    """The record of a run, one entry for every native call."""

    t: list[np.ndarray] = field(default_factory=list)
    x: list[np.ndarray] = field(default_factory=list)
    interpolants: list[DenseOutput] = field(default_factory=list)
    located: list[tuple[LocatedEvent, np.ndarray]] = field(default_factory=list)


class Run:
    """One run of compiled steps."""

    def __init__(
        self,
        request: Request,
        problem: LieProblem,
        steps: AdaptiveSteps,
        functions: Functions,
        events: Sequence[Event],
        order: int,
    ):
        self._request, self._problem, self._steps = request, problem, steps
        self._call, self._events, self._order = functions, events, order
        self._starts, self._accepted, self._trials = 1, 0, 0
        self._counts, self._record = np.zeros(len(events)), _Record()

    def solution(self, evaluations: int) -> Solution:
        """The whole run; `evaluations` of the field by every trial."""
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
        """Arrays with the start in them."""
        r, steps = self._request, self._steps
        arrays = Arrays(steps.sizes, ROOM)
        arrays.x[:] = self._settled(r.x0)
        arrays.u[:], arrays.p[:], arrays.atol[:] = r.u, r.p, r.atol
        arrays.f[:], rate = self._rate(arrays, arrays.f, 0.0)
        size = r.first_step or self._first_step(arrays, rate)
        arrays.control[:] = r.t0, r.t1, size, r.max_step, r.rtol, 0.0
        compiled = [e for e in self._events if not e.numeric]
        arrays.directions[:] = [e.direction for e in compiled]
        arrays.limits[:] = [e.limit for e in compiled]
        return arrays

    def _settled(self, x0: np.ndarray) -> np.ndarray:
        x = self._call("nh_normalize", x0)[0][:, 0]
        if not np.abs(x - x0).max(initial=0.0) <= OFF:
            raise ValueError(
                f"{self._problem.name}: x0 is not on the manifold (unit vectors must have length "
                f"1, and tangent vectors be normal to them), expected {x}, got {x0}"
            )
        return x

    def _rate(self, a: Arrays, f: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Field and rate of x at tau(h f) . x."""
        there, rate = self._call("nh_start", a.x, f, a.u, a.p, [h])
        return there[:, 0], rate[:, 0]

    def _first_step(self, a: Arrays, rate: np.ndarray) -> float:
        """Size of the first trial [Hairer, Norsett, Wanner: Solving ODEs I, II.4]."""
        r = self._request
        span = abs(r.t1 - r.t0)
        if span == 0.0:
            return 0.0

        def size(v: np.ndarray) -> float:
            return weighted_error(v, (a.x,), a.atol, r.rtol, self._problem.blocks)

        d0, d1 = size(a.x), size(rate)
        h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, span)
        self._starts += 1
        moved = self._rate(a, a.f, math.copysign(h0, r.t1 - r.t0))[1]
        d2 = size(moved - rate) / h0
        most = max(d1, d2)
        h1 = max(1e-6, 1e-3 * h0) if most <= 1e-15 else (0.01 / most) ** (1 / (self._order + 1))
        return min(100 * h0, h1, span, r.max_step)

    def _keep_start(self, a: Arrays) -> None:
        r, record = self._request, self._record
        if r.t_eval is None or r.t0 in r.t_eval:
            record.t.append(np.array([r.t0]))
            record.x.append(a.x[None].copy())

    def _keep(self, a: Arrays) -> bool:
        """Keep the requested states of a call's steps; whether an event ends the run there."""
        n = int(a.counts[adaptive.STORED])
        if not n:
            return False
        times, states = a.times[: n + 1].copy(), a.states[: n + 1].copy()
        interpolant = DenseOutput(
            self._steps.points, states.shape[1], times, states[:-1], a.curves[:n].copy(), times[-1]
        )
        located, stopped = self._events_in(interpolant, a, n)
        self._record.located += [(one, interpolant(one.t)) for one in located]
        last = located[-1].t if stopped else float(times[-1])
        self._accepted += int(np.searchsorted(*_forward(times, last)))
        self._keep_states(interpolant, states, last, stopped)
        if self._request.dense_output:
            self._record.interpolants.append(interpolant)
        return stopped

    def _keep_states(
        self, interpolant: DenseOutput, states: np.ndarray, last: float, stopped: bool
    ) -> None:
        wanted_times, record = self._request.t_eval, self._record
        if wanted_times is None:
            n = int(np.searchsorted(*_forward(interpolant.times, last)))
            record.t += [interpolant.times[1:n], np.array([last])]
            record.x += [states[1:n], interpolant(last)[None] if stopped else states[n : n + 1]]
            return
        forward = 1.0 if interpolant.times[-1] > interpolant.times[0] else -1.0
        wanted = wanted_times[
            (forward * wanted_times > forward * interpolant.times[0])
            & (forward * wanted_times <= forward * last)
        ]
        record.t.append(wanted)
        record.x.append(interpolant(wanted).T)

    def _events_in(
        self, interpolant: DenseOutput, a: Arrays, n: int
    ) -> tuple[list[LocatedEvent], bool]:
        """Events of the steps of a call until one that is terminal, and whether there is one."""
        if not self._events:
            return [], False
        numeric = [k for k, e in enumerate(self._events) if e.numeric]
        compiled = [k for k, e in enumerate(self._events) if not e.numeric]
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
        code = {adaptive.FINISHED: 0, adaptive.STOPPED: 1, adaptive.UNDERFLOWN: -1}[status]
        t = np.concatenate([np.zeros(0), *record.t])
        x = np.concatenate([np.zeros((0, len(r.x0))), *record.x])
        times = [
            [one.t for one, _ in record.located if one.k == k] for k in range(len(self._events))
        ]
        points = [
            np.array([x[:nx] for one, x in record.located if one.k == k]).reshape(-1, nx)
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
        """The curve of all steps; a constant curve if there is no step."""
        interpolants, nx = self._record.interpolants, self._problem.nx
        if not interpolants:
            t, x = self._request.t0, a.x[None].copy()
            curves = np.zeros((1, a.curves.shape[1]))
            return DenseOutput(self._steps.points, nx, np.array([t, t]), x, curves, t)
        times = np.concatenate(
            [interpolants[0].times[:1], *(one.times[1:] for one in interpolants)]
        )
        starts, curves = (
            np.concatenate([getattr(one, name) for one in interpolants])
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
            f"the error stays {error:.1e} times as large as rtol = {rtol:g} and atol ask for: a "
            "singularity, or tolerances that are too small"
            if math.isfinite(error)
            else "the field or a step is not finite there"
        )
        return f"steps became too small at t = {t:g}: {why}"


def _forward(times: np.ndarray, t: float) -> tuple[np.ndarray, float]:
    """The times and the time t, with the sign changed for a run backwards, so that they rise."""
    sign = 1.0 if times[-1] >= times[0] else -1.0
    return sign * times, sign * t
