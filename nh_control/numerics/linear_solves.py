"""Linear systems of equations with symbolic matrices."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca


def factorized(matrix: ca.SX) -> Callable[[ca.SX], ca.SX]:
    """Solves with a symmetric matrix whose factors exist without pivoting."""
    d, upper, order = ca.ldl(ca.sparsify(matrix), False)
    return lambda b: ca.ldl_solve(ca.densify(b), d, upper, order)
