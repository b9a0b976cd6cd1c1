"""The start of a step with contacts: Newton's method on the dynamics, with a contact problem in
each iteration; `native/contact_step.h` is its compiled twin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nh_control.discrete.method import ContactUnknowns
from nh_control.numerics.contact_problem import Impulses, impulse_count
from nh_control.numerics.newton import solve

MOST_OUTER_ITERATIONS = 30
SETTLED = 1e-10
"""Change of the unknowns at which the iteration ends, relative to their size and to the size of
their change without impulses.
"""
STALLED = 1e-6
"""Change at which the iteration ends as well if the changes no longer shrink."""
CORRECTIONS = 3
"""Number of Newton corrections if the iteration does not converge; the last must be round-off."""

Call = Callable[[str, np.ndarray], Sequence[np.ndarray]]
"""`call(name, z)`: a function of the step's equations at unknowns z."""


def contact_start(call: Call, contacts: ContactUnknowns, kappa: float, z: np.ndarray) -> bool:
    """Improve the unknowns z (nz) of a step with contacts, in place, until Newton's method on all
    equations converges from them; returns whether this succeeded.

    The residual is `r = r(y) + r_x x` for the impulses x and the other unknowns y. Each iteration
    solves `r + r_y dy + r_x x = 0` for dy as a function of x, and then the contact problem in x
    with the velocities `w + w_y dy`.
    """
    first, impulses = contacts.first, Impulses(contacts.blocks)
    x_end, last = first + len(impulses.x), np.inf
    for _ in range(MOST_OUTER_ITERATIONS):
        (r,), (r_z,) = call("residual", z), call("jacobian", z)
        w, w_y, coefficients = call("contacts", z)
        r_x = r_z[:first, first:x_end]
        free = r[:first, 0] - r_x @ z[first:x_end]
        try:
            solved = -np.linalg.solve(r_z[:first, :first], np.column_stack([free, r_x]))
        except np.linalg.LinAlgError:
            return False
        by_impulses = w_y @ solved[:, 1:]
        mu, bound = coefficients.reshape(2, -1)
        if not impulses.find(by_impulses, w[:, 0] + w_y @ solved[:, 0], mu, bound, kappa):
            return False
        dy = solved[:, 0] + solved[:, 1:] @ impulses.x
        z[:first] += dy
        z[first:x_end], z[x_end:] = impulses.x, impulses.psi
        # at rest z is only round-off; then the motion without impulses gives the size
        size = max(np.abs(z[:first]).max(initial=0.0), np.abs(solved[:, 0]).max(initial=0.0))
        change = np.abs(dy).max(initial=0.0)
        if not np.isfinite(change):
            return False
        if change <= SETTLED * size or (change <= STALLED * size and change >= last / 4):
            return True
        last = change
    return False


def corrected(call: Call, contacts: ContactUnknowns, z: np.ndarray) -> bool:
    """Apply CORRECTIONS corrections of Newton's method to z in place. Returns whether the last one
    is round-off: at most SETTLED times the largest unknown of its kind (y, x or psi).

    This is for motions in which large terms cancel, such as the symmetric motion of a symmetric
    robot: their round-off exceeds the sizes of the rows, and Newton's iteration does not converge.
    """
    ends = contacts.first, contacts.first + impulse_count(contacts.blocks), len(z)
    dz = np.full(len(z), np.inf)
    for _ in range(CORRECTIONS):
        (r,), (r_z,) = call("residual", z), call("jacobian", z)
        try:
            dz = -solve(r_z, r[:, 0])
        except np.linalg.LinAlgError:
            return False
        z += dz
    kinds = [slice(*pair) for pair in zip((0, *ends), ends)]
    off = [
        np.abs(dz[k]).max(initial=0.0) <= SETTLED * np.abs(z[k]).max(initial=0.0) for k in kinds
    ]
    return bool(np.isfinite(z).all() and all(off))


def is_inside(contacts: ContactUnknowns, z: np.ndarray) -> bool:
    """Whether a solution z (nz) lies inside the cones. In a solution the products of all pairs are
    positive, so the signs of the normal impulses and of psi decide.
    """
    normals = [contacts.first + block.normal for block in contacts.blocks if block.normal >= 0]
    slips = contacts.first + impulse_count(contacts.blocks)
    return bool((z[normals] > 0).all() and (z[slips:] > 0).all())
