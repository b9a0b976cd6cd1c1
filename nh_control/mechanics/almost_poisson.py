"""The almost-Poisson structure of a system with velocity constraints, on D* [celledoni2016 2]."""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from nh_control.geometry.chart import Chart, bracket_form, trivialized_jacobian
from nh_control.mechanics.distribution import Basis
from nh_control.mechanics.system import System


class AlmostPoisson:
    """`zeta' = Pi(zeta) grad H(zeta) + (0, X^T f)`, `Pi = [[0, X], [-X^T, -K]]`, of zeta = (q,
    rho), `rho = X(q)^T p`, for any basis X(q) of the admissible velocities [celledoni2016 (8)].

    `H = rho . y - L(q, X y)`, `X^T dL/dv(q, X y) = rho`, hence `dH/drho = y`, and
    `dH/dq = -dL/dq - W y`, `K = X^T W - W^T X + X^T P X` with `W_ib = p . dX_b/dq_i`,
    `P_ij = p . [e_i, e_j]`, p = dL/dv: K_ab = C_ab^c rho_c = p . [X_a, X_b]. Derivatives by q are
    along trivialized variations, so that everything holds on Lie groups with velocities in the
    body frame, whose bracket is in P. The Lagrangian may have terms linear in v.

    Written for `System.lagrangian_at` and its mass matrix, not for the Lagrangian's gradient
    alone. With a `spacing` dX is a central difference along every variation
    [celledoni2016 Remark 3.5].
    """

    def __init__(self, system: System, basis: Basis, spacing: ca.SX | None = None):
        self.system, self.basis, self._spacing = system, basis, spacing

    def energy(self, q: ca.SX, rho: ca.SX) -> ca.SX:
        """H(q, rho)."""
        return self._at(q, rho, "energy")

    def momentum(self, q: ca.SX, rho: ca.SX) -> ca.SX:
        """The momentum p = dL/dv (nv) of the admissible velocity with `X^T p = rho`."""
        return self._at(q, rho, "momentum")

    def local(self, chart: Chart) -> LocalStructure:
        """The same in a chart."""
        return LocalStructure(self, chart)

    def _at(self, q: ca.SX, rho: ca.SX, *names: str) -> ca.SX:
        symbols, expressions = self._expressions
        wanted = ca.vertcat(*(ca.vec(ca.densify(expressions[name])) for name in names))
        return ca.substitute(wanted, ca.vertcat(*symbols), ca.vertcat(q, rho))

    def gradient(self, q: ca.SX, rho: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(dH/dq, dH/drho), (nv) and (nrho)."""
        both, n = self._at(q, rho, "gradient_q", "y"), self.system.space.nv
        return both[:n], both[n:]

    def bracket(self, q: ca.SX, rho: ca.SX) -> ca.SX:
        """K(q, rho), (nrho, nrho)."""
        n = rho.shape[0]
        return ca.reshape(self._at(q, rho, "bracket"), n, n)

    def kinetic_covector(self, q: ca.SX, rho: ca.SX, change: ca.SX, h: ca.SX) -> ca.SX:
        """`W D = (M d / h^2, (X^T M X)^{-1} r)` of a change D = (d, r) of (q, rho) in h: D . W D,
        twice the kinetic energies of the velocity d / h and of the momentum r, is an energy.
        """
        n, x = self.system.space.nv, self.basis(q)
        mass = ca.reshape(self._at(q, rho, "mass"), n, n)
        return ca.vertcat(mass @ change[:n] / h**2, ca.solve(x.T @ mass @ x, change[n:]))

    @cached_property
    def _expressions(self) -> tuple[tuple[ca.SX, ca.SX], dict[str, ca.SX]]:
        system, space = self.system, self.system.space
        q, v = ca.SX.sym("q", space.nq), ca.SX.sym("v", space.nw)
        x = self.basis(q)
        rho = ca.SX.sym("rho", x.shape[1])
        lagrangian = system.lagrangian_at(q, v)
        mass, p0 = ca.hessian(lagrangian, v)
        p0 = ca.substitute(p0, v, ca.SX.zeros(space.nw))
        y = self._velocity(q, x, mass, rho - x.T @ p0)
        velocity = x @ y
        p = mass @ velocity + p0
        w = self._basis_derivatives(q, p)
        gradient_q = trivialized_jacobian(space, q, lambda q: system.lagrangian_at(q, v)).T
        momentum_change = x.T @ w
        expressions = {
            "y": y,
            "momentum": p,
            "mass": mass,
            "energy": ca.dot(rho, y) - ca.substitute(lagrangian, v, velocity),
            "gradient_q": -ca.substitute(gradient_q, v, velocity) - w @ y,
            "bracket": momentum_change - momentum_change.T + x.T @ bracket_form(space, p) @ x,
        }
        return (q, rho), expressions

    def _velocity(self, q: ca.SX, x: ca.SX, mass: ca.SX, rho: ca.SX) -> ca.SX:
        """y with `X^T M X y = rho`.

        With few constraints X^T M X is dense where M and A are not: then v = X y is found from
        `M v + A^T lam = p,  A v = 0` with any p that has `X^T p = rho`, here one of independent
        momenta. Expressions grow as n^2, not n^3.
        """
        n_constraints, nrho = self.system.n_velocity_constraints, self.system.nrho
        if not 0 < 2 * n_constraints < nrho == x.shape[1]:
            return ca.solve(x.T @ mass @ x, rho)
        places = self.system.mechanics.elimination.independent
        own = ca.sparsify(ca.simplify(x[places, :]))
        p, a = ca.SX(x.shape[0], 1), self.system.constraint_matrix(q)
        p[places] = ca.solve(own.T, rho)
        solved = ca.solve(mass, ca.horzcat(p, a.T))
        unconstrained, reaction = solved[:, 0], solved[:, 1:]
        v = unconstrained - reaction @ ca.solve(a @ reaction, a @ unconstrained)
        return ca.solve(own, v[places])

    def _basis_derivatives(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """W, (nv, nrho)."""
        space, frozen = self.system.space, ca.SX.sym("p", self.system.space.nw)
        if self._spacing is None:
            derivatives = trivialized_jacobian(space, q, lambda q: self.basis(q).T @ frozen).T
            return ca.substitute(derivatives, frozen, p)
        rows = []
        for step in ca.horzsplit(self._spacing * ca.SX.eye(space.nv)):
            ahead, behind = (self.basis(space.retract(q, d)) for d in (step, -step))
            rows.append(p.T @ (ahead - behind) / (2 * self._spacing))
        return ca.vertcat(*rows)


class LocalStructure:
    """An almost-Poisson structure in the coordinates zeta = (d, rho) of a chart."""

    def __init__(self, structure: AlmostPoisson, chart: Chart):
        self.structure, self.chart = structure, chart
        self._n = structure.system.space.nv

    @cached_property
    def curved(self) -> list[int]:
        """Places of the coordinates d in which H may be anything but quadratic."""
        d = ca.SX.sym("d", self._n)
        rho = ca.SX.sym("rho", self.structure.basis(self.chart.center).shape[1])
        depends = ca.which_depends(self.energy(ca.vertcat(d, rho)), d, 1, False)
        return [i for i in range(self._n) if depends[i]]

    def energy(self, zeta: ca.SX) -> ca.SX:
        """H(zeta)."""
        return self.structure.energy(*self._place(zeta))

    def gradient(self, zeta: ca.SX) -> ca.SX:
        """dH/dzeta, (nv + nrho)."""
        gradient_q, y = self.structure.gradient(*self._place(zeta))
        return ca.vertcat(self.chart.covector(zeta[: self._n], gradient_q), y)

    def kinetic_covector(self, zeta: ca.SX, change: ca.SX, h: ca.SX) -> ca.SX:
        """The covector of a change at the chart's center, where d = 0 in zeta."""
        return self.structure.kinetic_covector(*self._place(zeta), change, h)

    def rate(self, zeta: ca.SX, gradient: ca.SX, u: ca.SX) -> ca.SX:
        """`Pi(zeta) gradient + (0, X^T f(q, v, u))`, `v = X gradient_rho`, so that
        `gradient . rate = f . v`: with a discrete gradient the energy grows by the work alone.
        """
        (q, rho), d = self._place(zeta), zeta[: self._n]
        x, t = self.structure.basis(q), self.chart.inverse_tangent(d)
        v = x @ gradient[self._n :]
        f = self.structure.system.generalized_force(q, v, u) - t.T @ gradient[: self._n]
        k = self.structure.bracket(q, rho)
        return ca.vertcat(t @ v, x.T @ f - k @ gradient[self._n :])

    def _place(self, zeta: ca.SX) -> tuple[ca.SX, ca.SX]:
        return self.chart.position(zeta[: self._n]), zeta[self._n :]
