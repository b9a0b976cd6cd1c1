"""Systems in coordinates, with the functions that nonholonomic methods need."""

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
    """A system in coordinates q (n) of its configuration. The velocities are the rates w (n) of
    the coordinates, with `v = velocity_matrix(q) w`. On R^n, q are the system's coordinates. On
    SE(2), q is (theta, x, y).

    The Lagrangian is `L(q, w) = w^T M(q) w / 2 + c(q)^T w - V(q)`, the momenta are `p = M w + c`,
    and the constraints `A(q) w = 0` include Dh(q) w = 0 for holonomic constraints. X(q) is the
    basis of the velocities that satisfy the velocity constraints. `rho = X^T p` has the same value
    in all coordinates. Any momentum is `p = lift(q, rho) + A^T sigma`, where the velocity that
    belongs to `lift` satisfies the constraints. X^T is the projection P^T in [kobilarov2010 (12)],
    and sigma is its complement.

    Planar rigid motions change (theta, x, y) by an affine map, which commutes with sums of
    positions and rates. Methods that consist of such sums are therefore invariant under SE(2). The
    mass matrix is derived from the Lagrangian, and a constant matrix is recognized. All arguments
    and results are CasADi expressions.
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
        """Coordinates for a step from the configuration q along the displacement (n), and q in
        these coordinates.
        """
        return self, q

    def position(self, q: ca.SX) -> ca.SX:
        """The configuration (nq) with the coordinates q."""
        return q

    def velocity_matrix(self, q: ca.SX) -> ca.SX:
        """Stored velocities for unit rates, (nw, n)."""
        return coordinate_frame(factors_of(self.system.space), q).T

    def rate_matrix(self, q: ca.SX) -> ca.SX:
        """Rates for unit stored velocities, (n, nw), which are the left inverse of
        `velocity_matrix`.
        """
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
        # d/dq L(position(q), V(q) w) = position_q^T dL/dposition + (V w)_q^T dL/dv
        pull = ca.SX.sym("pull", position.shape[0])
        moving = ca.jtimes(self.position(self._q), self._q, pull, True)
        basis_rate = ca.jtimes(self.velocity_matrix(self._q) @ self._w, self._q, self._p, True)
        symbols, values = ca.vertcat(pull, self._p), ca.densify(ca.vertcat(by_position, by_v))
        both = ca.substitute(moving + basis_rate, symbols, values)
        (second_derivative,) = self._evaluated(q, w, w, both)
        return velocity_matrix.T @ by_v, force + second_derivative

    def constraint(self, q: ca.SX) -> ca.SX:
        """A(q), (n_constraints, n). The last rows are Dh for holonomic constraints."""
        return self._rows(self.position(q)) @ self.velocity_matrix(q)

    def basis(self, q: ca.SX) -> ca.SX:
        """X(q), (n, nrho)."""
        position = self.position(q)
        basis = self.system.mechanics.admissible_basis(position, self.frame(position))
        return self.rate_matrix(q) @ basis

    def stored(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """The momentum in the form that states store, from the components `X(q)^T p`."""
        position, components = self.position(q), self.basis(q).T @ p
        none = ca.SX(0, 1)
        return self.system.mechanics.store(position, components, none, self.frame(position))

    def reaction(self, q: ca.SX, sigma: ca.SX) -> ca.SX:
        """`A(q)^T sigma`."""
        return self.constraint(q).T @ sigma if self.n_constraints else ca.SX(self.n, 1)

    def normal_reaction(self, q: ca.SX, sigma: ca.SX) -> ca.SX:
        """`Dh(q)^T sigma` for holonomic constraints."""
        rows = self.constraint(q)[self.n_velocity_constraints :, :]
        return rows.T @ sigma if self.n_holonomic else ca.SX(self.n, 1)

    def normal_rates(self, q: ca.SX, nu: ca.SX) -> ca.SX:
        """`M^{-1} Dh^T nu`, the rates that lead back to h(q) = 0."""
        if not self.n_holonomic:
            return ca.SX(self.n, 1)
        position, m = self.position(q), self.n_velocity_constraints
        return self._rates(position, q) @ (self._reaction(position)[1][:, m:] @ nu)

    def node(
        self, position: ca.SX, q: ca.SX, rho: ca.SX, sigma: ca.SX | None = None
    ) -> tuple[ca.SX, ca.SX]:
        """Rates that satisfy the constraints, and the momentum `lift + A^T sigma`, for a stored
        momentum rho at the configuration `position` with the coordinates q.
        """
        a, b, s = self._reaction(position)
        p, frame = self._some_momentum(position, rho), self.frame(position)
        v = self._velocity(position, p)
        # remove the part that violates the constraints, with sigma' = (A M^-1 A^T)^-1 A v
        other = _solve(s, a @ v)
        reaction = -other if sigma is None else sigma - other
        w = self.rate_matrix(q) @ (frame @ (v - b @ other))
        return w, self.velocity_matrix(q).T @ (frame @ (p + a.T @ reaction))

    def speed(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """Rates for a momentum, `M^{-1} (p - c)`."""
        position = self.position(q)
        rates = self._rates(position, q)
        return rates @ self._velocity(position, rates.T @ p)

    def split(self, q: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(rho, sigma) for a momentum. rho has the form that states store, without its part along
        `Dh^T`, and `sigma = (A M^{-1} A^T)^{-1} A M^{-1} (p - c)` (n_velocity_constraints), where
        A includes Dh.
        """
        _, _, s = self._reaction(self.position(q))
        sigma, normal = self.parts(_solve(s, self.slip(q, p)))
        return self.stored(q, p - self.normal_reaction(q, normal)), sigma

    def parts(self, sigma: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The components of sigma for the velocity constraints and for the holonomic
        constraints.
        """
        rolling, normal = ca.vertsplit(sigma, [0, self.n_velocity_constraints, self.n_constraints])
        return rolling, normal

    def slip(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """`A w` (n_constraints), where w are the rates for a momentum."""
        position = self.position(q)
        v = self._velocity(position, self._rates(position, q).T @ p)
        return self._reaction(position)[0] @ v

    def multipliers(self, gradients: Gradients, q: ca.SX, rho: ca.SX, u: ca.SX) -> ca.SX:
        """The multipliers lam (n_constraints) of the continuous motion
        `p' = dL/dq + f + A^T lam,  A w = 0` from the configuration q.
        """
        here, start = self.about(q, ca.SX.zeros(self.n))
        w, _ = here.node(q, start, rho)
        force = here.derivatives(gradients, start, w, u)[1]
        # A w = 0 implies A w' = -(A w)_q w, and M w' = dL/dq + f + A^T lam - (M w + c)_q w
        rate = ca.jtimes(here._momentum, here._q, here._w)
        second_derivative = ca.jtimes(here.constraint(here._q) @ here._w, here._q, here._w)
        rate, second_derivative = here._evaluated(start, w, w, rate, second_derivative)
        _, b, s = here._reaction(q)
        return _solve(s, -second_derivative - b.T @ here._rates(q, start).T @ (force - rate))

    def rates(self, gradients: Gradients, q: ca.SX, rho: ca.SX, u: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q', rho') of the continuous motion, `rho' = X^T (dL/dq + f) + (dX/dt)^T p`. It does not
        contain multipliers.
        """
        w, p = self.node(self.position(q), q, rho)
        if n := len(self.system.first_order):
            v = self.velocity_matrix(q) @ w
            # first-order coordinates move with their rates, not with M^-1 p
            w[self.n - n :] = self.system.rate_at(self.position(q), v, u)
        _, force = self.derivatives(gradients, q, w, u)
        # (dX/dt)^T p with q' = w
        basis_rate = ca.jtimes(self.basis(self._q).T @ self._c, self._q, self._w)
        (second_derivative,) = self._evaluated(q, w, p, basis_rate)
        return w, self.basis(q).T @ force + second_derivative

    @cached_property
    def constant_mass(self) -> bool:
        """Whether the mass matrix is the same at all configurations, for all parameters. If the
        expression depends on q, random configurations are compared.
        """
        if not ca.depends_on(self._mass, self._q):
            return True
        rng, values = np.random.default_rng(0), self.system.parameter_values
        mass = ca.Function("mass", [self._q, self.system.parameter_symbols], [self._mass])
        for _ in range(3):
            parameters = values + rng.uniform(0.1, 0.5, len(values)) * (
                np.abs(values) + (values == 0)
            )
            here, there = (np.asarray(mass(rng.normal(size=self.n), parameters)) for _ in range(2))
            if not np.abs(here - there).max() <= 1e-13 * np.abs(here).max():
                return False
        return True

    @cached_property
    def separable(self) -> bool:
        """Whether the forces in a step are independent of its velocities. This requires a constant
        mass matrix, no terms linear in the velocities, and forces that depend on q and u only.
        """
        v, u = ca.SX.sym("v", self.n), ca.SX.sym("u", self.system.nu)
        force = self.system.generalized_force(self._q, v, u)
        linear = ca.depends_on(self.momentum_at_rest(self._q), self._q)
        return self.constant_mass and not linear and not ca.depends_on(force, v)

    def _rates(self, position: ca.SX, q: ca.SX) -> ca.SX:
        """Rates for the unit velocities of the frame, (n, n)."""
        return self.rate_matrix(q) @ self.frame(position)

    def _rows(self, position: ca.SX) -> ca.SX:
        """A and Dh for stored velocities, (n_constraints, nw)."""
        a = self.system.constraint_matrix(position)
        if not self.n_holonomic:
            return a
        # Dh along the frame of velocities
        slope = trivialized_jacobian(self.system.space, position, self.system.holonomic)
        return ca.vertcat(a, slope)

    def _reaction(self, position: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """(A, M^{-1} A^T, A M^{-1} A^T) for velocities in the frame."""
        a = self._rows(position) @ self.frame(position)
        b = ca.solve(self._inertia(position), a.T) if self.n_constraints else a.T
        return a, b, a @ b

    def _velocity(self, position: ca.SX, p: ca.SX) -> ca.SX:
        """Velocity in the frame, (n), for a momentum dual to it."""
        # v = M^-1 (p - c) in the frame
        return ca.solve(self._inertia(position), p - self._velocity_derivatives(position)[0])

    def _inertia(self, position: ca.SX) -> ca.SX:
        return ca.sparsify(self._velocity_derivatives(position)[1])

    def _some_momentum(self, position: ca.SX, rho: ca.SX) -> ca.SX:
        """A momentum p in the frame such that `X^T p` are the components of rho. If X has nrho
        unit rows, p contains the components in these rows. Otherwise p is `X (X^T X)^{-1}` times
        the components.
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
        """dL/dv at rest and d^2L/dv^2, for velocities in the frame."""
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
        """c(q), the momentum at zero velocity."""
        position = self.position(q)
        at_rest = self.frame(position) @ self._velocity_derivatives(position)[0]
        return self.velocity_matrix(q).T @ at_rest

    def _evaluated(self, q: ca.SX, w: ca.SX, c: ca.SX, *expressions: ca.SX) -> list[ca.SX]:
        """Expressions in the symbols (q, w, c), evaluated at the given values."""
        values = [ca.densify(ca.SX(value)) for value in (q, w, c)]
        return ca.substitute(list(expressions), [self._q, self._w, self._c], values)


class Charts(Coordinates):
    """The coordinates d of a chart about the middle c of each step, with `q = retract(c, d)` and
    `q0 = retract(c, -displacement / 2)`. On spheres, they are in the frame of q0, transported to
    c.

    In these coordinates, a method for R^n has the same order on any Lie group and on spheres. It
    is reversible if it is reversible on R^n, because the tangent maps are exact. It is not
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
        """False, because the tangent map is part of the mass matrix."""
        return False


def _solve(s: ca.SX, b: ca.SX) -> ca.SX:
    return ca.solve(s, b) if s.shape[0] else ca.SX(b.shape[0], b.shape[1])


def _unit_rows(x: ca.SX) -> list[int] | None:
    """Indices of rows of x (n, k) that form the unit matrix, or None if there are no such rows."""
    rows, columns = x.sparsity().get_triplet()
    # rows with a single structural nonzero
    single = [(r, c) for r, c in zip(rows, columns) if rows.count(r) == 1]
    places = {c: r for r, c in single if x[r, c].is_one()}
    return [places[c] for c in range(x.shape[1])] if len(places) == x.shape[1] else None


def coordinates(system: System, name: str, refuses: Refusal = if_unfit) -> Coordinates:
    """Coordinates of a system for the integrator `name`. They are global coordinates on R^n and
    SE(2), and charts about the middle of a step on other spaces. Raises ValueError if `refuses`
    returns a reason.
    """
    if reason := refuses(system):
        raise ValueError(f"{name}: {system.name} {reason}; use nonholonomic_midpoint")
    return Coordinates(system) if is_flat(system) else Charts(system)
