"""Stationary LQR for some coordinates of a linear system. Other coordinates, such as a conserved
momentum, the angles of wheels, or a disturbance, cannot or need not be stabilized.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from nh_control.control.modes import scale
from nh_control.numerics.independent_columns import independent_columns
from nh_control.numerics.result_cache import cached_result

INVARIANT = 1e-5
"""A combination of coordinates counts as an invariant if it changes by less than this fraction of
the largest motion in a step. The value is not smaller, because references come only nearly to
rest.
"""
DOUBLINGS = 60
"""Maximum number of doublings of the number of steps. If a mode needs more, its pole is 1 to
within rounding errors.
"""


@dataclass(frozen=True)
class StationaryGain:
    """The feedback gain K (nu, ndx), the cost matrix P (ndx, ndx), and the closed-loop poles of
    the stabilized coordinates (at most ndx).
    """

    K: np.ndarray
    P: np.ndarray
    poles: np.ndarray


def decoupling_transform(
    A: np.ndarray, B: np.ndarray, stabilized: Sequence[int], sizes: np.ndarray
) -> np.ndarray:
    """The matrix T (n, n) that defines coordinates `dy = T dx` in which invariants replace some of
    the coordinates. Invariants are combinations w dx with `w A = w, w B = 0`, which no step and no
    input changes.

    Only coordinates that are not `stabilized` (indices) are replaced. If there are fewer such
    coordinates than invariants, T is the identity. `sizes` (n) are the sizes of the coordinates.
    """
    T, others = np.eye(len(A)), [i for i in range(len(A)) if i not in stabilized]
    # the invariants are the left null space of [A - I, B]
    F, G, _ = scale(A, B, sizes)
    left_vectors, values, _ = np.linalg.svd(np.hstack([F, G]))
    w = left_vectors[:, values <= INVARIANT * values[0]].T
    if 0 < len(w) <= len(others):
        # replace the most independent columns of w, as determined by QR with pivoting
        chosen = [others[i] for i in independent_columns(w[:, others], len(w))]
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
    stabilized: Sequence[int],
    T: np.ndarray,
    sizes: np.ndarray,
) -> StationaryGain:
    """Stationary LQR for the coordinates k = `stabilized` (indices) of `dy = T dx`. The other
    coordinates, l, are an autonomous signal with `dy_l' = A_ll dy_l`.

    P_kk and K_k solve the algebraic Riccati equation for the coordinates k alone. With
    `C = A_kk - B_k K_k`, the mixed cost solves the Sylvester equation
    `P_kl = Q_kl + C^T (P_kk A_kl + P_kl A_ll)`, and
    `K_l = (R + B_k^T P_kk B_k)^{-1} B_k^T (P_kk A_kl + P_kl A_ll)`. No gain depends on P_ll. It is
    the smallest matrix for which P is positive semidefinite. The equations are scaled by the
    `sizes` (n) of the coordinates and by `R_ii^{-1/2}`, so the result does not depend on units.
    """
    others = [i for i in range(len(A)) if i not in stabilized]
    k, l = np.ix_(stabilized, stabilized), np.ix_(others, others)
    kl, lk = np.ix_(stabilized, others), np.ix_(others, stabilized)
    A, B = change_coordinates(A, B, T)
    # scale the coordinates by s and the inputs by r
    s, r = np.abs(T) @ sizes, np.diag(R) ** -0.5
    A, B, R = A * s / s[:, None], B * r / s[:, None], R * np.outer(r, r)
    Q = change_weight(Q, T) * np.outer(s, s)
    K, P = np.zeros((B.shape[1], len(A))), np.zeros(A.shape)
    # algebraic Riccati equation for the coordinates k alone
    P_k, K_k = _riccati(A[k], B[stabilized], Q[k], R)
    C = A[k] - B[stabilized] @ K_k
    poles = np.linalg.eigvals(C)
    # Sylvester equation for P_kl
    P_kl = _sum_of_powers(C, Q[kl] + C.T @ P_k @ A[kl], A[l])
    P[k], P[kl], P[lk] = P_k, P_kl, P_kl.T
    P[l] = _least_completion(P_k, P_kl)
    K[:, stabilized] = K_k
    K[:, others] = _gain(A[kl], B[stabilized], P_k, R, P_kl @ A[l])
    # return to the coordinates dx and the unscaled inputs
    K, P = r[:, None] * K / s, T.T @ (P / np.outer(s, s)) @ T
    return StationaryGain(K @ T, (P + P.T) / 2, poles)


def _least_completion(P: np.ndarray, mixed: np.ndarray) -> np.ndarray:
    """`mixed^T P^+ mixed`, which makes the Schur complement 0. It is computed as a square of
    scaled factors, so [[P, mixed], [mixed^T, .]] is positive semidefinite up to rounding errors.
    """
    weighted = np.diag(P) > 0
    lengths = np.sqrt(np.diag(P)[weighted])
    values, vectors = np.linalg.eigh(P[np.ix_(weighted, weighted)] / np.outer(lengths, lengths))
    positive = values > 1e-12
    inverse_root = (vectors[:, positive] / np.sqrt(values[positive])).T
    root = inverse_root @ (mixed[weighted] / lengths[:, None])
    return root.T @ root


def _riccati(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """P and K of `P = Q + A^T P (A - B K)`, refined by one step of Newton's method (Hewer 1971).

    Raises LinAlgError if rounding hides the slow modes of the closed loop.
    """
    too_slow = (
        "the closed loop of the stationary gain has modes that are too slow for the rounding "
        "errors; use larger weights Q, smaller weights R, or a larger step"
    )
    try:
        K = _gain(A, B, _cost(A, B, Q, R), R)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(too_slow) from error
    C = A - B @ K
    if not np.isfinite(C).all() or np.abs(np.linalg.eigvals(C)).max(initial=0.0) >= 1:
        raise np.linalg.LinAlgError(too_slow)
    # Newton step: P = sum_i (C^T)^i (Q + K^T R K) C^i
    P = _sum_of_powers(C, Q + K.T @ R @ K, C)
    return P, _gain(A, B, P, R)


def _cost(A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The stabilizing solution P of the Riccati equation. The first one of a process is looked up
    in the cache, because importing SciPy takes a hundred times as long as solving the equation.
    """
    if "scipy.linalg" in sys.modules:
        return _computed_cost(A, B, Q, R)
    key: list[str | np.ndarray] = [version("scipy"), A, B, Q, R]
    return cached_result("cost", key, lambda: {"P": _computed_cost(A, B, Q, R)}, "")["P"]


