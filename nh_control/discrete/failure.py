"""The error for a step without a solution. It names the loop or the contact at fault."""

from __future__ import annotations

from functools import partial
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
    "that lies flat has no lowest point: replace it by an Ellipsoid or by corners"
)


SHORTER = "reduce h (the longest step with a solution from here is {:.2g} s)"
BISECTIONS = 4
"""Number of bisections between a step that has a solution and a step of twice its length that has
none.
"""


def failure(
    dsys: StateMap, engine: Engine | ComposedEngine, status: int, work: Workspace
) -> StepFailed | ValueError:
    """The error for a step that ended with this status, because its input is not finite or because
    the step has no solution.
    """
    # copies, because the kernel of trees computes nominal masses on the same arrays
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
    failed = partial(
        StepFailed,
        str(dsys),
        dsys.h,
        residual=residual,
        error=error,
        iterations=int(iterations),
        conditioning=conditioning,
    )
    if status in (newton.OUTSIDE, newton.HALF_TURN):
        reason += outside_the_domain(dsys, work.x1) if status == newton.OUTSIDE else ""
        return failed(reason, solved=True)
    # likely causes, most specific first: open loops, contacts, a step that is too long
    prescribed = u[len(u) - len(dsys.system.prescribed) :]
    if loops := open_loops(dsys.system, dsys.configuration(x), prescribed):
        return failed(f"{loops} ({reason})", remedy=CLOSE_LOOPS)
    contact = contact_at_fault(dsys, x) if status == newton.NO_IMPULSES else None
    if contact is None:
        longest = 0.0
        if status in (newton.STALLED, newton.EXHAUSTED):
            longest = longest_step(engine, work, x)
        if not longest:
            return failed(reason)
        return failed(reason, remedy=SHORTER.format(longest))
    reason = f"{reason}; {contact}"
    return failed(reason, contact=contact.name, remedy=REMEDY)


def longest_step(engine: Engine | ComposedEngine, work: Workspace, x: np.ndarray) -> float:
    """The length (s) of the longest step from the state x (nx) under work.u that has a solution,
    found by halving and bisection below the failed step h = work.p[-1]; 0 if no step above
    h / 1000 has one.
    """
    h, solved, failed = work.p[-1], 0.0, work.p[-1]

    def has_solution(length: float) -> bool:
        work.x[:], work.p[-1], work.warm[:] = x, length, newton.FROM_ZERO
        return engine.step(work) == newton.CONVERGED

    try:
        while not solved and failed > h / 1000:
            # halve until a step has a solution, then bisect
            half = failed / 2
            solved, failed = (half, failed) if has_solution(half) else (0.0, half)
        for _ in range(BISECTIONS if solved else 0):
            middle = (solved + failed) / 2
            solved, failed = (middle, failed) if has_solution(middle) else (solved, middle)
    finally:
        work.x[:], work.p[-1], work.warm[:] = x, h, newton.FROM_ZERO
    return solved


def outside_the_domain(dsys: StateMap, x1: np.ndarray) -> str:
    """The last part of a sentence that says where a step to the state x1 (nx) leaves the model's
    domain; "" if the step stays inside.
    """
    system, q, q1 = dsys.system, dsys.system.symbols[0], dsys.configuration(x1)
    domain = system.domain_at(q)
    values = system.value(domain, q1).reshape(-1)
    for i in map(int, np.flatnonzero(~(values > 0))):
        # name only the coordinates on which the violated value depends
        uses = [k for k in range(len(q1)) if ca.depends_on(domain[i], q[k])]
        at = ", ".join(f"{system.space.names[k]} = {q1[k]:.4g}" for k in uses)
        return f" (domain = {values[i]:.2g} at {at}, must be positive)"
    return ""


class ContactAtFault(NamedTuple):
    """A contact's `name`, and its gap (m) and opening speed (m/s) at the beginning of the step."""

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
    """A contact whose gap or normal is undefined at the state x (nx) or, if there is none, the
    contact with the smallest gap `gap + h * opening` after a free step. None without contacts.
    """
    if not dsys.system.contacts:
        return None
    rows = ContactRows(dsys.system.mechanics)
    gaps, openings = _gaps(dsys, rows, x, dsys.velocity(x))
    wrong = ~np.isfinite(gaps + openings)
    # gap after a free step; undefined gaps come first
    reached = np.where(wrong, -np.inf, gaps + dsys.h * openings)
    i = int(np.argmin(reached))
    return ContactAtFault(rows.names[i], float(gaps[i]), float(openings[i]))


def _gaps(
    dsys: StateMap, rows: ContactRows, x: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The contacts' gaps (n) at x and the rates of these gaps (n)."""
    system, n = dsys.system, len(dsys.system.contacts)
    q, w = ca.SX.sym("q", system.space.nq), ca.SX.sym("w", system.space.nw)
    symbols = q, w, system.parameter_symbols
    function = ca.Function("gaps", [*symbols], [rows.gaps(q)[:n], rows.openings(q, w)])
    columns = function(x[: system.space.nq], v, system.parameter_values)
    gaps, openings = (np.asarray(column).reshape(-1) for column in columns)
    return gaps, openings
