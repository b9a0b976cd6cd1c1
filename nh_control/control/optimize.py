"""Trajectory optimization: one entry to the interior point method, and to the projection operator
by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from nh_control.control import projected_descent
from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, LimitsByName
from nh_control.control.guesses import require_fitting
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.transcription import Problem
from nh_control.control.optimum import Iteration, Monitor, Optimum, bar
from nh_control.control.weights import StateWeight
from nh_control.discrete.step_routines import has_fast_hessian
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

__all__ = ["METHODS", "Iteration", "Monitor", "Optimum", "bar", "optimize"]

INTERIOR_POINT = "interior_point"
METHODS = (INTERIOR_POINT, *projected_descent.METHODS)
HESSIANS = ("exact", "gauss_newton")


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
    """Minimize the cost over the trajectories that start at the guess's first state and keep
    `limits` of states and inputs, `constraints`, and the end condition.

    With a state `end` (nx), or if the motion is `periodic` with the first state, the last state
    satisfies `local(end, x_N) = 0` in the tangent coordinates `fixed` (all by default). `free`
    names further unknowns: tangent coordinates of the first state, physical parameters within
    their limits or declared bounds, and the step "h", which is a free final time N h. Costs and
    constraints have free parameters at the end of their parameters w; the optimum's trajectory has
    a system with the optimal values.

    - "interior_point" (native, primal-dual, multiple shooting; Waechter and Biegler 2006 on the
      Riccati recursion) takes guesses that are not feasible: it closes the gaps between states and
      steps. `hessian` is "exact" or "gauss_newton", which leaves out the second derivatives of
      steps and constraints. The default for trees of bodies is "gauss_newton", unless parameters
      are free: with these it hardly converges. All errors of the first-order conditions are below
      `tolerance` (1e-8) at the end. `barrier_start` is the first barrier, `warm_start` an optimum
      of a similar problem. Limits and constraints of states hold from the second node on. Several
      `threads` share the steps and their derivatives, which pays for large robots; the results are
      the same to the bit. Ctrl-C returns the last iterate.
    - "newton", "quasi" and "steepest" (`projected_descent.descend`) need the LQR weights Q (ndx,
      ndx) and R (nu, nu), and treat `limits` by barriers with `barrier_weights`. The default
      tolerance is 1e-6.

    Raises ValueError for unknown names, wrong shapes and numbers that are not finite, StepFailed
    for a guess with a step that fails.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}, choose one of {METHODS}")
    require_fitting(dsys, guess)
    if method != INTERIOR_POINT:
        weights = _projection_weights(method, Q, R, constraints, end, free, periodic)
        return projected_descent.descend(
            *(dsys, cost, guess, *weights, method, limits, barrier_weights),
            *(1e-6 if tolerance is None else tolerance, max_iterations, monitor),
        )
    _require_interior_point_options(Q, R, hessian)
    tolerance, limits = 1e-8 if tolerance is None else tolerance, limits or {}
    terms = limits, constraints, end, fixed, hessian != "gauss_newton", free, periodic, threads
    problem = Problem(dsys, cost, len(guess), *terms)
    if hessian is None and not (has_fast_hessian(dsys) or problem.states.parameters):
        problem = replace(problem, curved=False)
    warm = None if warm_start is None else warm_start.multipliers
    watch = monitor or (lambda iteration: None)
    options = tolerance, max_iterations, barrier_start, warm, watch
    return interior_point.solve(problem, guess, *options)


def _projection_weights(
    method: str,
    Q: StateWeight | None,
    R: ArrayLike | None,
    constraints: Sequence[Constraint],
    end: ArrayLike | None,
    free: Sequence[str],
    periodic: bool,
) -> tuple[StateWeight, ArrayLike]:
    """Q and R; raises ValueError without them, and for options of the interior point method."""
    if constraints or end is not None or free or periodic:
        raise ValueError(
            f"constraints, end, free and periodic are for {INTERIOR_POINT!r}, not {method!r}"
        )
    if Q is None or R is None:
        raise ValueError(f"method {method!r} needs the weights Q and R of its projection")
    return Q, R


def _require_interior_point_options(
    Q: StateWeight | None, R: ArrayLike | None, hessian: str | None
) -> None:
    if Q is not None or R is not None:
        raise ValueError(
            f"the weights Q and R are for the methods {projected_descent.METHODS}; name one "
            f'(method="newton"), or leave them out'
        )
    if hessian not in (None, *HESSIANS):
        raise ValueError(f"unknown hessian {hessian!r}, choose one of {HESSIANS}")
