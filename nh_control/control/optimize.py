"""Trajectory optimization: a common function for the interior point method and the methods that
use the projection operator.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from nh_control.control import projected_descent
from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, LimitsByName
from nh_control.control.guesses import require_fitting
from nh_control.control.optimal.optimal_control import OptimalControl
from nh_control.control.optimum import Iteration, Monitor, Optimum, bar
from nh_control.control.weights import StateWeight
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

__all__ = ["METHODS", "Iteration", "Monitor", "Optimum", "bar", "optimize"]

INTERIOR_POINT = "interior_point"
METHODS = (INTERIOR_POINT, *projected_descent.METHODS)


def optimize(
    dsys: DiscreteSystem,
    cost: Cost,
    guess: Trajectory,
    Q: StateWeight | None = None,
    R: ArrayLike | None = None,
    method: str = INTERIOR_POINT,
    limits: LimitsByName | None = None,
    barrier_weights: Sequence[float] = (1.0, 1e-1, 1e-2, 1e-3, 1e-4),
    tolerance: float | None = None,
    max_iterations: int = 1000,
    monitor: Monitor | None = None,
    *,
    constraints: Sequence[Constraint] = (),
    end: ArrayLike | None = None,
    fixed: Sequence[str] | None = None,
    free: Sequence[str] = (),
    periodic: bool = False,
    hessian: str | None = None,
    barrier_start: float = 0.1,
    warm_start: Optimum | None = None,
    threads: int = 1,
) -> Optimum:
    """Minimize the cost over all trajectories that start at the first state of the guess and
    satisfy the `limits` of states and inputs, the `constraints`, and the end condition.

    If a state `end` (nx) is passed, the last state satisfies `local(end, x_N) = 0` in the tangent
    coordinates `fixed` (by default, all of them). If the motion is `periodic`, `end` is the first
    state. `free` names additional unknowns: tangent coordinates of the first state, physical
    parameters within their limits or declared bounds, and the step "h", for a free final time N h.
    Free parameters are at the end of the parameters w of costs and constraints. The system of the
    optimal trajectory has the optimal values of the free parameters.

    - "interior_point" (native, primal-dual, multiple shooting; Waechter and Biegler 2006, with the
      Riccati recursion) accepts guesses that are not feasible and closes the gaps between steps.
      `hessian` is "exact" or "gauss_newton", which omits the second derivatives of steps and
      constraints. "gauss_newton" is the default for multibody trees without free parameters; with
      free parameters, it hardly ever converges. The search has converged when all errors of the
      first-order conditions are below `tolerance` (1e-8). `barrier_start` is the initial barrier,
      and `warm_start` is the optimum of a similar problem. Limits and constraints on states apply
      at all nodes except the first. With several `threads`, the steps and their derivatives are
      computed in parallel, which helps with large robots; the results are bitwise identical.
      Ctrl-C returns the last iterate. If exact second derivatives show that the search reached a
      saddle, for example after a symmetric guess, the search continues from perturbed inputs; a
      warning and the `reason` of the optimum report this. Problems that differ only in numbers,
      such as the first state, the reference, the weights or the limits, are prepared only once
      (see `nh.OptimalControl`).
    - "newton", "quasi" and "steepest" (`projected_descent.descend`) need the LQR weights Q (ndx,
      ndx) and R (nu, nu), and replace `limits` by barriers with `barrier_weights`. The default
      tolerance is 1e-6.

    Raises ValueError for unknown names, wrong shapes and numbers that are not finite, and
    StepFailed if a step along the guess fails.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}, choose one of {METHODS}")
    if method != INTERIOR_POINT:
        require_fitting(dsys, guess)
        Q, R = _projection_weights(method, Q, R, constraints, end, free, periodic)
        return projected_descent.descend(
            dsys,
            cost,
            guess,
            Q,
            R,
            method,
            limits=limits,
            barrier_weights=barrier_weights,
            tolerance=1e-6 if tolerance is None else tolerance,
            max_iterations=max_iterations,
            monitor=monitor,
        )
    if Q is not None or R is not None:
        raise ValueError(
            f"the weights Q and R are for the methods {projected_descent.METHODS}; choose one of "
            f'these (method="newton"), or omit the weights'
        )
    problem = OptimalControl(
        dsys,
        cost,
        len(guess),
        limits=limits,
        constraints=constraints,
        end=end,
        fixed=fixed,
        free=free,
        periodic=periodic,
        hessian=hessian,
        threads=threads,
    )
    return problem.solve(
        guess=guess,
        tolerance=1e-8 if tolerance is None else tolerance,
        max_iterations=max_iterations,
        barrier_start=barrier_start,
        warm_start=warm_start,
        monitor=monitor,
    )


def _projection_weights(
    method: str,
    Q: StateWeight | None,
    R: ArrayLike | None,
    constraints: Sequence[Constraint],
    end: ArrayLike | None,
    free: Sequence[str],
    periodic: bool,
) -> tuple[StateWeight, ArrayLike]:
    """Q and R. Raises ValueError if they are missing, and for options of the interior point
    method.
    """
    if constraints or end is not None or free or periodic:
        raise ValueError(
            f"constraints, end, free and periodic are for {INTERIOR_POINT!r}, not {method!r}"
        )
    if Q is None or R is None:
        raise ValueError(f"method {method!r} needs the weights Q and R of its projection")
    return Q, R
