"""A prepared optimal control problem, which can be solved from many states and guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, LimitsByName
from nh_control.control.guesses import require_fitting
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.transcription import Problem
from nh_control.control.optimum import Monitor, Optimum
from nh_control.discrete.step_routines import has_fast_hessian
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

HESSIANS = EXACT, GAUSS_NEWTON = ("exact", "gauss_newton")


class OptimalControl:
    """The problem of `nh.optimize`, prepared for many calls of `solve`: minimize a cost over
    trajectories of `steps` steps, subject to limits, constraints and an end condition.

    The arguments are those of `nh.optimize`. Functions, derivatives, sparsity patterns and
    workspaces depend only on the structure of a problem. They are created once and stored for the
    last 32 structures (workspaces up to a total of 64 MiB). Therefore, another `OptimalControl`
    with the same structure builds no CasADi graph, and neither does a call of `nh.optimize`. Two
    problems have the same structure if the following agree:

    - the system, except for the values of its parameters and of h;
    - the expressions of the cost and the constraints. Functions are equal if they have the same
      code and use the same numbers, arrays, functions, systems and spaces. Functions that use
      other objects, such as modules or instances of your classes, are called again, and the
      expressions that they return are compared;
    - which limits and bounds exist, the names and the number of constraints, whether there is an
      end state and which of its coordinates are fixed, whether the motion is periodic, and which
      quantities are free.

    Everything else consists of numbers: the first state, the guess, the bounds, the weights of
    constraints, the end state, and the parameters of the cost and the constraints. In
    `nh.quadratic_cost`, the reference and the weights are numbers, but the set of weights that are
    zero belongs to the structure. A number in the code of a cost belongs to the structure, while
    `Cost.parameters` are numbers. A different number of steps or threads, or different values of
    the system's parameters, require a new workspace but no new functions. The results do not
    depend on previously solved problems.

    Raises ValueError for unknown names, wrong shapes and numbers that are not finite.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        cost: Cost,
        steps: int,
        *,
        limits: LimitsByName | None = None,
        constraints: Sequence[Constraint] = (),
        end: ArrayLike | None = None,
        fixed: Sequence[str] | None = None,
        free: Sequence[str] = (),
        periodic: bool = False,
        hessian: str | None = None,
        threads: int = 1,
    ):
        if hessian not in (None, *HESSIANS):
            raise ValueError(f"unknown hessian {hessian!r}, choose one of {HESSIANS}")
        # exact curvature if it is cheap or if parameters are free
        by_default = has_fast_hessian(dsys) or bool({*free} & {*dsys.parameter_names})
        curved = by_default if hessian is None else hessian == EXACT
        self.problem = Problem(
            dsys,
            cost,
            steps,
            limits=limits or {},
            constraints=constraints,
            end=end,
            fixed=fixed,
            curved=curved,
            free=free,
            periodic=periodic,
            threads=threads,
        )
        self.problem.prepare()

    def __repr__(self) -> str:
        return f"OptimalControl({self.problem.dsys}, {self.problem.steps} steps)"

    @property
    def dsys(self) -> DiscreteSystem:
        """The system."""
        return self.problem.dsys

    @property
    def steps(self) -> int:
        """Number of steps of the trajectories."""
        return self.problem.steps

    def solve(
        self,
        x0: ArrayLike | None = None,
        guess: Trajectory | None = None,
        *,
        tolerance: float = 1e-8,
        max_iterations: int = 1000,
        barrier_start: float = 0.1,
        warm_start: Optimum | None = None,
        monitor: Monitor | None = None,
    ) -> Optimum:
        """The optimum near a `guess`, from the first state x0 (nx), by default the first state of
        the guess. The other arguments are those of `nh.optimize`.

        The default guess is the trajectory of `warm_start`, a previous optimum, or otherwise the
        constant state x0 without forces. Raises ValueError if all of them are missing, and if the
        guess belongs to a different system or has a different length. Raises StepFailed if a step
        along the guess fails.
        """
        if guess is None and warm_start is not None:
            guess = warm_start.trajectory
        guess = self._guess(x0, guess)
        warm = None if warm_start is None else warm_start.multipliers
        watch = monitor or (lambda iteration: None)
        return interior_point.solve(
            self.problem, guess, tolerance, max_iterations, barrier_start, warm, watch
        )

    def _guess(self, x0: ArrayLike | None, guess: Trajectory | None) -> Trajectory:
        d, steps = self.dsys, self.steps
        if guess is not None:
            require_fitting(d, guess)
            if len(guess) != steps:
                raise ValueError(f"{self}: the guess has {len(guess)} steps, expected {steps}")
        if x0 is None:
            if guess is None:
                raise ValueError(f"{self}: solve needs a first state x0, a guess or a warm_start")
            return guess
        x = np.array(x0, dtype=float)
        if x.shape != (d.nx,) or not np.isfinite(x).all():
            raise ValueError(
                f"{self}: x0 must be a finite state of shape ({d.nx},), got {x.tolist()}"
            )
        if guess is None:
            return Trajectory(d.h, np.tile(x, (steps + 1, 1)), np.tile(d.idle(x), (steps, 1)))
        # the solver closes the gap after the new first state
        return replace(guess, states=np.vstack([x, guess.states[1:]]))
