"""The declaration of a mechanical system, and its functions evaluated at expressions."""

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
from nh_control.mechanics.kinematics import evaluated_on
from nh_control.mechanics.symmetry import NO_SYMMETRY, Symmetry
from nh_control.numerics.expressions import Returned, as_expression

SMOOTHING = 1e-8
"""Default height (J) of the contact barrier, whose force is `smoothing / gap`."""


@dataclass(frozen=True, repr=False)
class LagrangianSystem:
    """The declaration of a mechanical system (see `System`), and its functions evaluated at
    expressions. `Mechanics` derives other expressions from the declaration.
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
        """The names of all numbers in the parameters, such as `lengths[0], lengths[1]` for a
        tuple, and `smoothing` for a system with contacts.
        """
        return (*parametric.names(self.parameters), *("smoothing",) * self.has_contacts)

    @cached_property
    def parameter_values(self) -> np.ndarray:
        """The parameter values (n), in the order of `parameter_names`."""
        declared = parametric.values(self.parameters)
        return np.append(declared, self.smoothing) if self.has_contacts else declared

    @property
    def parameter_symbols(self) -> ca.SX:
        """The symbols (n) for the parameters in all of this system's expressions."""
        declared = self._symbolic_parameters[0]
        return ca.vertcat(declared, self.smoothing_symbol) if self.has_contacts else declared

    @property
    def parameter_expressions(self) -> Any:
        """The parameters that are passed to functions, with symbols instead of numbers."""
        return self._symbolic_parameters[1]

    @cached_property
    def smoothing_symbol(self) -> ca.SX:
        """The symbol for `smoothing`."""
        return ca.SX.sym("smoothing")

    @property
    def has_contacts(self) -> bool:
        """Whether the system declares contacts or grips."""
        return bool(self.contacts or self.grips)

    @cached_property
    def input_bounds(self) -> np.ndarray:
        """The lower and upper bounds (nu + prescribed, 2) of the inputs, which are infinite
        without limits.
        """
        return input_bounds(
            self.name, self.input_limits, self.parameters, self.nu, len(self.prescribed)
        )

    @cached_property
    def nominal_configuration(self) -> np.ndarray:
        """The configuration (nq) at which the system is checked: `nominal`, by default the origin
        of the space.
        """
        return nominal_configuration(self.name, self.space, self.nominal)

    @cached_property
    def n_velocity_constraints(self) -> int:
        """Number of velocity constraints, not counting the rows for grips."""
        return self.constraint_matrix(self.symbols[0]).shape[0]

    @property
    def nrho(self) -> int:
        """Number of quasi-momenta: nv minus the numbers of velocity constraints, first-order
        coordinates and prescribed coordinates.
        """
        without_momentum = len(self.first_order) + len(self.prescribed)
        return self.space.nv - self.n_velocity_constraints - without_momentum

    @cached_property
    def n_holonomic_constraints(self) -> int:
        """Number of holonomic constraints."""
        return self.holonomic(self.symbols[0]).shape[0]

    def lagrangian_at(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """The Lagrangian L(q, v)."""
        return self._call(self.lagrangian, q, v)

    def generalized_force(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """The forces f(q, v, u) (nw), dual to v. They are zero if the system declares none."""
        if self.force is None:
            return ca.SX(self.space.nw, 1)
        return ca.vertcat(self._call(self.force, q, v, self._force_inputs(u)))

    def rate_at(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """The rates (n) of the first-order coordinates."""
        if self.first_order_rate is None:
            return ca.SX(0, 1)
        return ca.densify(
            ca.vertcat(self._call(self.first_order_rate, q, v, self._force_inputs(u)))
        )

    def constraint_matrix(self, q: ca.SX) -> ca.SX:
        """A(q) (n_velocity_constraints, nw) without the rows for grips."""
        rows = self.constraint_rows(q)
        return rows[self._rows_without_grip(rows.shape[0]), :] if self.grips else rows

    def constraint_rows(self, q: ca.SX) -> ca.SX:
        """All declared rows of A(q), including those for grips."""
        if self.velocity_constraint is None:
            return ca.SX(0, self.space.nw)
        return ca.densify(self._call(self.velocity_constraint, q))

    def drift(self, q: ca.SX) -> ca.SX:
        """b(q) (n_velocity_constraints) without the rows for grips."""
        rows = self.drift_rows(q)
        return rows[self._rows_without_grip(rows.shape[0])] if self.grips else rows

    def drift_rows(self, q: ca.SX) -> ca.SX:
        """All rows of b(q), including those for grips."""
        if self.velocity_drift is None:
            return ca.SX(self.constraint_rows(q).shape[0], 1)
        return ca.densify(ca.vertcat(self._call(self.velocity_drift, q)))

    def holonomic(self, q: ca.SX) -> ca.SX:
        """h(q) (n_holonomic_constraints)."""
        if self.holonomic_constraint is None:
            return ca.SX(0, 1)
        return ca.densify(ca.vertcat(self._call(self.holonomic_constraint, q)))

    @property
    def n_redundant(self) -> int:
        """Number of rows in the holonomic constraints that follow from the others."""
        return 0

    def named_velocity_rows(self, rows: Sequence[int]) -> str:
        """A phrase that names rows of the velocity constraints in a message."""
        return f"rows {list(rows)} (counted from 0) of velocity_constraint"

    def named_rows(self, rows: Sequence[int]) -> str:
        """A phrase that names rows of the holonomic constraints in a message."""
        return f"rows {list(rows)} (counted from 0) of holonomic_constraint"

    def declared_basis(self, q: ca.SX) -> ca.SX:
        """The declared distribution X(q) (nw, nrho); raises ValueError if there is none."""
        if self.distribution is None:
            raise ValueError(f"{self.name} declares no distribution(q)")
        return ca.densify(self._call(self.distribution, q))

    def domain_at(self, q: ca.SX) -> ca.SX:
        """The values of `domain`, which are positive where the model is valid; empty if it is
        always valid.
        """
        return ca.SX(0, 1) if self.domain is None else ca.vertcat(self._call(self.domain, q))

    @property
    def declared_symmetry(self) -> Symmetry:
        """The declared symmetry; raises ValueError if there is none."""
        if self.symmetry is None:
            raise ValueError(f"{self.name} {NO_SYMMETRY}")
        return self.symmetry

    def prescribed_part(self, vector: ca.SX) -> ca.SX:
        """The entries for prescribed coordinates, which are the last ones in a configuration,
        velocity, stored momentum or input.
        """
        n = len(self.prescribed)
        return vector[vector.shape[0] - n :] if n else ca.SX(0, 1)

    def mean_step(self, q: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX) -> StepGeometry:
        """The step from q with the mean velocities from the first entries of z and the next values
        of prescribed coordinates from the last entries of u.
        """
        # d = (h z, s1 - s0) for prescribed coordinates s
        change = self.prescribed_part(u) - self.prescribed_part(q)
        n = self.space.nv - len(self.prescribed)
        return self.space.step_geometry(q, ca.vertcat(h * z[:n], change))

    def first_order_part(self, vector: ca.SX) -> ca.SX:
        """The entries for first-order coordinates in a configuration or velocity, which are the
        last ones before the prescribed coordinates.
        """
        # order of coordinates: others, first-order, prescribed
        n, end = len(self.first_order), vector.shape[0] - len(self.prescribed)
        return vector[end - n : end] if n else ca.SX(0, 1)

    def friction_factor_at(self, q: ca.SX, u: ca.SX) -> ca.SX:
        """The factor that multiplies all friction, by default 1."""
        if self.friction_factor is None:
            return ca.SX(1)
        return self._call(self.friction_factor, q, self._force_inputs(u))

    def with_rates(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """The velocity v (nw) with the rates of first-order coordinates inserted."""
        if not self.first_order:
            return v
        end = self.space.nw - len(self.prescribed)
        # v with zeros replaced by q_i' = rate_i
        start = end - len(self.first_order)
        return ca.vertcat(v[:start], self.rate_at(q, v, u), v[end:])

    def evaluated(self, function: Callable[..., Returned], *arguments: ca.SX) -> ca.SX:
        """The user's function evaluated at expressions. If there are parameters, they are the last
        argument, as symbols.
        """
        return self._call(function, *arguments)

    def value_at(self, function: Callable[..., Returned], q: ca.SX) -> ca.SX:
        """The value at q of a function of the configuration that this system declares. The
        function is called once; its expression is then evaluated at other configurations.
        """
        return self._at(q, self._value(function))

    def slope_at(self, function: Callable[..., Returned], q: ca.SX) -> ca.SX:
        """The derivative (k, nv) of such a function at q along the tangent vectors."""
        slopes = self._slopes
        if id(function) not in slopes:
            e, moved = self._displacement
            slope = ca.jacobian(self._at(moved, self._value(function)), e)
            slopes[id(function)] = ca.substitute(slope, e, ca.SX.zeros(self.space.nv))
        return self._at(q, slopes[id(function)])

    def _value(self, function: Callable[..., Returned]) -> ca.SX:
        values = self._values
        if id(function) not in values:
            values[id(function)] = self._call(function, self.symbols[0])
        return values[id(function)]

    def _at(self, q: ca.SX, expression: ca.SX) -> ca.SX:
        return ca.substitute(expression, self.symbols[0], ca.densify(q))

    @cached_property
    def _values(self) -> dict[int, ca.SX]:
        """Values of declared functions at the symbol q, by the functions' identities."""
        return {}

    @cached_property
    def _slopes(self) -> dict[int, ca.SX]:
        """Derivatives of declared functions at the symbol q, by the functions' identities."""
        return {}

    @cached_property
    def _displacement(self) -> tuple[ca.SX, ca.SX]:
        """The symbols of a tangent vector e (nv), and the configuration retract(q, e)."""
        e = ca.SX.sym("e", self.space.nv)
        return e, self.space.retract(self.symbols[0], e)

    def _force_inputs(self, u: ca.SX) -> ca.SX:
        """The forces (nu) among the inputs of a step, as a column even if there are none. In
        CasADi, an empty slice of a scalar is a row, which would add a row to a `vertcat`.
        """
        return ca.reshape(u[: self.nu], self.nu, 1)

    def _rows_without_grip(self, count: int) -> list[int]:
        """The indices of the rows without a grip among the `count` rows of the velocity
        constraint.
        """
        # rows with grips may slip, so they are not constraints
        gripped = {row for grip in self.grips for row in grip.rows}
        return [row for row in range(count) if row not in gripped]

    def _call(self, function: Callable[..., Returned], *arguments: ca.SX) -> ca.SX:
        """The user's function evaluated at expressions. It is called with symbols so that it can
        differentiate with respect to them, for example by `ca.jtimes(position, q, v)`.
        """
        # symbols are passed as they are; for other arguments, substitute afterwards
        plain = all(isinstance(a, ca.SX) and a.is_valid_input() for a in arguments)
        if not plain:
            arguments = tuple(ca.densify(ca.SX(a)) for a in arguments)
        symbols = arguments if plain else tuple(ca.SX.sym("a", *a.shape) for a in arguments)
        parameters = () if self.parameters is None else (self._symbolic_parameters[1],)
        with evaluated_on(self.space):
            value = as_expression(function(*symbols, *parameters))
        return value if plain else ca.substitute([value], symbols, arguments)[0]

    @cached_property
    def _symbolic_parameters(self) -> tuple[ca.SX, Any]:
        return parametric.symbolic(self.parameters)

    @cached_property
    def symbols(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The symbols for q, v and u."""
        return (
            ca.SX.sym("q", self.space.nq),
            ca.SX.sym("v", self.space.nw),
            ca.SX.sym("u", self.nu),
        )

    def value(self, expression: ca.SX, q: np.ndarray) -> np.ndarray:
        """The value of an expression in the symbol q, at a configuration and the parameter
        values.
        """
        function = ca.Function("value", [self.symbols[0], self.parameter_symbols], [expression])
        numbers = self.parameter_values if self.parameter_symbols.numel() else np.zeros(0)
        return np.asarray(function(q, numbers))
