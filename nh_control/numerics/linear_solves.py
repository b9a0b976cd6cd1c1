"""Linear systems with symbolic matrices."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca


def factorized(matrix: ca.SX) -> Callable[[ca.SX], ca.SX]:
    """A function that solves linear systems with the given symmetric matrix. The matrix must have
    an LDL^T factorization without pivoting.
    """
    d, upper, order = ca.ldl(ca.sparsify(matrix), False)
    return lambda b: ca.ldl_solve(ca.densify(b), d, upper, order)
