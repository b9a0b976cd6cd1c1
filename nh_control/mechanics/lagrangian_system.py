"""A mechanical system as it is written down: its functions, evaluated at expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Space, StepGeometry
from nh_control.mechanics import parametric
from nh_control.mechanics.contacts import Grip, UnilateralConstraint
from nh_control.mechanics.input_bounds import input_bounds, nominal_configuration
from nh_control.mechanics.symmetry import NO_SYMMETRY, Symmetry
from nh_control.numerics.expressions import Returned, as_expression

SMOOTHING = 1e-8
"""Height (J) of the barrier of contacts: a force `smoothing / gap`."""


@dataclass(frozen=True, repr=False)
class LagrangianSystem:
    """The declaration of a mechanical system, see `System`, and its functions at expressions.
    `Mechanics` has the expressions that follow from it.
    """

    name: str
    space: Space
    lagrangian: Callable[..., Returned]
    inputs: tuple[str, ...] = ()
    force: Callable[..., Returned] | None = None
    velocity_constraint: Callable[..., Returned] | None = None
    velocity_drift: Callable[..., Returned] | None = None
    holonomic_constraint: Callable[..., Returned] | None = None
    prescribed: tuple[str, ...] = ()
    distribution: Callable[..., Returned] | None = None
    dependent: tuple[int, ...] | None = None
    symmetry: Symmetry | None = None
    domain: Callable[..., Returned] | None = None
    parameters: Any = None
    input_limits: np.ndarray | Callable[[Any], np.ndarray] | None = None
    input_units: tuple[str, ...] = ()
    nominal: Sequence[float] | None = None
    first_order: tuple[str, ...] = ()
    first_order_rate: Callable[..., Returned] | None = None
    first_order_units: tuple[str, ...] = ()
    contacts: tuple[UnilateralConstraint, ...] = ()
    grips: tuple[Grip, ...] = ()
    friction_factor: Callable[..., Returned] | None = None
    smoothing: float = SMOOTHING

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the numbers among the parameters, `lengths[0], lengths[1]` for a tuple, and
        `smoothing` of a system with contacts.
        """
        return (*parametric.names(self.parameters), *("smoothing",) * self.has_contacts)

    @cached_property
    def parameter_values(self) -> np.ndarray:
        """Their values, (n)."""
        own = parametric.values(self.parameters)
        return np.append(own, self.smoothing) if self.has_contacts else own

    @property
    def parameter_symbols(self) -> ca.SX:
        """Symbols (n) of the parameters in all expressions of this system."""
        own = self._symbolic_parameters[0]
        return ca.vertcat(own, self.smoothing_symbol) if self.has_contacts else own

    @property
    def parameter_expressions(self) -> Any:
        """The parameters with symbols in the places of the numbers, as functions take them."""
        return self._symbolic_parameters[1]

    @cached_property
    def smoothing_symbol(self) -> ca.SX:
        """The symbol of `smoothing`."""
        return ca.SX.sym("smoothing")

    @property
    def has_contacts(self) -> bool:
        """Whether the system declares contacts or grips."""
        return bool(self.contacts or self.grips)

    @cached_property
    def input_bounds(self) -> np.ndarray:
        """Lower and upper bound of every input, (nu + prescribed, 2); infinite ones without
        limits.
        """
        return input_bounds(
            self.name, self.input_limits, self.parameters, self.nu, len(self.prescribed)
        )

    @cached_property
    def nominal_configuration(self) -> np.ndarray:
        """The configuration (nq) at which the system is checked: `nominal`, or the
        space's origin.
        """
        return nominal_configuration(self.name, self.space, self.nominal)

    @cached_property
    def n_velocity_constraints(self) -> int:
        """Number of velocity constraints, without the rows of grips."""
        return self.constraint_matrix(self.symbols[0]).shape[0]

    @property
    def nrho(self) -> int:
        """Number of quasi-momenta, nv less constraints, first-order and prescribed coordinates."""
        given = len(self.first_order) + len(self.prescribed)
        return self.space.nv - self.n_velocity_constraints - given

    @cached_property
    def n_holonomic_constraints(self) -> int:
        """Number of holonomic constraints."""
        return self.holonomic(self.symbols[0]).shape[0]

    def lagrangian_at(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """L(q, v)."""
        return self._call(self.lagrangian, q, v)

    def generalized_force(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """Forces f(q, v, u) dual to v, (nw); zero if the system has none."""
        if self.force is None:
            return ca.SX(self.space.nw, 1)
        return ca.vertcat(self._call(self.force, q, v, self._own_inputs(u)))

    def rate_at(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """Rates of the first-order coordinates, (n)."""
        if self.first_order_rate is None:
            return ca.SX(0, 1)
        return ca.densify(ca.vertcat(self._call(self.first_order_rate, q, v, self._own_inputs(u))))

    def constraint_matrix(self, q: ca.SX) -> ca.SX:
        """A(q) without the rows that slip, (n_velocity_constraints, nw)."""
        rows = self.constraint_rows(q)
        return rows[self._held_rows(rows.shape[0]), :] if self.grips else rows

    def constraint_rows(self, q: ca.SX) -> ca.SX:
        """All rows of A(q) as declared, those with a `Grip` among them."""
        if self.velocity_constraint is None:
            return ca.SX(0, self.space.nw)
        return ca.densify(self._call(self.velocity_constraint, q))

    def drift(self, q: ca.SX) -> ca.SX:
        """b(q) without the rows that slip, (n_velocity_constraints)."""
        rows = self.drift_rows(q)
        return rows[self._held_rows(rows.shape[0])] if self.grips else rows

    def drift_rows(self, q: ca.SX) -> ca.SX:
        """All rows of b(q), those with a `Grip` among them."""
        if self.velocity_drift is None:
            return ca.SX(self.constraint_rows(q).shape[0], 1)
        return ca.densify(ca.vertcat(self._call(self.velocity_drift, q)))

    def holonomic(self, q: ca.SX) -> ca.SX:
        """h(q), (n_holonomic_constraints)."""
        if self.holonomic_constraint is None:
            return ca.SX(0, 1)
        return ca.densify(ca.vertcat(self._call(self.holonomic_constraint, q)))

    @property
    def n_redundant(self) -> int:
        """Number of rows of the holonomic constraints that follow from the others."""
        return 0

    def named_velocity_rows(self, rows: Sequence[int]) -> str:
        """Names of rows of the velocity constraints, for a message."""
        return f"rows {list(rows)} (counted from 0) of velocity_constraint"

    def named_rows(self, rows: Sequence[int]) -> str:
        """Names of rows of the holonomic constraints, for a message."""
        return f"rows {list(rows)} (counted from 0) of holonomic_constraint"

    def declared_basis(self, q: ca.SX) -> ca.SX:
        """X(q), (nw, nrho), of a declared distribution; raises ValueError where there is none."""
        if self.distribution is None:
            raise ValueError(f"{self.name} declares no distribution(q)")
        return ca.densify(self._call(self.distribution, q))

    def domain_at(self, q: ca.SX) -> ca.SX:
        """Values of `domain`, positive where the model holds; empty if it holds everywhere."""
        return ca.SX(0, 1) if self.domain is None else ca.vertcat(self._call(self.domain, q))

    @property
    def declared_symmetry(self) -> Symmetry:
        """The symmetry; raises ValueError for a system that declares none."""
        if self.symmetry is None:
            raise ValueError(f"{self.name} {NO_SYMMETRY}")
        return self.symmetry

    def prescribed_part(self, vector: ca.SX) -> ca.SX:
        """The part of the prescribed coordinates: the last entries of a configuration, velocity,
        stored momentum or input.
        """
        n = len(self.prescribed)
        return vector[vector.shape[0] - n :] if n else ca.SX(0, 1)

    def mean_step(self, q: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX) -> StepGeometry:
        """The step from q by the mean velocities in front of z, with the next values of prescribed
        coordinates at the end of u.
        """
        change = self.prescribed_part(u) - self.prescribed_part(q)
        n = self.space.nv - len(self.prescribed)
        return self.space.step_geometry(q, ca.vertcat(h * z[:n], change))

    def first_order_part(self, vector: ca.SX) -> ca.SX:
        """The part of the first-order coordinates in a configuration or velocity: the last entries
        before the prescribed coordinates.
        """
        n, end = len(self.first_order), vector.shape[0] - len(self.prescribed)
        return vector[end - n : end] if n else ca.SX(0, 1)

    def friction_factor_at(self, q: ca.SX, u: ca.SX) -> ca.SX:
        """The factor of all frictions, 1 if none is declared."""
        if self.friction_factor is None:
            return ca.SX(1)
        return self._call(self.friction_factor, q, self._own_inputs(u))

    def with_rates(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """The velocity v (nw) with the rates of first-order coordinates in their places."""
        if not self.first_order:
            return v
        end = self.space.nw - len(self.prescribed)
        start = end - len(self.first_order)
        return ca.vertcat(v[:start], self.rate_at(q, v, u), v[end:])

    def evaluated(self, function: Callable[..., Returned], *arguments: ca.SX) -> ca.SX:
        """A function of a user at expressions, with the parameters' symbols as its last argument
        where there are parameters.
        """
        return self._call(function, *arguments)

    def _own_inputs(self, u: ca.SX) -> ca.SX:
        """The inputs (nu) of forces among those of a step, a column also where there are none:
        CasADi's empty slice of one number is a row, which adds a row to a `vertcat`.
        """
        return ca.reshape(u[: self.nu], self.nu, 1)

    def _held_rows(self, count: int) -> list[int]:
        """Rows of the velocity constraint, of which there are `count`, without a grip."""
        gripped = {row for grip in self.grips for row in grip.rows}
        return [row for row in range(count) if row not in gripped]

    def _call(self, function: Callable[..., Returned], *arguments: ca.SX) -> ca.SX:
        if self.parameters is not None:
            arguments = (*arguments, self._symbolic_parameters[1])
        return as_expression(function(*arguments))

    @cached_property
    def _symbolic_parameters(self) -> tuple[ca.SX, Any]:
        return parametric.symbolic(self.parameters)

    @cached_property
    def symbols(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Symbols of q, v and u."""
        return (
            ca.SX.sym("q", self.space.nq),
            ca.SX.sym("v", self.space.nw),
            ca.SX.sym("u", self.nu),
        )

    def value(self, expression: ca.SX, q: np.ndarray) -> np.ndarray:
        """An expression of the symbol q at a configuration, at the parameters' values."""
        function = ca.Function("value", [self.symbols[0], self.parameter_symbols], [expression])
        numbers = self.parameter_values if self.parameter_symbols.numel() else np.zeros(0)
        return np.asarray(function(q, numbers))
