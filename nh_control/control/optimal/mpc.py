"""Model predictive control: tracking by real-time iterations of the interior point method."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint
from nh_control.control.costs import LimitsByName, quadratic_cost
from nh_control.control.damping import damping_or_idle
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.layout import Outcome
from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.control.tracking import Command, LqrTracker, run_steps
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics import compiled

log = logging.getLogger(__name__)

COLD_ITERATIONS = 50
"""Iterations from the reference, at most, where there is no plan."""
KEPT = ("x", "u", "z", "pi", "s", "t", "lam")
"""Arrays of a plan."""


@dataclass(frozen=True)
class Plan:
    """The memory of an `MpcTracker` between steps: the number k of the step that it was made for,
    states (N + 1, nx), inputs (N, nu) and their gains (N, nu, ndx); the arrays of the solver by
    name, the estimated disturbance (nrho) with the state predicted for the next step, and how
    many solves have failed so far. Without a plan k is -1.
    """

    k: int
    arrays: dict[str, np.ndarray]
    gains: np.ndarray
    disturbance: np.ndarray
    predicted: np.ndarray | None
    failures: int = 0

    @property
    def states(self) -> np.ndarray:
        """States of the plan."""
        return self.arrays["x"]

    @property
    def inputs(self) -> np.ndarray:
        """Inputs of the plan."""
        return self.arrays["u"]


class MpcTracker:
    """Model predictive tracker of a reference: at every step the inputs that minimize `1/2 sum
    dx^T Q dx + du^T R du` over the next `horizon_s` (s), within the `limits` of states and inputs
    (the system's by default) and the `constraints`, about the reference, with a terminal cost by
    LQR unless Qf is given. The first input is the command.

    A step takes one linearization and `iterations` interior-point steps at the `barrier` from the
    plan before (real-time iteration, Diehl, Bock and Schloeder 2005); the first one, and one after
    a failure, is solved from the reference. A solve that fails gives the command of the
    `LqrTracker` of the same weights, which a warning says, and `Plan.failures` counts. Give
    constraints a weight: hard ones that cannot be met fail. Their parameters are rows along the
    reference, and, if they are `disturbed`, the estimated forces. With `hold`
    and `disturbance_gain` as `LqrTracker`. `hessian` is "gauss_newton" or "exact".

    `command` is a pure function of its arguments. Raises ValueError for wrong shapes, a horizon
    shorter than two steps and fewer than one iteration, OSError without a C compiler.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        reference: Trajectory,
        Q: ArrayLike,
        R: ArrayLike,
        Qf: ArrayLike | None = None,
        *,
        horizon_s: float,
        limits: LimitsByName | None = None,
        constraints: Sequence[Constraint] = (),
        iterations: int = 3,
        hold: bool = False,
        excluded: Sequence[str] = (),
        disturbance_gain: float = 0.0,
        barrier: float = 1e-3,
        hessian: str = "gauss_newton",
    ):
        if compiled.compiler() is None:
            raise OSError(f"{dsys}: MpcTracker needs a C compiler; without one use LqrTracker")
        steps = round(horizon_s / dsys.h)
        if steps < 2 or iterations < 1 or not barrier > 0:
            raise ValueError(
                f"{dsys}: MpcTracker needs a horizon of at least 2 steps of {dsys.h:g} s, at "
                f"least 1 iteration and a barrier > 0, got {horizon_s} s, {iterations}, {barrier}"
            )
        if hessian not in ("gauss_newton", "exact"):
            raise ValueError(f"unknown hessian {hessian!r}, choose gauss_newton or exact")
        given = None if hold else Qf
        self.fallback = LqrTracker(
            *(dsys, reference, Q, R, given),
            disturbance_gain=disturbance_gain,
            hold=hold,
            excluded=excluded,
        )
        self.dsys, self.reference, self.hold = dsys, self.fallback.reference, hold
        self.iterations, self.horizon, self.barrier = iterations, steps, barrier
        self.disturbance_gain = disturbance_gain
        end = self.fallback.gains.P[-1 if hold else 0] if Qf is None else Qf
        self._options: dict[str, Any] = (
            dict(Q=Q, R=R, Qf=Qf, horizon_s=horizon_s, limits=limits, constraints=constraints)
            | dict(iterations=iterations, hold=hold, excluded=excluded, barrier=barrier)
            | dict(disturbance_gain=disturbance_gain, hessian=hessian)
        )
        bounds = dsys.system.input_bounds.tolist()
        limits = {n: (b[0], b[1]) for n, b in zip(dsys.inputs, bounds)} | dict(limits or {})
        self._disturbed: list[slice] = []
        self._table = self._parameters(constraints)
        windows = [
            c if c.parameters is None else replace(c, parameters=c.parameters[[0] * (steps + 1)])
            for c in constraints
        ]
        cost = quadratic_cost(dsys, self._window(0), Q, R, end)
        problem = Problem(*(dsys, cost, steps, limits, windows), curved=hessian == "exact")
        self._native, self._lock = Transcription(problem), Lock()
        self._bounds = problem.input_bounds

    def with_reference(self, reference: Trajectory) -> MpcTracker:
        """The same tracker on another reference."""
        return MpcTracker(self.dsys, reference, **self._options)

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
        x, error = np.array(x, dtype=float), self.error(k, x)
        if not self.is_following(k):
            u = damping_or_idle(self.dsys, x)
            clipped = u.clip(*self._bounds)
            return Command(clipped, clipped != u, error)
        d = self._estimate(x, memory)
        with self._lock:
            try:
                plan = self._solve(k, x, d, memory)
            except StepFailed as failure:
                plan = None
                log.warning("%s at step %d: %s", self.dsys, k, failure)
        failures = 0 if memory is None else memory.failures
        if plan is None:
            log.warning("%s: no plan for step %d, LQR's command instead", self.dsys, k)
            u = self.fallback.command(k, x).u.clip(*self._bounds)
            return Command(u, _saturated(u, self._bounds), error, self._no_plan(d, failures + 1))
        u = plan.inputs[0].clip(*self._bounds)
        plan = replace(plan, predicted=self._predict(x, u, d), failures=failures)
        return Command(u, _saturated(u, self._bounds), error, plan)

    def _solve(self, k: int, x: np.ndarray, d: np.ndarray, memory: Plan | None) -> Plan | None:
        """The plan of step k from state x under disturbance d, None where none is found."""
        native = self._native
        nv = self.dsys.system.space.nv
        native.record.mu = native.record.mu_end = self.barrier
        native.array("drift")[nv : nv + len(d)] = d
        native.array("w")[...] = self._table[
            np.arange(k, k + self.horizon + 1).clip(max=self._end)
        ]
        for columns in self._disturbed:
            native.array("w")[:, columns] = d / self.dsys.h
        if memory is None or memory.k != k - 1:
            outcome = self._from_reference(k, x)
        else:
            native.array("nu")[...] = 0.0
            for name, array in memory.arrays.items():
                native.array(name)[...] = array
            # the size of the step's terms, on which its accuracy depends, is that of this state
            native.routines.unknowns(k, x, memory.inputs[0])
            outcome = native.call("ocp_shift")
            native.array("x")[0] = x
            if outcome == Outcome.GOES_ON:
                outcome = native.call("ocp_prepare")
            if outcome == Outcome.GOES_ON:
                outcome = native.call("ocp_feedback", self.iterations)
        arrays = {name: native.array(name).copy() for name in KEPT}
        if outcome != Outcome.GOES_ON or not all(np.isfinite(a).all() for a in arrays.values()):
            return None
        return Plan(k, arrays, native.array("K").copy(), d, None)

    def _from_reference(self, k: int, x: np.ndarray) -> int:
        """Solve the problem with the reference as the guess."""
        native, guess = self._native, self._window(k)
        states = guess.states.copy()
        states[0] = x
        native.record.tolerance, native.record.widest = 10 * self.barrier, interior_point.WIDEST
        interior_point.start(native, replace(guess, states=states))
        for _ in range(COLD_ITERATIONS):
            outcome = native.call("ocp_iterate")
            if outcome != Outcome.GOES_ON:
                break
        return Outcome.GOES_ON if outcome in (Outcome.OPTIMAL, Outcome.GOES_ON) else outcome

    @property
    def _end(self) -> int:
        return len(self._table) - 1

    def _window(self, k: int) -> Trajectory:
        """The reference from node k on over the horizon; its last state and input repeat."""
        r, nodes = self.reference, np.arange(k, k + self.horizon + 1)
        states = r.states[nodes.clip(max=len(r))]
        return Trajectory(r.h, states, r.inputs[nodes[:-1].clip(max=len(r) - 1)])

    def _parameters(self, constraints: Sequence[Constraint]) -> np.ndarray:
        """Parameters of cost and constraints at the nodes of the reference."""
        r = self.reference
        inputs = np.vstack([r.inputs, r.inputs[-1:]])
        table = [np.hstack([r.states, inputs])]
        for c in constraints:
            if c.parameters is not None and len(c.parameters) not in (len(r), len(r) + 1):
                raise ValueError(
                    f"{self.dsys}: constraint {c.name!r} has parameters of {len(c.parameters)} "
                    f"nodes, the reference has {len(r) + 1}"
                )
            if c.parameters is not None:
                nodes = np.arange(len(r) + 1).clip(max=len(c.parameters) - 1)
                table.append(c.parameters[nodes])
            if c.disturbed:
                at = sum(part.shape[1] for part in table)
                table.append(np.zeros((len(r) + 1, self.dsys.system.nrho)))
                self._disturbed.append(slice(at, at + self.dsys.system.nrho))
        return np.hstack(table)

    def _estimate(self, x: np.ndarray, memory: Plan | None) -> np.ndarray:
        """The disturbance estimate, `d += gain local(predicted, x)_rho`."""
        n, nv = self.dsys.system.nrho, self.dsys.system.space.nv
        if memory is None:
            return np.zeros(n)
        if not self.disturbance_gain or memory.predicted is None:
            return memory.disturbance
        innovation = self.dsys.local(memory.predicted, x)[nv : nv + n]
        return memory.disturbance + self.disturbance_gain * innovation

    def _predict(self, x: np.ndarray, u: np.ndarray, d: np.ndarray) -> np.ndarray | None:
        """The next state, `retract(f(x, u), (0, d))`, if something is estimated."""
        if not self.disturbance_gain:
            return None
        change, nv = np.zeros(self.dsys.ndx), self.dsys.system.space.nv
        change[nv : nv + len(d)] = d
        return self.dsys.retract(self.dsys.step(x, u), change)

    def _no_plan(self, d: np.ndarray, failures: int) -> Plan:
        nothing = np.zeros((0, self.dsys.nu, self.dsys.ndx))
        return Plan(-1, {}, nothing, d, None, failures)


def _saturated(u: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Which inputs are as close to a limit as the barrier lets them."""
    lower, upper = bounds
    near = 1e-3 * np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    return (u <= lower + near) | (u >= upper - near)
