"""Equations of motion for Lie group integrators: a group action on the states, and a vector field
with values in the Lie algebra.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from nh_control.geometry.homogeneous import (
    GroupAction,
    HomogeneousSpace,
    ProductAction,
    TranslationAction,
    phase_action,
    pose_action,
    simple_factors,
)
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Rn, Space
from nh_control.mechanics.system import System
from nh_control.numerics.linear_solves import factorized


class LieEquations:
    """The equations `x' = generator(x) f(x, u, p)` for a system's stored states x = (q, rho). They
    contain body velocities and momentum equations, which follow from the Lagrangian, the forces
    and the constraints.

    With the velocity v of (q, rho), `p = dL/dv`, T = generator(q) and a basis X of the admissible
    velocities `v = X s + c`,

        rho' = X^T (T^T (dL/dq + Dh^T lam) + ad*_v p + f) + (X')^T p

    The multipliers of velocity constraints drop out, and lam keeps `Dh v` at zero (index one). The
    velocity that belongs to the momentum is projected onto the constraints (see
    `Mechanics.inertia`). With `baumgarte` (alpha, beta), it is not projected, and lam satisfies
    `h'' + 2 alpha h' + beta^2 h = 0`; (0, 0) corresponds to [mueller2013 (3)]. The action of SE(3)
    keeps the normal part of the momentum of a unit vector at zero,
    `f = (q x v, q x (rho' - (q . k) v))`, where k is the momentum before its projection. The
    kinetic energy must be positive on the admissible velocities.

    `field(x, u, p)` is a CasADi function of the state, the inputs and the system's parameters;
    `action` acts on x. The inputs are the system's inputs, then the accelerations of prescribed
    coordinates. In the state, the velocities of prescribed coordinates replace their momenta.
    Raises ValueError for systems without such equations (see `refuses`).
    """

    def __init__(
        self,
        system: System,
        coordinates: str = "exp",
        baumgarte: tuple[float, float] | None = None,
    ):
        if reason := refuses(system):
            raise ValueError(f"{system.name} {reason}; use an integrator that takes it")
        self.system, self.baumgarte = system, baumgarte
        self.action = state_action(system, coordinates)

    @cached_property
    def field(self) -> ca.Function:
        """The function `f(x, u, p)`."""
        system = self.system
        x = ca.SX.sym("x", self.action.nx)
        u = ca.SX.sym("u", system.nu + len(system.prescribed))
        q, rho = system.mechanics.components_of(x)
        value = _Field(system, q, rho, u, self.baumgarte).algebra()
        (value,) = system.mechanics.at_signs([value], q)
        arguments = [x, u, system.parameter_symbols]
        return ca.Function(
            "field", arguments, [ca.densify(value)], ["x", "u", "p"], ["f"], {"cse": True}
        )

    @cached_property
    def start(self) -> ca.Function | None:
        """The function `start(x, p)`, which removes constraint impulses from a state's momentum.
        States of a discrete system contain such impulses, but solutions of these equations do not.
        None if all momenta are possible.
        """
        system = self.system
        if not system.n_holonomic_constraints or self.baumgarte is not None:
            return None
        x = ca.SX.sym("x", self.action.nx)
        mechanics = system.mechanics
        q, rho = mechanics.components_of(x)
        mass, momentum, basis, c = mechanics.inertia(q, rho)
        velocity = basis @ factorized(mass)(momentum) + c
        value = mechanics.state_of(q, mechanics.momentum(q, velocity))
        (value,) = mechanics.at_signs([value], q)
        return ca.Function("start", [x, system.parameter_symbols], [ca.densify(value)])


def state_action(system: System, coordinates: str = "exp") -> ProductAction:
    """The group action on a system's states (q, rho)."""
    space, out = system.space, system.mechanics.elimination
    names = system.mechanics.state_space.names[space.nq :]
    # momenta that are stored like velocities, or components on a distribution
    if not system.n_velocity_constraints or out.on_spheres:
        return phase_action(space, names, coordinates, out.dropped)
    actions: list[HomogeneousSpace] = []
    places: list[range] = []
    for factor, q, _ in simple_factors(space):
        actions.append(pose_action(factor, coordinates))
        places.append(q)
    rho = range(space.nq, space.nq + len(names))
    return ProductAction(*actions, TranslationAction(*names), places=[*places, rho])


