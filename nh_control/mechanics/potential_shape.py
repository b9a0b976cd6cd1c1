"""Whether an equilibrium is a minimum, a maximum or a saddle of the potential energy."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.linalg import null_space

from nh_control.mechanics.consistent_states import FLAT
from nh_control.mechanics.system import System

LARGE_PART = 0.1
"""Part of a coordinate in a direction, relative to the largest one, with which it is named."""


@dataclass(frozen=True)
class PotentialShape:
    """Directions (d, nv) in local coordinates, along the constraints, in which the potential
    energy rises and falls to second order, and those in which it is flat: its second derivatives
    vanish there and do not decide.
    """

    names: tuple[str, ...]
    rising: np.ndarray
    falling: np.ndarray
    flat: np.ndarray

    @property
    def kind(self) -> str:
        """`minimum`, `maximum` or `saddle` in the directions that are not flat; `flat` if all
        are.
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
    """The shape at an equilibrium q (nq) under forces u (nu): the symmetric part of the stiffness
    `-df/de` of all static forces f, u and the constraints' multipliers constant,

        f(e) = -dV/de + (dh/de)^T mu + J^T F^T (force(q1, 0, u) + A^T lambda),  q1 = retract(q, e),

    with `F = space.frame(q1)`, `J = d local(q1, retract(q, e)) / de`, in the null space of dh and
    `A F`. First-order and prescribed coordinates are held. Raises ValueError for a system with
    contacts or grips, whose forces have no potential.
    """
    if system.has_contacts:
        raise ValueError(
            f"{system.name}: contacts hold a system by forces without a potential; look at the "
            f"eigenvalues of linearize(x, u).A"
        )
    force, rows, stiffness = (np.asarray(value) for value in _statics(system)(q, u, 0))
    space = system.space
    moving = space.nv - len(system.prescribed) - len(system.first_order)
    reactions = np.linalg.lstsq(rows[:, :moving].T, -force[:moving, 0], rcond=None)[0]
    stiffness = np.asarray(_statics(system)(q, u, reactions)[2])[:moving, :moving]
    stiffness = (stiffness + stiffness.T) / 2
    # coordinates over sizes with curvature 1, so that units do not matter
    curvature = np.abs(np.diag(stiffness))
    sizes = np.where(curvature > 0, curvature, np.abs(stiffness).max(initial=0.0) or 1.0) ** -0.5
    along = rows[:, :moving] * sizes
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
    """`statics(q, u, reactions) -> f, rows, -df/de` at e = 0, with the rows of dh and `A F`."""
    fixed, space = system.numeric, system.space
    q, e, at = ca.SX.sym("q", space.nq), ca.SX.sym("e", space.nv), ca.SX.sym("at", space.nq)
    u, rest = ca.SX.sym("u", system.nu), ca.SX.zeros(space.nw)
    n_h, n_v = system.n_holonomic_constraints, system.n_velocity_constraints
    reactions, moved = ca.SX.sym("reactions", n_h + n_v), space.retract(q, e)
    # the way of q1 in its own local coordinates, J
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
