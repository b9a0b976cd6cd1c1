"""Trajectory optimization by the projection operator (Hauser and Saccon), [johnson2014 VIII-A,
reference 23].

A feasible trajectory xi = (x, u) is moved along a tangent zeta = (z, v), `z' = A z + B v`, and
projected back by the closed loop under LQR gains,
`xi <- P(xi + gamma zeta)`. Everything is in the local coordinates of the state space at the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

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
"""Backtracking: the part of the predicted decrease that is enough, the factor of the next trial,
and their number, as in the paper's software.
"""

RELAXED, STEEPEST_RELAXED = 0.1, 1e-7
"""The slack below which the barrier is quadratic, first and last value, for a barrier of weight 1.
"""


Step: TypeAlias = tuple[float, Trajectory, float]
"""Length of a step, trajectory and cost after it."""


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
    """Minimize the cost over the feasible trajectories that start at the guess's first state.

    The guess need not be feasible: it is projected. Q and R (nu, nu) are the LQR weights, see
    `weights.StateWeight`, of the projection and the metric of steepest descent. A descent
    direction zeta minimizes `DJ zeta + 1/2 W(zeta, zeta)` over the tangents. For "newton"
    `W = D2 (J o P)`, exact by the
    adjoint `q = (A - B K)^T q' + J_x - K^T J_u` and `dsys.hessian(x, u, q')`; for "quasi" W is the
    Hessian of the cost alone; for "steepest" it is diag(Q, R). If such a problem is not convex, or
    no step along its direction decreases the cost, the next kind is used; each iteration says
    which. Step lengths gamma = 1, 0.7, 0.49, ... are tried until
    `J(P(xi + gamma zeta)) <= J(xi) + 1e-5 gamma DJ zeta` (Armijo). The optimization converges when
    `-DJ zeta <= tolerance` (in units of the cost).

    A relaxed logarithmic barrier keeps the `limits` of states and inputs; its weight decreases
    along `barrier_weights`, with one optimization each. The cost of the result does not include
    it. Raises
    ValueError for unknown names and weights, and StepFailed if the guess cannot be projected.
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
    """One optimization for each barrier weight; it is repeated with a smaller relaxation of the
    barrier until its result is within the limits.
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
            outside = limit_excess(dsys, limits, start)
            if outside > 0 and relaxed < STEEPEST_RELAXED:
                return outcome(
                    False,
                    f"limits are exceeded by {outside:.1e} of their distance: allow more time, "
                    f"or start closer",
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
        """Iterate from a feasible trajectory, numbering iterations from `first`."""
        trajectory, value, history = start, cost(start.states, start.inputs), []
        for number in range(first, first + self.max_iterations):
            kind, slope, step = self._next(cost, trajectory, value)
            length = 0.0 if step is None else step[0]
            history.append(Iteration(number, value, -slope, kind if length else "", length))
            self.monitor(history[-1])
            if step is None:
                converged = abs(slope) <= self.tolerance
                reason = (
                    f"the descent is below {self.tolerance:g}"
                    if converged
                    else "no step along any direction decreases the cost"
                )
                if converged and kind != self.kinds[0]:
                    reason += (
                        f", but the model of {self.kinds[0]} is not convex here: this may "
                        f"be a saddle"
                    )
                return Optimum(trajectory, value, converged, reason, tuple(history))
            _, trajectory, value = step
        return Optimum(
            trajectory,
            value,
            False,
            f"{self.max_iterations} iterations were not enough",
            tuple(history),
        )

    def _next(
        self, cost: CompiledCost, trajectory: Trajectory, value: float
    ) -> tuple[str, float, Step | None]:
        """Kind of the next step, the slope DJ zeta, and (step length, trajectory, cost) after it,
        None where none is needed or possible.
        """
        # the closed loop that projects: gains K of the LQR problem along the trajectory
        A, B = lqr.linearize_along(self.dsys, trajectory)
        Q = state_weights(self.dsys, "Q", self.Q, trajectory.states)
        K = lqr.riccati(A, B, Q, self.R, Q[-1]).K
        model = cost.expand(trajectory.states, trajectory.inputs)
        for kind in self.kinds:
            zeta = self._direction(kind, trajectory, A, B, K, model, Q)
            if zeta is None:
                continue
            slope = model.slope(*zeta)
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
        """Tangent (z, v) that minimizes the quadratic model of this kind; None where the model is
        not convex.
        """
        hessians, end = model.hessians, model.end_hessian
        if kind == "steepest":
            hessians, end = np.array([block_diag(q, self.R) for q in Q[:-1]]), Q[-1]
        elif kind == "newton":
            hessians = hessians + self._curvature(trajectory, A, B, K, model)
        return solve_linear_quadratic(A, B, model.gradients, hessians, model.end_gradient, end)

    def _curvature(
        self, trajectory: Trajectory, A: np.ndarray, B: np.ndarray, K: np.ndarray, model: Expansion
    ) -> np.ndarray:
        """`q' . D2 f` at every step, (N, ndx + nu, ndx + nu), with the adjoint q of the
        projection, `q = (A - B K)^T q' + J_x - K^T J_u` backwards from q_N = J_x(x_N).
        """
        n, q, curvature = self.dsys.ndx, model.end_gradient, np.empty_like(model.hessians)
        for k in reversed(range(len(A))):
            x, u = trajectory.states[k], trajectory.inputs[k]
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
        """(step length, trajectory, cost) of the longest of the shortened steps with a sufficient
        decrease, None if there is none.
        """
        # Armijo's rule: xi + gamma zeta, projected by the closed loop, gamma = 1, 0.7, 0.49, ...
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
