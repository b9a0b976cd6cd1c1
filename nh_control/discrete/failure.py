"""The error that says why a step could not be solved."""

from __future__ import annotations

import numpy as np

from nh_control.discrete import contact_failure
from nh_control.discrete.composed import ComposedEngine
from nh_control.discrete.contact_failure import contact_at_fault
from nh_control.discrete.engine import Engine
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.state_map import StateMap
from nh_control.discrete.workspace import Workspace
from nh_control.mechanics import states
from nh_control.numerics import newton


def failure(
    dsys: StateMap, engine: Engine | ComposedEngine, status: int, work: Workspace
) -> StepFailed | ValueError:
    """The error of a step that ended with a status: its input is not finite, or it has no
    solution.
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
    r_z = engine.last_jacobian(work)
    conditioning = Conditioning.of(r_z, dsys.method.multipliers, dsys.nominal_masses)
    reason = newton.REASONS[status]
    about = residual, error, int(iterations), conditioning
    contact = contact_at_fault(dsys, work.x) if status == newton.NO_IMPULSES else None
    if contact is None:
        return StepFailed(str(dsys), dsys.h, reason, *about)
    reason = f"{reason}; {contact}"
    return StepFailed(
        str(dsys), dsys.h, reason, *about, contact=contact.name, remedy=contact_failure.REMEDY
    )
