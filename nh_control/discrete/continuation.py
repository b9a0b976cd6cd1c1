"""A second attempt at a step that failed: continuation from the solutions of shorter steps."""

from __future__ import annotations

from collections.abc import Callable

from nh_control.discrete.workspace import Workspace
from nh_control.numerics import newton

FRACTIONS = 1 / 2, 1 / 4, 1 / 8
"""Fractions of h whose solutions are tried as starts of a step that fails, in this order."""


def solve_by_continuation(
    step: Callable[[Workspace], int],
    routine: Callable[[Workspace], int],
    status: int,
    work: Workspace,
) -> int:
    """The status of a routine (step, linearization or Hessian) that failed with `status`, after
    it was tried from the solutions of shorter steps.

    The unknowns are mean velocities: those of a shorter step are near the velocity of the state,
    while Newton from zero may not have led there. The kernel of trees has tried starts of its own
    before. Where no start leads to a solution the last attempt is the first one again, so that
    `info` and r_z describe it.
    """
    if status == newton.OUTSIDE or not len(work.z):
        return status
    if any(_solved_from(fraction, step, routine, work) for fraction in FRACTIONS):
        return newton.CONVERGED
    return routine(work)


def _solved_from(
    fraction: float,
    step: Callable[[Workspace], int],
    routine: Callable[[Workspace], int],
    work: Workspace,
) -> bool:
    """Whether a routine succeeds from the solution of this fraction of the step."""
    h = work.p[-1]
    try:
        work.p[-1], work.warm[:] = fraction * h, 0.0
        status = step(work)
        work.p[-1], work.warm[:] = h, 1.0
        return (status or routine(work)) == newton.CONVERGED
    finally:
        work.p[-1], work.warm[:] = h, 0.0
