"""Optimization of whole trajectories by the native interior point method."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nh_control.control.guesses import require_projected
from nh_control.control.optimal.elastic import WEIGHTS, normalized
from nh_control.control.optimal.layout import Outcome
from nh_control.control.optimal.results import iteration, optimum
from nh_control.control.optimal.transcription import Problem, Transcription, solvers
from nh_control.control.optimum import Iteration, Monitor, Multipliers, Optimum
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

log = logging.getLogger(__name__)
WIDEST = 5.0
"""Maximum violation of a trial, relative to the violation of the guess (at least 1). With the
value 5, an acrobot swings up from 75 of 78 perturbed guesses; with 3 it swings up from 74, and
with 10 or 30 from 73.
"""
INSIDE = 1e-2
"""Minimum distance of a guess's inputs from their limits, as a fraction of the distance between
the lower and the upper limit.
"""
RAISED_BARRIER = 1e-2
"""Barrier after the weights have been increased."""
PERTURBATION, LOWER = 1e-2, 1e-6
"""Standard deviation of the perturbation of the inputs at a saddle, relative to their ranges, and
the decrease of the cost, relative to 1 + cost, that confirms the saddle.
"""
WARM_BARRIER = 1e-5
"""Initial barrier of a search that starts from the multipliers of another optimum."""


def solve(
    problem: Problem,
    guess: Trajectory,
    tolerance: float,
    max_iterations: int,
    barrier_start: float,
    warm_start: Multipliers | None,
    monitor: Monitor,
) -> Optimum:
    """The optimum of a problem near a guess, found by the interior point method. If the search
    does not converge, or after Ctrl-C, the result is the last iterate and the reason why the
    search stopped.

    If `warm_start` is not None, the search starts with these multipliers of a similar problem. If
    the search reaches a saddle, which satisfies the first-order conditions, for example after a
    symmetric guess, it continues from a perturbation of the saddle. Raises StepFailed if a step
    along the guess fails, and NotFinite if the cost or a constraint is not finite at the guess.
    """
    with solvers.lease(problem) as native:
        first = _search(
            native, guess, tolerance, max_iterations, barrier_start, warm_start, monitor
        )
        curved = bool(native.record.curved)
        if not (first.converged and curved and native.call("nh_ocp_factorize")):
            return first
        # the second-order conditions do not hold, so this is a saddle or a flat minimum
        dsys = problem.states.system_at(native.array("x")[0])
    perturbed = _perturbed(dsys, first.trajectory, problem.input_bounds)
    with solvers.lease(problem) as native:
        second = _search(
            native, perturbed, tolerance, max_iterations, barrier_start, None, monitor
        )
    history = (*first.history, *second.history)
    if not second.converged or second.cost >= first.cost - LOWER * (1 + abs(first.cost)):
        return replace(first, history=history)
    log.warning(
        "%s: the guess led to a saddle with the cost %.6g; a perturbation of the saddle led to "
        "%.6g. A guess without symmetry, such as small random inputs, avoids this.",
        problem.dsys,
        first.cost,
        second.cost,
    )
    reason = f"{second.reason}, after a perturbation of a saddle with the cost {first.cost:.6g}"
    return replace(second, history=history, reason=reason)


def _perturbed(dsys: DiscreteSystem, saddle: Trajectory, bounds: np.ndarray) -> Trajectory:
    """A motion near a saddle, under randomly perturbed inputs within `bounds` (2, nu). The random
    numbers are the same in every call.
    """
    lower, upper = bounds
    span = np.where(np.isfinite(upper - lower), upper - lower, 1 + np.abs(saddle.inputs).max())
    noise = np.random.default_rng(0).normal(size=saddle.inputs.shape)
    inputs = np.clip(saddle.inputs + PERTURBATION * span * noise, lower, upper)
    try:
        return dsys.simulate(saddle.states[0], inputs)
    except StepFailed:
        return replace(saddle, inputs=inputs)


def _search(
    native: Transcription,
    guess: Trajectory,
    tolerance: float,
    max_iterations: int,
    barrier_start: float,
    warm_start: Multipliers | None,
    monitor: Monitor,
) -> Optimum:
    """The last iterate of a solver that contains the numbers of the problem, and the reason why
    the search stopped.
    """
    mu_end = tolerance / 10
    native.record.tolerance, native.record.mu_end = tolerance, mu_end
    # the barrier mu decreases from this value to mu_end
    native.record.mu = max(barrier_start if warm_start is None else WARM_BARRIER, mu_end)
    native.record.widest = WIDEST
    start(native, guess, warm_start)
    elastic = _soften(native) if warm_start is None else Elastic.none()
    history: list[Iteration] = []
    outcome, stopped = Outcome.GOES_ON, f"no convergence in {max_iterations} iterations"
    with _until_interrupted() as interrupted:
        for number in range(max_iterations):
            outcome = Outcome(native.call("nh_ocp_iterate"))
            history.append(iteration(native.record, number, outcome))
            monitor(history[-1])
            ended = outcome in (Outcome.OPTIMAL, Outcome.NO_STEP)
            if ended and _raise_weights(native, elastic):
                outcome = Outcome.GOES_ON
            if outcome != Outcome.GOES_ON:
                break
    # the optimum of the penalized problem violates a hard row
    if outcome == Outcome.OPTIMAL and _violated(native, elastic).any():
        outcome = Outcome.INFEASIBLE
    if interrupted:
        stopped = "interrupted"
    return optimum(native, guess, outcome, stopped, tuple(history))


class Elastic(NamedTuple):
    """The indices of hard rows that have a weight, and their maximum weights."""

    rows: np.ndarray
    largest: np.ndarray

    @classmethod
    def none(cls) -> Elastic:
        """No rows."""
        return cls(np.zeros(0, dtype=int), np.zeros(0))


def _soften(native: Transcription) -> Elastic:
    """Assign weights to hard rows that the guess violates. The weights are exact penalties, which
    increase until the rows are satisfied.
    """
    if not native.problem.structure.rows:
        return Elastic.none()
    first = 2 * native.problem.dsys.nu
    holds, c = native.array("s")[:, first:] > 0, native.array("c")[:, first:]
    weights = native.array("weight")[first:]
    # hard rows c >= 0 that the guess violates at any node
    hard = np.flatnonzero((holds & (c < 0)).any(axis=0) & ~np.isfinite(weights))
    if not hard.size or native.call("nh_ocp_measure") != Outcome.GOES_ON:
        return Elastic.none()
    cost = max(float(np.abs(native.array(name)).max()) for name in ("g", "h", "g_end", "h_end"))
    size = normalized(cost, np.abs(native.array("slopes")[:, hard]).max(axis=(0, 2)))
    native.array("weight")[first + hard] = WEIGHTS[0] * size
    restart(native, native.record.mu, warm=False)
    return Elastic(first + hard, WEIGHTS[1] * size)


def _violated(native: Transcription, elastic: Elastic) -> np.ndarray:
    """The mask of elastic rows that are violated."""
    most = native.array("t")[:, elastic.rows].max(axis=0, initial=0.0)
    return most > native.record.tolerance


def _raise_weights(native: Transcription, elastic: Elastic) -> bool:
    """Increase the weights of violated rows, at most to the maximum weights. Returns whether any
    weight was increased.
    """
    # multiply weights by ten until the rows are satisfied or the maximum weight is reached
    low = native.array("weight")[elastic.rows] < elastic.largest
    rows = elastic.rows[_violated(native, elastic) & low]
    if rows.size:
        native.array("weight")[rows] *= 10
        restart(native, RAISED_BARRIER, warm=True)
    return bool(rows.size)


def restart(native: Transcription, mu: float, warm: bool) -> None:
    """Restart from the current iterate with the given barrier. If `warm`, keep its multipliers."""
    native.record.mu, native.record.widest = mu, WIDEST
    native.call("nh_ocp_start", int(warm))


class NotFinite(ValueError):
    """The cost or a constraint is not finite at a guess."""


def start(native: Transcription, guess: Trajectory, warm: Multipliers | None = None) -> None:
    """Initialize the solver with a guess and, optionally, with multipliers. The first state of the
    guess is not projected.
    """
    problem = native.problem
    lower, upper = problem.input_bounds
    # an interior point: the inputs stay away from their limits
    margin = INSIDE * problem.input_spans
    margin = margin if warm is None else np.minimum(margin, native.record.mu)
    x, pi = native.array("x"), native.array("pi")
    states = x[:, : problem.dsys.nx]
    x[...] = problem.states.of_states(guess.states)
    native.call("nh_ocp_project")
    require_projected(problem.dsys, guess, states)
    native.array("u")[...] = guess.inputs.clip(lower + margin, upper - margin)
    _find_unknowns(native, states)
    pi[...] = native.array("nu")[...] = 0.0
    if warm is not None:
        pi[:, : problem.dsys.ndx], native.array("nu")[...] = warm.costates, warm.end
        # s = 0: inequalities without multipliers in `warm` are initialized as in a cold start
        native.array("s")[...] = 0.0
        for i, name in enumerate(problem.names):
            if name in warm.inequalities:
                native.array("lam")[:, i] = warm.inequalities[name]
                native.array("s")[:, i] = warm.slacks[name]
    if native.call("nh_ocp_start", int(warm is not None)):
        raise _not_finite(native)


def _find_unknowns(native: Transcription, states: np.ndarray) -> None:
    """Solve for the unknowns z and the ends y of all steps. Raises StepFailed."""
    # native code stops at a step that it cannot solve; Python also tries other initial values of z
    k, d, u = native.call("nh_ocp_unknowns", 0), native.problem.dsys, native.array("u")
    while k < len(u):
        try:
            native.array("z")[k] = d.unknowns(states[k], u[k])
            native.array("y")[k] = native.array("x")[k]  # with its constants
            native.array("y")[k, : d.nx] = d.step(states[k], u[k])
        except StepFailed as failure:
            raise failure.at_step(k) from None
        k = native.call("nh_ocp_unknowns", k + 1)


def _not_finite(native: Transcription) -> NotFinite:
    """The error that names the value that is not finite at the guess."""
    problem, x, u = native.problem, native.array("x"), native.array("u")
    dsys, structure = problem.dsys, problem.structure
    w, cost, n = native.array("w"), structure.cost, problem.cost.n_parameters
    names = problem.names[2 * dsys.nu :]
    for k in range(problem.steps):
        dsys.step(x[k, : dsys.nx], u[k])  # raises the error of the step
        if not np.isfinite(cost("stage", x[k], u[k], w[k, :n])[0]).all():
            return NotFinite(f"{dsys}: the cost is not finite at node {k} of the guess")
        rows = structure.functions("rows", x[k], u[k], w[k])[0][:, 0] if names else ()
        for row, name, value in zip(structure.rows, names, rows):
            if not np.isfinite(value) and (k or row.mixed):
                return NotFinite(
                    f"{dsys}: the constraint {name!r} is not finite at node {k} of the guess"
                )
    return NotFinite(
        f"{dsys}: cost or constraints are not finite at the last node of the guess, "
        f"{structure.x} = {x[-1].tolist()}"
    )


@contextmanager
def _until_interrupted() -> Iterator[list[bool]]:
    """A context manager in which Ctrl-C raises no error but adds an entry to the list that it
    yields.
    """
    interrupted: list[bool] = []
    try:
        yield interrupted
    except KeyboardInterrupt:
        interrupted.append(True)
