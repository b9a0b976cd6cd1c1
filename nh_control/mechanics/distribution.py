"""Bases X(q) of the admissible velocities, with A(q) X(q) = 0, for systems with A(q) v = 0."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from nh_control.mechanics.householder import householder
from nh_control.mechanics.system import System

Basis = Callable[[ca.SX], ca.SX]
"""X(q), or an orthonormal frame (nw, nv) of the velocities at q."""


def _of_system(system: System, q0: ca.SX, frame: Basis) -> Basis:
    return lambda q: system.mechanics.admissible_basis(q, frame(q))


def _elimination(system: System, q0: ca.SX, frame: Basis) -> Basis:
    return lambda q: frame(q) @ system.mechanics.elimination.tangents(q, frame(q))


def _householder(system: System, q0: ca.SX, frame: Basis) -> Basis:
    """The Householder basis for a step from q0. Its signs are computed at q0 and used for the
    whole step, so the basis is smooth within the step.
    """
    n = system.space.nv - len(system.prescribed)

    def free(q: ca.SX) -> ca.SX:
        return (system.constraint_matrix(q) @ frame(q))[:, :n]

    _, signs = householder(free(q0))
    # virtual velocities do not move prescribed coordinates
    rest = ca.SX(len(system.prescribed), n - system.n_velocity_constraints)
    return lambda q: frame(q) @ ca.vertcat(householder(free(q), signs)[0], rest)


BASES: dict[str, Callable[[System, ca.SX, Basis], Basis]] = {
    "own": _of_system,
    "elimination": _elimination,
    "householder": _householder,
}
"""Functions that return a basis for a step from q0 in a frame of the velocities. They use the
system's basis (its `distribution` if declared), the elimination of dependent velocities, or the
last columns of the Householder QR factorization of A^T.
"""


def change_of_basis(basis: ca.SX, other: ca.SX) -> ca.SX:
    """The matrix C (nrho, nrho) in `other = basis C` for two bases (nw, nrho) of a distribution.
    The components of a momentum follow from `other^T p = C^T basis^T p`.
    """
    return ca.solve(basis.T @ basis, basis.T @ other)
