"""Gauss quadrature and the Lagrange polynomials of collocation on [0, 1] [Hairer, Lubich, Wanner:
Geometric Numerical Integration, II.1.2].
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyfromroots


def gauss(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the points c (n) and weights b (n) on [0, 1] that integrate polynomials of degree 2 n
    - 1 exactly.
    """
    # from [-1, 1] to [0, 1]
    points, weights = np.polynomial.legendre.leggauss(n)
    return (1 + points) / 2, weights / 2


def lagrange(c: np.ndarray) -> list[Polynomial]:
    """Return the polynomials l_j with `l_j(c_i) = delta_ij`, one for every point in c."""
    basis = []
    for j, point in enumerate(c):
        others = np.delete(c, j)
        basis.append(Polynomial(polyfromroots(others)) / np.prod(point - others))
    return basis


def integrals(c: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the integrals `a_ij = int_0^{ends_i} l_j` (ends, points) of the Lagrange polynomials
    for the points c.
    """
    return np.column_stack([p.integ()(ends) for p in lagrange(c)])
