"""Model predictive control: tracking by real-time iterations of the interior point method."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint
from nh_control.control.costs import LimitsByName, quadratic_cost
from nh_control.control.damping import damping_or_idle
from nh_control.control.disturbance_gains import momenta
from nh_control.control.feedback_law import matrix_vector_product
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.elastic import (
    least_weights,
    put_on_central_path,
    set_least_weights,
)
from nh_control.control.optimal.layout import Outcome
from nh_control.control.optimal.plan import KEPT, Plan, Prepared, saturated
from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.control.optimal.window import HorizonParameters, continued, with_terminal_weights
from nh_control.control.tracking import Command, DisturbanceEstimate, LqrTracker, run_steps
from nh_control.control.weights import StateWeight, checked_weights, weight_matrix
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

log = logging.getLogger(__name__)

COLD_ITERATIONS = 50
"""Iterations from the reference, at most, where there is no plan."""


class MpcTracker:
    """Model predictive tracker of a reference: at every step the inputs that minimize `1/2 sum
    dx^T Q dx + du^T R du` over the next `horizon_s` (s), within the `limits` of states and inputs
    (the system's by default) and the `constraints`, about the reference. The first input is the
    command. The terminal cost is LQR's from there to the end of the reference, with Qf at the
    end; with `hold` it is Qf, or LQR's at the end.

    A step takes one linearization and `iterations` interior-point steps at the `barrier` from the
    plan before (real-time iteration, Diehl, Bock and Schloeder 2005); the first one, and one after
    a failure, is solved from the reference. A larger barrier follows sudden changes in fewer
    iterations, and keeps further from limits. Hard constraints and limits of states have weights,
    too, which grow tenfold from one plan to the next while it violates them, so that there are
    plans where they cannot be met. A weight of your own is best a few times the multiplier: a
    heavier constraint is met at any cost of tracking. Parameters of constraints are rows along the
    reference, and, if they are `disturbed`, the estimated forces. With `hold` and
    `disturbance_gain` as `LqrTracker`. `hessian` is "gauss_newton" or "exact"; `threads` share the
    steps, as in `optimize`.

    In real time `prepare` takes most of a step before its state arrives, `feedback` the rest, and
    `late` answers a state that finds its step not prepared. `command` is both in one; all are pure
    functions of their arguments, and equal to the bit. A solve that fails, or a plan older than
    half the horizon, gives the command of the `LqrTracker` of the same weights, which a warning
    says, and the memory, a `Plan`, counts.

    Raises ValueError for wrong shapes, a horizon shorter than two steps and fewer than one
    iteration.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        reference: Trajectory,
        Q: StateWeight,
        R: ArrayLike,
        Qf: StateWeight | None = None,
        *,
        horizon_s: float,
        limits: LimitsByName | None = None,
        constraints: Sequence[Constraint] = (),
        iterations: int = 3,
        hold: bool = False,
        excluded: Sequence[str] = (),
        stance: bool = False,
        disturbance_gain: float = 0.0,
        barrier: float = 1e-3,
        hessian: str = "gauss_newton",
        threads: int = 1,
    ):
        steps = round(horizon_s / dsys.h)
        if steps < 2 or iterations < 1 or not barrier > 0:
            raise ValueError(
                f"{dsys}: MpcTracker needs a horizon of at least 2 steps of {dsys.h:g} s, at "
                f"least 1 iteration and a barrier > 0, got {horizon_s} s, {iterations}, {barrier}"
            )
        if hessian not in ("gauss_newton", "exact"):
            raise ValueError(f"unknown hessian {hessian!r}, choose gauss_newton or exact")
        self.fallback = LqrTracker(
            *(dsys, reference, Q, R, None if hold else Qf, None),
            *(disturbance_gain, hold, excluded, stance),
        )
        self.dsys, self.reference, self.hold = dsys, self.fallback.reference, hold
        self.iterations, self.horizon, self.barrier = iterations, steps, barrier
        self.disturbance_gain, self._momenta = disturbance_gain, momenta(dsys)
        end = self.fallback.gains.P[-1]
        if Qf is not None:
            _, _, end = checked_weights(dsys, self.reference.states[-1:], Q, R, Qf)
        self._options: dict[str, Any] = (
            dict(Q=Q, R=R, Qf=Qf, horizon_s=horizon_s, limits=limits, constraints=constraints)
            | dict(iterations=iterations, hold=hold, excluded=excluded, stance=stance)
            | dict(barrier=barrier, hessian=hessian, threads=threads)
            | dict(disturbance_gain=disturbance_gain)
        )
        bounds = dsys.system.input_bounds.tolist()
        limits = {n: (b[0], b[1]) for n, b in zip(dsys.inputs, bounds)} | dict(limits or {})
        self._ahead = self.reference if hold else continued(dsys, self.reference, steps)
        P = None if hold else self.fallback.gains.P
        self.parameters = HorizonParameters.of(
            dsys, self.reference, self._ahead, constraints, Q, P
        )
        windows = [
            c if c.parameters is None else replace(c, parameters=c.parameters[[0] * (steps + 1)])
            for c in constraints
        ]
        cost = quadratic_cost(dsys, self._window(0), Q, R, end)
        cost = cost if P is None else with_terminal_weights(cost, dsys, P)
        options: dict[str, Any] = dict(curved=hessian == "exact", threads=threads)
        problem = Problem(dsys, cost, steps, limits, windows, **options)
        size = max(float(np.abs(each).max()) for each in (weight_matrix(dsys, "Q", Q), R))
        self._least = least_weights(problem, self._window(0), size)
        self._problem, self._bounds = problem, problem.input_bounds
        self._idle: list[Transcription] = []
        self._idle.append(self._taken())

    def with_reference(self, reference: Trajectory) -> MpcTracker:
        """The same tracker on another reference."""
        return type(self)(self.dsys, reference, **self._options)

    def with_weights(self, state: Mapping[int, float], inputs: Mapping[int, float]) -> MpcTracker:
        """The same tracker with other diagonal weights, as `LqrTracker.with_weights`."""
        Q, R, Qf = self.fallback.with_weights(state, inputs).weights
        weights = {"Q": Q, "R": R, "Qf": self._options["Qf"] if self.hold else Qf}
        return type(self)(self.dsys, self.reference, **{**self._options, **weights})

    @property
    def limits(self) -> np.ndarray:
        """Lower and upper limits (nu, 2) of the inputs."""
        return self._bounds.T

    def steps(self, duration_s: float = 0.0) -> int:
        """Number of steps of a run, see `run_steps`."""
        return run_steps(self.dsys, self.reference, duration_s, self.hold)

    def target(self, k: int) -> np.ndarray:
        """Reference state at step k (the last one past the end)."""
        return self.fallback.target(k)

    def is_following(self, k: int) -> bool:
        """Whether step k is on the reference, or past an end that the tracker holds."""
        return self.fallback.is_following(k)

    def error(self, k: int, x: ArrayLike) -> np.ndarray:
        """Tracking error `local(x_d, x)` (ndx) of state x (nx) at step k."""
        return self.fallback.error(k, x)

    def command(self, k: int, x: ArrayLike, memory: Plan | None = None) -> Command:
        """Command for step k at state x (nx); pass the last command's `memory`, the plan, without
        which the problem is solved from the reference.
        """
        comparable = self._checked(k, x)[0]
        if memory is None:
            memory = Plan(k - 1, np.zeros(self.dsys.system.nrho), comparable)
        return self.feedback(self.prepare(memory, k), x)

    def prepare(self, memory: Plan, k: int | None = None) -> Prepared:
        """Linearize and factorize at the state that is predicted for step k, by default the one
        after the last command, whose memory this is.
        """
        k = memory.k + 1 if k is None else k
        solver = self._taken()
        if not self.is_following(k) or self._prepare(solver, memory, k):
            return Prepared(k, memory, [solver])
        self._idle.append(solver)
        return Prepared(k, memory, [])

    @contextmanager
    def solver(self) -> Iterator[Transcription]:
        """A solver that nobody else uses meanwhile; its arrays have any numbers."""
        solver = self._taken()
        try:
            yield solver
        finally:
            self._idle.append(solver)

    def _taken(self) -> Transcription:
        if self._idle:
            return self._idle.pop()
        solver = Transcription(self._problem)
        solver.array("least_weight")[:] = self._least
        return solver

    def feedback(self, prepared: Prepared, x: ArrayLike) -> Command:
        """Command for the prepared step at its state x (nx)."""
        k, memory = prepared.k, prepared.memory
        x, error = self._checked(k, x)
        if not self.is_following(k):
            return self._damping(x, error)
        d = self._estimate(k, x, memory)
        updated = replace(memory, k=k, disturbance=d)
        # a second call finds the solver gone, and prepares again
        solvers = prepared.solver or self.prepare(memory, k).solver
        plan = None
        if solvers:
            solver = solvers.pop()
            plan = self._solve(solver, k, x, updated)
            self._idle.append(solver)
        if plan is None:
            log.warning("%s: no plan for step %d, LQR's command instead", self.dsys, k)
            failed = replace(updated, failures=memory.failures + 1)
            return self._by_lqr(k, x, error, failed.dropped())
        return self._command(x, plan.inputs[0], error, plan)

    def late(self, k: int, x: ArrayLike, memory: Plan) -> Command:
        """Command for step k at state x (nx) without a solve: `u_j - K_j local(x_j, x)` of the
        last plan, or LQR's if that is older than half the horizon.
        """
        x, error = self._checked(k, x)
        if not self.is_following(k):
            return self._damping(x, error)
        d, j = self._estimate(k, x, memory), memory.since(k)
        memory = replace(memory, k=k, age=j, disturbance=d)
        if not memory.lasts(k):
            outdated = replace(memory, outdated=memory.outdated + 1)
            return self._by_lqr(k, x, error, outdated.dropped())
        away = self.dsys.local(memory.states[j], x)
        u = memory.inputs[j] - matrix_vector_product(memory.gains[j], away)
        return self._command(x, u, error, replace(memory, late=memory.late + 1))

    def _checked(self, k: int, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """A state (nx), in comparison with the reference, and its error; raises ValueError for one
        that is not finite.
        """
        x = np.array(x, dtype=float)
        if not np.isfinite(x).all():
            raise ValueError(f"{self.dsys}: the state at step {k} is not finite: {x.tolist()}")
        x = self.fallback.comparable(k, x)
        return x, self.dsys.local(self.target(k), x)

    def _command(self, x: np.ndarray, u: np.ndarray, error: np.ndarray, memory: Plan) -> Command:
        """The command u within the limits, with the next state predicted in the memory."""
        u = u.clip(*self._bounds)
        estimate = self.fallback.predict(x, u, DisturbanceEstimate(memory.disturbance))
        memory = replace(memory, predicted=estimate.predicted)
        return Command(u, saturated(u, self._bounds), error, memory)

    def _by_lqr(self, k: int, x: np.ndarray, error: np.ndarray, memory: Plan) -> Command:
        """The command of LQR, with its disturbance estimate."""
        estimate = DisturbanceEstimate(memory.disturbance)
        return self._command(x, self.fallback.command(k, x, estimate).u, error, memory)

    def _damping(self, x: np.ndarray, error: np.ndarray) -> Command:
        """The command after a reference that ends in motion."""
        u = damping_or_idle(self.dsys, x)
        clipped = u.clip(*self._bounds)
        return Command(clipped, clipped != u, error)

    def _prepare(self, solver: Transcription, memory: Plan, k: int) -> bool:
        """Whether the problem of step k could be linearized and factorized."""
        solver.record.mu = solver.record.mu_end = self.barrier
        solver.array("drift")[self._momenta] = memory.disturbance
        nodes = np.arange(k, k + self.horizon + 1)
        table = self.parameters.table
        solver.array("w")[...] = table[nodes.clip(max=len(table) - 1)]
        self._disturb(solver, memory.disturbance)
        try:
            if memory.lasts(k):
                outcome = self._from_plan(solver, memory, k)
            else:
                outcome = self._from_reference(solver, memory, k)
            if outcome == Outcome.GOES_ON:
                outcome = solver.call("nh_ocp_prepare")
        except (StepFailed, interior_point.NotFinite) as failure:
            log.warning("%s at step %d: %s", self.dsys, k, failure)
            return False
        return outcome == Outcome.GOES_ON

    def _from_plan(self, solver: Transcription, memory: Plan, k: int) -> int:
        """Start from the last plan, moved to step k and to the predicted state."""
        for name, array in memory.arrays.items():
            solver.array(name)[...] = array
        predicted = memory.predicted if memory.k == k - 1 else None
        if predicted is not None:
            # the size of the step's terms, on which its accuracy depends, is that of this state
            solver.routines.unknowns(k, predicted, memory.inputs[memory.since(k)])
        outcome = solver.call("nh_ocp_shift", memory.since(k))
        if predicted is not None:
            solver.array("x")[0] = predicted
        return outcome

    def _from_reference(self, solver: Transcription, memory: Plan, k: int) -> int:
        """Solve the problem with the reference as the guess, from the predicted state if there is
        one.
        """
        guess = self._window(k)
        states = guess.states.copy()
        if memory.predicted is not None and memory.k == k - 1:
            states[0] = memory.predicted
        solver.record.tolerance, solver.record.widest = 10 * self.barrier, interior_point.WIDEST
        set_least_weights(solver)
        interior_point.start(solver, replace(guess, states=states))
        put_on_central_path(solver, self.barrier)
        interior_point.restart(solver, self.barrier, warm=True)
        for _ in range(COLD_ITERATIONS):
            outcome = solver.call("nh_ocp_iterate")
            if outcome == Outcome.OPTIMAL and solver.call("nh_ocp_weigh"):
                interior_point.restart(solver, self.barrier, warm=True)
                outcome = Outcome.GOES_ON
            if outcome != Outcome.GOES_ON:
                break
        return Outcome.GOES_ON if outcome in (Outcome.OPTIMAL, Outcome.GOES_ON) else outcome

    def _solve(self, solver: Transcription, k: int, x: np.ndarray, memory: Plan) -> Plan | None:
        """The plan of a prepared step k from state x, None where none is found."""
        solver.array("state")[...] = x
        solver.array("drift_next")[self._momenta] = memory.disturbance
        self._disturb(solver, memory.disturbance)
        outcome = solver.call("nh_ocp_feedback", self.iterations)
        arrays = {name: solver.array(name).copy() for name in KEPT}
        finite = all(np.isfinite(arrays[name]).all() for name in KEPT if name != "weight")
        if outcome != Outcome.GOES_ON or not finite:
            return None
        return replace(memory, arrays=arrays, gains=solver.array("K").copy(), age=0)

    def _disturb(self, solver: Transcription, d: np.ndarray) -> None:
        """Tell constraints the estimated forces."""
        for first in self.parameters.disturbed:
            solver.array("w")[:, first : first + len(d)] = d / self.dsys.h

    def _window(self, k: int) -> Trajectory:
        """The reference from node k on over the horizon; its last state and input repeat."""
        r, nodes = self._ahead, np.arange(k, k + self.horizon + 1)
        states = r.states[nodes.clip(max=len(r))]
        return Trajectory(r.h, states, r.inputs[nodes[:-1].clip(max=len(r) - 1)])

    def _estimate(self, k: int, x: np.ndarray, memory: Plan) -> np.ndarray:
        """The disturbance estimate, `d += gain local(predicted, x)_rho`."""
        if not self.disturbance_gain or memory.predicted is None or memory.k != k - 1:
            return memory.disturbance
        before = DisturbanceEstimate(memory.disturbance, memory.predicted)
        node = min(k, len(self.reference) - 1)
        return self.fallback.estimate(node, x, before).disturbance
