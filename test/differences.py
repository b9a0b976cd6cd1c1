"""Derivatives at zero by central differences of order 8 (three Richardson extrapolations)."""

import numpy as np

FIRST = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
SECOND = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)


def derivative(f, t):
    """Return f'(0) of a function of one number, sampled at multiples of t."""
    return sum(c * (f(k * t) - f(-k * t)) for k, c in enumerate(FIRST, 1)) / t


def second_derivative(f, t):
    """Return f''(0) of a function of one number, sampled at multiples of t."""
    return (
        SECOND[0] * f(0.0) + sum(c * (f(k * t) + f(-k * t)) for k, c in enumerate(SECOND[1:], 1))
    ) / t**2


def jacobian(f, n, t):
    """Return the (m, n) Jacobian at zero of f from R^n to R^m."""
    return np.stack([derivative(lambda s: f(s * e), t) for e in np.eye(n)], axis=-1)


def hessian(f, n, t):
    """Return the (n, n) Hessian at zero of f from R^n to R; polarization gives mixed entries."""
    eye, h = np.eye(n), np.empty((n, n))
    for i in range(n):
        h[i, i] = second_derivative(lambda s: f(s * eye[i]), t)
        for j in range(i):
            both, opposite = (
                second_derivative(lambda s, d=eye[i] + sign * eye[j]: f(s * d), t)
                for sign in (1, -1)
            )
            h[i, j] = h[j, i] = (both - opposite) / 4
    return h
