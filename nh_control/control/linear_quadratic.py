"""The linear-quadratic subproblem of trajectory optimization: the minimum of a quadratic cost
along a linearized trajectory.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Tangent: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Variations z (N + 1, ndx) of the states and v (N, nu) of the inputs."""


def solve_linear_quadratic(
    A: np.ndarray,
    B: np.ndarray,
    gradients: np.ndarray,
    hessians: np.ndarray,
    end_gradient: np.ndarray,
    end_hessian: np.ndarray,
) -> Tangent | None:
    """Minimizer (z (N + 1, n), v (N, m)) of
    `sum_k g_k . y_k + 1/2 y_k^T W_k y_k + g_N . z_N + 1/2 z_N^T W_N z_N` with `y = (z, v)`,
    subject to `z' = A z + B v` and `z_0 = 0`.

    The method is the Riccati recursion with affine terms: `H = W + [A B]^T P' [A B]`,
    `h = g + [A B]^T b'`, `v = -H_vv^{-1} (H_vz z + h_v)`. Returns None if any H_vv is not positive
    definite, because the cost then has no minimum.
    """
    from scipy.linalg.lapack import dposv  # slow to import

    steps, n, m = B.shape
    # cost to go 1/2 z^T P z + b . z
    gains, P, b = np.empty((steps, m, n + 1)), end_hessian, end_gradient
    for k in reversed(range(steps)):
        # quadratic model of the stage cost plus the cost to go in y = (z, v): Hessian H, gradient
        # h
        ab = np.hstack([A[k], B[k]])
        h = np.empty((n + m, n + m + 1))
        h[:, :-1] = hessians[k] + ab.T @ P @ ab
        h[:, -1] = gradients[k] + ab.T @ b
        # feedback and feedforward of v from a Cholesky factorization of H_vv
        right = h[n:, [*range(n), -1]]
        _, gains[k], failed = dposv(h[n:, n:-1], right)
        if failed:
            return None
        # cost to go: P = H_zz - H_zv H_vv^{-1} H_vz, b = h_z - H_zv H_vv^{-1} h_v
        reduced = h[:n, [*range(n), -1]] - h[n:, :n].T @ gains[k]
        P, b = (reduced[:, :n] + reduced[:, :n].T) / 2, reduced[:, n]
    # forward sweep from z_0 = 0
    z, v = np.zeros((steps + 1, n)), np.empty((steps, m))
    for k in range(steps):
        v[k] = -gains[k, :, :n] @ z[k] - gains[k, :, n]
        z[k + 1] = A[k] @ z[k] + B[k] @ v[k]
    return z, v