def _computed_cost(A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    from scipy.linalg import solve_discrete_are  # slow to import

    try:
        return solve_discrete_are(A, B, Q, R)
    except np.linalg.LinAlgError:
        # rounding moves eigenvalues of slow modes across the unit circle
        return _cost_by_doubling(A, B @ np.linalg.solve(R, B.T), Q)


def _cost_by_doubling(A: np.ndarray, G: np.ndarray, P: np.ndarray) -> np.ndarray:
    """The limit of the Riccati recursion `P <- Q + A^T P (I + G P)^{-1} A` from P = Q. Each
    iteration doubles the number of recursion steps (Chu, Fan, Lin, Wang 2004). Unlike methods that
    select the stable eigenvalues of a pencil, this method converges for closed loops with slow
    modes.
    """
    n = len(A)
    for _ in range(DOUBLINGS if n else 0):
        # W = (I + G P)^{-1} [A, G]
        W = np.linalg.solve(np.eye(n) + G @ P, np.hstack([A, G]))
        change = A.T @ P @ W[:, :n]
        A, G, P = A @ W[:, :n], G + A @ W[:, n:] @ A.T, P + change
        G, P = (G + G.T) / 2, (P + P.T) / 2
        if (np.diag(change) <= np.finfo(float).eps * np.diag(P)).all():
            break
    return P


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
