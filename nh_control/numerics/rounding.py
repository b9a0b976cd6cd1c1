"""The round-off that the evaluation of an expression leaves in its value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import casadi as ca

ALGEBRAIC = (ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE, ca.OP_SQRT, ca.OP_INV, ca.OP_FABS)
"""Functions of one number that may have a unit."""


def rounding_sizes(
    f: ca.Function,
    arguments: Sequence[ca.SX],
    sizes: Sequence[ca.SX] | None = None,
    angle: float = 0.0,
) -> ca.SX:
    """Return the sizes (n) of the numbers whose round-off adds up in the n values of f(arguments),
    a function of `SX` expressions with one output.

    Each operation y = y(x) has `s(y) = sum_k |dy/dx_k| s(x_k)`, plus `|y|` for a function of one
    number; arguments and constants have `s(x) = |x|`. So the difference of two large numbers has
    the size of these numbers (running error analysis [higham2002 3.3]).

    With given `sizes` of the arguments the results are the sizes of the changes of f with its
    arguments. Arguments of sines and of other functions that take no units then have at least the
    size `angle`.
    """
    trace = _Trace(f, arguments)
    values, n = ca.vertcat(*trace.values), len(trace.values)
    own, rows, columns, slopes = ca.SX(n, 1), [*range(n)], [*range(n)], [ca.SX.ones(n)]
    own[trace.leaves] = ca.fabs(values[trace.leaves])
    for place, size in trace.sized(sizes or ()):
        own[place] = size
    for operation, places in trace.operations.items():
        y, *operands = ([place[k] for place in places] for k in range(len(places[0])))
        x = [ca.SX.sym("x", len(y)) for _ in operands]
        if len(operands) == 1:
            own[y] = ca.fabs(values[y])
        by_x = ca.gradient(ca.sum1(_applied(operation, x)), ca.vertcat(*x))
        known = ca.vertcat(*(values[place] for place in operands))
        slope = ca.fabs(ca.densify(ca.substitute(by_x, ca.vertcat(*x), known)))
        if angle and len(operands) == 1 and operation not in ALGEBRAIC:
            own[y] += slope * angle
        slopes.append(-slope)
        rows += y * len(operands)
        columns += [place for operand in operands for place in operand]
    unit_minus_slopes = ca.SX.triplet(rows, columns, ca.vertcat(*slopes), n, n)
    result_sizes = ca.SX(f.sparsity_out(0))
    result_sizes.nz[:] = ca.solve(unit_minus_slopes, ca.densify(own))[trace.results]
    return ca.densify(result_sizes)


@dataclass
class _Trace:
    """The evaluation of f(arguments): the values of constants and arguments, which are `leaves`,
    and of all operations, by places: (y, x_1, ...) of every operation, and those of the results.
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
            place[to[0]] = len(self.values)
            self.values.append(value)

    def sized(self, sizes: Sequence[ca.SX]) -> Iterator[tuple[int, ca.SX]]:
        """Places of arguments and their sizes."""
        for place, (argument, number) in self.inputs.items():
            if argument < len(sizes):
                yield place, sizes[argument].nz[number]


def _applied(operation: int, x: Sequence[ca.SX]) -> ca.SX:
    return ca.SX.unary(operation, *x) if len(x) == 1 else ca.SX.binary(operation, *x)
