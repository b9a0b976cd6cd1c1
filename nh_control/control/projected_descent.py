"""Trajectory optimization with the projection operator (Hauser and Saccon), [johnson2014 VIII-A,
reference 23].

Each step changes a feasible trajectory xi = (x, u) along a tangent zeta = (z, v) with
`z' = A z + B v`. The closed loop under LQR gains projects the changed trajectory back,
`xi <- P(xi + gamma zeta)`. All tangents are in local coordinates of the state space at the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import lqr
from nh_control.control.costs import (
    CompiledCost,
    Cost,
    Expansion,
    LimitsByName,
    barrier_cost,
    compile_cost,
    limit_excess,
)
from nh_control.control.linear_quadratic import Tangent, solve_linear_quadratic
from nh_control.control.optimum import Iteration, Monitor, Optimum
from nh_control.control.projection import follow_with_gains
from nh_control.control.weights import StateWeight, checked_weights, state_weights
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

METHODS = ("newton", "quasi", "steepest")
ARMIJO, SHRINK, MAX_TRIALS = 1e-5, 0.7, 40
"""Backtracking, as in the paper's software: the sufficient fraction of the predicted decrease, the
ratio of successive step lengths, and the maximum number of trials.
"""

RELAXED, STEEPEST_RELAXED = 0.1, 1e-7
"""First and last value of the slack below which a barrier with weight 1 is quadratic."""


Step: TypeAlias = tuple[float, Trajectory, float]
"""The length of a step, and the trajectory and the cost after it."""


def descend(
    dsys: DiscreteSystem,
    cost: Cost,
    guess: Trajectory,
    Q: StateWeight,
    R: ArrayLike,
    method: str = "newton",
    limits: LimitsByName | None = None,
    barrier_weights: Sequence[float] = (1.0, 1e-1, 1e-2, 1e-3, 1e-4),
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    monitor: Monitor | None = None,
) -> Optimum:
    """Minimize the cost over all feasible trajectories that start at the first state of the guess.

    The guess need not be feasible, because it is projected. Q (see `weights.StateWeight`) and R
    (nu, nu) are the LQR weights of the projection and the metric of steepest descent. A descent
    direction zeta minimizes `DJ zeta + 1/2 W(zeta, zeta)` over the tangents. For "newton",
    `W = D2 (J o P)`, which follows exactly from the adjoint `q = (A - B K)^T q' + J_x - K^T J_u`
    and `dsys.hessian(x, u, q')`. For "quasi", W is the Hessian of the cost alone, and for
    "steepest" it is diag(Q, R). If the quadratic problem is not convex, or if no step along the
    direction decreases the cost, the next kind in this list is used. Each iteration records its
    kind. Step lengths gamma = 1, 0.7, 0.49, ... are tried until
    `J(P(xi + gamma zeta)) <= J(xi) + 1e-5 gamma DJ zeta` (Armijo). The optimization converges when
    `-DJ zeta <= tolerance` (in units of the cost).

    A relaxed logarithmic barrier imposes the `limits` of states and inputs. One optimization is
    run for each of the `barrier_weights`, which should decrease. The cost of the result does not
    include the barrier. Raises ValueError for unknown names and weights, and StepFailed if the
    guess cannot be projected.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}, choose one of {METHODS}")
    if not len(barrier_weights) or not min(barrier_weights) > 0:
        raise ValueError(f"barrier_weights must be positive, got {barrier_weights}")
    _, R, _ = checked_weights(dsys, guess.states, Q, R)
    descent = _Descent(
        dsys,
        Q,
        R,
        METHODS[METHODS.index(method) :],
        tolerance,
        max_iterations,
        monitor or (lambda iteration: None),
    )
    start = follow_with_gains(dsys, guess, lqr.finite_horizon(dsys, guess, Q, R, gap=np.inf).K)
    if not limits:
        return descent.run(compile_cost(dsys, cost), start)
    return _within_limits(descent, cost, start, limits, barrier_weights)


def _within_limits(
    descent: _Descent,
    cost: Cost,
    start: Trajectory,
    limits: LimitsByName,
    weights: Sequence[float],
) -> Optimum:
    """One optimization for each barrier weight. It is repeated with a smaller relaxation of the
    barrier until the result is within the limits.
    """
    dsys, relaxed = descent.dsys, RELAXED / weights[0]
    history: tuple[Iteration, ...] = ()
    compiled = compile_cost(
        dsys, cost + barrier_cost(dsys, limits, weights[0], RELAXED, len(start))
    )

    def outcome(converged: bool, reason: str) -> Optimum:
        return Optimum(
            start, compile_cost(dsys, cost)(start.states, start.inputs), converged, reason, history
        )

    for weight in weights:
        outside = np.inf
        while outside > 0:
            wall = barrier_cost(dsys, limits, weight, relaxed * weight, len(start))
            result = descent.run(
                replace(compiled, parameters=(cost + wall).parameters), start, len(history)
            )
            start, history = result.trajectory, history + result.history
            # repeat with a steeper barrier while limits are exceeded
            outside = limit_excess(dsys, limits, start)
            if outside > 0 and relaxed < STEEPEST_RELAXED:
                return outcome(
                    False,
                    f"limits are exceeded by {outside:.1e} of their distance; allow more time, or "
                    f"start from a closer guess",
                )
            relaxed = relaxed / 10 if outside > 0 else relaxed
    return outcome(result.converged, result.reason)


