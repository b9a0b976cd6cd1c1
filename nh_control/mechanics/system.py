"""Systems as users declare them. The declaration is checked, and the mechanics follow from it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from nh_control.mechanics import parametric
from nh_control.mechanics.checks import check_declaration, check_mechanics
from nh_control.mechanics.contact_checks import check_smoothing
from nh_control.mechanics.independence import redundant_rows
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.mechanics.mechanics import Mechanics
from nh_control.mechanics.outputs import Output


@dataclass(frozen=True, repr=False)
class System(LagrangianSystem):
    """A mechanical system with the Lagrangian `L(q, v)`, the generalized forces `f(q, v, u)` and
    the constraints `A(q) v = b(q)` and `h(q) = 0`, all of which are CasADi expressions.

    The Lagrangian must be quadratic in the stored velocity v (nw), and its mass matrix must be
    positive definite on the admissible velocities. `force` (nw) is dual to v.

    - `velocity_constraint(q)` is A (n_velocity_constraints, nw), with columns for prescribed
      velocities; `velocity_drift(q)` is b, for example the motion of the ground, and zero by
      default.
    - `distribution(q)` (nw, nrho) is a basis X of the virtual velocities: A X = 0, and prescribed
      coordinates do not move. By default, X follows from A. With `dependent`, the velocities with
      the given indices are eliminated. Velocities on spheres cannot be dependent, because their
      bases rotate.
    - `symmetry` declares the shape of a system whose Lagrangian and constraints do not depend on
      the other coordinates, which belong to a Lie group: `Symmetry(n_shape=2)`. The symmetry
      determines the nonholonomic connection (see `mechanics.reduction.Reduction`).
    - `holonomic_constraint(q)` is h. Rows may be redundant (see `redundant_rows`).
    - `nominal` (nq) is a regular configuration at which the system is checked, by default
      `space.origin`.
    - `domain(q)` is positive where the model is valid, for example where its constraints are
      independent. A step that leaves the domain fails.
    - `prescribed` contains the names of coordinates with a prescribed (kinematic) motion, such as
      time. They are the last coordinates of a space Rn at the end of the configuration space.
      Their next values are inputs of a discrete system.
    - `input_limits` (nu, 2) contains the actuators' lower and upper bounds. Rows for prescribed
      coordinates may follow; by default, these bounds are infinite.
    - `first_order` contains the names of coordinates without inertia, such as a motor current, the
      lag of an actuator or an integrator. `first_order_units` are their units. They are the last
      coordinates of a space Rn at the end of the configuration space, before prescribed ones. They
      move by `q_i' = first_order_rate(q, v, u)`, where the entries of v for their rates are zero.
      Forces, the potential energy and velocity constraints may depend on them, but holonomic
      constraints and the kinetic energy may not. Their entries in `force` are ignored.
    - `outputs` are functions of the state and the inputs, with names and units (see `Output`).
    - `contacts` are unilateral constraints, and `grips` are rows of `velocity_constraint` with a
      bounded force (see `mechanics.contacts`). `smoothing` (J) is the height of the barrier for a
      gap. The barrier's force is `smoothing / gap`, and steps are exact for this barrier. With
      grips, the basis follows from the other rows even if there is a `distribution`.
      `friction_factor(q, u)` multiplies all friction, for example on ice.
    - `parameters` is a frozen dataclass of physical numbers (`mechanics.parameters`). Every
      function then takes it as its last argument, as in `lagrangian(q, v, p)`, with symbols
      instead of numbers. The compiled code is valid for all parameter values and provides
      derivatives with respect to the parameters. `input_limits` may be a function
      `input_limits(p)` of the values.

    `mechanics` contains the expressions that follow from the declaration. Raises ValueError for
    inconsistent arguments.
    """

    outputs: tuple[Output, ...] = ()

    def __post_init__(self) -> None:
        if self.grips:  # a distribution is declared for all rows, but grips may slip
            object.__setattr__(self, "distribution", None)
            object.__setattr__(self, "dependent", None)
            object.__setattr__(self, "symmetry", None)
        check_declaration(self)
        check_mechanics(self, self.mechanics)
        self._check_outputs()

    def __repr__(self) -> str:
        counts = {
            "velocity": self.n_velocity_constraints,
            "holonomic": self.n_holonomic_constraints,
        }
        constraints = "".join(f", {n} {kind} constraints" for kind, n in counts.items() if n)
        if self.n_redundant:
            constraints += f" ({self.n_redundant} redundant)"
        rates = f", first order {self.first_order}" if self.first_order else ""
        return f"System({self.name!r}, {self.space}, inputs {self.inputs}{constraints}{rates})"

    @property
    def n_redundant(self) -> int:
        return len(self.redundant_rows)

    @cached_property
    def redundant_rows(self) -> tuple[int, ...]:
        """The rows of the holonomic constraints that follow from other rows."""
        return redundant_rows(self, self.mechanics)

    @cached_property
    def mechanics(self) -> Mechanics:
        """Expressions for bases, momenta, inertia and energy."""
        return Mechanics(self)

    def with_parameters(self, **changes: Any) -> System:
        """The same system with different parameter values. It shares the expressions and the
        compiled code.

        Raises ValueError for an unknown name and for a value with a different structure.
        """
        copied = self._copy_without(("input_bounds", "parameter_values", "numeric"))
        new = parametric.changed(self.name, self.parameters, changes)
        object.__setattr__(copied, "parameters", new)
        return copied

    def with_smoothing(self, smoothing: float) -> System:
        """The same system with a different contact smoothing (J), which is the height of the
        barrier. It shares the expressions and the compiled code. Raises ValueError unless the
        smoothing is positive.
        """
        copied = self._copy_without(("parameter_values", "numeric"))
        object.__setattr__(copied, "smoothing", float(smoothing))
        check_smoothing(copied)
        return copied

    @cached_property
    def numeric(self) -> System:
        """The same system with its parameter values instead of symbols."""
        copied = self._copy_without(("mechanics",))
        copied.__dict__["_symbolic_parameters"] = ca.SX(0, 1), self.parameters
        copied.__dict__["parameter_values"] = np.zeros(0)
        return copied

    def chosen_outputs(self, names: Sequence[str] = ()) -> tuple[Output, ...]:
        """The outputs with these names, in this order, or all outputs if no names are given.
        Raises ValueError for an unknown name.
        """
        known = {output.name: output for output in self.outputs}
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"{self.name}: no outputs {unknown}, choose from {list(known)}")
        return tuple(known[name] for name in names) or self.outputs

    def _check_outputs(self) -> None:
        names = [name for output in self.outputs for name in output.names]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: names of outputs must differ, got {names}")
        q, v, u = self.symbols
        for output in self.outputs:
            if type(output) is Output:  # subclasses are costly, so they are checked when used
                output.of(self, q, v, u)

    def _copy_without(self, forgotten: tuple[str, ...]) -> System:
        """A copy that shares the symbols, without the cached properties `forgotten`."""
        self._symbolic_parameters, self.smoothing_symbol  # noqa: B018  (creates shared symbols)
        copied = copy.copy(self)
        for name in forgotten:
            copied.__dict__.pop(name, None)
        return copied
