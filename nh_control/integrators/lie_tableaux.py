"""Lie group methods as data: Runge-Kutta-Munthe-Kaas and commutator-free tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

Weights: TypeAlias = tuple[float, ...]
Bracket: TypeAlias = tuple[float, int, int]


@dataclass(frozen=True)
class MuntheKaas:
    """An explicit Runge-Kutta method (a, b) of order `order` for `u' = dtau^{-1}_u(f(tau(u) . x))`
    [celledoni2021 (6)]. The weights b_hat belong to a second solution of order `embedded_order`.

    With `brackets`, the stage derivatives are `k_i = h f_i`, and stage i (or the end of the step
    for i = s) has
    `u_i = sum_j a_ij k_j + sum c [k_j, k_l]` over the (c, j, l) in brackets[i].
    """

    name: str
    order: int
    a: tuple[Weights, ...]
    b: Weights
    b_hat: Weights | None = None
    embedded_order: int = 0
    brackets: tuple[tuple[Bracket, ...], ...] | None = None
    source: str = ""

    @property
    def main(self) -> MuntheKaas:
        """The method without its second solution and the stages that only it uses."""
        # the embedded method may need stages after the last weight of b
        s = max(i for i, weight in enumerate(self.b) if weight) + 1
        return replace(self, a=self.a[:s], b=self.b[:s], b_hat=None, embedded_order=0)

    @property
    def embedded_method(self) -> MuntheKaas:
        """The second solution as a method; raises ValueError if there is none."""
        if self.b_hat is None:
            raise ValueError(f"{self.name} has no embedded method")
        order = self.embedded_order
        return replace(self, order=order, b=self.b_hat, b_hat=None, embedded_order=0)

    @property
    def needs_exp(self) -> bool:
        """Whether it has its order with the exponential only, not with other coordinates tau."""
        return self.brackets is not None


@dataclass(frozen=True)
class Exponentials:
    """One factor `tau(h sum_i w_i f_i)` for each row w in `rows`. The first row acts first. The
    factors act on the point `base`, which is 0 for the initial state, and i for stage i.
    """

    base: int
    rows: tuple[Weights, ...]


@dataclass(frozen=True)
class CommutatorFree:
    """A commutator-free method [celledoni2021 2.2] of order `order`. `stages` are the points at
    which f_1, f_2, ... are evaluated (f_0 is the field at the initial state). `end` is the final
    state, and `embedded` is the final state of a second method of order `embedded_order`.
    """

    name: str
    order: int
    stages: tuple[Exponentials, ...]
    end: Exponentials
    embedded: Exponentials | None = None
    embedded_order: int = 0
    source: str = ""

    @property
    def main(self) -> CommutatorFree:
        """The method without its second solution and the stages that only it uses."""
        # rows of the end use f_0 ... f_{used - 1}
        used = max(len(row) for row in self.end.rows)
        return replace(self, stages=self.stages[: used - 1], embedded=None, embedded_order=0)

    @property
    def embedded_method(self) -> CommutatorFree:
        """The second solution as a method; raises ValueError if there is none."""
        if self.embedded is None:
            raise ValueError(f"{self.name} has no embedded method")
        order, end = self.embedded_order, self.embedded
        return replace(self, order=order, end=end, embedded=None, embedded_order=0)

    @property
    def needs_exp(self) -> bool:
        """Whether it has its order with the exponential only, not with other coordinates tau."""
        return True


Table: TypeAlias = MuntheKaas | CommutatorFree


def munthe_kaas(
    name: str,
    order: int,
    a: ArrayLike,
    b: ArrayLike,
    b_hat: ArrayLike | None = None,
    embedded_order: int = 0,
    source: str = "",
) -> MuntheKaas:
    """The table for an explicit Butcher tableau with a (s, s), b and b_hat (s).

    Raises ValueError if a is not strictly lower triangular, if the shapes do not match, or if the
    weights do not add up to one.
    """
    a_, b_ = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    hat = b_ if b_hat is None else np.asarray(b_hat, dtype=float)
    s = len(b_)
    if a_.shape != (s, s) or hat.shape != (s,) or np.triu(a_).any():
        raise ValueError(
            f"{name}: a must be strictly lower triangular, ({s}, {s}) for the {s} weights b, got "
            f"shape {a_.shape}"
        )
    if not np.allclose([b_.sum(), hat.sum()], 1, rtol=0, atol=1e-12):
        raise ValueError(f"{name}: weights must add up to 1, got {b_.sum()} and {hat.sum()}")
    return MuntheKaas(
        name,
        order,
        # only the strictly lower triangle
        tuple(tuple(map(float, row[:i])) for i, row in enumerate(a_)),
        tuple(map(float, b_)),
        None if b_hat is None else tuple(map(float, hat)),
        embedded_order,
        source=source,
    )


CLASSICAL = ((0, 0, 0, 0), (1 / 2, 0, 0, 0), (0, 1 / 2, 0, 0), (0, 0, 1, 0))
CLASSICAL_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
# the weights of order 5 are the last row of the tableau (first same as last)
_DP_WEIGHTS = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0)
# b_hat - b
_DP_ERROR = (-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40)
DORMAND_PRINCE = (
    (0, 0, 0, 0, 0, 0, 0),
    (1 / 5, 0, 0, 0, 0, 0, 0),
    (3 / 40, 9 / 40, 0, 0, 0, 0, 0),
    (44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0),
    _DP_WEIGHTS,
)
"""All seven stages. The last stage is at the end of the step. SciPy also contains these
coefficients, but importing it takes longer than a node may take to start.
"""

# Heun's method of order 3
HEUN_3 = ((0, 0, 0), (1 / 3, 0, 0), (0, 2 / 3, 0))

RKMK = (
    munthe_kaas("rkmk3", 3, HEUN_3, (1 / 4, 0, 3 / 4), source="celledoni2021 (6), Heun's tableau"),
    munthe_kaas("rkmk4", 4, CLASSICAL, CLASSICAL_WEIGHTS, source="celledoni2021 (6)"),
    MuntheKaas(
        "rkmk4_two_commutators",
        4,
        ((), (1 / 2,), (0, 1 / 2), (0, 0, 1)),
        CLASSICAL_WEIGHTS,
        brackets=((), (), ((-1 / 8, 0, 1),), (), ((-1 / 12, 0, 3),)),
        source="celledoni2021 2.2, from Celledoni and Owren",
    ),
    munthe_kaas(
        "rkmk54",
        5,
        DORMAND_PRINCE,
        _DP_WEIGHTS,
        np.add(_DP_WEIGHTS, _DP_ERROR),
        4,
        source="celledoni2021 4.1, Dormand and Prince",
    ),
)


def _commutator_free(
    name: str,
    order: int,
    stages: Sequence[tuple[int, Sequence[Weights]]],
    end: tuple[int, Sequence[Weights]],
    embedded: tuple[int, Sequence[Weights]] | None,
    source: str,
) -> CommutatorFree:
    """A commutator-free method. The order of its embedded method, if it has one, is lower by
    one.
    """
    rows = [Exponentials(base, tuple(rows)) for base, rows in stages]
    hat = None if embedded is None else Exponentials(embedded[0], tuple(embedded[1]))
    after = Exponentials(end[0], tuple(end[1]))
    return CommutatorFree(
        name, order, tuple(rows), after, hat, order - 1 if embedded else 0, source
    )


# (base, rows): stage 3 acts on stage 1, and all others act on the initial state
_CF4_STAGES = ((0, ((1 / 2,),)), (0, ((0, 1 / 2),)), (1, ((-1 / 2, 0, 1),)))
_CF4_END = (0, ((1 / 4, 1 / 6, 1 / 6, -1 / 12), (-1 / 12, 1 / 6, 1 / 6, 1 / 4)))

COMMUTATOR_FREE = (
    _commutator_free("lie_euler", 1, (), (0, ((1,),)), None, "celledoni2021 2.2"),
    _commutator_free(
        "lie_euler_heun",
        2,
        ((0, ((1,),)),),
        (0, ((1 / 2, 1 / 2),)),
        None,
        "celledoni2021 3.4.4",
    ),
    _commutator_free(
        "crouch_grossman_3",
        3,
        ((0, ((3 / 4,),)), (0, ((119 / 216,), (0, 17 / 108)))),
        (0, ((13 / 51,), (0, -2 / 3), (0, 0, 24 / 17))),
        None,
        "celledoni2021 2.2, Crouch and Grossman",
    ),
    _commutator_free(
        "cf32",
        3,
        ((0, ((1 / 3,),)), (0, ((0, 2 / 3),))),
        (1, ((-1 / 12, 0, 3 / 4),)),
        (0, ((0, 1 / 2, 1 / 2),)),
        "celledoni2021 4.2.1, first pair",
    ),
    _commutator_free(
        "cf32_third_stage",
        3,
        ((0, ((2 / 3,),)), (0, ((5 / 12, 1 / 4),))),
        (2, ((-1 / 6, -1 / 2, 1),)),
        (0, ((1 / 4, 0, 3 / 4),)),
        "celledoni2021 4.2.1, second pair",
    ),
    _commutator_free(
        "cf43",
        4,
        (*_CF4_STAGES, (0, ((0, 3 / 4),))),
        _CF4_END,
        (0, ((1 / 3,), (-1 / 9, 1 / 3, 0, 0, 4 / 9))),
        "celledoni2021 (9), (34)",
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in (*COMMUTATOR_FREE, *RKMK)}
"""All tables by name, including pairs."""