def refuses(system: System) -> str:
    """The reason why there are no such equations for a system; "" if there are."""
    if system.first_order:
        return f"has first-order coordinates {system.first_order}"
    if system.n_redundant:
        return "has redundant holonomic constraints"
    for factor, _, _ in simple_factors(system.space):
        if not isinstance(factor, (Rn, SE2, SO3, SE3, S2)):
            return f"has a {type(factor).__name__}, for which no group action is implemented"
    return ""


class _Field:
    """The field at the symbols q, rho and u. It is computed from the velocity, its momentum and
    their rates.
    """

    def __init__(
        self,
        system: System,
        q: ca.SX,
        rho: ca.SX,
        u: ca.SX,
        baumgarte: tuple[float, float] | None,
    ):
        self._system, self._q, self._rho, self._baumgarte = system, q, rho, baumgarte
        self._accelerations = system.prescribed_part(u)
        self._factors = [(f, [*at], [*w]) for f, at, w in simple_factors(system.space)]
        self._basis, self._particular, self._independent = _stored_basis(
            system, q, system.prescribed_part(rho)
        )
        # M y = b, v = X y + c; with Baumgarte, the velocity ignores the holonomic constraints
        mass, momentum, x, c = system.mechanics.inertia(q, rho)
        self._solve = factorized(mass)
        n = system.nrho
        if baumgarte is None:
            y = self._solve(momentum)
        else:
            free = factorized(mass[:n, :n])(momentum[:n])
            y = ca.vertcat(free, ca.SX(system.n_holonomic_constraints, 1))
        self._x, self._v = x[:, : system.nrho], x @ y + c
        self._s = self._v[self._independent] if self._independent else y[: system.nrho]
        self._gradient_q, self._p = system.mechanics.gradients(q, self._v)
        self._force = system.generalized_force(q, self._v, u[: system.nu])
        self._q_rate = self._moving(self._v)
        # (X')^T p with constant p
        constant = ca.SX.sym("p", system.space.nw)
        basis_rate = ca.jtimes(self._basis.T @ constant, q, self._q_rate)
        self._basis_rate = ca.substitute(basis_rate, constant, self._p)

    def algebra(self) -> ca.SX:
        """f, in the order of the factors of `state_action`."""
        gradient_q = self._gradient_q
        if self._system.n_holonomic_constraints:
            h = self._system.holonomic(self._q)
            gradient_q += ca.jtimes(h, self._q, self._multipliers(), True)
        rate = self._rate(gradient_q)
        if not self._independent:
            return ca.vertcat(self._v, self._stored_rate(rate), self._accelerations)
        rate = self._with_accelerations(rate)
        pushed, parts = self._basis.T @ self._p, []
        place = {i: k for k, i in enumerate(self._independent)}
        for factor, q, w in self._factors:
            v, places = self._v[w], [place[i] for i in w if i in place]
            if isinstance(factor, S2):
                # SE(3) on a unit vector and its momentum: (q x v, q x (rho' - (q . k) v))
                unit = self._q[q]
                tangent_rate = rate[places] - ca.dot(unit, pushed[places]) * v
                parts += [ca.cross(unit, v), ca.cross(unit, tangent_rate)]
            else:
                parts += [v, rate[places]]
        return ca.vertcat(*parts)

    def _stored_rate(self, rate: ca.SX) -> ca.SX:
        """The rate of the stored momenta for a given rate of rho. Both rates are equal if the
        system declares a basis.
        """
        if (basis := self._system.mechanics.default_basis) is None:
            return rate
        rho = ca.SX.sym("rho", rate.shape[0])
        # p = P(q) rho
        stored = basis.momenta(self._q, basis.signs) @ rho
        moved = ca.jtimes(stored, ca.vertcat(self._q, rho), ca.vertcat(self._q_rate, rate))
        return ca.substitute(moved, rho, self._rho[: rate.shape[0]])

    def _rate(self, gradient_q: ca.SX) -> ca.SX:
        """rho' for dL/dq = gradient_q, without the normal part for unit vectors."""
        pulled = []
        for factor, q, w in self._factors:
            action, part = _pose(factor), gradient_q[q]
            if action:
                # T^T dL/dq + ad*_v p
                coadjoint = action.group.ad_star(self._v[w], self._p[w])
                part = action.generator(self._q[q]).T @ part + coadjoint
            pulled.append(part)
        return self._basis.T @ (ca.vertcat(*pulled) + self._force) + self._basis_rate

    def _multipliers(self) -> ca.SX:
        """The multipliers lam (n_holonomic_constraints) that make the rate of `Dh v` zero or equal
        to Baumgarte's rate, with `v' = X y' + w`, `M y' - (Dh X)^T lam = X^T (...)` and
        `Dh X y' = -g`.
        """
        system, q = self._system, self._q
        v, s = ca.SX.sym("v", system.space.nw), ca.SX.sym("s", self._s.shape[0])
        drift_rate = ca.jtimes(self._basis @ s + self._particular, q, self._q_rate)
        w = ca.substitute(drift_rate, s, self._s) + self._known_rate()
        state, along = ca.vertcat(q, v), ca.vertcat(self._q_rate, w)
        momentum, sliding = (
            system.mechanics.gradients(q, v)[1],
            ca.jtimes(system.holonomic(q), q, self._moving(v)),
        )
        rates = [ca.jtimes(what, state, along) for what in (momentum, sliding)]
        # parts of p' and (Dh v)' that do not contain y'
        p_rate, g = ca.substitute(rates, [v], [self._v])
        if self._baumgarte is not None:
            alpha, beta = self._baumgarte
            g += 2 * alpha * ca.substitute(sliding, v, self._v) + beta**2 * system.holonomic(q)
        frame = (
            system.mechanics.elimination.stored_frame(q)
            if self._independent
            else ca.SX.eye(system.nrho)
        )
        reduced = (frame.T @ (self._rate(self._gradient_q) - self._basis_rate))[: system.nrho]
        force = reduced - self._x.T @ p_rate
        return -self._solve(ca.vertcat(force, -g))[system.nrho :]

    def _known_rate(self) -> ca.SX:
        """The known part of v': the accelerations of prescribed coordinates, and `-|v|^2 q` for
        unit vectors, which keeps their velocities tangent.
        """
        system, accelerations = self._system, self._accelerations
        if not self._independent:  # c is linear in the prescribed velocities
            particular = system.mechanics.particular
            change = particular(self._q, accelerations) - particular(self._q, 0 * accelerations)
            return system.space.frame(self._q) @ change
        normal = ca.SX(system.space.nw, 1)
        for factor, q, w in self._factors:
            if isinstance(factor, S2):
                normal[w] = -ca.sumsqr(self._v[w]) * self._q[q]
        return self._basis @ self._with_accelerations(normal)[self._independent]

    def _with_accelerations(self, rate: ca.SX) -> ca.SX:
        """The rate of a stored velocity or momentum, with the accelerations of prescribed
        coordinates as its last entries.
        """
        n = rate.shape[0] - len(self._system.prescribed)
        return ca.vertcat(rate[:n], self._accelerations)

    def _moving(self, v: ca.SX) -> ca.SX:
        """q' for the velocity v."""
        parts = []
        for factor, q, w in self._factors:
            action = _pose(factor)
            parts.append(action.generator(self._q[q]) @ v[w] if action else v[w])
        return ca.vertcat(*parts)


