"""Orthonormal bases of null spaces by Householder reflections."""

from __future__ import annotations

import casadi as ca

TURNED = -0.1
"""Cosine of the angle from e1. Beyond this angle, the sign of a reflection is -1. With 0, as in
the paper, the sign and the basis would switch near symmetric configurations, where x1 = 0.
"""


def householder(a: ca.SX, signs: ca.SX | None = None) -> tuple[ca.SX, ca.SX]:
    """An orthonormal basis X (n, n - m) of the null space of A (m, n), and the signs (m) of its
    Householder reflections [celledoni2016 Algorithm 1]. X contains the last columns of Q in
    `A^T = Q R`.

    The vector of a reflection is `w ~ x + s |x| e1`. By default, s = 1 if `x1 >= TURNED |x|`, else
    -1. With fixed `signs`, X is smooth in A, and CasADi's derivatives of these expressions are
    equivalent to the second half of the algorithm. In that half, the update of dQ must be
    corrected to `dQ - 2 dQ w w^T - 2 Q (dw w^T + w dw^T)`.
    """
    m, n = a.shape
    r, q, used = ca.densify(a).T, ca.SX.eye(n), []
    for k in range(m):
        # w = x + s |x| e1, where x is the part of column k that the reflection maps to e1
        w = r[k:, k]
        s = ca.if_else(w[0] >= TURNED * ca.norm_2(w), 1, -1) if signs is None else signs[k]
        w[0] += s * ca.norm_2(w)
        w = w / ca.norm_2(w)
        # R <- H R, Q <- Q H with the reflection H = I - 2 w w^T
        r[k:, :] -= 2 * w @ (w.T @ r[k:, :])
        q[:, k:] -= 2 * (q[:, k:] @ w) @ w.T
        used.append(s)
    return q[:, m:], ca.vertcat(ca.SX(0, 1), *used)
