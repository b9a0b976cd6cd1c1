"""The instructions of CasADi functions, for translation into other languages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import casadi as ca

NAMES = {
    getattr(ca, f"OP_{name.upper()}"): name
    for name in (
        *("assign", "add", "sub", "mul", "div", "neg", "exp", "log", "pow", "constpow", "sqrt"),
        *("sq", "twice", "sin", "cos", "tan", "asin", "acos", "atan", "lt", "le", "eq", "ne"),
        *("not", "and", "or", "floor", "ceil", "fmod", "fabs", "sign", "copysign"),
        *("if_else_zero", "erf", "fmin", "fmax", "inv", "sinh", "cosh", "tanh", "asinh", "acosh"),
        *("atanh", "atan2", "log1p", "expm1", "hypot", "const", "input", "output"),
    )
}
"""Operations by their CasADi numbers; `BINARY` contains the operations with two arguments."""
BINARY = frozenset(
    (
        *("add", "sub", "mul", "div", "pow", "constpow", "lt", "le", "eq", "ne", "and", "or"),
        *("fmod", "copysign", "if_else_zero", "fmin", "fmax", "atan2", "hypot"),
    )
)


class Instruction(NamedTuple):
    """An operation on registers, `target = name(*operands)`. A `const` sets target = value. An
    `input` sets target to nonzero operands[1] of argument operands[0]. An `output` sets nonzero
    operands[1] of result `target` to register operands[0].
    """

    name: str
    target: int
    operands: tuple[int, ...]
    value: float = 0.0


def untranslated(f: ca.Function) -> str:
    """The reason why the instructions of a function cannot be translated; "" if they can."""
    if not f.is_a("SXFunction"):
        return f"the function {f.name()} consists of calls to other functions"
    numbers = {f.instruction_id(k) for k in range(f.n_instructions())} - set(NAMES)
    if numbers:
        operations = {value: name for name, value in vars(ca).items() if name.startswith("OP_")}
        names = sorted(operations.get(number, str(number)) for number in numbers)
        return f"the function {f.name()} contains {', '.join(names)}"
    return ""


def instructions(f: ca.Function) -> Iterator[Instruction]:
    """The instructions of a function that consists of scalar operations, in order. Raises
    ValueError if there are any other operations.
    """
    if reason := untranslated(f):
        raise ValueError(f"{reason}; expected scalar operations of {sorted(NAMES.values())}")
    for k in range(f.n_instructions()):
        name, source = NAMES[f.instruction_id(k)], f.instruction_input(k)
        target = f.instruction_output(k)
        if name == "const":
            yield Instruction(name, target[0], (), f.instruction_constant(k))
        elif name == "output":
            yield Instruction(name, target[0], (source[0], target[1]))
        else:
            yield Instruction(name, target[0], tuple(source))
