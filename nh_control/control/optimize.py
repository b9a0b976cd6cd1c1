"""Trajectory optimization: one entry to the interior point method, to IPOPT where there is no
compiler, and to the projection operator by name.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from nh_control.control import projected_descent
from nh_control.control.collocation import collocate
from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, LimitsByName
from nh_control.control.guesses import require_fitting
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.transcription import Problem
from nh_control.control.optimum import Iteration, Monitor, Optimum, bar
from nh_control.discrete.step_routines import has_fast_hessian
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics import compiled

__all__ = ["METHODS", "Iteration", "Monitor", "Optimum", "bar", "optimize"]

log = logging.getLogger(__name__)

INTERIOR_POINT = "interior_point"
METHODS = (INTERIOR_POINT, *projected_descent.METHODS)
HESSIANS = ("exact", "gauss_newton")


def optimize(
    dsys: DiscreteSystem,
    cost: Cost,
    guess: Trajectory,
    Q: ArrayLike | None = None,
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
) -> Optimum:
    """Minimize the cost over the trajectories that start at the guess's first state, within
    `limits` of states and inputs and `constraints`, with `local(end, x_N) = 0` in the tangent
    coordinates `fixed` (all by default) if there is a state `end` (nx), the first one where the
    motion is `periodic`. The first state is the guess's but for its tangent coordinates `free`,
    which are unknowns, too. So are physical parameters and the step "h" among `free`, within
    their `limits` or declared bounds: a free h is a free final time N h. Costs and constraints
    have them at the end of their parameters w; the model of the optimum's trajectory has them.

    By the "interior_point" method (native, primal-dual, multiple shooting; Waechter and Biegler
    2006 on the Riccati recursion) the guess need not be feasible: the gaps between its states and
    steps close along the way. Its `hessian` is "exact", or "gauss_newton" without the second
    derivatives of steps and constraints, the default for trees of bodies unless there are free
    parameters, with which it hardly converges. It converges when all
    errors of the conditions of first order are below the `tolerance` (1e-8); `barrier_start` is
    the first barrier, and `warm_start` an optimum of a similar problem. Limits and constraints
    of states hold from the second node on. Ctrl-C ends it with the last iterate. Without a C
    compiler IPOPT solves the same problem (`collocate`), as the log says.

    "newton", "quasi" and "steepest" are methods of `projected_descent.descend`, with the LQR
    weights Q (ndx, ndx), R (nu, nu), for `limits` with `barrier_weights` alone; their default
    tolerance is 1e-6. Raises ValueError for unknown names, wrong shapes and numbers that are not
    finite, and StepFailed for a guess whose steps fail.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}, choose one of {METHODS}")
    require_fitting(dsys, guess)
    if method != INTERIOR_POINT:
        if Q is None or R is None:
            raise ValueError(f"method {method!r} needs the weights Q and R of its projection")
        if constraints or end is not None or free or periodic:
            raise ValueError(
                f"constraints, end, free and periodic are for {INTERIOR_POINT!r}, not {method!r}"
            )
        return projected_descent.descend(
            *(dsys, cost, guess, Q, R, method, limits, barrier_weights),
            *(1e-6 if tolerance is None else tolerance, max_iterations, monitor),
        )
    if Q is not None or R is not None:
        raise ValueError(
            f"the weights Q and R are for the methods {projected_descent.METHODS}; name one "
            f'(method="newton"), or leave them out'
        )
    if hessian not in (None, *HESSIANS):
        raise ValueError(f"unknown hessian {hessian!r}, choose one of {HESSIANS}")
    tolerance, limits = 1e-8 if tolerance is None else tolerance, limits or {}
    if compiled.compiler() is None and not (free or periodic):
        log.warning("%s: without a C compiler IPOPT solves the problem (`collocate`)", dsys)
        return collocate(
            *(dsys, cost, guess, end, fixed, limits, tolerance, max_iterations, barrier_start),
            constraints=constraints,
        )
    given = limits, constraints, end, fixed, hessian != "gauss_newton", free, periodic
    problem = Problem(dsys, cost, len(guess), *given)
    if hessian is None and not (has_fast_hessian(dsys) or problem.states.parameters):
        problem = replace(problem, curved=False)
    warm = None if warm_start is None else warm_start.multipliers
    watch = monitor or (lambda iteration: None)
    options = tolerance, max_iterations, barrier_start, warm, watch
    return interior_point.solve(problem, guess, *options)
