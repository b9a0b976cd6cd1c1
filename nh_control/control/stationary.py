"""Stationary LQR of some coordinates of a linear system, where the others cannot or need not be
stabilized: a conserved momentum, the angles of wheels, a disturbance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_discrete_are


@dataclass(frozen=True)
class StationaryGain:
    """Feedback gain K (nu, ndx), cost matrix P (ndx, ndx) and the closed-loop poles of the
    stabilized coordinates (ndx, or less)."""

    K: np.ndarray
    P: np.ndarray
    poles: np.ndarray


def decoupling_transform(A: np.ndarray, B: np.ndarray, kept: Sequence[int]) -> np.ndarray:
    """T (n, n) of coordinates `dy = T dx` in which invariants replace coordinates: combinations
    w dx with `w A = w, w B = 0`, which no step and no input changes.

    Only coordinates that are not `kept` (indices) are replaced; T is the identity where there are
    fewer of them than invariants.
    """
    T, others = np.eye(len(A)), [i for i in range(len(A)) if i not in kept]
    # invariants: the left null space of [A - I, B]
    left_vectors, sizes, _ = np.linalg.svd(np.hstack([A - np.eye(len(A)), B]))
    w = left_vectors[:, sizes < 1e-8 * (np.abs(A).max() + np.abs(B).max())].T
    if 0 < len(w) <= len(others):
        # the coordinates to replace: columns of w that QR with pivoting finds most independent
        chosen = [others[i] for i in qr(w[:, others], mode="r", pivoting=True)[1][: len(w)]]
        if np.linalg.cond(w[:, chosen]) < 1e8:
            T[chosen] = np.linalg.solve(w[:, chosen], w)
    return T


def change_coordinates(
    A: np.ndarray, B: np.ndarray, T: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`T A T^{-1}` and `T B`."""
    return T @ np.linalg.solve(T.T, A.T).T, T @ B


def stationary(
    A: np.ndarray,
    B: np.ndarray,
    Q: np.ndarray,
    R: np.ndarray,
    kept: Sequence[int],
    T: np.ndarray,
) -> StationaryGain:
    """Stationary LQR of the coordinates k = `kept` (indices) of `dy = T dx`, with the others, l,
    as an autonomous signal `dy_l' = A_ll dy_l`.

    P_kk and K_k solve the algebraic Riccati equation of k alone. With `C = A_kk - B_k K_k` the
    mixed cost solves the Sylvester equation `P_kl = Q_kl + C^T (P_kk A_kl + P_kl A_ll)`, and
    `K_l = (R + B_k^T P_kk B_k)^{-1} B_k^T (P_kk A_kl + P_kl A_ll)`. No gain depends on P_ll;
    it is the least one that keeps P positive semidefinite.
    """
    others = [i for i in range(len(A)) if i not in kept]
    k, kl, l = np.ix_(kept, kept), np.ix_(kept, others), np.ix_(others, others)
    A, B = change_coordinates(A, B, T)
    Q = np.linalg.solve(T.T, np.linalg.solve(T.T, Q).T)
    K, P = np.zeros((B.shape[1], len(A))), np.zeros(A.shape)
    # the coordinates k alone: algebraic Riccati equation
    P_k = solve_discrete_are(A[k], B[kept], Q[k], R)
    K_k = np.linalg.solve(R + B[kept].T @ P_k @ B[kept], B[kept].T @ P_k @ A[k])
    C, A_l = A[k] - B[kept] @ K_k, A[l]
    poles = np.linalg.eigvals(C)
    # Sylvester equation of P_kl: its solution sum_i (C^T)^i S A_ll^i, by doubling (Smith 1968)
    P_kl = Q[kl] + C.T @ P_k @ A[kl]
    while len(others) and np.abs(C).max() > 1e-20:
        P_kl, C, A_l = P_kl + C.T @ P_kl @ A_l, C @ C, A_l @ A_l
    P[k], P[kl], P[np.ix_(others, kept)] = P_k, P_kl, P_kl.T
    P[l] = P_kl.T @ np.linalg.lstsq(P_k, P_kl, rcond=1e-12)[0]  # Schur complement 0
    K[:, kept] = K_k
    K[:, others] = np.linalg.solve(
        R + B[kept].T @ P_k @ B[kept], B[kept].T @ (P_k @ A[kl] + P_kl @ A[l])
    )
    P = T.T @ P @ T  # back to the coordinates dx
    return StationaryGain(K @ T, (P + P.T) / 2, poles)
