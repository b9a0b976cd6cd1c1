"""Whole trajectories by the native interior point method."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from nh_control.control.guesses import on_manifold
from nh_control.control.optimal.elastic import WEIGHTS, normalized
from nh_control.control.optimal.layout import Horizon, Outcome
from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.control.optimum import Iteration, KktErrors, Monitor, Multipliers, Optimum
from nh_control.discrete.results import StepFailed
from nh_control.discrete.trajectory import Trajectory

WIDEST = 5.0
"""Times the guess's violation (at least 1) that a trial may have: from 78 perturbed guesses an
acrobot swings up 75 times with 5, 74 times with 3, 73 times with 10 and with 30.
"""
INSIDE = 1e-2
"""Part of the distance between limits that inputs of a guess keep from them."""
RAISED_BARRIER = 1e-2
"""Barrier after weights were raised."""
WARM_BARRIER = 1e-5
"""First barrier of a solution that starts from another one's multipliers."""


REASONS = {
    Outcome.STEP_FAILED: "a step of the system failed",
    Outcome.NOT_CONVEX: "the problem has no convex model, whatever is added to it",
    Outcome.NO_STEP: "no step along any direction lowers cost or violation",
    Outcome.INFEASIBLE: "the constraints cannot be met together",
}


def solve(
    problem: Problem,
    guess: Trajectory,
    tolerance: float,
    max_iterations: int,
    barrier_start: float,
    warm_start: Multipliers | None,
    monitor: Monitor,
) -> Optimum:
    """The optimum of a problem near a guess by the interior point method; where there is none, and
    after Ctrl-C, the last iterate with the reason.

    The search starts with the multipliers `warm_start` of a similar problem, if there are some.
    Raises StepFailed if a step of the guess fails, and NotFinite if cost or constraints of the
    guess are not finite.
    """
    native = Transcription(problem)
    mu_end = tolerance / 10
    native.record.tolerance, native.record.mu_end = tolerance, mu_end
    native.record.mu = max(barrier_start if warm_start is None else WARM_BARRIER, mu_end)
    native.record.widest = WIDEST
    start(native, guess, warm_start)
    elastic = _soften(native) if warm_start is None else Elastic.none()
    history: list[Iteration] = []
    outcome, stopped = Outcome.GOES_ON, f"{max_iterations} iterations were not enough"
    with _until_interrupted() as interrupted:
        for number in range(max_iterations):
            outcome = Outcome(native.call("nh_ocp_iterate"))
            history.append(_iteration(native.record, number, outcome))
            monitor(history[-1])
            ended = outcome in (Outcome.OPTIMAL, Outcome.NO_STEP)
            if ended and _raise_weights(native, elastic):
                outcome = Outcome.GOES_ON
            if outcome != Outcome.GOES_ON:
                break
    if outcome == Outcome.OPTIMAL and _violated(native, elastic).any():
        outcome = Outcome.INFEASIBLE
    if interrupted:
        stopped = "interrupted"
    if outcome in (Outcome.GOES_ON, Outcome.NO_STEP):
        native.call("nh_ocp_measure")
    return _optimum(native, guess, outcome, stopped, tuple(history))


class Elastic(NamedTuple):
    """Indices of hard rows that have a weight, and the largest weights of these."""

    rows: np.ndarray
    largest: np.ndarray

    @classmethod
    def none(cls) -> Elastic:
        """No rows."""
        return cls(np.zeros(0, dtype=int), np.zeros(0))


def _soften(native: Transcription) -> Elastic:
    """Give hard rows that the guess violates a weight, an exact penalty that is raised until they
    hold.
    """
    first = 2 * native.problem.dsys.nu
    holds, c = native.array("s")[:, first:] > 0, native.array("c")[:, first:]
    weights = native.array("weight")[first:]
    hard = np.flatnonzero((holds & (c < 0)).any(axis=0) & ~np.isfinite(weights))
    if not hard.size or native.call("nh_ocp_measure") != Outcome.GOES_ON:
        return Elastic.none()
    cost = max(float(np.abs(native.array(name)).max()) for name in ("g", "h", "g_end", "h_end"))
    size = normalized(cost, np.abs(native.array("slopes")[:, hard]).max(axis=(0, 2)))
    native.array("weight")[first + hard] = WEIGHTS[0] * size
    restart(native, native.record.mu, warm=False)
    return Elastic(first + hard, WEIGHTS[1] * size)


def _violated(native: Transcription, elastic: Elastic) -> np.ndarray:
    """Which of these rows are still violated."""
    most = native.array("t")[:, elastic.rows].max(axis=0, initial=0.0)
    return most > native.record.tolerance


def _raise_weights(native: Transcription, elastic: Elastic) -> bool:
    """Raise the weights of violated rows, unless they are the largest ones; whether there are
    such rows.
    """
    low = native.array("weight")[elastic.rows] < elastic.largest
    rows = elastic.rows[_violated(native, elastic) & low]
    if rows.size:
        native.array("weight")[rows] *= 10
        restart(native, RAISED_BARRIER, warm=True)
    return bool(rows.size)


def restart(native: Transcription, mu: float, warm: bool) -> None:
    """Begin again at the present iterate with a barrier, if `warm` with its multipliers."""
    native.record.mu, native.record.widest = mu, WIDEST
    native.call("nh_ocp_start", int(warm))


class NotFinite(ValueError):
    """Cost or constraints of a guess are not finite."""


