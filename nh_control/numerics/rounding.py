"""The round-off in the value of an expression."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import casadi as ca

ALGEBRAIC = (ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE, ca.OP_SQRT, ca.OP_INV, ca.OP_FABS)
"""Unary operations whose argument may have a unit."""


def rounding_sizes(
    f: ca.Function,
    arguments: Sequence[ca.SX],
    sizes: Sequence[ca.SX] | None = None,
    angle: float = 0.0,
) -> ca.SX:
    """Return the sizes (n) of the numbers whose round-off adds up in the n values of f(arguments).
    f is an `SX` function with one output.

    Each operation y = y(x) has `s(y) = sum_k |dy/dx_k| s(x_k)`, plus `|y|` for a unary operation.
    Arguments and constants have `s(x) = |x|`. Therefore, the difference of two large numbers has
    the size of these numbers (running error analysis [higham2002 3.3]).

    If the `sizes` of the arguments are given, the results are the sizes of the corresponding
    changes in f. Arguments of sines and other dimensionless functions then have at least the size
    `angle`.
    """
    trace = _Trace(f, arguments)
    values, n = ca.vertcat(*trace.values), len(trace.values)
    local, rows, columns, slopes = ca.SX(n, 1), [*range(n)], [*range(n)], [ca.SX.ones(n)]
    local[trace.leaves] = ca.fabs(values[trace.leaves])
    for place, size in trace.sized(sizes or ()):
        local[place] = size
    # one derivative per kind of operation, for all its occurrences at once
    for operation, places in trace.operations.items():
        y, *operands = ([place[k] for place in places] for k in range(len(places[0])))
        x = [ca.SX.sym("x", len(y)) for _ in operands]
        if len(operands) == 1:
            local[y] = ca.fabs(values[y])
        by_x = ca.gradient(ca.sum1(_applied(operation, x)), ca.vertcat(*x))
        known = ca.vertcat(*(values[place] for place in operands))
        # |dy/dx| at the values of the operands
        slope = ca.fabs(ca.densify(ca.substitute(by_x, ca.vertcat(*x), known)))
        if angle and len(operands) == 1 and operation not in ALGEBRAIC:
            local[y] += slope * angle
        slopes.append(-slope)
        rows += y * len(operands)
        columns += [place for operand in operands for place in operand]
    # (I - |dy/dx|) s = sizes of the new round-off, a lower triangular system in the order of the
    # operations
    unit_minus_slopes = ca.SX.triplet(rows, columns, ca.vertcat(*slopes), n, n)
    result_sizes = ca.SX(f.sparsity_out(0))
    result_sizes.nz[:] = ca.solve(unit_minus_slopes, ca.densify(local))[trace.results]
    return ca.densify(result_sizes)


@dataclass
class _Trace:
    """The evaluation of f(arguments). It contains the values of constants and arguments, which are
    `leaves`, and of all operations, the indices (y, x_1, ...) for every operation, and the indices
    of the results.
    """

    f: ca.Function
    arguments: Sequence[ca.SX]
    values: list[ca.SX] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)
    inputs: dict[int, tuple[int, int]] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)
    operations: dict[int, list[list[int]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        f, place = self.f, [0] * self.f.sz_w()
        self.results = [0] * f.nnz_out(0)
        for k in range(f.n_instructions()):
            operation, of = f.instruction_id(k), f.instruction_input(k)
            to = f.instruction_output(k)
            if operation == ca.OP_OUTPUT:
                self.results[to[1]] = place[of[0]]
                continue
            if operation == ca.OP_CONST:
                value = ca.SX(f.instruction_constant(k))
            elif operation == ca.OP_INPUT:
                value = self.arguments[of[0]].nz[of[1]]
            else:
                operands = [place[i] for i in of]
                value = _applied(operation, [self.values[i] for i in operands])
                self.operations[operation].append([len(self.values), *operands])
            if operation == ca.OP_INPUT:
                self.inputs[len(self.values)] = of[0], of[1]
            if operation in (ca.OP_CONST, ca.OP_INPUT):
                self.leaves.append(len(self.values))
            # registers are reused, so remember the last value of each
            place[to[0]] = len(self.values)
            self.values.append(value)

    def sized(self, sizes: Sequence[ca.SX]) -> Iterator[tuple[int, ca.SX]]:
        """The indices of the arguments, with their sizes."""
        for place, (argument, number) in self.inputs.items():
            if argument < len(sizes):
                yield place, sizes[argument].nz[number]


def _applied(operation: int, x: Sequence[ca.SX]) -> ca.SX:
    if len(x) == 1:
        return ca.SX.unary(operation, x[0])
    a, b = x
    return ca.SX.binary(operation, a, b)
