"""C text for CasADi functions, which other C code calls with plain pointers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import casadi as ca

from nh_control.numerics.straight_line import in_pieces

SHORT = 1000
"""Maximum number of instructions of a function that shares common subexpressions. The search takes
10 us per instruction, which is what 6000 evaluations in the virtual machine save; C compilers
eliminate them anyway.
"""


def source(functions: Sequence[ca.Function]) -> str:
    """C text for functions. For each, it defines `int call_NAME(in0, ..., out0, ...)` and
    `function_NAME`, the routine for a `struct function` of function.h.
    """
    wrappers = (
        _wrapper(f, f"int call_{f.name()}") + _routine(f, f.name(), "int") for f in functions
    )
    return in_pieces(_generated(functions, "functions")) + "".join(wrappers)


def source_by_rows(functions: Sequence[ca.Function]) -> str:
    """C text for functions whose matrices are stored row by row."""
    return source([by_rows(f) for f in functions])


def static_source(
    functions: Mapping[str, ca.Function], prefix: str, routines: Collection[str] = ()
) -> str:
    """C text for named functions, to be included in other C text. It defines
    `static int call_NAME(in0, ..., out0, ...)` for each, and `function_NAME` for the names in
    `routines`, as in `Native`. All other names begin with the `prefix`.
    """
    named = {name: by_rows(f, name=f"{prefix}_{name}") for name, f in functions.items()}
    wrappers = (
        _wrapper(f, f"static int call_{name}")
        + (_routine(f, name, "static int") if name in routines else "")
        for name, f in named.items()
    )
    return _generated(list(named.values()), prefix) + "".join(wrappers)


def _generated(functions: Sequence[ca.Function], prefix: str) -> str:
    generator = ca.CodeGenerator(f"{prefix}.c", {"casadi_int": "long long int"})
    for f in functions:
        generator.add(f)
    return generator.dump()


def _wrapper(f: ca.Function, heading: str) -> str:
    """C text for a function that calls f on plain pointers and copies the sparse outputs into
    dense ones. If f itself had dense outputs, it would assign every zero and be slow to compile.
    """
    parameters = [f"const double *i{k}" for k in range(f.n_in())] + [
        f"double *o{k}" for k in range(f.n_out())
    ]
    before, after, results = "", "", []
    for k in range(f.n_out()):
        rows, columns = f.size_out(k)
        nnz = f.nnz_out(k)
        if nnz == rows * columns:
            results.append(f"o{k}")
            continue
        # scatter the nonzeros into zeros: at0[] contains their indices in a dense matrix
        places = ", ".join(map(str, f.sparsity_out(k).find())) or "0"
        before += f"    static const int at{k}[] = {{{places}}};\n    {_doubles(f's{k}', nnz)}"
        after += (
            f"    for (int i = 0; i < {rows * columns}; ++i) o{k}[i] = 0.0;\n"
            f"    for (int i = 0; i < {nnz}; ++i) o{k}[at{k}[i]] = s{k}[i];\n"
        )
        results.append(f"s{k}")
    arguments = ", ".join(f"i{k}" for k in range(f.n_in())) or "0"
    return (
        f"\n{heading}({', '.join(parameters)})\n{{\n{before}"
        f"    const double *arg[{f.sz_arg() + 1}] = {{{arguments}}};\n"
        f"    double *res[{f.sz_res() + 1}] = {{{', '.join(results) or '0'}}};\n"
        f"    casadi_int iw[{f.sz_iw() + 1}];\n    {_doubles('w', f.sz_w())}"
        f"    const int failed = {f.name()}(arg, res, iw, w, 0);\n{after}    return failed;\n}}\n"
    )


def _routine(f: ca.Function, name: str, result: str) -> str:
    """C text for `function_NAME`, which takes the addresses of its arguments and results as two
    lists.
    """
    arguments = [f"in[{k}]" for k in range(f.n_in())] + [f"out[{k}]" for k in range(f.n_out())]
    return (
        f"\n{result} function_{name}(const void *self, const double *const *in, "
        f"double *const *out)\n{{\n    (void)self;\n"
        f"    return call_{name}({', '.join(arguments)});\n}}\n"
    )


def _doubles(name: str, n: int) -> str:
    """The C declaration of an array of n doubles. A large array is static, and a small one is on
    the stack.
    """
    return f"{'static _Thread_local ' if n > 10_000 else ''}double {name}[{n + 1}];\n"


def by_rows(f: ca.Function, dense: bool = False, name: str = "") -> ca.Function:
    """The function with transposed outputs, so that CasADi stores the outputs row by row, and
    optionally with a different name. Short functions share common subexpressions.
    """
    # CasADi stores matrices by columns: columns of the transpose are rows
    kind: Any = ca.SX if f.is_a("SXFunction") else ca.MX
    inputs = [kind.sym(f.name_in(k), *f.size_in(k)) for k in range(f.n_in())]
    outputs = [ca.densify(o.T) if dense else o.T for o in f.call(inputs)]
    # the decision is the same for compiled code and the virtual machine, so their bits are, too
    share = kind is ca.SX and f.n_instructions() <= SHORT
    return ca.Function(
        name or f.name(), inputs, outputs, f.name_in(), f.name_out(), {"cse": share}
    )