def start(native: Transcription, guess: Trajectory, warm: Multipliers | None = None) -> None:
    """Put a guess, whose first state stays, and multipliers in their places."""
    p, lower, upper = native.problem, *native.problem.input_bounds
    guess = on_manifold(p.dsys, guess)
    # inputs are inside their limits
    with np.errstate(invalid="ignore"):
        margin = INSIDE * np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    margin = margin if warm is None else np.minimum(margin, native.record.mu)
    native.array("x")[...] = p.states.of_states(guess.states)
    native.array("u")[...] = guess.inputs.clip(lower + margin, upper - margin)
    for k, (x, u) in enumerate(zip(guess.states, native.array("u"))):
        try:
            native.array("z")[k] = native.routines.unknowns(k, x, u)
        except StepFailed as failure:
            raise failure.at_step(k) from None
    native.array("pi")[...] = 0.0
    if warm is not None:
        native.array("pi")[:, : p.dsys.ndx] = warm.costates
    native.array("nu")[...] = 0.0 if warm is None else warm.end
    if warm is not None:
        native.array("s")[...] = 0.0
        for i, name in enumerate(p.names):
            if name in warm.inequalities:
                native.array("lam")[:, i] = warm.inequalities[name]
                native.array("s")[:, i] = warm.slacks[name]
    if native.call("nh_ocp_start", int(warm is not None)):
        raise _not_finite(native)


def _not_finite(native: Transcription) -> NotFinite:
    """Why the problem has no value at the guess."""
    p, x, u = native.problem, native.array("x"), native.array("u")
    states, w = p.symbols[0], native.array("w")
    cost, n = p.compiled_cost.functions, p.cost.n_parameters
    for k in range(p.steps):
        p.dsys.step(x[k, : p.dsys.nx], u[k])  # raises the error of the step
        if not np.isfinite(cost("stage", x[k], u[k], w[k, :n])[0]).all():
            return NotFinite(f"{p.dsys}: the cost is not finite at node {k} of the guess")
        rows = p.functions("rows", x[k], u[k], w[k])[0][:, 0] if p.rows else np.zeros(0)
        for row, value in zip(p.rows, rows):
            if not np.isfinite(value) and (k or row.mixed):
                return NotFinite(
                    f"{p.dsys}: the constraint {row.name!r} is not finite at node {k} of the guess"
                )
    return NotFinite(
        f"{p.dsys}: cost or constraints are not finite at the last node of the guess, "
        f"{states} = {x[-1].tolist()}"
    )


def _iteration(r: Horizon, number: int, outcome: Outcome) -> Iteration:
    """An iteration with the errors before its step, and the cost after it."""
    error = max(r.stationarity, r.violation, r.complementarity)
    length = r.length if outcome == Outcome.GOES_ON else 0.0
    return Iteration(number, r.cost, error, "interior point" if length else "", length)


def _optimum(
    native: Transcription,
    guess: Trajectory,
    outcome: Outcome,
    stopped: str,
    history: tuple[Iteration, ...],
) -> Optimum:
    p, r, x = native.problem, native.record, native.array("x")
    d = p.states.system_at(x[0])
    states, inputs = x[:, : d.nx].copy(), native.array("u").copy()
    trajectory = Trajectory(d.h, states, inputs, d.state_names, d.inputs, guess.name, d)
    reason = f"the errors are below {r.tolerance:g}"
    if outcome != Outcome.OPTIMAL:
        reason = REASONS.get(outcome, stopped)
        if outcome == Outcome.STEP_FAILED:
            reason += f" at node {r.failed_at}"
        if r.violation > r.tolerance or outcome == Outcome.INFEASIBLE:
            reason += f"; {_worst(native)}"
    multipliers = Multipliers(
        native.array("pi")[:, : d.ndx].copy(),
        native.array("nu").copy(),
        dict(zip(p.names, native.array("lam").T.copy())),
        dict(zip(p.names, native.array("s").T.copy())),
    )
    return Optimum(
        trajectory,
        float(r.cost),
        outcome == Outcome.OPTIMAL,
        reason,
        history,
        multipliers,
        KktErrors(r.stationarity, r.violation, r.complementarity),
        p.states.values(x[0]),
    )


def _worst(native: Transcription) -> str:
    """The constraint with the largest violation, in words."""
    p, n = native.problem, native.problem.steps
    holds = native.array("s") > 0
    outside = np.where(holds, -native.array("c"), -np.inf)
    gaps = np.abs(native.array("gap"))
    violations = [(float(gaps.max()), f"the step from node {gaps.max(axis=1).argmax()} is open")]
    if p.n_end:
        e = np.abs(native.array("e"))
        violations.append((float(e.max()), f"the end condition cannot be met at node {n}"))
    if outside.size:
        k, i = np.unravel_index(outside.argmax(), outside.shape)
        violations.append((float(outside[k, i]), f"{p.names[i]!r} cannot be met at node {k}"))
    # an open step only says that something else cannot be met
    best = max(violations[1:], default=violations[0])
    size, text = best if best[0] > native.record.tolerance else max(violations)
    return f"{text}, off by {size:.3g}"


@contextmanager
def _until_interrupted() -> Iterator[list[bool]]:
    """A context that Ctrl-C ends; the list is then not empty."""
    interrupted: list[bool] = []
    try:
        yield interrupted
    except KeyboardInterrupt:
        interrupted.append(True)