@dataclass(frozen=True)
class _Descent:
    """The descent iteration for a compiled cost."""

    dsys: DiscreteSystem
    Q: StateWeight
    R: np.ndarray
    kinds: tuple[str, ...]
    tolerance: float
    max_iterations: int
    monitor: Monitor

    def run(self, cost: CompiledCost, start: Trajectory, first: int = 0) -> Optimum:
        """Iterate from a feasible trajectory; `first` is the number of the first iteration."""
        trajectory, value, history = start, cost(start.states, start.inputs), []
        for number in range(first, first + self.max_iterations):
            kind, slope, step = self._next(cost, trajectory, value)
            length = 0.0 if step is None else step[0]
            history.append(Iteration(number, value, -slope, kind if length else "", length))
            self.monitor(history[-1])
            if step is None:
                # -DJ zeta <= tolerance
                converged = abs(slope) <= self.tolerance
                reason = (
                    f"the descent is below {self.tolerance:g}"
                    if converged
                    else "no step along any direction decreases the cost"
                )
                if converged and kind != self.kinds[0]:
                    reason += (
                        f", but the model of {self.kinds[0]} is not convex here; this may be a "
                        f"saddle"
                    )
                return Optimum(trajectory, value, converged, reason, tuple(history))
            _, trajectory, value = step
        return Optimum(
            trajectory,
            value,
            False,
            f"no convergence in {self.max_iterations} iterations",
            tuple(history),
        )

    def _next(
        self, cost: CompiledCost, trajectory: Trajectory, value: float
    ) -> tuple[str, float, Step | None]:
        """The kind of the next step, its slope DJ zeta, and the step, or None instead of the step
        if no step is necessary or possible.
        """
        # closed loop of the projection, with the gains K of the LQR problem along the trajectory
        A, B = lqr.linearize_along(self.dsys, trajectory)
        Q = state_weights(self.dsys, "Q", self.Q, trajectory.states)
        K = lqr.riccati(A, B, Q, self.R, Q[-1]).K
        model = cost.expand(trajectory.states, trajectory.inputs)
        for kind in self.kinds:
            zeta = self._direction(kind, trajectory, A, B, K, model, Q)
            if zeta is None:
                continue
            z, v = zeta
            slope = model.slope(z, v)
            step = (
                self._search(cost, trajectory, value, zeta, slope, K)
                if slope < -self.tolerance
                else None
            )
            if step is not None or abs(slope) <= self.tolerance:
                break
        return kind, slope, step

    def _direction(
        self,
        kind: str,
        trajectory: Trajectory,
        A: np.ndarray,
        B: np.ndarray,
        K: np.ndarray,
        model: Expansion,
        Q: np.ndarray,
    ) -> Tangent | None:
        """The tangent (z, v) that minimizes the quadratic model of the given kind, or None if the
        model is not convex.
        """
        from scipy.linalg import block_diag  # takes long to import

        hessians, end = model.hessians, model.end_hessian
        if kind == "steepest":
            # metric diag(Q, R)
            hessians, end = np.array([block_diag(q, self.R) for q in Q[:-1]]), Q[-1]
        elif kind == "newton":
            # D2 (J o P) = D2 J + q' . D2 f
            hessians = hessians + self._curvature(trajectory, A, B, K, model)
        return solve_linear_quadratic(A, B, model.gradients, hessians, model.end_gradient, end)

    def _curvature(
        self, trajectory: Trajectory, A: np.ndarray, B: np.ndarray, K: np.ndarray, model: Expansion
    ) -> np.ndarray:
        """`q' . D2 f` at every step, (N, ndx + nu, ndx + nu), with the adjoint q of the
        projection, `q = (A - B K)^T q' + J_x - K^T J_u`, computed backward from q_N = J_x(x_N).
        """
        n, q, curvature = self.dsys.ndx, model.end_gradient, np.empty_like(model.hessians)
        for k in reversed(range(len(A))):
            x, u = trajectory.states[k], trajectory.inputs[k]
            # second derivatives of f_k, contracted with the adjoint q'
            curvature[k] = self.dsys.hessian(x, u, q)
            q = (
                A[k].T @ q
                + model.gradients[k, :n]
                - K[k].T @ (B[k].T @ q + model.gradients[k, n:])
            )
        return curvature

    def _search(
        self,
        cost: CompiledCost,
        trajectory: Trajectory,
        value: float,
        zeta: Tangent,
        slope: float,
        K: np.ndarray,
    ) -> Step | None:
        """The longest of the shortened steps with a sufficient decrease; None if there is none."""
        # Armijo's rule for P(xi + gamma zeta), gamma = 1, 0.7, 0.49, ...
        z, v = zeta
        for shortened in range(MAX_TRIALS):
            length = SHRINK**shortened
            states = np.array(
                [
                    trajectory.states[0],
                    *(
                        self.dsys.retract(x, length * dx)
                        for x, dx in zip(trajectory.states[1:], z[1:])
                    ),
                ]
            )
            try:
                trial = follow_with_gains(
                    self.dsys,
                    replace(trajectory, states=states, inputs=trajectory.inputs + length * v),
                    K,
                )
            except StepFailed:
                continue
            trial_value = cost(trial.states, trial.inputs)
            if trial_value <= value + ARMIJO * length * slope:
                return length, trial, trial_value
        return None
