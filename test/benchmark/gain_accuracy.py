"""How accurate the LQR gains of robots are: errors relative to the Riccati equation's solution in
extended precision.

    python gain_accuracy.py robot.urdf ... | the double pendulum of the package without files

Each robot is held as by the scenario urdf, at the steps STEPS. Needs a processor with extended
precision (x86).
"""

from __future__ import annotations

import logging
import sys

import numpy as np
from sizes import sized

from nh_control.control import lqr
from nh_control.scenarios.urdf import DEFAULT, urdf

STEPS = sized((0.01, 0.001, 0.0001), (0.01,))
ITERATIONS = 8
EXTENDED = np.longdouble


def gain_error(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, K: np.ndarray
) -> tuple[float, float]:
    """Largest error of a gain K (m, n), every entry relative to the largest one of K over the
    sizes `P_jj^{1/2}` and `R_ii^{-1/2}`, and the closed loop's spectral radius; infinite for a
    gain that does not stabilize.

    The exact gain is computed by Newton's method from K (Kleinman 1968; Hewer 1971): it converges
    from every stabilizing gain to the solution of the Riccati equation, whatever the units.
    """
    radius = float(np.abs(np.linalg.eigvals(A - B @ K)).max(initial=0.0))
    if radius >= 1:
        return np.inf, radius
    a, b, q, r, k = (np.asarray(value, EXTENDED) for value in (A, B, Q, R, K))
    for _ in range(ITERATIONS):
        # the cost P = sum_i (C^T)^i (Q + K^T R K) C^i of the closed loop, by doubling
        c, p = a - b @ k, q + k.T @ r @ k
        while np.abs(c).max() > 1e-30:
            p, c = p + c.T @ p @ c, c @ c
        k, before = _solve(r + b.T @ p @ b, b.T @ p @ a), k
        if np.abs(k - before).max() <= 1e-17 * np.abs(k).max():
            break
    sizes = np.sqrt(np.diag(r))[:, None] / np.sqrt(np.diag(p))
    return float(np.abs((K - k) * sizes).max() / np.abs(k * sizes).max()), radius


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution for a positive definite matrix, refined to extended precision."""
    scale = 1 / np.sqrt(np.diag(matrix))
    matrix, right = matrix * np.outer(scale, scale), right * scale[:, None]
    x = np.zeros_like(right)
    for _ in range(10):
        x = x + np.linalg.solve(matrix.astype(float), (right - matrix @ x).astype(float))
    return x * scale[:, None]


def robot_gain(file: str, h: float) -> tuple[int, float, float] | str:
    """Number of joints, error and spectral radius of a robot's gain, or why it has none."""
    try:
        scenario = urdf(file)
        model = scenario.model(step_s=h)
        reference = scenario.reference(model)
        x, u = reference.states[-1], reference.inputs[-1]
        Q, R, _ = scenario.weights
        K = lqr.infinite_horizon(model, x, u, Q, R).K
    except (ValueError, np.linalg.LinAlgError) as error:
        return f"{type(error).__name__}: {error}"
    return model.nu, *gain_error(*model.linearize(x, u), Q, R, K)


def main() -> None:
    logging.disable(logging.CRITICAL)
    for file in sys.argv[1:] or [str(DEFAULT)]:
        for h in STEPS:
            result = robot_gain(file, h)
            if isinstance(result, str):
                print(f"{file} h={h:g}: {result}", flush=True)
                break
            n, error, radius = result
            print(
                f"{file} h={h:g}: {n} inputs, error {error:.1e}, radius {radius:.7f}", flush=True
            )


if __name__ == "__main__":
    main()
