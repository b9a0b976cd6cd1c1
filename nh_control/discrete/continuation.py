"""Continuation, which solves a failed step again, starting from the solutions of other steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nh_control.discrete.workspace import Workspace
from nh_control.numerics import newton

FRACTIONS = 1 / 2, 1 / 4, 1 / 8
"""Fractions of h. Solutions of steps by these fractions are tried in order as initial guesses."""
ALMOST, BETWEEN = (0.99, 1.01), 8
"""With contacts, the fractions ALMOST are also tried, because some steps fail although slightly
shorter or longer ones do not. BETWEEN steps lead from a fraction to h; each starts from the
solution of the previous one.
"""


def solve_by_continuation(
    step: Callable[[Workspace], int],
    routine: Callable[[Workspace], int],
    status: int,
    work: Workspace,
    touches: bool,
) -> int:
    """Retry a routine (step, linearization or Hessian) that failed with `status`, starting from
    the solutions of other steps, and return its final status. `touches` says whether the system
    has contacts.

    The unknowns are mean velocities. In a shorter step, they are close to the velocity of the
    state, which Newton's method may not reach from zero. The unknowns of contacts include
    impulses, which grow with the step, so the solution is followed through steps between both
    lengths. Solutions for shorter steps may end in a fold before h, while those for longer steps
    continue to h. The kernel for trees has already tried other initial guesses. If no guess leads
    to a solution, the original attempt is repeated last, so `info` and r_z describe that attempt.
    """
    if status == newton.OUTSIDE or not len(work.z):
        return status
    # first the short steps alone, then homotopies in the step length
    starts = [(fraction, 1) for fraction in FRACTIONS]
    if touches:
        starts += [(fraction, BETWEEN) for fraction in (*FRACTIONS, *ALMOST)]
    if any(_solved_from(start, between, step, routine, work) for start, between in starts):
        return newton.CONVERGED
    return routine(work)


def _solved_from(
    fraction: float,
    between: int,
    step: Callable[[Workspace], int],
    routine: Callable[[Workspace], int],
    work: Workspace,
) -> bool:
    """Whether a routine succeeds when it starts from the solution of a step by this fraction of h,
    followed through `between` step lengths.
    """
    h = work.p[-1]
    try:
        work.warm[:] = newton.FROM_ZERO
        # z(h_0) -> z(h_1) -> ... -> z(h), with h_{i+1} / h_i constant
        for length in np.geomspace(fraction * h, h, between + 1)[:-1]:
            work.p[-1] = length
            if step(work) != newton.CONVERGED:
                return False
            work.warm[:] = newton.FROM_CLOSE if between > 1 else newton.FROM_GUESS
        work.p[-1] = h
        return routine(work) == newton.CONVERGED
    finally:
        work.p[-1], work.warm[:] = h, newton.FROM_ZERO
