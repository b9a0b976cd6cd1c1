"""Classification of equilibria as minima, maxima or saddles of the potential energy."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.mechanics.consistent_states import FLAT
from nh_control.mechanics.system import System

LARGE_PART = 0.1
"""A coordinate is named if its relative size in a direction is above this value."""


@dataclass(frozen=True)
class PotentialShape:
    """Directions (d, nv) along the constraints, in local coordinates, in which the potential
    energy rises or falls to second order. In flat directions, the second derivatives vanish.
    """

    names: tuple[str, ...]
    rising: np.ndarray
    falling: np.ndarray
    flat: np.ndarray

    @property
    def kind(self) -> str:
        """`minimum`, `maximum` or `saddle` in the directions that are not flat; `flat` if all are
        flat.
        """
        kinds = {
            (True, False): "minimum",
            (False, True): "maximum",
            (True, True): "saddle",
            (False, False): "flat",
        }
        return kinds[len(self.rising) > 0, len(self.falling) > 0]

    def __str__(self) -> str:
        parts = [self.kind]
        for verb, rows in (("falls", self.falling), ("is flat", self.flat)):
            if len(rows):
                count = f"{len(rows)} direction" + "s" * (len(rows) > 1)
                large = np.abs(rows).max(axis=0) > LARGE_PART * np.abs(rows).max()
                names = ", ".join(self.names[i] for i in np.flatnonzero(large))
                parts.append(f"{verb} in {count} along {names}")
        return "; ".join(parts)


def potential_shape(system: System, q: np.ndarray, u: np.ndarray) -> PotentialShape:
    """The shape of the potential energy at an equilibrium q (nq) under forces u (nu). It follows
    from the symmetric part of the stiffness `-df/de` due to all static forces f, with constant u
    and constant constraint multipliers,

        f(e) = -dV/de + (dh/de)^T mu + J^T F^T (force(q1, 0, u) + A^T lambda),  q1 = retract(q, e),

    with `F = space.frame(q1)` and `J = d local(q1, retract(q, e)) / de`, in the null space of dh
    and `A F`. First-order and prescribed coordinates are fixed. Raises ValueError for a system
    with contacts or grips, whose forces have no potential.
    """
    from scipy.linalg import null_space  # slow to import

    if system.has_contacts:
        raise ValueError(
            f"{system.name}: contact forces have no potential; look at the eigenvalues of "
            "linearize(x, u).A"
        )
    force, rows, stiffness = (np.asarray(value) for value in _statics(system)(q, u, 0))
    space = system.space
    moving = space.nv - len(system.prescribed) - len(system.first_order)
    # multipliers that balance the other forces: rows^T reactions = -f
    reactions = np.linalg.lstsq(rows[:, :moving].T, -force[:moving, 0], rcond=None)[0]
    stiffness = np.asarray(_statics(system)(q, u, reactions)[2])[:moving, :moving]
    stiffness = (stiffness + stiffness.T) / 2
    # coordinates are scaled to curvature 1, so that units do not matter
    curvature = np.abs(np.diag(stiffness))
    sizes = np.where(curvature > 0, curvature, np.abs(stiffness).max(initial=0.0) or 1.0) ** -0.5
    along = rows[:, :moving] * sizes
    # eigenvalues of the stiffness in the null space of the constraints
    tangents = null_space(along) if len(along) else np.eye(moving)
    values, vectors = np.linalg.eigh(tangents.T @ (stiffness * np.outer(sizes, sizes)) @ tangents)
    directions = np.zeros((len(values), space.nv))
    directions[:, :moving] = (tangents @ vectors).T * sizes
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    flat = np.abs(values) <= FLAT
    return PotentialShape(
        space.tangent_names, directions[~flat & (values > 0)], directions[~flat & (values < 0)],
        directions[flat],
    )  # fmt: skip


def _statics(system: System) -> ca.Function:
    """The function `statics(q, u, reactions) -> f, rows, -df/de` at e = 0, where rows contains dh
    and `A F`.
    """
    fixed, space = system.numeric, system.space
    q, e, at = ca.SX.sym("q", space.nq), ca.SX.sym("e", space.nv), ca.SX.sym("at", space.nq)
    u, rest = ca.SX.sym("u", system.nu), ca.SX.zeros(space.nw)
    n_h, n_v = system.n_holonomic_constraints, system.n_velocity_constraints
    reactions, moved = ca.SX.sym("reactions", n_h + n_v), space.retract(q, e)
    # J: the motion of q1 in the local coordinates at q1
    way = ca.substitute(ca.jacobian(space.local(at, space.retract(q, e)), e), at, moved)
    along = space.frame(moved) @ way
    rows = ca.vertcat(
        ca.jacobian(fixed.holonomic(moved), e), fixed.constraint_matrix(moved) @ along
    )
    force = (
        ca.gradient(fixed.lagrangian_at(moved, rest), e)
        + along.T @ fixed.generalized_force(moved, rest, u)
        + rows.T @ reactions
    )
    values = [force, rows, -ca.jacobian(force, e)]
    zero = ca.SX.zeros(space.nv)
    return ca.Function("statics", [q, u, reactions], ca.substitute(values, [e], [zero]))