def _pose(factor: Space) -> GroupAction | None:
    """The action on a factor that is a group; None for any other factor."""
    action = None if isinstance(factor, S2) else pose_action(factor)
    return action if isinstance(action, GroupAction) else None


def _stored_basis(system: System, q: ca.SX, prescribed: ca.SX) -> tuple[ca.SX, ca.SX, list[int]]:
    """(X, c, independent) in `v = X s + c`. s contains the velocities dual to rho. These are the
    velocities with the indices `independent`, including prescribed ones, or coordinates on a
    distribution if this list is empty.
    """
    n, out = system.space.nw, system.mechanics.elimination
    independent = [i for i in range(n) if i not in out.dropped]
    if not system.n_velocity_constraints:
        return ca.SX.eye(n), ca.SX(n, 1), independent
    # c with b = A c for zero velocities of prescribed coordinates
    frame, still = system.space.frame(q), ca.SX(len(system.prescribed), 1)
    if not out.on_spheres:
        c = frame @ system.mechanics.particular(q, prescribed)
        return system.mechanics.admissible_basis(q), c, []
    # v_dropped = -A_dropped^{-1} A_independent v_independent
    c = frame @ out.particular(q, still)
    a, dropped, basis = system.constraint_matrix(q), list(out.dropped), ca.SX(n, len(independent))
    basis[independent, :] = ca.SX.eye(len(independent))
    basis[dropped, :] = -ca.solve(a[:, dropped], a[:, independent])
    return basis, c, independent
