"""What an adaptive run integrates: an action and a field, of a system or of the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry.homogeneous import HomogeneousSpace, ProductAction, Translations
from nh_control.mechanics.lie_equations import LieEquations
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import lost

UserField: TypeAlias = Callable[[Any, Any], Any]
"""f(t, x) of CasADi expressions: an algebra element, as one expression or a list of them."""
Equations: TypeAlias = System | LieEquations | tuple[HomogeneousSpace, UserField]
Input: TypeAlias = ArrayLike | Callable[[Any, Any], Any]
"""Numbers that are held over the run, or a function u(t, x) of CasADi expressions."""


@dataclass(frozen=True)
class LieProblem:
    """`x' = generator(x) field(x, u, p)`, without inputs where they are functions; the last number
    of x is the time where the field depends on it (`timed`).
    """

    name: str
    action: HomogeneousSpace
    field: ca.Function
    parameters: np.ndarray
    timed: bool

    @property
    def nx(self) -> int:
        """Numbers of a state, time not counted."""
        return self.action.nx - self.timed

    @property
    def nu(self) -> int:
        """Number of inputs that are held."""
        return int(self.field.size1_in(1))

    @cached_property
    def blocks(self) -> Sequence[Sequence[int]]:
        """Places of the numbers in which errors are measured."""
        return self.action.blocks[: len(self.action.blocks) - self.timed]


def lie_problem(equations: Equations, u: Input) -> LieProblem:
    """The problem of a system, of its `LieEquations`, or of an action and a field f(t, x).

    A field or input that depends on the time gets it as one more number of the state, with the
    rate 1. Raises ValueError for a field or an input of a wrong size, and for systems that
    `LieEquations` refuses.
    """
    if isinstance(equations, System):
        equations = LieEquations(equations)
    t = ca.SX.sym("t")
    if isinstance(equations, LieEquations):
        system = equations.system
        action: HomogeneousSpace = equations.action
        x, held = ca.SX.sym("x", action.nx), ca.SX.sym("u", system.nu)
        inputs = _vector(u(t, x), system.nu, f"{system.name}: u(t, x)") if callable(u) else held
        p, values = system.parameter_symbols, system.parameter_values
        name, f = system.name, equations.field(x, inputs, p)
        held = ca.SX(0, 1) if callable(u) else held
    else:
        action, field = equations[0], equations[1]
        x, held, p, values = ca.SX.sym("x", action.nx), ca.SX(0, 1), ca.SX(0, 1), np.zeros(0)
        name, f = "field", _vector(field(t, x), action.dim, "the field f(t, x)")
    timed = bool(ca.depends_on(f, t))
    if timed:
        action, x = ProductAction(action, Translations("t")), ca.vertcat(x, t)
        f = ca.vertcat(f, 1)
    function = ca.Function("field", [x, held, p], [f], {"cse": True})
    return LieProblem(name, action, function, values, timed)


def _vector(value: Any, size: int, what: str) -> ca.SX:
    """The user's value as one column; raises ValueError for another size."""
    column = ca.SX(ca.vertcat(*value) if isinstance(value, (list, tuple)) else value)
    if column.shape != (size, 1):
        raise ValueError(f"{what} must have shape ({size},), got {column.shape}")
    if lost(column):
        raise ValueError(
            f"{what} gives NaN on CasADi expressions; write it with CasADi's functions instead of "
            f"those of math"
        )
    return ca.densify(column)
