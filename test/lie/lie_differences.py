"""Derivatives by central differences of high order, on real arguments only."""

from __future__ import annotations

import numpy as np

FIRST = np.array([5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260])
"""Weights of f(k s) - f(-k s), k = 1 ... 5, over s: the first derivative to tenth order."""

SECOND = np.array([5 / 3, -5 / 21, 5 / 126, -5 / 1008, 1 / 3150])
"""Weights of f(k s) - 2 f(0) + f(-k s), k = 1 ... 5, over s^2: the second derivative to tenth
order.
"""


def jacobian(f, n: int, step: float) -> np.ndarray:
    """Derivative of f: R^n -> R^m at zero, (m, n)."""
    columns = []
    for e in step * np.eye(n):
        columns.append(sum(w * (f(k * e) - f(-k * e)) for k, w in enumerate(FIRST, 1)) / step)
    return np.array(columns).T


def second_along(f, step: float) -> float:
    """Second derivative at zero of a function of one number."""
    return (
        sum(w * (f(k * step) - 2 * f(0.0) + f(-k * step)) for k, w in enumerate(SECOND, 1))
        / step**2
    )
