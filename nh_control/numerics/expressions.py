"""What type hints call the numbers and expressions that users write, and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

Expression: TypeAlias = ca.SX | ca.DM | float
"""An expression of symbols, or a constant one."""

Returned: TypeAlias = Expression | Sequence[Any]
"""What a user's function may return: an expression of its arguments, or a list or tuple of entries
or of rows.
"""

Graph: TypeAlias = Any
"""`ca.SX`, or `ca.MX` where a system is large: CasADi's own hints have no room for either."""

Vector: TypeAlias = np.ndarray | Sequence[float]
"""Numbers where expressions may stand instead; NumPy's `ArrayLike` takes CasADi's expressions for
arrays.
"""


def all_finite(values: np.ndarray) -> bool:
    """Whether all numbers of an array are finite: of the few of a state, which are asked for
    several times a step, faster than by NumPy's `all`.
    """
    return all(np.isfinite(values).ravel().tolist())


def lost(value: ca.SX) -> bool:
    """Whether there is a constant NaN in an expression: what Python's `math` makes of symbols."""
    f = ca.Function("value", ca.symvar(value), [value])
    constants = (k for k in range(f.n_instructions()) if f.instruction_id(k) == ca.OP_CONST)
    return any(math.isnan(f.instruction_constant(k)) for k in constants)


def as_expression(value: Returned) -> ca.SX:
    """What a user's function returned as one expression: a column of the entries of a list or
    tuple, a matrix of its rows.
    """
    if not isinstance(value, list | tuple):
        return ca.SX(value)
    rows = (ca.horzcat(*r) if isinstance(r, list | tuple | np.ndarray) else r for r in value)
    return ca.SX(ca.vertcat(*rows))
