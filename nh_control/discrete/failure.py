"""The error of a step without a solution, with the loop or the contact at fault."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from nh_control.discrete.composition import ComposedEngine
from nh_control.discrete.engine import Engine
from nh_control.discrete.loop_closure import REMEDY as CLOSE_LOOPS
from nh_control.discrete.loop_closure import open_loops
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.state_map import StateMap
from nh_control.discrete.workspace import Workspace
from nh_control.mechanics import states
from nh_control.mechanics.contact_rows import ContactRows
from nh_control.numerics import newton

REMEDY = (
    "reduce h, raise the smoothing (with_smoothing), or start with open gaps; a Disc or Cylinder "
    "that lies flat has no lowest point, put an Ellipsoid or corners in its place"
)


def failure(
    dsys: StateMap, engine: Engine | ComposedEngine, status: int, work: Workspace
) -> StepFailed | ValueError:
    """The error of a step that ended with a status: its input is not finite, or it has no
    solution.
    """
    # the kernel of trees computes nominal masses on the same arrays
    x, u = work.x.copy(), work.u.copy()
    if not (np.isfinite(x).all() and np.isfinite(u).all()):
        return ValueError(
            f"{dsys}: state and input must be finite, got x = {x.tolist()}, u = {u.tolist()}"
        )
    try:
        states.configuration(dsys, dsys.system.space, dsys.configuration(x))
    except ValueError as problem:
        return problem
    iterations, error, residual = work.info
    r_z = engine.last_jacobian(work)
    conditioning = Conditioning.of(
        r_z, dsys.method.multipliers, dsys.nominal_masses, dsys.system.n_redundant
    )
    reason = newton.REASONS[status]
    about = residual, error, int(iterations), conditioning
    if status in (newton.OUTSIDE, newton.HALF_TURN):
        reason += outside_the_domain(dsys, work.x1) if status == newton.OUTSIDE else ""
        return StepFailed(str(dsys), dsys.h, reason, *about, solved=True)
    prescribed = u[len(u) - len(dsys.system.prescribed) :]
    if loops := open_loops(dsys.system, dsys.configuration(x), prescribed):
        return StepFailed(str(dsys), dsys.h, f"{loops} ({reason})", *about, remedy=CLOSE_LOOPS)
    contact = contact_at_fault(dsys, x) if status == newton.NO_IMPULSES else None
    if contact is None:
        return StepFailed(str(dsys), dsys.h, reason, *about)
    reason = f"{reason}; {contact}"
    return StepFailed(str(dsys), dsys.h, reason, *about, contact=contact.name, remedy=REMEDY)


def outside_the_domain(dsys: StateMap, x1: np.ndarray) -> str:
    """Where a step to the state x1 (nx) leaves the model's domain, as the end of a sentence; ""
    if it does not.
    """
    system, q, q1 = dsys.system, dsys.system.symbols[0], dsys.configuration(x1)
    domain = system.domain_at(q)
    values = system.value(domain, q1).reshape(-1)
    for i in map(int, np.flatnonzero(~(values > 0))):
        uses = [k for k in range(len(q1)) if ca.depends_on(domain[i], q[k])]
        at = ", ".join(f"{system.space.names[k]} = {q1[k]:.4g}" for k in uses)
        return f" (domain = {values[i]:.2g} at {at}, must be positive)"
    return ""


class ContactAtFault(NamedTuple):
    """A contact's `name`, its gap (m) at the step's start, and the speed (m/s) at which it
    opens there.
    """

    name: str
    gap: float
    opening: float

    def __str__(self) -> str:
        if not np.isfinite([self.gap, self.opening]).all():
            return f"contact {self.name!r} has no gap or no normal at the start of the step"
        return (
            f"contact {self.name!r}, the closest to touching, has the gap {self.gap:.3g} m and "
            f"opens at {self.opening:.3g} m/s at the start of the step"
        )


def contact_at_fault(dsys: StateMap, x: np.ndarray) -> ContactAtFault | None:
    """A contact without a gap or a normal at the state x (nx); otherwise the contact with the
    smallest gap at the end of a free step, `gap + h * opening`; None without contacts.
    """
    if not dsys.system.contacts:
        return None
    rows = ContactRows(dsys.system.mechanics)
    gaps, openings = _gaps(dsys, rows, x, dsys.velocity(x))
    wrong = ~np.isfinite(gaps + openings)
    reached = np.where(wrong, -np.inf, gaps + dsys.h * openings)
    i = int(np.argmin(reached))
    return ContactAtFault(rows.names[i], float(gaps[i]), float(openings[i]))


def _gaps(
    dsys: StateMap, rows: ContactRows, x: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gaps (n) of the contacts at a state and their rates (n)."""
    system, n = dsys.system, len(dsys.system.contacts)
    q, w = ca.SX.sym("q", system.space.nq), ca.SX.sym("w", system.space.nw)
    symbols = q, w, system.parameter_symbols
    made = ca.Function("gaps", [*symbols], [rows.gaps(q)[:n], rows.openings(q, w)])
    columns = made(x[: system.space.nq], v, system.parameter_values)
    gaps, openings = (np.asarray(column).reshape(-1) for column in columns)
    return gaps, openings
