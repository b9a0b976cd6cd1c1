"""Expressions that follow from a system's declaration: bases, momenta, inertia and energy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import casadi as ca

from nh_control.geometry.spaces import PhaseSpace, Product, Rn, Space
from nh_control.mechanics.constrained_states import AdmissibleBasis, ConstrainedStates
from nh_control.mechanics.elimination import Elimination
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.mechanics.nonholonomic_connection import NonholonomicConnection
from nh_control.mechanics.states import coordinate_sizes
from nh_control.numerics.rounding import rounding_sizes


class Mechanics:
    """Expressions for a system with `L(q, v)`, `A(q) v = b(q)` and `h(q) = 0`, at symbolic q, v
    and rho.
    """

    def __init__(self, system: LagrangianSystem):
        self.system = system

    @cached_property
    def elimination(self) -> Elimination:
        """The dependent velocities as functions of the independent ones."""
        return Elimination(self.system)

    @cached_property
    def nonholonomic_connection(self) -> NonholonomicConnection:
        """The connection for a system with a symmetry; raises ValueError without a symmetry."""
        return NonholonomicConnection(self.system)

    @cached_property
    def default_basis(self) -> AdmissibleBasis | None:
        """Bases of the admissible velocities for a system that declares neither a distribution nor
        dependent velocities; None for other systems and for spaces with spheres.
        """
        system = self.system
        declared = system.distribution is not None or system.dependent is not None
        if not system.n_velocity_constraints or declared or self.elimination.on_spheres:
            return None
        return AdmissibleBasis(system)

    def at_signs(self, expressions: Sequence[ca.SX], q: ca.SX) -> list[ca.SX]:
        """The expressions with the signs of `default_basis` replaced by those for the
        configuration q.
        """
        if (basis := self.default_basis) is None:
            return list(expressions)
        return ca.substitute(list(expressions), [basis.signs], [basis.signs_at(q)])

    def components_of(self, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The configuration of a state x, and (rho, ...) for methods. If the state contains p,
        then rho contains the components `X^T p`. The remaining entries follow.
        """
        n = self.system.space.nq
        # rho = X^T p from stored p
        q, stored = x[:n], x[n:]
        if (basis := self.default_basis) is None:
            return q, stored
        p, rest = stored[: basis.n_momenta], stored[basis.n_momenta :]
        return q, ca.vertcat(basis.components(q, p, basis.signs), rest)

    def state_of(self, q: ca.SX, rho: ca.SX) -> ca.SX:
        """The state with a configuration and (rho, ...). This is the inverse of
        `components_of`.
        """
        if (basis := self.default_basis) is None:
            return ca.vertcat(q, rho)
        components, rest = ca.vertsplit(rho, [0, self.system.nrho, rho.shape[0]])
        return ca.vertcat(q, basis.momenta(q, basis.signs) @ components, rest)

    @cached_property
    def state_space(self) -> Space:
        """The space of the states (q, rho). Prescribed coordinates have velocities instead of
        momenta in rho, and first-order coordinates have neither.

        Without velocity constraints, rho is p = dL/dv, stored like velocities. With velocity
        constraints, it is `X^T p` (nrho) in the basis that the system declares or, without such a
        basis, p on its constraints (see `ConstrainedStates`). On spaces with spheres, whose bases
        rotate, rho is stored like the independent velocities.
        """
        if (basis := self.default_basis) is not None:
            moving = self.system.space.velocity_names[: basis.n_momenta]
            momenta = tuple(f"p_{name.removesuffix('_dot')}" for name in moving)
            rest = tuple(f"v_{name}" for name in self.system.prescribed)
            return ConstrainedStates(self.system.space, basis, momenta, rest)
        stored, local = (
            [self._momentum_name(name.removesuffix("_dot")) for name in names]
            for names in (self.system.space.velocity_names, self.system.space.tangent_names)
        )
        return self._phase_space("rho", stored, local)

    @cached_property
    def velocity_space(self) -> Space:
        """The space of the pairs (q, s) of a configuration and an admissible velocity, with
        velocities instead of the momenta in `state_space`. On a distribution, s (nrho) contains
        the coordinates of the velocity.
        """
        space = self.system.space
        flat = space.nw == space.nv
        local = space.velocity_names if flat else [f"{name}_dot" for name in space.tangent_names]
        return self._phase_space("s", space.velocity_names, local)

    def _phase_space(self, letter: str, stored: Sequence[str], local: Sequence[str]) -> Space:
        """The space of (q, r), where r contains the components `letter`_i on a distribution or is
        stored like velocities.
        """
        system, space, elimination = self.system, self.system.space, self.elimination
        if self._stores_components:
            components = (f"{letter}_{i + 1}" for i in range(system.nrho))
            return Product(space, Rn(*components, *(f"v_{name}" for name in system.prescribed)))
        return PhaseSpace(space, stored, local, elimination.dropped, elimination.without_momentum)

    def admissible_basis(self, q: ca.SX, frame: ca.SX | None = None) -> ca.SX:
        """A basis X(q) (nw, nrho) of the virtual velocities, A X = 0. On spaces with spheres, it
        depends on a `frame` (nw, nv), by default the space's frame.
        """
        if self.system.distribution is not None:
            return self.system.declared_basis(q)
        if (basis := self.default_basis) is not None:
            return basis.basis(q, basis.signs)
        frame = self.system.space.frame(q) if frame is None else frame
        return frame @ self.elimination.tangents(q, frame)

    def admissible_tangents(self, q: ca.SX) -> ca.SX:
        """The basis Y (nv, nrho) in local coordinates, `X = frame(q) Y`."""
        if self.system.distribution is not None or self.default_basis is not None:
            return self.admissible_basis(q)
        return self.elimination.tangents(q)

    def particular(self, q: ca.SX, prescribed_velocity: ca.SX) -> ca.SX:
        """A velocity c (nv) in local coordinates that satisfies `A frame c = b` and has the given
        velocities of prescribed coordinates.
        """
        if (basis := self.default_basis) is not None:
            return basis.particular(q, prescribed_velocity)
        return self.elimination.particular(q, prescribed_velocity)

    def holonomic_jacobian(self, q: ca.SX) -> ca.SX:
        """The Jacobian Dh(q) (n_holonomic_constraints, nv) along all tangent vectors. Those for
        prescribed coordinates are the last ones.
        """
        e = ca.SX.sym("e", self.system.space.nv)
        if not self.system.n_holonomic_constraints:
            return ca.SX(0, self.system.space.nv)
        jacobian = ca.jacobian(self.system.holonomic(self.system.space.retract(q, e)), e)
        return ca.substitute(jacobian, e, ca.SX.zeros(self.system.space.nv))

    @cached_property
    def consistency(self) -> ca.Function:
        """The function `consistency(q, p) -> h, s` for the holonomic constraints h
        (n_holonomic_constraints) and the sizes s of their terms. The sizes are `rounding_sizes`
        with 1 for the entries of a rotation and at least 1 rad for an angle.
        """
        system, q = self.system, self.system.symbols[0]
        arguments = [q, system.parameter_symbols]
        h = ca.Function("h", arguments, [ca.densify(system.holonomic(q))])
        sizes = rounding_sizes(h, arguments, [coordinate_sizes(system.space, q)], angle=1.0)
        return ca.Function("consistency", arguments, [h(q, system.parameter_symbols), sizes])

    def holonomic_impulse(self, q: ca.SX, multipliers: ca.SX) -> ca.SX:
        """The impulse `(Dh(q) Y)^T multipliers` (nrho) with the admissible tangents Y, computed by
        one reverse derivative.
        """
        e = ca.SX.sym("e", self.system.space.nv)
        h = self.system.holonomic(self.system.space.retract(q, e))
        impulse = ca.jtimes(h, e, multipliers, True)
        impulse = ca.substitute(impulse, e, ca.SX.zeros(self.system.space.nv))
        return self.admissible_tangents(q).T @ impulse

    def add_impulses(self, x: ca.SX, mu: ca.SX) -> ca.SX:
        """The state x with the impulses `Dh(q)^T mu` added to its momentum. Entries after
        (q, rho), such as a method's memory, do not change.
        """
        x, rest = x[: self.state_space.nq], x[self.state_space.nq :]
        q, rho = self.components_of(x)
        stays = ca.SX(len(self.system.prescribed), 1)
        changed = rho + self.store(q, self.holonomic_impulse(q, mu), stays)
        return self.at_signs([ca.vertcat(self.state_of(q, changed), rest)], q)[0]

    def reduce(self, q: ca.SX, rho: ca.SX, frame: ca.SX | None = None) -> ca.SX:
        """The components `X^T p` (nrho) of a stored momentum, with X =
        `admissible_basis(q, frame)`.
        """
        if self._stores_components:
            return rho[: self.system.nrho]
        return (self.elimination.stored_frame(q, frame).T @ rho)[: self.system.nrho]

    def store(
        self,
        q: ca.SX,
        components: ca.SX,
        prescribed_velocity: ca.SX,
        frame: ca.SX | None = None,
    ) -> ca.SX:
        """The stored momentum with the components `X^T p` (nrho) in X =
        `admissible_basis(q, frame)`, and with the velocities of the prescribed coordinates.
        """
        stored = ca.vertcat(components, prescribed_velocity)
        if self._stores_components:
            return stored
        return self.elimination.stored_frame(q, frame) @ stored

    def gradients(self, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The gradients dL/dq (nq) and dL/dv (nw) at symbolic (q, v)."""
        q_, v_, _ = self.system.symbols
        state = ca.vertcat(q_, v_)
        gradient = ca.gradient(self.system.lagrangian_at(q_, v_), state)
        gradient = ca.substitute(gradient, state, ca.vertcat(q, v))
        return gradient[: self.system.space.nq], gradient[self.system.space.nq :]

    def momentum(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """The stored momentum for the velocity v (nw), with the components `X(q)^T dL/dv`."""
        return self.store(
            q, self.admissible_basis(q).T @ self.gradients(q, v)[1], self.system.prescribed_part(v)
        )

    def inertia(
        self, q: ca.SX, rho: ca.SX, mass: ca.SX | None = None
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """(M, b, X, c) for the velocity `v = X y + c` with `M y = b`: the mass matrix M
        (nrho, nrho) on the admissible velocities, the momentum b (nrho) minus the part due to c,
        and a velocity c (nw) that satisfies the velocity constraints with the prescribed
        velocities.

        With holonomic constraints, the last entries of y are the impulses mu with which the
        velocity satisfies these constraints: `M y + (Dh Y)^T mu = b,  Dh Y y = -Dh c`. Half of a
        step's constraint impulse remains in p by [johnson2014 (28)], so without mu, the velocity
        would be only first-order accurate. By default, the mass matrix is derived from the
        Lagrangian.
        """
        # v = X y + c, where c satisfies A c = b with the prescribed velocities
        x = self.admissible_basis(q)
        particular = self.particular(q, self.system.prescribed_part(rho))
        c = self.system.space.frame(q) @ particular
        if mass is None:
            v_ = self.system.symbols[1]
            mass = x.T @ ca.hessian(self.system.lagrangian_at(q, v_), v_)[0] @ x
        # X^T dL/dv(q, X y + c) = rho, for a Lagrangian quadratic in v
        m, b = mass, self.reduce(q, rho) - x.T @ self.gradients(q, c)[1]
        k = self.system.n_holonomic_constraints
        if k:  # the KKT system [M, (Dh Y)^T; Dh Y, 0] (y, mu) = (b, -Dh c)
            jacobian = self.holonomic_jacobian(q)
            free = jacobian @ self.admissible_tangents(q)
            m = ca.vertcat(ca.horzcat(m, free.T), ca.horzcat(free, ca.SX(k, k)))
            b = ca.vertcat(b, -jacobian @ particular)
            x = ca.horzcat(x, ca.SX(self.system.space.nw, k))
        return m, b, x, c

    def energy(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """The energy `E = v . dL/dv - L`."""
        v_ = self.system.symbols[1]
        lagrangian = self.system.lagrangian_at(q, v_)
        return ca.substitute(ca.jtimes(lagrangian, v_, v_) - lagrangian, v_, v)

    @cached_property
    def _stores_components(self) -> bool:
        """Whether states contain the components `X^T p` (nrho) of momenta."""
        return bool(self.system.n_velocity_constraints) and not self.elimination.on_spheres

    def _momentum_name(self, name: str) -> str:
        """The name of the stored momentum for a velocity, or of a prescribed velocity."""
        if name in self.system.prescribed:
            return f"v_{name}"
        return f"rho_{name}" if self.system.n_velocity_constraints else f"p_{name}"
