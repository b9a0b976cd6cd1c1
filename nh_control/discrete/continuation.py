"""A second attempt at a step that failed: continuation from the solutions of shorter steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nh_control.discrete.workspace import Workspace
from nh_control.numerics import newton

FRACTIONS = 1 / 2, 1 / 4, 1 / 8
"""Fractions of h whose solutions are tried as starts of a step that fails, in this order."""
ALMOST, BETWEEN = 0.99, 8
"""With contacts also this fraction, for steps that fail although steps of almost their length do
not; and steps of growing length from a fraction to h, each from the solution of the one before.
"""


def solve_by_continuation(
    step: Callable[[Workspace], int],
    routine: Callable[[Workspace], int],
    status: int,
    work: Workspace,
    touches: bool,
) -> int:
    """The status of a routine (step, linearization or Hessian) that failed with `status`, after
    it was tried from the solutions of shorter steps; `touches`: of a system with contacts.

    The unknowns are mean velocities: those of a shorter step are near the velocity of the state,
    while Newton from zero may not have led there. Unknowns of contacts are impulses, too,
    which grow with the step: they are followed through steps of growing length. The kernel of
    trees has tried starts of its own before. Where no start leads to a solution the last attempt
    is the first one again, so that `info` and r_z describe it.
    """
    if status == newton.OUTSIDE or not len(work.z):
        return status
    starts = [(fraction, 1) for fraction in FRACTIONS]
    if touches:
        starts += [(fraction, BETWEEN) for fraction in (*FRACTIONS, ALMOST)]
    if any(_solved_from(*start, step, routine, work) for start in starts):
        return newton.CONVERGED
    return routine(work)


def _solved_from(
    fraction: float,
    between: int,
    step: Callable[[Workspace], int],
    routine: Callable[[Workspace], int],
    work: Workspace,
) -> bool:
    """Whether a routine succeeds from the solution of this fraction of the step, followed through
    this number of longer ones.
    """
    h = work.p[-1]
    try:
        work.warm[:] = newton.FROM_ZERO
        for length in np.geomspace(fraction * h, h, between + 1)[:-1]:
            work.p[-1] = length
            if step(work) != newton.CONVERGED:
                return False
            work.warm[:] = newton.FROM_CLOSE if between > 1 else newton.FROM_GUESS
        work.p[-1] = h
        return routine(work) == newton.CONVERGED
    finally:
        work.p[-1], work.warm[:] = h, newton.FROM_ZERO
