"""Conversion of CasADi expressions to SymPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import casadi as ca

try:
    import sympy as sp
except ImportError as missing:
    raise ImportError("LaTeX needs SymPy: pip install sympy, or the extra 'latex'") from missing

LARGEST_DENOMINATOR = 1000
"""Maximum denominator of constants that are written as fractions."""

LONG = 60
"""Maximum number of operations in a part that is not abbreviated."""


def to_sympy(
    expression: ca.SX,
    symbols: ca.SX,
    names: Sequence[Any],
    series: bool = True,
    abbreviate: Callable[[Any], Any] = lambda value: value,
) -> list[Any]:
    """The entries of a CasADi expression, column by column, as SymPy expressions in which `names`
    replace the `symbols`. Without `series`, functions that are 0/0 at 0, such as `sin(a) / a` for
    rotations, appear only in closed form (see `geometry.even_functions`). A part with more than
    LONG operations becomes `abbreviate(part)`, because a graph can become arbitrarily large when
    it is written out. Raises ValueError for an operation that SymPy does not have.
    """
    # an SX function is a list of instructions that read and write the entries of a workspace
    f = ca.Function("f", [symbols], [ca.densify(expression)])
    workspace: dict[int, Any] = {}
    sizes: dict[int, int] = {}
    out: list[Any] = [sp.Integer(0)] * f.nnz_out(0)
    dropped = set() if series else _series_conditions(f)
    for k in range(f.n_instructions()):
        operation, arguments = f.instruction_id(k), f.instruction_input(k)
        size = 1
        # a false condition selects the closed form
        if k in dropped:
            value = sp.Integer(0)
        elif operation == ca.OP_INPUT:
            value = names[arguments[1]]
        elif operation == ca.OP_CONST:
            value = _constant(f.instruction_constant(k))
        elif operation == ca.OP_OUTPUT:
            out[f.instruction_output(k)[1]] = workspace[arguments[0]]
            continue
        elif operation in OPERATIONS:
            value = OPERATIONS[operation](*(workspace[i] for i in arguments))
            # operations in the expression tree, not in the graph
            size = 1 + sum(sizes[i] for i in arguments)
            if value.is_number:
                size = 1
            elif size > LONG:
                value, size = abbreviate(value), 1
        else:
            raise ValueError(f"SymPy has no operation for instruction {k} (number {operation})")
        place = f.instruction_output(k)[0]
        workspace[place], sizes[place] = value, size
    return out


def _series_conditions(f: ca.Function) -> set[int]:
    """The instructions `a < constant` that choose between a series and a closed form. The closed
    form contains `if_else(a < constant, 1, a)` in place of a, which identifies these instructions.
    """
    last: dict[int, int] = {}  # the last instruction that wrote to each workspace entry
    conditions: dict[int, int] = {}
    negations: dict[int, int] = {}
    ones, guarded, guards = set[int](), set[int](), set[int]()
    for k in range(f.n_instructions()):
        operation = f.instruction_id(k)
        if operation == ca.OP_OUTPUT:
            continue
        operands = [] if operation in (ca.OP_INPUT, ca.OP_CONST) else f.instruction_input(k)
        sources = [last[i] for i in operands]
        if operation == ca.OP_CONST and f.instruction_constant(k) == 1.0:
            ones.add(k)
        elif operation == ca.OP_LT:
            conditions[k] = sources[0]
        elif operation == ca.OP_NOT and sources[0] in conditions:
            negations[k] = sources[0]
        elif operation == ca.OP_IF_ELSE_ZERO:
            # if_else(c, 1, a) = if_else_zero(c, 1) + if_else_zero(not c, a)
            condition, value = sources
            if condition in conditions and value in ones:
                guards.add(condition)
            elif condition in negations and conditions[negations[condition]] == value:
                guarded.add(negations[condition])
        last[f.instruction_output(k)[0]] = k
    return guards & guarded


def _constant(value: float) -> Any:
    """An integer, a simple fraction or pi if it is exactly equal to the value."""
    if value != value or abs(value) == float("inf"):
        return sp.Float(value)
    # 1/3 instead of 0.333... if both are the same float
    near = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    if float(near) == value:
        return sp.Rational(near.numerator, near.denominator)
    return sp.pi if value == float(sp.pi) else sp.Float(value)


def _number(condition: Any) -> Any:
    """1 if a condition holds and 0 otherwise, as in CasADi."""
    return sp.Piecewise((1, condition), (0, True))


def _holds(number: Any) -> Any:
    return sp.Ne(number, 0)


def _either_or_zero(condition: Any, value: Any) -> Any:
    if condition.is_number:
        return value if condition else sp.Integer(0)
    return sp.Piecewise((value, _holds(condition)), (0, True))


OPERATIONS: dict[int, Callable[..., Any]] = {
    ca.OP_ASSIGN: lambda a: a,
    ca.OP_ADD: lambda a, b: a + b,
    ca.OP_SUB: lambda a, b: a - b,
    ca.OP_MUL: lambda a, b: a * b,
    ca.OP_DIV: lambda a, b: a / b,
    ca.OP_NEG: lambda a: -a,
    ca.OP_INV: lambda a: 1 / a,
    ca.OP_SQ: lambda a: a**2,
    ca.OP_TWICE: lambda a: 2 * a,
    ca.OP_SQRT: sp.sqrt,
    ca.OP_POW: lambda a, b: a**b,
    ca.OP_CONSTPOW: lambda a, b: a**b,
    ca.OP_EXP: sp.exp,
    ca.OP_LOG: sp.log,
    ca.OP_LOG1P: lambda a: sp.log(1 + a),
    ca.OP_EXPM1: lambda a: sp.exp(a) - 1,
    ca.OP_SIN: sp.sin,
    ca.OP_COS: sp.cos,
    ca.OP_TAN: sp.tan,
    ca.OP_ASIN: sp.asin,
    ca.OP_ACOS: sp.acos,
    ca.OP_ATAN: sp.atan,
    ca.OP_ATAN2: sp.atan2,
    ca.OP_SINH: sp.sinh,
    ca.OP_COSH: sp.cosh,
    ca.OP_TANH: sp.tanh,
    ca.OP_ASINH: sp.asinh,
    ca.OP_ACOSH: sp.acosh,
    ca.OP_ATANH: sp.atanh,
    ca.OP_HYPOT: lambda a, b: sp.sqrt(a**2 + b**2),
    ca.OP_FABS: sp.Abs,
    ca.OP_SIGN: sp.sign,
    ca.OP_FMIN: sp.Min,
    ca.OP_FMAX: sp.Max,
    ca.OP_FLOOR: sp.floor,
    ca.OP_CEIL: sp.ceiling,
    ca.OP_ERF: sp.erf,
    ca.OP_LT: lambda a, b: _number(a < b),
    ca.OP_LE: lambda a, b: _number(a <= b),
    ca.OP_EQ: lambda a, b: _number(sp.Eq(a, b)),
    ca.OP_NE: lambda a, b: _number(sp.Ne(a, b)),
    ca.OP_NOT: lambda a: _number(sp.Eq(a, 0)),
    ca.OP_AND: lambda a, b: _number(sp.And(_holds(a), _holds(b))),
    ca.OP_OR: lambda a, b: _number(sp.Or(_holds(a), _holds(b))),
    ca.OP_IF_ELSE_ZERO: _either_or_zero,
}
"""SymPy functions, by CasADi operation."""
