"""Orthonormal bases of null spaces by Householder reflections."""

from __future__ import annotations

import casadi as ca

TURNED = -0.1
"""Cosine of the angle from e1 beyond which the sign of a reflection is -1. At 0, as printed, the
sign and with it the basis would jump to and fro about the symmetric configurations, where x1 = 0.
"""


def householder(a: ca.SX, signs: ca.SX | None = None) -> tuple[ca.SX, ca.SX]:
    """Orthonormal basis X (n, n - m) of the null space of A (m, n), the last columns of Q in
    `A^T = Q R` by Householder reflections, and the signs (m) of their vectors
    [celledoni2016 Algorithm 1].

    A vector is `w ~ x + s |x| e1`. Unless the signs are given, s = 1 where `x1 >= TURNED |x|`,
    else -1. With given signs X is smooth in A, and CasADi's derivatives of these expressions are
    what the second half of the algorithm computes (its printed update of dQ is wrong; corrected:
    `dQ - 2 dQ w w^T - 2 Q (dw w^T + w dw^T)`).
    """
    m, n = a.shape
    r, q, used = ca.densify(a).T, ca.SX.eye(n), []
    for k in range(m):
        # w = x + s |x| e1 for the part x of column k that is to become a multiple of e1
        w = r[k:, k]
        s = ca.if_else(w[0] >= TURNED * ca.norm_2(w), 1, -1) if signs is None else signs[k]
        w[0] += s * ca.norm_2(w)
        w = w / ca.norm_2(w)
        # R <- H R, Q <- Q H with the reflection H = I - 2 w w^T
        r[k:, :] -= 2 * w @ (w.T @ r[k:, :])
        q[:, k:] -= 2 * (q[:, k:] @ w) @ w.T
        used.append(s)
    return q[:, m:], ca.vertcat(ca.SX(0, 1), *used)
