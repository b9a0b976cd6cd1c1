"""Systems in coordinates, with the functions that nonholonomic methods need there."""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.discrete.method import Gradients
from nh_control.geometry.chart import Chart, trivialized_jacobian
from nh_control.integrators.refusals import factors_of, if_unfit, is_flat, with_masses
from nh_control.integrators.registry import Refusal
from nh_control.mechanics.coordinates import coordinate_frame
from nh_control.mechanics.system import System


class Coordinates:
    """A system in the numbers q (n) of its configuration with their rates w (n) for velocities,
    `v = velocity_matrix(q) w`; on R^n these are its own, SE(2) is (theta, x, y).

    `L(q, w) = w^T M(q) w / 2 + c(q)^T w - V(q)`, momenta `p = M w + c`, constraints `A(q) w = 0`,
    among them Dh(q) w = 0 of holonomic ones, basis X(q) of the velocity constraints; `rho = X^T p`
    is the same number in all coordinates. Any momentum is
    `p = lift(q, rho) + A^T sigma` with a velocity of `lift` that keeps the constraints; X^T is the
    projection P^T of [kobilarov2010 (12)] and sigma its other part. Motions of the plane change
    (theta, x, y) by an affine map, which commutes with sums of positions and rates, so that
    methods made of such sums stay invariant under SE(2). The mass matrix is derived from the
    Lagrangian; a constant one is recognized. All arguments and results are CasADi expressions.
    """

    def __init__(self, system: System):
        self.system, self.n, self.n_velocity_constraints = (
            system,
            system.space.nv,
            system.n_velocity_constraints,
        )
        self.n_holonomic = system.n_holonomic_constraints
        self.n_constraints = self.n_velocity_constraints + self.n_holonomic
        self._q, self._w, self._c = (ca.SX.sym(name, self.n) for name in "qwc")
        self._p = ca.SX.sym("p", system.space.nw)

    def about(self, q: ca.SX, displacement: ca.SX) -> tuple[Coordinates, ca.SX]:
        """Coordinates for a step from the configuration q along the displacement (n), and its
        start in them.
        """
        return self, q

    def position(self, q: ca.SX) -> ca.SX:
        """The configuration (nq) with the coordinates q."""
        return q

    def velocity_matrix(self, q: ca.SX) -> ca.SX:
        """Velocities as the space stores them of unit rates, (nw, n)."""
        return coordinate_frame(factors_of(self.system.space), q).T

    def rate_matrix(self, q: ca.SX) -> ca.SX:
        """Rates of velocities as the space stores them, (n, nw), its left inverse."""
        return self.velocity_matrix(q).T

    def frame(self, position: ca.SX) -> ca.SX:
        """Orthonormal frame E (nw, n) of the velocities at a configuration."""
        return ca.SX.eye(self.n)

    def derivatives(
        self, gradients: Gradients, q: ca.SX, w: ca.SX, u: ca.SX
    ) -> tuple[ca.SX, ca.SX]:
        """Momentum dL/dw and force `dL/dq + f(q, w, u)`, (n) each."""
        position, velocity_matrix = self.position(q), self.velocity_matrix(q)
        v = velocity_matrix @ w
        by_position, by_v = gradients(position, v)
        force = velocity_matrix.T @ self.system.generalized_force(position, v, u)
        pull = ca.SX.sym("pull", position.shape[0])
        moving = ca.jtimes(self.position(self._q), self._q, pull, True)
        basis_rate = ca.jtimes(self.velocity_matrix(self._q) @ self._w, self._q, self._p, True)
        symbols, values = ca.vertcat(pull, self._p), ca.densify(ca.vertcat(by_position, by_v))
        both = ca.substitute(moving + basis_rate, symbols, values)
        (second_derivative,) = self._evaluated(q, w, w, both)
        return velocity_matrix.T @ by_v, force + second_derivative

    def constraint(self, q: ca.SX) -> ca.SX:
        """A(q), (n_constraints, n), with the rows Dh of holonomic constraints at the end."""
        return self._rows(self.position(q)) @ self.velocity_matrix(q)

    def basis(self, q: ca.SX) -> ca.SX:
        """X(q), (n, nrho)."""
        position = self.position(q)
        basis = self.system.mechanics.admissible_basis(position, self.frame(position))
        return self.rate_matrix(q) @ basis

    def stored(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """The momentum as states store it, of the components `X(q)^T p`."""
        position, components = self.position(q), self.basis(q).T @ p
        none = ca.SX(0, 1)
        return self.system.mechanics.store(position, components, none, self.frame(position))

    def reaction(self, q: ca.SX, sigma: ca.SX) -> ca.SX:
        """`A(q)^T sigma`."""
        return self.constraint(q).T @ sigma if self.n_constraints else ca.SX(self.n, 1)

    def normal_reaction(self, q: ca.SX, sigma: ca.SX) -> ca.SX:
        """`Dh(q)^T sigma` of holonomic constraints."""
        rows = self.constraint(q)[self.n_velocity_constraints :, :]
        return rows.T @ sigma if self.n_holonomic else ca.SX(self.n, 1)

    def normal_rates(self, q: ca.SX, nu: ca.SX) -> ca.SX:
        """`M^{-1} Dh^T nu`, rates that lead back to h(q) = 0."""
        if not self.n_holonomic:
            return ca.SX(self.n, 1)
        position, m = self.position(q), self.n_velocity_constraints
        return self._rates(position, q) @ (self._reaction(position)[1][:, m:] @ nu)

    def node(
        self, position: ca.SX, q: ca.SX, rho: ca.SX, sigma: ca.SX | None = None
    ) -> tuple[ca.SX, ca.SX]:
        """Rates that keep the constraints, and the momentum `lift + A^T sigma`, at the
        configuration `position` with the coordinates q, of a stored momentum rho.
        """
        a, b, s = self._reaction(position)
        p, frame = self._some_momentum(position, rho), self.frame(position)
        v = self._velocity(position, p)
        other = _solve(s, a @ v)
        kept = -other if sigma is None else sigma - other
        w = self.rate_matrix(q) @ (frame @ (v - b @ other))
        return w, self.velocity_matrix(q).T @ (frame @ (p + a.T @ kept))

    def speed(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """Rates of a momentum, `M^{-1} (p - c)`."""
        position = self.position(q)
        rates = self._rates(position, q)
        return rates @ self._velocity(position, rates.T @ p)

    def split(self, q: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(rho, sigma) of a momentum, rho as states store it and without its part along `Dh^T`,
        `sigma = (A M^{-1} A^T)^{-1} A M^{-1} (p - c)` (n_velocity_constraints) with Dh among A.
        """
        _, _, s = self._reaction(self.position(q))
        sigma, normal = self.parts(_solve(s, self.slip(q, p)))
        return self.stored(q, p - self.normal_reaction(q, normal)), sigma

    def parts(self, sigma: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Those of the velocity constraints, and of the holonomic ones."""
        rolling, normal = ca.vertsplit(sigma, [0, self.n_velocity_constraints, self.n_constraints])
        return rolling, normal

    def slip(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """`A w` (n_constraints) of a momentum's rates."""
        position = self.position(q)
        v = self._velocity(position, self._rates(position, q).T @ p)
        return self._reaction(position)[0] @ v

    def multipliers(self, gradients: Gradients, q: ca.SX, rho: ca.SX, u: ca.SX) -> ca.SX:
        """lam (n_constraints) of the continuous motion `p' = dL/dq + f + A^T lam,  A w =
        0` from the configuration q.
        """
        here, start = self.about(q, ca.SX.zeros(self.n))
        w, _ = here.node(q, start, rho)
        force = here.derivatives(gradients, start, w, u)[1]
        rate = ca.jtimes(here._momentum, here._q, here._w)
        second_derivative = ca.jtimes(here.constraint(here._q) @ here._w, here._q, here._w)
        rate, second_derivative = here._evaluated(start, w, w, rate, second_derivative)
        _, b, s = here._reaction(q)
        return _solve(s, -second_derivative - b.T @ here._rates(q, start).T @ (force - rate))

    def rates(self, gradients: Gradients, q: ca.SX, rho: ca.SX, u: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q', rho') of the continuous motion, `rho' = X^T (dL/dq + f) + (dX/dt)^T p`: multipliers
        drop out.
        """
        w, p = self.node(self.position(q), q, rho)
        if n := len(self.system.first_order):
            v = self.velocity_matrix(q) @ w
            w[self.n - n :] = self.system.rate_at(self.position(q), v, u)
        _, force = self.derivatives(gradients, q, w, u)
        basis_rate = ca.jtimes(self.basis(self._q).T @ self._c, self._q, self._w)
        (second_derivative,) = self._evaluated(q, w, p, basis_rate)
        return w, self.basis(q).T @ force + second_derivative

    @cached_property
    def constant_mass(self) -> bool:
        """Whether the mass matrix is the same at all configurations, for all parameters. If the
        expression does not show it, random configurations are compared.
        """
        if not ca.depends_on(self._mass, self._q):
            return True
        rng, values = np.random.default_rng(0), self.system.parameter_values
        mass = ca.Function("mass", [self._q, self.system.parameter_symbols], [self._mass])
        for _ in range(3):
            p = values + rng.uniform(0.1, 0.5, len(values)) * (np.abs(values) + (values == 0))
            here, there = (np.asarray(mass(rng.normal(size=self.n), p)) for _ in range(2))
            if not np.abs(here - there).max() <= 1e-13 * np.abs(here).max():
                return False
        return True

    @cached_property
    def separable(self) -> bool:
        """Whether the forces of a step do not depend on its velocities: a constant mass matrix, no
        terms linear in the velocities, and forces of q and u alone.
        """
        v, u = ca.SX.sym("v", self.n), ca.SX.sym("u", self.system.nu)
        force = self.system.generalized_force(self._q, v, u)
        linear = ca.depends_on(self.momentum_at_rest(self._q), self._q)
        return self.constant_mass and not linear and not ca.depends_on(force, v)

    def _rates(self, position: ca.SX, q: ca.SX) -> ca.SX:
        """Rates of the frame's unit velocities, (n, n)."""
        return self.rate_matrix(q) @ self.frame(position)

    def _rows(self, position: ca.SX) -> ca.SX:
        """A and Dh of velocities as the space stores them, (n_constraints, nw)."""
        a = self.system.constraint_matrix(position)
        if not self.n_holonomic:
            return a
        slope = trivialized_jacobian(self.system.space, position, self.system.holonomic)
        return ca.vertcat(a, slope)

    def _reaction(self, position: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """(A, M^{-1} A^T, A M^{-1} A^T) of velocities in the frame."""
        a = self._rows(position) @ self.frame(position)
        b = ca.solve(self._inertia(position), a.T) if self.n_constraints else a.T
        return a, b, a @ b

    def _velocity(self, position: ca.SX, p: ca.SX) -> ca.SX:
        """Velocity in the frame, (n), of a momentum dual to it."""
        return ca.solve(self._inertia(position), p - self._velocity_derivatives(position)[0])

    def _inertia(self, position: ca.SX) -> ca.SX:
        return ca.sparsify(self._velocity_derivatives(position)[1])

    def _some_momentum(self, position: ca.SX, rho: ca.SX) -> ca.SX:
        """A momentum p in the frame with `X^T p` the components of rho: in the unit rows of X if
        there are nrho of them, else `X (X^T X)^{-1}` times them.
        """
        frame, mechanics = self.frame(position), self.system.mechanics
        rho = mechanics.reduce(position, rho, frame)
        x = ca.sparsify(frame.T @ mechanics.admissible_basis(position, frame))
        places = _unit_rows(x)
        if places is None:
            return x @ ca.solve(x.T @ x, rho)
        p = ca.SX(self.n, 1)
        p[places] = rho
        return p

    def _velocity_derivatives(self, position: ca.SX) -> list[ca.SX]:
        """dL/dv at rest and d^2L/dv^2 of velocities in the frame."""
        v, frame = ca.SX.sym("v", self.system.space.nw), self.frame(position)
        hessian, gradient = ca.hessian(self.system.lagrangian_at(position, v), v)
        mass = frame.T @ with_masses(self.system, hessian) @ frame
        return ca.substitute([frame.T @ gradient, mass], [v], [ca.SX.zeros(v.shape[0])])

    @cached_property
    def _momentum(self) -> ca.SX:
        """dL/dw at (q, w)."""
        position = self.position(self._q)
        lagrangian = self.system.lagrangian_at(position, self.velocity_matrix(self._q) @ self._w)
        return ca.gradient(lagrangian, self._w)

    @cached_property
    def _mass(self) -> ca.SX:
        """M at q."""
        return ca.jacobian(self._momentum, self._w)

    def momentum_at_rest(self, q: ca.SX) -> ca.SX:
        """c(q), of a configuration without velocity."""
        position = self.position(q)
        at_rest = self.frame(position) @ self._velocity_derivatives(position)[0]
        return self.velocity_matrix(q).T @ at_rest

    def _evaluated(self, q: ca.SX, w: ca.SX, c: ca.SX, *expressions: ca.SX) -> list[ca.SX]:
        """Expressions in the symbols (q, w, c) at values of them."""
        values = [ca.densify(ca.SX(value)) for value in (q, w, c)]
        return ca.substitute(list(expressions), [self._q, self._w, self._c], values)


class Charts(Coordinates):
    """The coordinates d of a chart about the middle c of every step, `q = retract(c, d)`,
    `q0 = retract(c, -displacement / 2)`; on spheres in the frame of q0, carried to c.

    A method of R^n in these coordinates has its order on any Lie group and on spheres, and is
    reversible if it is reversible on R^n, because the tangent maps are exact; it is not
    symplectic, because the chart moves with the state.
    """

    def __init__(self, system: System, chart: Chart | None = None):
        super().__init__(system)
        self._chart = chart or Chart(system.space, ca.SX(system.space.origin))

    def about(self, q: ca.SX, displacement: ca.SX) -> tuple[Coordinates, ca.SX]:
        chart = Chart.about_middle(self.system.space, q, displacement)
        return Charts(self.system, chart), -displacement / 2

    def position(self, q: ca.SX) -> ca.SX:
        return self._chart.position(q)

    def velocity_matrix(self, q: ca.SX) -> ca.SX:
        return self._chart.tangent(q)

    def rate_matrix(self, q: ca.SX) -> ca.SX:
        return self._chart.inverse_tangent(q)

    def frame(self, position: ca.SX) -> ca.SX:
        return self._chart.moving_frame(position)

    @property
    def constant_mass(self) -> bool:
        """False: the tangent map is part of the mass matrix."""
        return False


def _solve(s: ca.SX, b: ca.SX) -> ca.SX:
    return ca.solve(s, b) if s.shape[0] else ca.SX(*b.shape)


def _unit_rows(x: ca.SX) -> list[int] | None:
    """Rows of x (n, k) that make up the unit matrix, or None if it has no such rows."""
    rows, columns = x.sparsity().get_triplet()
    single = [(r, c) for r, c in zip(rows, columns) if rows.count(r) == 1]
    places = {c: r for r, c in single if x[r, c].is_one()}
    return [places[c] for c in range(x.shape[1])] if len(places) == x.shape[1] else None


def coordinates(system: System, name: str, refuses: Refusal = if_unfit) -> Coordinates:
    """Coordinates of a system for the integrator `name`: plain ones on R^n and SE(2), charts about
    a step's middle on other spaces; raises ValueError where `refuses` does.
    """
    if reason := refuses(system):
        raise ValueError(f"{name}: {system.name} {reason}; use nonholonomic_midpoint")
    return Coordinates(system) if is_flat(system) else Charts(system)
