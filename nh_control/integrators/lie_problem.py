"""The problem for an adaptive run. It consists of an action and a field. They belong to a system
or are user-defined.
"""

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
"""A function f(t, x) of CasADi expressions that returns an algebra element, as one expression or a
list.
"""
Equations: TypeAlias = System | LieEquations | tuple[HomogeneousSpace, UserField | ca.Function]
Input: TypeAlias = ArrayLike | Callable[[Any, Any], Any]
"""Values that are constant over the run, or a function u(t, x) of CasADi expressions."""


@dataclass(frozen=True)
class LieProblem:
    """The equation `x' = generator(x) field(x, u, p)`, without u if the inputs are functions. If
    the field depends on the time (`timed`), the time is the last component of x. `parameters` has
    values if there is a system. `start(x, p)` returns the initial state of a solution. It is None
    if that state is x.
    """

    name: str
    action: HomogeneousSpace
    field: ca.Function
    parameters: np.ndarray | None
    timed: bool
    start: ca.Function | None = None

    @cached_property
    def nx(self) -> int:
        """Length of a state, without the time."""
        return self.action.nx - self.timed

    @cached_property
    def nu(self) -> int:
        """Number of constant inputs."""
        return int(self.field.size1_in(1))

    @cached_property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return int(self.field.size1_in(2))

    @cached_property
    def blocks(self) -> Sequence[Sequence[int]]:
        """Indices of the components in each block. The errors of the components in a block are
        measured together.
        """
        return self.action.blocks[: len(self.action.blocks) - self.timed]


def lie_problem(equations: Equations, u: Input) -> LieProblem:
    """The problem of a system, of its `LieEquations`, or of an action and a field.

    If a field or input depends on the time, the state gets the time as an additional component,
    with the rate 1. Raises ValueError for a field or an input with the wrong size, and for systems
    that `LieEquations` refuses.
    """
    if isinstance(equations, System):
        equations = LieEquations(equations)
    start = equations.start if isinstance(equations, LieEquations) else None
    name, action, field, values = _parts(equations)
    t, x = ca.SX.sym("t"), ca.SX.sym("x", action.nx)
    input_symbol, p = ca.SX(0, 1), ca.SX(0, 1)
    # f(x, u, p) does not depend on the time, and f(t, x) has no inputs
    if isinstance(field, ca.Function):
        _check(name, action, field)
        nu, p = field.size1_in(1), ca.SX.sym("p", field.size1_in(2))
        if callable(u):
            f = field(x, _vector(u(t, x), nu, f"{name}: u(t, x)"), p)
        else:
            input_symbol = ca.SX.sym("u", nu)
            f = field(x, input_symbol, p)
    elif callable(u):
        raise ValueError(f"{name}: f(t, x) has no inputs, got u(t, x); make it a part of f")
    else:
        f = _vector(field(t, x), action.dim, "the field f(t, x)")
    timed = bool(ca.depends_on(f, t))
    if timed:
        # t' = 1, because R^1 acts on the time by translation
        action, x = ProductAction(action, TranslationAction("t")), ca.vertcat(x, t)
        f = ca.vertcat(f, 1)
    function = ca.Function("field", [x, input_symbol, p], [ca.densify(f)], {"cse": True})
    return LieProblem(name, action, function, values, timed, start)


def _parts(
    equations: LieEquations | tuple[HomogeneousSpace, UserField | ca.Function],
) -> tuple[str, HomogeneousSpace, ca.Function | UserField, np.ndarray | None]:
    """Name, action, field and parameter values."""
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
    """The user's value as one column. Raises ValueError for other sizes."""
    column = ca.SX(ca.vertcat(*value) if isinstance(value, (list, tuple)) else value)
    if column.shape != (size, 1):
        raise ValueError(f"{what} must have shape ({size},), got {column.shape}")
    if contains_nan(column):
        raise ValueError(
            f"{what} returns NaN for CasADi expressions; write it with CasADi's functions instead "
            f"of those of math"
        )
    return ca.densify(column)
