"""Types for numbers and expressions in type hints, and conversion of user expressions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

Expression: TypeAlias = ca.SX | ca.DM | float
"""A symbolic expression or a constant."""

Returned: TypeAlias = Expression | Sequence[Any]
"""The result of a user's function: an expression, or a list or tuple of entries or rows."""

Graph: TypeAlias = Any
"""`ca.SX`, or `ca.MX` for large systems. CasADi's type hints do not cover both."""

Vector: TypeAlias = np.ndarray | Sequence[float]
"""Numbers for functions that also accept expressions. NumPy's `ArrayLike` is not suitable here
because it includes CasADi expressions.
"""


def all_finite(values: np.ndarray) -> bool:
    """Return whether all numbers in an array are finite. For the few numbers in a state, which are
    checked several times per step, this is faster than NumPy's `all`.
    """
    return all(np.isfinite(values).ravel().tolist())


def contains_nan(value: ca.SX) -> bool:
    """Return whether an expression contains a constant NaN, which Python's `math` functions return
    for symbols.
    """
    # constants are instructions in the function
    f = ca.Function("value", ca.symvar(value), [value])
    constants = (k for k in range(f.n_instructions()) if f.instruction_id(k) == ca.OP_CONST)
    return any(math.isnan(f.instruction_constant(k)) for k in constants)


def require_written_out(what: str, value: ca.SX) -> None:
    """Raise ValueError, with a message that begins with `what`, for an expression that calls
    opaque functions, such as those from `ca.interpolant` and `ca.external`. Such functions have
    neither second derivatives nor C code.
    """
    require_expressions(what, [ca.Function("value", ca.symvar(value), [value])])


def require_expressions(what: str, functions: Iterable[ca.Function]) -> None:
    """Raise ValueError as `require_written_out` does, for the expressions in functions."""
    parts = (part for f in functions for part in (f, *f.find_functions()))
    calls = (f for part in parts if part.is_a("SXFunction") for f in part.find_functions())
    for f in calls:
        if not f.is_a("SXFunction") and not f.is_a("MXFunction"):
            raise ValueError(
                f"{what} calls the function {f.name()!r} ({f.class_name()}), which cannot be "
                "differentiated twice; write a table or a spline as nh.Spline(x, y), and other "
                "functions with CasADi's operations"
            )


def split(vector: ca.SX, count: int) -> tuple[ca.SX, ca.SX]:
    """Split a vector into its first `count` entries and the others. Empty parts are columns,
    whereas CasADi's `x[:0]` of a vector with one entry is a row.
    """
    first, others = ca.vertsplit(vector, [0, count, vector.shape[0]])
    return first, others


class NoValue(ValueError):
    """Raised if a user's function returns nothing."""


def as_expression(value: Returned) -> ca.SX:
    """Convert the result of a user's function to one expression: a list or tuple of entries
    becomes a column, and a list of rows becomes a matrix.
    """
    if value is None:
        raise NoValue("the function returns None; end it with `return` and an expression")
    if not isinstance(value, list | tuple):
        return ca.SX(value)
    rows = (ca.horzcat(*r) if isinstance(r, list | tuple | np.ndarray) else r for r in value)
    return ca.SX(ca.vertcat(*rows))
