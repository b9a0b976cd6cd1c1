"""Model predictive control: tracking by real-time iterations of the interior point method."""

from __future__ import annotations

import logging
import weakref
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
from nh_control.control.optimal.plan import PLAN_ARRAYS, Plan, Prepared, saturated
from nh_control.control.optimal.transcription import Problem, Transcription, solvers
from nh_control.control.optimal.window import HorizonParameters, continued, with_terminal_weights
from nh_control.control.reference_tracker import Command
from nh_control.control.run_length import run_steps
from nh_control.control.tracking import DisturbanceEstimate, LqrTracker
from nh_control.control.weights import StateWeight, checked_weights, weight_matrix
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

log = logging.getLogger(__name__)

STILL = 0.02
"""A plan that ends at a constraint counts as blocked if its length is less than this fraction of
the distance to the reference.
"""
COLD_ITERATIONS = 50
"""Maximum number of iterations from the reference if there is no plan."""


class MpcTracker:
    """Model predictive tracker of a reference.

    At every step, the tracker minimizes `1/2 sum dx^T Q dx + du^T R du` about the reference over
    the next `horizon_s` (s), within the `limits` of states and inputs (by default those of the
    system) and the `constraints`. The first input is the command. The terminal cost is the LQR
    cost from the end of the horizon to the end of the reference, where the weight is Qf. With
    `hold`, the terminal cost is Qf or, by default, the LQR cost at the end of the reference.

    A step takes one linearization and `iterations` interior-point steps at the `barrier`, starting
    from the previous plan (real-time iteration, Diehl, Bock and Schloeder 2005). The first plan,
    and a plan after a failure, start from the reference. With a larger barrier, plans react to
    sudden changes in fewer iterations and stay further away from the limits. Hard constraints and
    limits of states also have weights. These weights increase tenfold from plan to plan while the
    constraint or limit is violated, so a plan exists even if not all of them can be satisfied. If
    you choose a weight, it should be a few times the multiplier; a constraint with a larger weight
    is satisfied no matter how much the tracking suffers. Constraint parameters are given as rows
    along the reference; if a constraint is `disturbed`, the estimated forces follow them. `hold`
    and `disturbance_gain` have the same meaning as in `LqrTracker`. `hessian` is "gauss_newton" or
    "exact"; `threads` share the steps, as in `optimize`.

    In real time, `prepare` does most of the work of a step before its state arrives, and
    `feedback` does the rest. If a state arrives before its step is prepared, `late` returns the
    command. `command` combines `prepare` and `feedback`. All of these are pure functions of their
    arguments, and the results are bitwise identical. If a solve fails, or if the plan is older
    than half the horizon, the `LqrTracker` with the same weights computes the command. A warning
    reports such a command, and the memory, a `Plan`, counts it.

    Raises ValueError for wrong shapes, a horizon shorter than two steps, and fewer than one
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
            dsys,
            reference,
            Q,
            R,
            None if hold else Qf,
            disturbance_gain=disturbance_gain,
            hold=hold,
            excluded=excluded,
            stance=stance,
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
        # the user's limits replace those of the system
        limits = {n: (b[0], b[1]) for n, b in zip(dsys.inputs, bounds)} | dict(limits or {})
        self._ahead = self.reference if hold else continued(dsys, self.reference, steps)
        P = None if hold else self.fallback.gains.P
        weights = Q, R, end if hold else None  # P contains the terminal weight of every node
        self.parameters = HorizonParameters.of(
            dsys, self.reference, self._ahead, constraints, weights, P
        )
        windows = [
            c if c.parameters is None else replace(c, parameters=c.parameters[[0] * (steps + 1)])
            for c in constraints
        ]
        cost = quadratic_cost(dsys, self._window(0), Q, R, end if hold else None)
        cost = cost if P is None else with_terminal_weights(cost, dsys, P)
        options: dict[str, Any] = dict(curved=hessian == "exact", threads=threads)
        problem = Problem(dsys, cost, steps, limits, windows, **options)
        size = max(float(np.abs(each).max()) for each in (weight_matrix(dsys, "Q", Q), R))
        self._least = least_weights(problem, self._window(0), size)
        self._problem, self._bounds = problem, problem.input_bounds
        self._idle: list[Transcription] = []
        self._idle.append(self._take_solver())
        # the next tracker of this structure takes the solvers of this one
        weakref.finalize(self, _give_back, self._idle)

    def with_reference(self, reference: Trajectory) -> MpcTracker:
        """The same tracker with a different reference."""
        return type(self)(self.dsys, reference, **self._options)

    def with_weights(self, state: Mapping[int, float], inputs: Mapping[int, float]) -> MpcTracker:
        """The same tracker with different diagonal weights (see `LqrTracker.with_weights`)."""
        Q, R, Qf = self.fallback.with_weights(state, inputs).weights
        weights = {"Q": Q, "R": R, "Qf": self._options["Qf"] if self.hold else Qf}
        return type(self)(self.dsys, self.reference, **{**self._options, **weights})

    @property
    def limits(self) -> np.ndarray:
        """Lower and upper limits (nu, 2) of the inputs."""
        return self._bounds.T

    def steps(self, duration_s: float = 0.0) -> int:
        """The number of steps of a run (see `run_steps`)."""
        return run_steps(self.dsys, self.reference, duration_s, self.hold)

    def target(self, k: int) -> np.ndarray:
        """The reference state at step k, or the last reference state if k is after the end."""
        return self.fallback.target(k)

    def is_following(self, k: int) -> bool:
        """Whether step k is on the reference, or after its end if the tracker holds the last
        state.
        """
        return self.fallback.is_following(k)

    def error(self, k: int, x: ArrayLike) -> np.ndarray:
        """The tracking error `local(x_d, x)` (ndx) of state x (nx) at step k."""
        return self.fallback.error(k, x)

    def command(self, k: int, x: ArrayLike, memory: Plan | None = None) -> Command:
        """The command for step k at state x (nx). Pass the `memory` of the previous command, which
        contains the plan. Without a memory, the problem is solved from the reference.
        """
        comparable, _ = self._checked(k, x)
        if memory is None:
            memory = Plan(k - 1, np.zeros(self.dsys.system.nrho), comparable)
        return self.feedback(self.prepare(memory, k), x)

    def prepare(self, memory: Plan, k: int | None = None) -> Prepared:
        """Linearize and factorize the problem at the predicted state of step k, by default the
        step after the command that returned the `memory`.
        """
        k = memory.k + 1 if k is None else k
        solver = self._take_solver()
        if not self.is_following(k) or self._prepare(solver, memory, k):
            prepared = Prepared(k, memory, [solver])
            # without feedback, for example after a late state, the solver is idle again
            weakref.finalize(prepared, _move, prepared.solver, self._idle)
            return prepared
        self._idle.append(solver)
        return Prepared(k, memory, [])

    @contextmanager
    def solver(self) -> Iterator[Transcription]:
        """A context manager that yields a solver for exclusive use. The solver's arrays contain
        arbitrary numbers.
        """
        solver = self._take_solver()
        try:
            yield solver
        finally:
            self._idle.append(solver)

    def _take_solver(self) -> Transcription:
        # a solver is replaced if its functions have been compiled in the meantime
        if self._idle and (solver := self._idle.pop()).is_current:
            return solver
        solver = solvers.take(self._problem)
        solver.array("least_weight")[:] = self._least
        return solver

    def feedback(self, prepared: Prepared, x: ArrayLike) -> Command:
        """The command for the prepared step at its state x (nx)."""
        k, memory = prepared.k, prepared.memory
        x, error = self._checked(k, x)
        if not self.is_following(k):
            return self._damping(x, error)
        d = self._estimate(k, x, memory)
        updated = replace(memory, k=k, disturbance=d)
        # the first call takes the solver; a second call prepares the step again
        if not prepared.solver:
            prepared = self.prepare(memory, k)
        plan = None
        if prepared.solver:
            solver = prepared.solver.pop()
            plan = self._solve(solver, k, x, updated)
            self._idle.append(solver)
        if plan is None:
            log.warning("%s: no plan for step %d, using the LQR command instead", self.dsys, k)
            failed = replace(updated, failures=memory.failures + 1)
            return self._by_lqr(k, x, error, failed.without_plan())
        return self._command(x, plan.inputs[0], error, self._with_block(plan, k))

    def _with_block(self, plan: Plan, k: int) -> Plan:
        """The plan with the name of the constraint that blocks its way to the reference, if any. A
        warning is logged when a plan becomes blocked.
        """
        nv, ahead, states = self.dsys.system.space.nv, self._ahead.states, plan.states
        aim = ahead[min(k + self.horizon, len(ahead) - 1)]
        travel, away = (
            float(np.linalg.norm(self.dsys.local(states[-1], x)[:nv])) for x in (states[0], aim)
        )
        first = 2 * self.dsys.nu  # the rows after the input limits
        # active rows at the end of the plan: lam > s
        forces = plan.arrays["lam"][-1, first:] - plan.arrays["s"][-1, first:]
        # the plan moves toward the reference, or no constraint is active
        if travel > STILL * away or not (forces > 0).any():
            return replace(plan, blocked="")
        name = self._problem.names[first + int(np.argmax(forces))]
        if not plan.blocked:
            log.warning(
                "%s: from step %d on, the constraint %r blocks the plan at a distance of %.2g "
                "from the reference, and no small change improves it. If the reference crosses "
                "the center of an obstacle, both ways around it are equally long: move the "
                "reference to one side, or plan around the obstacle with nh.optimize",
                self.dsys,
                k,
                name,
                away,
            )
        return replace(plan, blocked=name)

    def late(self, k: int, x: ArrayLike, memory: Plan) -> Command:
        """The command for step k at state x (nx) without solving a problem:
        `u_j - K_j local(x_j, x)` from the last plan, or the LQR command if the plan is older than
        half the horizon.
        """
        x, error = self._checked(k, x)
        if not self.is_following(k):
            return self._damping(x, error)
        d, j = self._estimate(k, x, memory), memory.since(k)
        memory = replace(memory, k=k, age=j, disturbance=d)
        if not memory.lasts(k):
            outdated = replace(memory, outdated=memory.outdated + 1)
            return self._by_lqr(k, x, error, outdated.without_plan())
        # u = u_j - K_j local(x_j, x)
        away = self.dsys.local(memory.states[j], x)
        u = memory.inputs[j] - matrix_vector_product(memory.gains[j], away)
        return self._command(x, u, error, replace(memory, late=memory.late + 1))

    def _checked(self, k: int, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """A state (nx) with the constraint impulses of its target, and its tracking error. Raises
        ValueError if the state is not finite.
        """
        x = np.array(x, dtype=float)
        if not np.isfinite(x).all():
            raise ValueError(f"{self.dsys}: the state at step {k} is not finite: {x.tolist()}")
        x = self.fallback.comparable(k, x)
        return x, self.dsys.local(self.target(k), x)

    def _command(self, x: np.ndarray, u: np.ndarray, error: np.ndarray, memory: Plan) -> Command:
        """The command u, clipped to the limits, with the predicted next state in its memory."""
        lower, upper = self._bounds
        u = u.clip(lower, upper)
        estimate = self.fallback.predict(x, u, DisturbanceEstimate(memory.disturbance))
        memory = replace(memory, predicted=estimate.predicted)
        return Command(u, saturated(u, self._bounds), error, memory)

    def _by_lqr(self, k: int, x: np.ndarray, error: np.ndarray, memory: Plan) -> Command:
        """The LQR command for the disturbance estimate in the memory."""
        estimate = DisturbanceEstimate(memory.disturbance)
        return self._command(x, self.fallback.command(k, x, estimate).u, error, memory)

    def _damping(self, x: np.ndarray, error: np.ndarray) -> Command:
        """The command after the end of a reference that ends in motion."""
        u = damping_or_idle(self.dsys, x)
        lower, upper = self._bounds
        clipped = u.clip(lower, upper)
        return Command(clipped, clipped != u, error)

    def _prepare(self, solver: Transcription, memory: Plan, k: int) -> bool:
        """Linearize and factorize the problem of step k. Returns whether this succeeded."""
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
        """Initialize the solver with the last plan, shifted to step k and the predicted state."""
        for name, array in memory.arrays.items():
            solver.array(name)[...] = array
        predicted = memory.predicted if memory.k == k - 1 else None
        if predicted is not None:
            # evaluate the sizes of the step's terms at this state, because its accuracy depends on
            # them
            solver.routines.unknowns(k, predicted, memory.inputs[memory.since(k)])
        # shift the plan by the steps since it was computed; the last values repeat
        outcome = solver.call("nh_ocp_shift", memory.since(k))
        if predicted is not None:
            solver.array("x")[0] = predicted
        return outcome

    def _from_reference(self, solver: Transcription, memory: Plan, k: int) -> int:
        """Solve the problem with the reference as the initial guess. The first state is the
        predicted state, if there is one.
        """
        guess = self._window(k)
        states = guess.states.copy()
        if memory.predicted is not None and memory.k == k - 1:
            states[0] = memory.predicted
        solver.record.tolerance, solver.record.widest = 10 * self.barrier, interior_point.WIDEST
        set_least_weights(solver)
        interior_point.start(solver, replace(guess, states=states))
        # soft rows start on the central path s lam = mu
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
        """The plan for a prepared step k from state x, or None if the solve fails."""
        solver.array("state")[...] = x
        # every predicted step is retract(f(x, u), (0, d))
        solver.array("drift_next")[self._momenta] = memory.disturbance
        self._disturb(solver, memory.disturbance)
        outcome = solver.call("nh_ocp_feedback", self.iterations)
        arrays = {name: solver.array(name).copy() for name in PLAN_ARRAYS}
        finite = all(np.isfinite(arrays[name]).all() for name in PLAN_ARRAYS if name != "weight")
        if outcome != Outcome.GOES_ON or not finite:
            return None
        return replace(memory, arrays=arrays, gains=solver.array("K").copy(), age=0)

    def _disturb(self, solver: Transcription, d: np.ndarray) -> None:
        """Write the estimated forces to the parameters of the disturbed constraints."""
        for first in self.parameters.disturbed:
            # force = change of momentum per step / h
            solver.array("w")[:, first : first + len(d)] = d / self.dsys.h

    def _window(self, k: int) -> Trajectory:
        """The reference over the horizon from node k. After the end of the reference, the last
        state and input repeat.
        """
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


def _move(some: list[Transcription], to: list[Transcription]) -> None:
    """Move all solvers from one list to the other."""
    while some:
        to.append(some.pop())


def _give_back(idle: list[Transcription]) -> None:
    """Give all solvers to the pool."""
    while idle:
        solvers.give(idle.pop())
