"""Bases X(q) of the admissible velocities, A(q) X(q) = 0, of systems with A(q) v = 0 on spaces
without spheres.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from nh_control.mechanics.system import System

Basis = Callable[[ca.SX], ca.SX]


def householder(a: ca.SX, signs: ca.SX | None = None) -> tuple[ca.SX, ca.SX]:
    """Orthonormal basis X (n, n - m) of the null space of A (m, n), the last columns of Q in
    `A^T = Q R` by Householder reflections, and the signs (m) of their vectors
    [celledoni2016 Algorithm 1].

    A vector is `w ~ x + s |x| e1`, with s = sign(x1) unless the signs are given. With given signs
    X is smooth in A, and CasADi's derivatives of these expressions are what the second half of the
    algorithm computes (its printed update of dQ is wrong; corrected:
    `dQ - 2 dQ w w^T - 2 Q (dw w^T + w dw^T)`).
    """
    m, n = a.shape
    r, q, used = ca.densify(a).T, ca.SX.eye(n), []
    for k in range(m):
        # w = x + s |x| e1 for the part x of column k that is to become a multiple of e1
        w = r[k:, k]
        s = ca.if_else(w[0] >= 0, 1, -1) if signs is None else signs[k]
        w[0] += s * ca.norm_2(w)
        w = w / ca.norm_2(w)
        # R <- H R, Q <- Q H with the reflection H = I - 2 w w^T
        r[k:, :] -= 2 * w @ (w.T @ r[k:, :])
        q[:, k:] -= 2 * (q[:, k:] @ w) @ w.T
        used.append(s)
    return q[:, m:], ca.vertcat(ca.SX(0, 1), *used)


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
