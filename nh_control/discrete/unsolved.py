"""A step that Newton's method did not solve from its usual start: other starts, and the error that
says why nothing helped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nh_control.discrete.composed import ComposedEngine
from nh_control.discrete.engine import Engine, Workspace
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.system_states import SystemStates
from nh_control.mechanics import states
from nh_control.numerics import newton

STARTS = 1 / 2, 1 / 4, 1 / 8
"""Parts of h whose solutions are tried as starts, in this order."""


def solved_elsewhere(
    engine: Engine | ComposedEngine,
    routine: Callable[[Workspace], int],
    status: int,
    work: Workspace,
) -> bool:
    """Whether a routine of the engine, which ended with a status, finds a solution from that of a
    shorter step, whose mean velocities are near those of the state; a step from zero, as all
    begin, may not have led there. The kernel of trees has tried other starts of its own before
    (`native/tree_newton.c`).
    """
    if status == newton.OUTSIDE or isinstance(engine, ComposedEngine) or not len(work.z):
        return False
    return any(_solved_from(part, engine, routine, work) for part in STARTS)


def _solved_from(
    part: float, engine: Engine, routine: Callable[[Workspace], int], work: Workspace
) -> bool:
    h = work.p[-1]
    work.p[-1] = part * h
    status = engine.step(work)
    work.p[-1], work.warm[:] = h, 1.0
    status = status or routine(work)
    work.warm[:] = 0.0
    return status == newton.CONVERGED


def failure(
    dsys: SystemStates, engine: Engine | ComposedEngine, status: int, work: Workspace
) -> StepFailed | ValueError:
    """Why a step of a discrete system ended with a status: its input is none, or none could be
    found.
    """
    if not (np.isfinite(work.x).all() and np.isfinite(work.u).all()):
        return ValueError(
            f"{dsys}: state and input must be finite, got x = {work.x.tolist()}, u = "
            f"{work.u.tolist()}"
        )
    try:
        states.configuration(dsys, dsys.system.space, dsys.configuration(work.x))
    except ValueError as problem:
        return problem
    iterations, error, residual = work.info
    conditioning = Conditioning.of(engine.last_jacobian(work), dsys.method.multipliers)
    reason = newton.REASONS[status]
    return StepFailed(str(dsys), dsys.h, reason, residual, error, int(iterations), conditioning)
