"""Higher-order compositions of a symmetric method. The substeps are fractions of h, some of them
negative, chosen so that their errors cancel.
"""

from __future__ import annotations

from dataclasses import replace

from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.registry import Integrator, first_of, if_prescribed
from nh_control.integrators.variational import INTEGRATORS as VARIATIONAL
from nh_control.mechanics.system import System

SUBSTEP_PROPERTIES = ("velocity constraints at the middle",)
"""Properties of the substeps that the composition does not have."""

_HALVES = {
    (6, 7): (
        0.78451361047755726381949763,
        0.23557321335935813368479318,
        -1.17767998417887100694641568,
        1.31518632068391121888424973,
    ),
    (6, 9): (
        0.39216144400731413927925056,
        0.33259913678935943859974864,
        -0.70624617255763935980996482,
        0.08221359629355080023149045,
        0.79854399093482996339895035,
    ),
    (8, 15): (
        0.74167036435061295344822780,
        -0.40910082580003159399730010,
        0.19075471029623837995387626,
        -0.57386247111608226665638773,
        0.29906418130365592384446354,
        0.33462491824529818378495798,
        0.31529309239676659663205666,
        -0.79688793935291635401978884,
    ),
    (8, 17): (
        0.13020248308889008087881763,
        0.56116298177510838456196441,
        -0.38947496264484728640807860,
        0.15884190655515560089621075,
        -0.39590389413323757733623154,
        0.18453964097831570709183254,
        0.25837438768632204729397911,
        0.29501172360931029887096624,
        -0.60550853383003451169892108,
    ),
}
"""The first half of the fractions, up to the middle, by order and number of substeps, for methods
of order 2 [Yoshida 1990 (6, 7); Kahan and Li 1997 (6, 9) and (8, 17); Suzuki and Umeno 1993,
McLachlan 1995 (8, 15)], collected in [Hairer, Lubich, Wanner, Geometric Numerical Integration,
V.3.2].
"""
SUBSTEPS = {4: 5, 6: 9, 8: 17}
"""Number of substeps with the smaller error, by order. At the same step, the error is 30, 10 and
10 times smaller than with the other number.
"""


def fractions(order: int, substeps: int, of_order: int = 2) -> tuple[float, ...]:
    """Fractions of h that raise the order of a symmetric method from `of_order` to `order`.

    Raising the order n by two takes 3 substeps, `g = 1 / (2 - 2^(1/(n+1))),  (g, 1 - 2 g, g)`
    [Yoshida 1990], or 5, `g = 1 / (4 - 4^(1/(n+1))),  (g, g, 1 - 4 g, g, g)` [Suzuki 1990].
    Raising the order from 2 to 6 takes 7 or 9 substeps, and raising it from 2 to 8 takes 15 or 17.
    Raises ValueError for other numbers.
    """
    if order == of_order + 2 and substeps in (3, 5):
        # g = 1 / (k - k^(1/(n+1))) with k = substeps - 1 outer fractions
        ends = substeps - 1
        g = 1 / (ends - ends ** (1 / (of_order + 1)))
        return (g,) * (ends // 2) + (1 - ends * g,) + (g,) * (ends // 2)
    if of_order == 2 and (half := _HALVES.get((order, substeps))):
        # by symmetry, the second half mirrors the first, without the middle
        return (*half, *half[-2::-1])
    known = [(of_order + 2, 3), (of_order + 2, 5), *(_HALVES if of_order == 2 else ())]
    raise ValueError(
        f"no composition of order {order} with {substeps} substeps of a method of order "
        f"{of_order}; (order, substeps) can be one of {known}"
    )


def composition(base: Integrator, order: int, substeps: int | None = None) -> Integrator:
    """An integrator of a higher even order, composed of steps of a symmetric integrator (see
    `fractions`). The default number of `substeps` is the one with the smaller error.

    The composition conserves the invariants that the base conserves at every step size, but it
    does not satisfy the constraints at the middle of a step. Inputs are constant over the whole
    step. Negative substeps run damping backward, so use another method for very stiff damping.
    Raises ValueError if the base is not symmetric or does not declare its order, and for an
    unknown order. The integrator refuses systems that cannot be composed (see
    `DiscreteSystem.composed`).
    """
    if not base.symmetric:
        raise ValueError(
            f"{base.name} is not symmetric: a composition would raise its order by one at most; "
            "choose a symmetric method"
        )
    if base.order is None:
        raise ValueError(f"{base.name} declares no order, but a composition needs it")
    n_substeps = substeps or (SUBSTEPS.get(order, 5) if base.order == 2 else 5)
    parts = fractions(order, n_substeps, base.order)
    name = f"{base.name}_order{order}" + (f"_{substeps}" if substeps else "")

    def make(system: System, h: float) -> DiscreteSystem:
        return base.make(system, h).composed(parts, name)

    return replace(
        base,
        name=name,
        make=make,
        order=order,
        preserves=tuple(name for name in base.preserves if name not in SUBSTEP_PROPERTIES),
        refuses=first_of(base.refuses, if_prescribed),
        source=f"{base.source}; composed: Hairer, Lubich, Wanner V.3.2",
        contacts=False,  # contacts open and close only in forward steps
    )


INTEGRATORS = tuple(
    composition(base, order) for base in VARIATIONAL if base.symmetric for order in SUBSTEPS
)
