"""Bases X(q) of the admissible velocities, A(q) X(q) = 0, of systems with A(q) v = 0 on spaces
without spheres.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from nh_control.mechanics.householder import householder
from nh_control.mechanics.system import System

Basis = Callable[[ca.SX], ca.SX]


def _householder(system: System, q0: ca.SX) -> Basis:
    """The Householder basis for a step from q0. The signs are computed at q0 and used in the whole
    step, so that the basis is smooth in it.
    """
    _, signs = householder(system.constraint_matrix(q0))
    return lambda q: householder(system.constraint_matrix(q), signs)[0]


BASES: dict[str, Callable[[System, ca.SX], Basis]] = {
    "own": lambda system, q0: system.mechanics.admissible_basis,
    "elimination": lambda system, q0: system.mechanics.elimination.tangents,
    "householder": _householder,
}
"""Bases for a step from q0: the system's own, which is its `distribution` if it has one;
elimination of the dependent velocities; the last columns of the Householder QR of A^T.
"""


def change_of_basis(basis: ca.SX, other: ca.SX) -> ca.SX:
    """C (nrho, nrho) with `other = basis C`, two bases (nw, nrho) of one distribution; the
    components of a momentum follow by `other^T p = C^T basis^T p`.
    """
    return ca.solve(basis.T @ basis, basis.T @ other)
