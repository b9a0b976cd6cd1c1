"""Bases X(q) of the admissible velocities, A(q) X(q) = 0, of systems with A(q) v = 0."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from nh_control.mechanics.householder import householder
from nh_control.mechanics.system import System

Basis = Callable[[ca.SX], ca.SX]
"""X(q), or an orthonormal frame (nw, nv) of the velocities at q."""


def _own(system: System, q0: ca.SX, frame: Basis) -> Basis:
    return lambda q: system.mechanics.admissible_basis(q, frame(q))


def _elimination(system: System, q0: ca.SX, frame: Basis) -> Basis:
    return lambda q: frame(q) @ system.mechanics.elimination.tangents(q, frame(q))


def _householder(system: System, q0: ca.SX, frame: Basis) -> Basis:
    """The Householder basis for a step from q0. The signs are computed at q0 and used in the whole
    step, so that the basis is smooth in it.
    """
    n = system.space.nv - len(system.prescribed)

    def free(q: ca.SX) -> ca.SX:
        return (system.constraint_matrix(q) @ frame(q))[:, :n]

    _, signs = householder(free(q0))
    rest = ca.SX(len(system.prescribed), n - system.n_velocity_constraints)
    return lambda q: frame(q) @ ca.vertcat(householder(free(q), signs)[0], rest)


BASES: dict[str, Callable[[System, ca.SX, Basis], Basis]] = {
    "own": _own,
    "elimination": _elimination,
    "householder": _householder,
}
"""Bases for a step from q0, made in a frame of the velocities: the system's own, which is its
`distribution` if it has one; elimination of the dependent velocities; the last columns of the
Householder QR of A^T.
"""


def change_of_basis(basis: ca.SX, other: ca.SX) -> ca.SX:
    """C (nrho, nrho) with `other = basis C`, two bases (nw, nrho) of one distribution; the
    components of a momentum follow by `other^T p = C^T basis^T p`.
    """
    return ca.solve(basis.T @ basis, basis.T @ other)
