"""A step with contacts: Newton's method on all of its equations, from impulses that an interior
point finds, else from those at the end of the central path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nh_control.discrete.contact_path import CallAt, follow_path, return_to_path
from nh_control.discrete.contact_step import Call, contact_start, corrected, is_inside
from nh_control.discrete.method import ContactUnknowns
from nh_control.numerics import newton

Iterate = Callable[[bool], newton.NewtonResult]
"""`iterate(patient)`: Newton's method on all equations from the unknowns as they are."""


def solve_in_contact(
    call: CallAt,
    iterate: Iterate,
    contacts: ContactUnknowns,
    kappa: float,
    z: np.ndarray,
    start: int,
) -> newton.NewtonResult:
    """The unknowns z (nz) of a step, in place; at first from a guess in them that is
    close (`newton.FROM_CLOSE`), then from the rates of a guess.
    """

    def call_here(name: str, z: np.ndarray) -> list[np.ndarray]:
        return list(call(name, z, kappa))

    guess = np.zeros_like(z) if start == newton.FROM_ZERO else z.copy()
    for inside in (True, False) if start == newton.FROM_CLOSE else ():
        has_start = return_to_path(call, contacts, kappa, inside, z)
        near = _finished(has_start, call_here, iterate, contacts, z)
        if near.status == newton.CONVERGED:
            return near
        z[:] = guess
    z[:] = guess
    has_start = contact_start(call_here, contacts, kappa, z)
    first = _finished(has_start, call_here, iterate, contacts, z)
    if first.status == newton.CONVERGED:
        return first
    has_start = follow_path(call, contacts, kappa, z)
    second = _finished(has_start, call_here, iterate, contacts, z)
    return second if second.status == newton.CONVERGED else first


def _finished(
    has_start: bool, call: Call, iterate: Iterate, contacts: ContactUnknowns, z: np.ndarray
) -> newton.NewtonResult:
    """The solution from the start z; without a start, the failure NO_IMPULSES."""
    if not has_start:
        return newton.NewtonResult(newton.NO_IMPULSES, 0, np.nan, np.nan)
    start = z.copy()
    result = iterate(False)
    if result.status in (newton.STALLED, newton.EXHAUSTED):
        z[:] = start
        result = iterate(True)
    if result.status in (newton.STALLED, newton.EXHAUSTED):
        z[:] = start
        if corrected(call, contacts, z):
            result = replace(result, status=newton.CONVERGED)
    if result.status == newton.CONVERGED and not is_inside(contacts, z):
        return replace(result, status=newton.NO_IMPULSES)
    return result
