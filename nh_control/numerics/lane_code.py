"""C text for CasADi functions on processor vectors, which contain one number from each of several
runs (native/lanes.h).
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from nh_control.numerics.amalgamation import amalgamation
from nh_control.numerics.generated_c import by_rows
from nh_control.numerics.instructions import BINARY, Instruction, instructions
from nh_control.numerics.straight_line import LONG, in_pieces

EXPRESSIONS = {
    **{"assign": "{0}", "neg": "-{0}", "sq": "{0}*{0}", "twice": "2.*{0}", "inv": "1./{0}"},
    **{name: f"{{0}}{sign}{{1}}" for name, sign in zip(("add", "sub", "mul", "div"), "+-*/")},
    **{
        name: f"as_numbers({{0}}{sign}{{1}})"
        for name, sign in {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}.items()
    },
    "not": "as_numbers({0}==0.0)",
    "and": "as_numbers(({0}!=0.0)&({1}!=0.0))",
    "or": "as_numbers(({0}!=0.0)|({1}!=0.0))",
    "if_else_zero": "choose({0}!=0.0,{1},in_all(0.0))",
    **{
        "fabs": "lane_fabs({0})",
        "sqrt": "lane_sqrt({0})",
    },
}
"""C expressions for operations on vectors; other operations are functions in lanes.h."""


def lane_source(functions: Sequence[ca.Function]) -> str:
    """C text that defines `static void lane_NAME(in0, ..., out0, ...)` for each function, on dense
    arrays of `lanes`, with matrices stored row by row.
    """
    texts = (_function(k, by_rows(f, dense=True)) for k, f in enumerate(functions))
    kinds = "#define casadi_real lanes\n#define casadi_int long long\n"
    return vectors() + kinds + in_pieces("".join(texts))


def vectors() -> str:
    """The C text that defines the vectors and their operations."""
    return amalgamation(["lanes.h"], {})


def _function(k: int, f: ca.Function) -> str:
    code = [*instructions(f)]
    # long functions are cut into pieces, which do not share the variables b
    pairs = _sines_and_cosines(code) if len(code) <= LONG else {}
    lines = (pairs.get(k) or _statement(instruction) for k, instruction in enumerate(code))
    body = "".join(f"  {line}\n" for line in lines)
    registers = sorted({f"a{each.target}" for each in code if each.name != "output"})
    registers += [f"b{k}" for k in range(len(pairs) // 2)]
    declared = f"  casadi_real {', '.join(registers)};\n" if registers else ""
    arguments = ", ".join(f"i{i}" for i in range(f.n_in()))
    results = ", ".join(f"o{i}" for i in range(f.n_out()))
    parameters = [f"const lanes *i{i}" for i in range(f.n_in())]
    parameters += [f"lanes *o{i}" for i in range(f.n_out())]
    return (
        f"static int casadi_f{k}(const casadi_real** arg, casadi_real** res, casadi_int* iw, "
        f"casadi_real* w, int mem) {{\n{declared}{body}"
        f"  return 0;\n}}\n"
        f"static void lane_{f.name()}({', '.join(parameters)})\n{{\n"
        f"    const lanes *arg[] = {{{arguments}}};\n    lanes *res[] = {{{results}}};\n"
        f"    casadi_f{k}(arg, res, 0, 0, 0);\n}}\n"
    )


def _sines_and_cosines(code: Sequence[Instruction]) -> dict[int, str]:
    """Statements, by index, for pairs of sine and cosine of the same number, which one call
    computes together. The second statement reads its value from an additional variable.
    """
    set_at, first = dict[int, int](), dict[tuple[int, int, str], int]()
    statements = dict[int, str]()
    for k, (name, target, operands, _) in enumerate(code):
        if name in ("sin", "cos"):
            # a pair reads the same register, set by the same statement
            (number,) = operands
            other = first.pop((number, set_at[number], "cos" if name == "sin" else "sin"), None)
            if other is None:
                first[number, set_at[number], name] = k
            else:
                variable = f"b{len(statements) // 2}"
                statements[other] = (
                    f"a{code[other].target}=lane_{code[other].name}_and_other(a{number},&{variable});"
                )
                statements[k] = f"a{target}={variable};"
        if name != "output":
            set_at[target] = k
    return statements


def _statement(instruction: Instruction) -> str:
    name, target, operands, value = instruction
    if name == "output":
        source, place = operands
        return f"if (res[{target}]!=0) res[{target}][{place}]=a{source};"
    if name == "const":
        return f"a{target}=in_all({_number(value)});"
    if name == "input":
        argument, place = operands
        return f"a{target}=arg[{argument}][{place}];"
    name = "pow" if name == "constpow" else name
    if name not in EXPRESSIONS:  # C functions have two arguments; some use only the first
        operands = operands if name in BINARY else operands * 2
    form = EXPRESSIONS.get(name, f"lane_{name}({{0}},{{1}})")
    return f"a{target}={form.format(*(f'a{operand}' for operand in operands))};"


def _number(value: float) -> str:
    special = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
    return special.get(repr(value), repr(value))
