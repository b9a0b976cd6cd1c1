"""The system that a user writes: a checked declaration with the mechanics that follow from it."""

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
    """A mechanical system `L(q, v)` with generalized forces `f(q, v, u)` and constraints `A(q) v =
    b(q)` and `h(q) = 0`, all CasADi expressions.

    The Lagrangian must be quadratic in the velocity v (nw), as the space stores it, and its mass
    matrix positive definite on the admissible velocities. `force` is dual to v, (nw).

    - `velocity_constraint(q)` is A (n_velocity_constraints, nw), with columns for prescribed
      velocities; `velocity_drift(q)` is b, by default zero: the motion of the ground.
    - `distribution(q)` (nw, nrho) is a basis X of the virtual velocities: A X = 0, and prescribed
      coordinates do not move. By default it follows from A by elimination of the velocities with
      the indices `dependent`, which are chosen at `nominal` by pivoting if they are not given.
      Velocities on spheres cannot be dependent, because their bases turn.
    - `symmetry` names the shape of a system whose Lagrangian and constraints do not depend on the
      other coordinates, of a Lie group: `Symmetry(n_shape=2)`. Its nonholonomic connection
      follows, see `mechanics.reduction.Reduction`.
    - `holonomic_constraint(q)` is h. Rows may follow from others, see `redundant_rows`.
    - `nominal` (nq) is a regular configuration, by default `space.origin`; the system is checked
      there.
    - `domain(q)` is positive where the model holds, e.g. where its constraints are independent. A
      step out of it fails.
    - `prescribed` names coordinates with a given (kinematic) motion, such as the time. They are
      the last ones of a space Rn at the end of the configuration space; their next values are
      inputs of a discrete system.
    - `input_limits` (nu, 2) are lower and upper bounds of the actuators; rows for prescribed
      coordinates may follow, and are infinite by default.
    - `first_order` names coordinates without inertia, such as a motor's current, an actuator's lag
      or an integrator, with the units `first_order_units`. They are the last ones of a space Rn at
      the end of the configuration space, before prescribed ones. They move by `q_i' =
      first_order_rate(q, v, u)`, with zero in v for their own rates. Forces, potential energy and
      velocity constraints may depend on them; holonomic constraints and the kinetic energy may
      not. Their entries of `force` are ignored.
    - `outputs` are functions of state and inputs with names and units, see `Output`.
    - `contacts` are unilateral constraints, and `grips` rows of `velocity_constraint` with a
      bounded force, see `mechanics.contacts`. `smoothing` (J) is the height of the barrier of a
      gap, a force `smoothing / gap`; steps are exact for this barrier. With grips, the basis is
      eliminated from the other rows even if there is a `distribution`. `friction_factor(q, u)`
      multiplies all friction, for ice.
    - `parameters` is a frozen dataclass of physical numbers (`mechanics.parameters`). Every
      function then takes it as a last argument, `lagrangian(q, v, p)`, with symbols for its
      numbers: compiled code serves all values, and has derivatives by them. `input_limits(p)` may
      be a function of the values.

    `mechanics` has the expressions that follow. Raises ValueError on any mismatch.
    """

    outputs: tuple[Output, ...] = ()

    def __post_init__(self) -> None:
        if self.grips:  # a basis of the motions that keep all rows is none of the others alone
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
        """Rows of the holonomic constraints that follow from the others."""
        return redundant_rows(self, self.mechanics)

    @cached_property
    def mechanics(self) -> Mechanics:
        """Bases, momenta, inertia and energy as expressions."""
        return Mechanics(self)

    def with_parameters(self, **changes: Any) -> System:
        """The same system with other values of its parameters; expressions, and the code
        compiled from them, are shared.

        Raises ValueError for an unknown name or a value that asks for another structure.
        """
        copied = self._copy_without(("input_bounds", "parameter_values", "numeric"))
        new = parametric.changed(self.name, self.parameters, changes)
        object.__setattr__(copied, "parameters", new)
        return copied

    def with_smoothing(self, smoothing: float) -> System:
        """The same system with contacts of another smoothing (J), the height of their barrier;
        expressions and compiled code are shared. Raises ValueError unless it is positive.
        """
        copied = self._copy_without(("parameter_values", "numeric"))
        object.__setattr__(copied, "smoothing", float(smoothing))
        check_smoothing(copied)
        return copied

    @cached_property
    def numeric(self) -> System:
        """The same system with its parameters' values instead of their symbols."""
        copied = self._copy_without(("mechanics",))
        copied.__dict__["_symbolic_parameters"] = ca.SX(0, 1), self.parameters
        copied.__dict__["parameter_values"] = np.zeros(0)
        return copied

    def chosen_outputs(self, names: Sequence[str] = ()) -> tuple[Output, ...]:
        """The outputs with these names, in their order; all without names. Raises ValueError for
        an unknown name.
        """
        known = {output.name: output for output in self.outputs}
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"{self.name}: no outputs {unknown}, choose of {list(known)}")
        return tuple(known[name] for name in names) or self.outputs

    def _check_outputs(self) -> None:
        names = [name for output in self.outputs for name in output.names]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: names of outputs must differ, got {names}")
        for output in self.outputs:
            if type(output) is Output:  # others are costly, and made when they are wanted
                output.of(self, *self.symbols)

    def _copy_without(self, forgotten: tuple[str, ...]) -> System:
        """A copy that shares the symbols, without the cached properties `forgotten`."""
        self._symbolic_parameters, self.smoothing_symbol  # noqa: B018  (made to be shared)
        copied = copy.copy(self)
        for name in forgotten:
            copied.__dict__.pop(name, None)
        return copied
