"""What a user writes: a mechanical system by its Lagrangian, forces and velocity constraints."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Space
from nh_control.mechanics import input_bounds, parametric, stored_states
from nh_control.mechanics.checks import check
from nh_control.mechanics.elimination import Elimination
from nh_control.mechanics.symmetry import Symmetry
from nh_control.numerics.expressions import Returned, as_expression


@dataclass(frozen=True)
class System:
    """A mechanical system `L(q, v)` with generalized forces `f(q, v, u)` and constraints
    `A(q) v = b(q)` and `h(q) = 0`, all CasADi expressions.

    `v` (nw) is the velocity as the space stores it, `force` returns its dual (nw).
    `velocity_constraint(q)` is A (m, nw), over prescribed velocities, too; `velocity_drift(q)` is
    b (m), zero without it: the ground's own motion. What depends on time depends on a prescribed
    coordinate. `distribution(q)` (nw, n_rho) is a basis X of the virtual velocities, A X = 0, that
    leave prescribed coordinates alone; without it a basis is eliminated from A with the dependent
    velocities `dependent` (m indices, chosen at `nominal` by pivoting if not given; not of
    spheres, whose bases turn). `nominal` (nq) is a configuration at which all is regular, where
    the system is judged; without it this is `space.origin`. `input_limits` (nu, 2) are the
    actuators' lower and upper bounds; rows for the prescribed coordinates may follow, which
    otherwise have none. `domain(q)` is positive where the model holds, e.g. where its constraints
    are independent; a step that would leave it fails. `prescribed` names coordinates that are
    moved at will (kinematic); they are the last ones of a space Rn that ends the configuration
    space, and their next values are inputs of a discrete system. The Lagrangian must be quadratic
    in v with a regular mass matrix on the admissible velocities.

    `parameters` is a frozen dataclass of physical numbers (see `mechanics.parameters`). Where it
    is given, every function takes it as a last argument, `lagrangian(q, v, p)`, with a symbol in
    the place of every number: what is compiled serves all values, and can be differentiated by
    them. `input_limits` may be a function of the values, `input_limits(p)`. `model` is what the
    system was made from, if it was not written by hand. Raises ValueError on any mismatch.
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
    model: Any = None

    def __post_init__(self) -> None:
        for what in ("inputs", "input_units", "prescribed"):
            if isinstance(getattr(self, what), str):
                raise TypeError(
                    f"{self.name}: {what} must be a tuple of texts, got the text "
                    f"{getattr(self, what)!r}; write ({getattr(self, what)!r},)"
                )
        check(self)

    def __repr__(self) -> str:
        counts = {"velocity": self.m, "holonomic": self.n_holonomic}
        constraints = "".join(f", {n} {kind} constraints" for kind, n in counts.items() if n)
        return f"System({self.name!r}, {self.space}, inputs {self.inputs}{constraints})"

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the numbers among the parameters, `lengths[0], lengths[1]` for a tuple."""
        return parametric.names(self.parameters)

    @cached_property
    def parameter_values(self) -> np.ndarray:
        """Their values, (n)."""
        return parametric.values(self.parameters)

    @property
    def parameter_symbols(self) -> ca.SX:
        """Their symbols (n), of which all of this system's expressions are made."""
        return self._symbolic_parameters[0]

    def with_parameters(self, **changes: Any) -> System:
        """The same system with other values of its parameters; expressions, and what is compiled
        of them, are shared.

        Raises ValueError for an unknown name or a value that asks for another structure.
        """
        copied = self._copy_without(("input_bounds", "parameter_values", "numeric"))
        new = parametric.changed(self.name, self.parameters, changes)
        object.__setattr__(copied, "parameters", new)
        return copied

    @cached_property
    def numeric(self) -> System:
        """The same system with its parameters' values in the place of their symbols."""
        copied = self._copy_without(("elimination", "state_space"))
        copied.__dict__["_symbolic_parameters"] = ca.SX(0, 1), self.parameters
        copied.__dict__["parameter_values"] = np.zeros(0)
        return copied

    @cached_property
    def input_bounds(self) -> np.ndarray:
        """Lower and upper bound of every input, (nu + prescribed, 2); infinite ones without
        limits.
        """
        return input_bounds.input_bounds(self)

    @cached_property
    def nominal_configuration(self) -> np.ndarray:
        """A configuration (nq) of the space at which the system is judged: `nominal`, or else the
        space's origin.
        """
        return input_bounds.nominal_configuration(self)

    @cached_property
    def m(self) -> int:
        """Number of velocity constraints."""
        if self.velocity_constraint is None:
            return 0
        return self._call(self.velocity_constraint, self.symbols[0]).shape[0]

    @property
    def n_rho(self) -> int:
        """Number of quasi-momenta, nv less constraints and prescribed coordinates."""
        return self.space.nv - self.m - len(self.prescribed)

    @cached_property
    def n_holonomic(self) -> int:
        """Number of holonomic constraints."""
        return self.holonomic(self.symbols[0]).shape[0]

    @cached_property
    def elimination(self) -> Elimination:
        """Dependent velocities as functions of the independent ones."""
        return Elimination(self)

    @cached_property
    def state_space(self) -> Space:
        """Space of the states (q, rho): p = dL/dv, stored like velocities, with the velocities of
        prescribed coordinates in the place of their momenta; `rho = X^T p` on a distribution.

        With spheres and velocity constraints rho is stored like velocities, too, without the
        dependent ones.
        """
        return stored_states.state_space(self)

    def lagrangian_at(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """L(q, v)."""
        return self._call(self.lagrangian, q, v)

    def generalized_force(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """Forces f(q, v, u) dual to v, (nw); zero if the system has none."""
        if self.force is None:
            return ca.SX(self.space.nw, 1)
        return ca.vertcat(self._call(self.force, q, v, u))

    def constraint_matrix(self, q: ca.SX) -> ca.SX:
        """A(q), (m, nw)."""
        if self.velocity_constraint is None:
            return ca.SX(0, self.space.nw)
        return ca.densify(self._call(self.velocity_constraint, q))

    def drift(self, q: ca.SX) -> ca.SX:
        """b(q), (m)."""
        if self.velocity_drift is None:
            return ca.SX(self.m, 1)
        return ca.densify(ca.vertcat(self._call(self.velocity_drift, q)))

    def holonomic(self, q: ca.SX) -> ca.SX:
        """h(q), (n_holonomic)."""
        if self.holonomic_constraint is None:
            return ca.SX(0, 1)
        return ca.vertcat(self._call(self.holonomic_constraint, q))

    def domain_at(self, q: ca.SX) -> ca.SX:
        """What must be positive at q; nothing if the system holds everywhere."""
        return ca.SX(0, 1) if self.domain is None else ca.vertcat(self._call(self.domain, q))

    @property
    def declared_symmetry(self) -> Symmetry:
        """The symmetry; raises ValueError for a system that declares none."""
        if self.symmetry is None:
            raise ValueError(f"{self.name} declares no symmetry (shape, connection, basis)")
        return self.symmetry

    def connection(self, r: ca.SX) -> ca.SX:
        """The symmetry's connection at the shape r, (group, shape)."""
        return self._call(self.declared_symmetry.connection, r)

    def symmetry_basis(self, r: ca.SX) -> ca.SX:
        """The symmetry directions that satisfy the constraints at the shape r, (group, c)."""
        return self._call(self.declared_symmetry.basis, r)

    def admissible_basis(self, q: ca.SX) -> ca.SX:
        """X(q), (nw, n_rho): a basis of the virtual velocities, A X = 0."""
        if self.distribution is not None:
            return ca.densify(self._call(self.distribution, q))
        return self.space.frame(q) @ self.admissible_tangents(q)

    def admissible_tangents(self, q: ca.SX) -> ca.SX:
        """The same basis in local coordinates, `X = frame(q) Y`, (nv, n_rho)."""
        if self.distribution is not None:
            return self.admissible_basis(q)
        return self.elimination.tangents(q)

    def holonomic_jacobian(self, q: ca.SX) -> ca.SX:
        """Dh(q) along all tangent vectors, (n_holonomic, nv); those of prescribed coordinates are
        the last ones.
        """
        e = ca.SX.sym("e", self.space.nv)
        if not self.n_holonomic:
            return ca.SX(0, self.space.nv)
        jacobian = ca.jacobian(self.holonomic(self.space.retract(q, e)), e)
        return ca.substitute(jacobian, e, ca.SX.zeros(self.space.nv))

    def holonomic_matrix(self, q: ca.SX) -> ca.SX:
        """Dh(q) along the admissible tangent vectors, (n_holonomic, n_rho)."""
        return self.holonomic_jacobian(q) @ self.admissible_tangents(q)

    def holonomic_impulse(self, q: ca.SX, multipliers: ca.SX) -> ca.SX:
        """`(Dh(q) Y)^T multipliers`, Y the admissible tangents, (n_rho), by one reverse
        derivative.
        """
        e = ca.SX.sym("e", self.space.nv)
        h, rest = self.holonomic(self.space.retract(q, e)), ca.SX.zeros(self.space.nv)
        impulse = ca.substitute(ca.jtimes(h, e, multipliers, True), e, rest)
        return self.admissible_tangents(q).T @ impulse

    def prescribed_part(self, vector: ca.SX) -> ca.SX:
        """The last entries of a configuration, velocity, stored momentum or input: those of the
        prescribed coordinates.
        """
        n = len(self.prescribed)
        return vector[vector.shape[0] - n :] if n else ca.SX(0, 1)

    def reduce(self, q: ca.SX, rho: ca.SX) -> ca.SX:
        """Components `X^T p` (n_rho) of a stored momentum."""
        if stored_states.stores_components(self):
            return rho[: self.n_rho]
        return (self.elimination.stored_frame(q).T @ rho)[: self.n_rho]

    def store(self, q: ca.SX, components: ca.SX, prescribed_velocity: ca.SX) -> ca.SX:
        """Stored momentum with the components `X^T p` (n_rho) and the velocities of the prescribed
        coordinates.
        """
        kept = ca.vertcat(components, prescribed_velocity)
        if stored_states.stores_components(self):
            return kept
        return self.elimination.stored_frame(q) @ kept

    def gradients(self, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(dL/dq, dL/dv) at the expressions (q, v), (nq) and (nw)."""
        q_, v_, _ = self.symbols
        at = ca.vertcat(q_, v_)
        gradient = ca.substitute(ca.gradient(self.lagrangian_at(q_, v_), at), at, ca.vertcat(q, v))
        return gradient[: self.space.nq], gradient[self.space.nq :]

    def momentum(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Stored momentum of the velocity v (nw), with components `X(q)^T dL/dv`."""
        return self.store(
            q, self.admissible_basis(q).T @ self.gradients(q, v)[1], self.prescribed_part(v)
        )

    def inertia(
        self, q: ca.SX, rho: ca.SX, mass: ca.SX | None = None
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """(M, b, X, c) with which the velocity is `v = X y + c`, `M y = b`: the mass matrix on the
        admissible velocities, (n_rho, n_rho), the momentum (n_rho) less that of c, and a velocity
        c (nw) that keeps the velocity constraints with the prescribed velocities.

        With holonomic constraints y ends with the impulses mu that make the velocity keep them,
        `M y + (Dh Y)^T mu = b,  Dh Y y = -Dh c`: (28) of [johnson2014] leaves half of a step's
        constraint impulse in p, and without mu the velocity would be first order only. The mass
        matrix is derived unless it is given.
        """
        x = self.admissible_basis(q)
        particular = self.elimination.particular(q, self.prescribed_part(rho))
        c = self.space.frame(q) @ particular
        if mass is None:
            v_ = self.symbols[1]
            mass = x.T @ ca.hessian(self.lagrangian_at(q, v_), v_)[0] @ x
        m, b = mass, self.reduce(q, rho) - x.T @ self.gradients(q, c)[1]
        k = self.n_holonomic
        if k:
            jacobian = self.holonomic_jacobian(q)
            free = jacobian @ self.admissible_tangents(q)
            m = ca.vertcat(ca.horzcat(m, free.T), ca.horzcat(free, ca.SX(k, k)))
            b = ca.vertcat(b, -jacobian @ particular)
            x = ca.horzcat(x, ca.SX(self.space.nw, k))
        return m, b, x, c

    def energy(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """`E = v . dL/dv - L`."""
        v_ = self.symbols[1]
        lagrangian = self.lagrangian_at(q, v_)
        return ca.substitute(ca.jtimes(lagrangian, v_, v_) - lagrangian, v_, v)

    def _call(self, function: Callable[..., Returned], *arguments: ca.SX) -> ca.SX:
        if self.parameters is not None:
            arguments = (*arguments, self._symbolic_parameters[1])
        return as_expression(function(*arguments))

    @cached_property
    def _symbolic_parameters(self) -> tuple[ca.SX, Any]:
        return parametric.symbolic(self.parameters)

    def _copy_without(self, forgotten: tuple[str, ...]) -> System:
        """A copy that shares the symbols, without what follows from the parameters' values."""
        self._symbolic_parameters  # noqa: B018  (made before it is shared)
        copied = copy.copy(self)
        for name in forgotten:
            copied.__dict__.pop(name, None)
        return copied

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
