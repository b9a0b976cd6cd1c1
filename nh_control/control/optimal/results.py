"""The result of a search by the interior point method."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nh_control.control.optimal.layout import Horizon, Outcome
from nh_control.control.optimal.transcription import Problem, Transcription, solvers
from nh_control.control.optimum import Iteration, KktErrors, Multipliers, Optimum
from nh_control.discrete.trajectory import Trajectory

ITERATE = ("x", "u", "z", "y", "pi", "nu", "s", "t", "lam", "weight")
"""Arrays of the solver that determine the errors of the first-order conditions."""

REASONS = {
    Outcome.STEP_FAILED: "a step of the system failed",
    Outcome.NOT_CONVEX: "no regularization makes the model of the problem convex",
    Outcome.NO_STEP: "no step along any direction decreases the cost or the violation",
    Outcome.INFEASIBLE: "the constraints cannot be satisfied together",
}


def iteration(r: Horizon, number: int, outcome: Outcome) -> Iteration:
    """An iteration with the errors before its step and the cost after its step."""
    error = max(r.stationarity, r.violation, r.complementarity)
    length = r.length if outcome == Outcome.GOES_ON else 0.0
    return Iteration(number, r.cost, error, "interior point" if length else "", length)


def optimum(
    native: Transcription,
    guess: Trajectory,
    outcome: Outcome,
    stopped: str,
    history: tuple[Iteration, ...],
) -> Optimum:
    """The last iterate of a search from a guess, with the reason why it `stopped`."""
    problem, r, x = native.problem, native.record, native.array("x")
    d = problem.states.system_at(x[0])
    states, inputs = x[:, : d.nx], native.array("u")  # a Trajectory copies them
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
        dict(zip(problem.names, native.array("lam").T.copy())),
        dict(zip(problem.names, native.array("s").T.copy())),
    )
    errors = KktErrors(r.stationarity, r.violation, r.complementarity)
    measure: Callable[[], KktErrors] = lambda: errors
    if outcome == Outcome.GOES_ON:  # these errors are those before the last step
        iterate = {name: native.array(name).copy() for name in ITERATE}
        measure = partial(_errors, problem, r.violation, iterate)
    return Optimum(
        trajectory,
        float(r.cost),
        outcome == Outcome.OPTIMAL,
        reason,
        history,
        multipliers,
        measure,
        problem.states.values(x[0]),
    )


def _errors(problem: Problem, violation: float, iterate: dict[str, np.ndarray]) -> KktErrors:
    """The errors of an iterate with this violation, whose arrays a solver reads."""
    with solvers.lease(problem) as native:
        for name, array in iterate.items():
            native.array(name)[...] = array
        native.record.curved = 0  # the errors contain no second derivatives
        native.call("nh_ocp_measure")
        return KktErrors(native.record.stationarity, violation, native.record.complementarity)


def _worst(native: Transcription) -> str:
    """The constraint with the largest violation, in words."""
    problem, s, gaps = native.problem, native.array("s"), np.abs(native.array("gap"))
    k, i = divmod(int(gaps.argmax()), gaps.shape[1])
    violations = [(float(gaps[k, i]), f"the step from node {k} does not reach the next node")]
    if native.record.n_end:
        e = np.abs(native.array("e"))
        text = f"the end condition is violated at node {problem.steps}"
        violations.append((float(e.max()), text))
    if (s > 0).any():  # otherwise no inequality holds anywhere
        outside = np.where(s > 0, -native.array("c"), -np.inf)
        k, i = divmod(int(outside.argmax()), s.shape[1])
        text = f"{problem.names[i]!r} is violated at node {k}"
        violations.append((float(outside[k, i]), text))
    # a gap is usually caused by another violation, which is reported instead
    best = max(violations[1:], default=violations[0])
    size, text = best if best[0] > native.record.tolerance else max(violations)
    return f"{text} by {size:.3g}" if "violated" in text else f"{text}; the gap is {size:.3g}"
