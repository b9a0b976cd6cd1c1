"""Stationary LQR of some coordinates of a linear system, where the others cannot or need not be
stabilized: a conserved momentum, the angles of wheels, a disturbance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_discrete_are

from nh_control.control.modes import scale

INVARIANT = 1e-5
"""A combination of coordinates counts as an invariant if it changes by less than this part of the
largest motion in a step: references come to rest only nearly.
"""


@dataclass(frozen=True)
class StationaryGain:
    """Feedback gain K (nu, ndx), cost matrix P (ndx, ndx) and the closed-loop poles of the
    stabilized coordinates (ndx, or less)."""

    K: np.ndarray
    P: np.ndarray
    poles: np.ndarray


def decoupling_transform(
    A: np.ndarray, B: np.ndarray, kept: Sequence[int], sizes: np.ndarray
) -> np.ndarray:
    """T (n, n) of coordinates `dy = T dx` in which invariants replace coordinates: combinations
    w dx with `w A = w, w B = 0`, which no step and no input changes.

    Only coordinates that are not `kept` (indices) are replaced; T is the identity where there are
    fewer of them than invariants. `sizes` (n) are those of the coordinates.
    """
    T, others = np.eye(len(A)), [i for i in range(len(A)) if i not in kept]
    # invariants: the left null space of [A - I, B]
    F, G, _ = scale(A, B, sizes)
    left_vectors, values, _ = np.linalg.svd(np.hstack([F, G]))
    w = left_vectors[:, values <= INVARIANT * values[0]].T
    if 0 < len(w) <= len(others):
        # the coordinates to replace: columns of w that QR with pivoting finds most independent
        chosen = [others[i] for i in qr(w[:, others], mode="r", pivoting=True)[1][: len(w)]]
        if np.linalg.cond(w[:, chosen]) < 1e8:
            T[chosen] = np.linalg.solve(w[:, chosen], w) * sizes[chosen][:, None] / sizes
    return T


def change_coordinates(
    A: np.ndarray, B: np.ndarray, T: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`T A T^{-1}` and `T B`."""
    return T @ np.linalg.solve(T.T, A.T).T, T @ B


def change_weight(Q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """`T^{-T} Q T^{-1}`."""
    return np.linalg.solve(T.T, np.linalg.solve(T.T, Q).T)


def stationary(
    A: np.ndarray,
    B: np.ndarray,
    Q: np.ndarray,
    R: np.ndarray,
    kept: Sequence[int],
    T: np.ndarray,
    sizes: np.ndarray,
) -> StationaryGain:
    """Stationary LQR of the coordinates k = `kept` (indices) of `dy = T dx`, with the others, l,
    as an autonomous signal `dy_l' = A_ll dy_l`.

    P_kk and K_k solve the algebraic Riccati equation of k alone. With `C = A_kk - B_k K_k` the
    mixed cost solves the Sylvester equation `P_kl = Q_kl + C^T (P_kk A_kl + P_kl A_ll)`, and
    `K_l = (R + B_k^T P_kk B_k)^{-1} B_k^T (P_kk A_kl + P_kl A_ll)`. No gain depends on P_ll;
    it is the least one that keeps P positive semidefinite. The equations are solved for
    coordinates and inputs over their `sizes` (n) and `R_ii^{-1/2}`, so that units do not matter.
    """
    others = [i for i in range(len(A)) if i not in kept]
    k, kl, l = np.ix_(kept, kept), np.ix_(kept, others), np.ix_(others, others)
    A, B = change_coordinates(A, B, T)
    s, r = np.abs(T) @ sizes, np.diag(R) ** -0.5
    A, B, R = A * s / s[:, None], B * r / s[:, None], R * np.outer(r, r)
    Q = change_weight(Q, T) * np.outer(s, s)
    K, P = np.zeros((B.shape[1], len(A))), np.zeros(A.shape)
    # the coordinates k alone: algebraic Riccati equation
    P_k, K_k = _riccati(A[k], B[kept], Q[k], R)
    C = A[k] - B[kept] @ K_k
    poles = np.linalg.eigvals(C)
    # Sylvester equation of P_kl
    P_kl = _sum_of_powers(C, Q[kl] + C.T @ P_k @ A[kl], A[l])
    P[k], P[kl], P[np.ix_(others, kept)] = P_k, P_kl, P_kl.T
    P[l] = _least_completion(P_k, P_kl)
    K[:, kept] = K_k
    K[:, others] = _gain(A[kl], B[kept], P_k, R, P_kl @ A[l])
    # back to the coordinates dx and the inputs
    K, P = r[:, None] * K / s, T.T @ (P / np.outer(s, s)) @ T
    return StationaryGain(K @ T, (P + P.T) / 2, poles)


def _least_completion(P: np.ndarray, mixed: np.ndarray) -> np.ndarray:
    """`mixed^T P^+ mixed`, with which the Schur complement is 0: as a square, over the lengths of
    the coordinates, so that [[P, mixed], [mixed^T, .]] is positive semidefinite up to rounding.
    """
    seen = np.diag(P) > 0
    lengths = np.sqrt(np.diag(P)[seen])
    values, vectors = np.linalg.eigh(P[np.ix_(seen, seen)] / np.outer(lengths, lengths))
    kept = values > 1e-12
    root = (vectors[:, kept] / np.sqrt(values[kept])).T @ (mixed[seen] / lengths[:, None])
    return root.T @ root


def _riccati(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """P and K of `P = Q + A^T P (A - B K)`, refined by a step of Newton's method (Hewer 1971).

    Raises LinAlgError if rounding hides the slow modes of the closed loop.
    """
    too_slow = (
        "the closed loop of the stationary gain has modes that are slower than rounding resolves; "
        "give larger weights Q, smaller ones R, or a longer step"
    )
    try:
        K = _gain(A, B, solve_discrete_are(A, B, Q, R), R)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(too_slow) from error
    C = A - B @ K
    if np.abs(np.linalg.eigvals(C)).max(initial=0.0) >= 1:
        raise np.linalg.LinAlgError(too_slow)
    P = _sum_of_powers(C, Q + K.T @ R @ K, C)
    return P, _gain(A, B, P, R)


def _gain(
    A: np.ndarray, B: np.ndarray, P: np.ndarray, R: np.ndarray, more: float | np.ndarray = 0.0
) -> np.ndarray:
    """`(R + B^T P B)^{-1} B^T (P A + more)`."""
    return np.linalg.solve(R + B.T @ P @ B, B.T @ (P @ A + more))


def _sum_of_powers(C: np.ndarray, S: np.ndarray, D: np.ndarray) -> np.ndarray:
    """`sum_i (C^T)^i S D^i` by doubling (Smith 1968)."""
    while S.size and np.abs(C).max() > 1e-20:
        S, C, D = S + C.T @ S @ D, C @ C, D @ D
    return S
