"""Stationary LQR of some of the coordinates of a linear system, the others going their own way: a
conserved momentum, the angles of wheels, a disturbance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_discrete_are


@dataclass(frozen=True)
class StationaryGain:
    """Feedback gain K (nu, ndx), cost matrix P (ndx, ndx) and closed-loop poles of what is held
    (ndx, or less)."""

    K: np.ndarray
    P: np.ndarray
    poles: np.ndarray


def decoupling_transform(A: np.ndarray, B: np.ndarray, kept: Sequence[int]) -> np.ndarray:
    """T (n, n) of coordinates `dy = T dx` that are those of dx but for combinations w dx which
    nothing changes, `w A = w, w B = 0`: as many coordinates that are not `kept` (indices) make
    place for them; the identity where they are not enough.
    """
    T, others = np.eye(len(A)), [i for i in range(len(A)) if i not in kept]
    left, sizes, _ = np.linalg.svd(np.hstack([A - np.eye(len(A)), B]))
    w = left[:, sizes < 1e-8 * (np.abs(A).max() + np.abs(B).max())].T
    if 0 < len(w) <= len(others):
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
    """Stationary LQR of the coordinates k = `kept` (indices) of `dy = T dx` while the others, l,
    go their own way, `dy_l' = A_ll dy_l`.

    With `C = A_kk - B_k K_k` the cost of both is `P_kl = Q_kl + C^T (P_kk A_kl + P_kl A_ll)`, and
    `K_l = (R + B_k^T P_kk B_k)^{-1} B_k^T (P_kk A_kl + P_kl A_ll)`. That of l alone, which changes
    no gain, is the least one that leaves P positive semidefinite.
    """
    others = [i for i in range(len(A)) if i not in kept]
    k, kl, l = np.ix_(kept, kept), np.ix_(kept, others), np.ix_(others, others)
    A, B = change_coordinates(A, B, T)
    Q = np.linalg.solve(T.T, np.linalg.solve(T.T, Q).T)
    K, P = np.zeros((B.shape[1], len(A))), np.zeros(A.shape)
    P_k = solve_discrete_are(A[k], B[kept], Q[k], R)
    K_k = np.linalg.solve(R + B[kept].T @ P_k @ B[kept], B[kept].T @ P_k @ A[k])
    C, way = A[k] - B[kept] @ K_k, A[l]
    poles = np.linalg.eigvals(C)
    both = Q[kl] + C.T @ P_k @ A[kl]
    while len(others) and np.abs(C).max() > 1e-20:  # sum of (C^T)^i both A_ll^i, doubled
        both, C, way = both + C.T @ both @ way, C @ C, way @ way
    P[k], P[kl], P[np.ix_(others, kept)] = P_k, both, both.T
    P[l] = both.T @ np.linalg.lstsq(P_k, both, rcond=1e-12)[0]
    K[:, kept] = K_k
    K[:, others] = np.linalg.solve(
        R + B[kept].T @ P_k @ B[kept], B[kept].T @ (P_k @ A[kl] + both @ A[l])
    )
    P = T.T @ P @ T
    return StationaryGain(K @ T, (P + P.T) / 2, poles)
