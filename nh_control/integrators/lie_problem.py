"""The problem of an adaptive run: an action and a field, of a system or of the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry.homogeneous import HomogeneousSpace, ProductAction, TranslationAction
from nh_control.mechanics.lie_equations import LieEquations
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import contains_nan

UserField: TypeAlias = Callable[[Any, Any], Any]
"""f(t, x) of CasADi expressions: an algebra element, as one expression or a list of them."""
Equations: TypeAlias = System | LieEquations | tuple[HomogeneousSpace, UserField | ca.Function]
Input: TypeAlias = ArrayLike | Callable[[Any, Any], Any]
"""Numbers that are constant over the run, or a function u(t, x) of CasADi expressions."""


@dataclass(frozen=True)
class LieProblem:
    """`x' = generator(x) field(x, u, p)`, without inputs if they are functions. If the field
    depends on the time (`timed`), it is the last number of x. Parameters have values if there is a
    system. `start(x, p)` is the state at which a solution starts, None if that is x.
    """

    name: str
    action: HomogeneousSpace
    field: ca.Function
    parameters: np.ndarray | None
    timed: bool
    start: ca.Function | None = None

    @property
    def nx(self) -> int:
        """Number of a state's numbers, without the time."""
        return self.action.nx - self.timed

    @property
    def nu(self) -> int:
        """Number of constant inputs."""
        return int(self.field.size1_in(1))

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return int(self.field.size1_in(2))

    @cached_property
    def blocks(self) -> Sequence[Sequence[int]]:
        """Places of the numbers in which errors are measured."""
        return self.action.blocks[: len(self.action.blocks) - self.timed]


def lie_problem(equations: Equations, u: Input) -> LieProblem:
    """The problem of a system, of its `LieEquations`, or of an action and a field.

    If a field or input depends on the time, the time is one more number of the state, with the
    rate 1. Raises ValueError for a field or an input of a wrong size, and for systems that
    `LieEquations` refuses.
    """
    if isinstance(equations, System):
        equations = LieEquations(equations)
    start = equations.start if isinstance(equations, LieEquations) else None
    name, action, field, values = _parts(equations)
    t, x = ca.SX.sym("t"), ca.SX.sym("x", action.nx)
    input_symbol, p = ca.SX(0, 1), ca.SX(0, 1)
    if isinstance(field, ca.Function):
        _check(name, action, field)
        nu, p = field.size1_in(1), ca.SX.sym("p", field.size1_in(2))
        if callable(u):
            f = field(x, _vector(u(t, x), nu, f"{name}: u(t, x)"), p)
        else:
            input_symbol = ca.SX.sym("u", nu)
            f = field(x, input_symbol, p)
    elif callable(u):
        raise ValueError(f"{name}: f(t, x) has no inputs, but u(t, x) is given; write it into f")
    else:
        f = _vector(field(t, x), action.dim, "the field f(t, x)")
    timed = bool(ca.depends_on(f, t))
    if timed:
        action, x = ProductAction(action, TranslationAction("t")), ca.vertcat(x, t)
        f = ca.vertcat(f, 1)
    function = ca.Function("field", [x, input_symbol, p], [ca.densify(f)], {"cse": True})
    return LieProblem(name, action, function, values, timed, start)


def _parts(
    equations: LieEquations | tuple[HomogeneousSpace, UserField | ca.Function],
) -> tuple[str, HomogeneousSpace, ca.Function | UserField, np.ndarray | None]:
    """Name, action, field and values of the parameters."""
    if isinstance(equations, LieEquations):
        system = equations.system
        return system.name, equations.action, equations.field, system.parameter_values
    action, field = equations
    return "field", action, field, None


def _check(name: str, action: HomogeneousSpace, field: ca.Function) -> None:
    sizes = [field.size1_in(k) for k in range(field.n_in())]
    if len(sizes) != 3 or sizes[0] != action.nx or field.size_out(0) != (action.dim, 1):
        raise ValueError(
            f"{name}: expected a function f(x, u, p) from {action.nx} numbers x to {action.dim}, "
            f"got {field}"
        )


def _vector(value: Any, size: int, what: str) -> ca.SX:
    """The user's value as one column; raises ValueError for another size."""
    column = ca.SX(ca.vertcat(*value) if isinstance(value, (list, tuple)) else value)
    if column.shape != (size, 1):
        raise ValueError(f"{what} must have shape ({size},), got {column.shape}")
    if contains_nan(column):
        raise ValueError(
            f"{what} gives NaN on CasADi expressions; write it with CasADi's functions instead of "
            f"those of math"
        )
    return ca.densify(column)
