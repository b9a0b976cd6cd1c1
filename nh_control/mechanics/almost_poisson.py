"""The almost-Poisson structure on D* for a system with velocity constraints [celledoni2016 2]."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import casadi as ca

from nh_control.geometry.chart import Chart, bracket_form, trivialized_jacobian
from nh_control.mechanics.distribution import Basis
from nh_control.mechanics.system import System
from nh_control.numerics.linear_solves import factorized


class AlmostPoisson:
    """The equations of motion `zeta' = Pi(zeta) grad H(zeta) + (0, X^T f)` with
    `Pi = [[0, X], [-X^T, -K]]`, zeta = (q, rho) and `rho = X(q)^T p`, for any basis X(q) of the
    admissible velocities [celledoni2016 (8)].

    `H = rho . y - L(q, X y)` with `X^T dL/dv(q, X y) = rho`. Hence `dH/drho = y` and
    `dH/dq = -dL/dq - W y`. `K = X^T W - W^T X + X^T P X` with `W_ib = p . dX_b/dq_i`,
    `P_ij = p . [e_i, e_j]` and p = dL/dv. Hence K_ab = C_ab^c rho_c = p . [X_a, X_b]. Derivatives
    with respect to q are taken along trivialized variations. Therefore, the equations hold on Lie
    groups with velocities in the body frame, whose bracket is in P. They also hold on spheres with
    velocities in R^3, where X is smooth about every chart's center (see `Chart.moving_frame`). The
    Lagrangian may have terms linear in v.

    The velocities w of prescribed coordinates are additional quasi-velocities, `v = X y + C w`: H
    depends on w, and the part of zeta' for these coordinates is w. With multipliers lam of
    holonomic constraints h(q), all functions use the augmented energy `H + lam . h`.

    The expressions need `System.lagrangian_at` and its mass matrix; the Lagrangian's gradient is
    not sufficient. With a `spacing`, dX is a central difference along every variation
    [celledoni2016 Remark 3.5].
    """

    def __init__(self, system: System, basis: Basis, spacing: ca.SX | None = None):
        self.system, self.basis, self._spacing = system, basis, spacing

    def energy(
        self, q: ca.SX, rho: ca.SX, w: ca.SX | None = None, lam: ca.SX | None = None
    ) -> ca.SX:
        """H(q, rho)."""
        return self._at(q, rho, w, lam, "energy")

    def momentum(self, q: ca.SX, rho: ca.SX) -> ca.SX:
        """The momentum p = dL/dv (nw) for the admissible velocity that satisfies `X^T p = rho`."""
        return self._at(q, rho, None, None, "momentum")

    def local(
        self, chart: Chart, w: ca.SX | None = None, lam: ca.SX | None = None
    ) -> LocalStructure:
        """The structure in a chart, at velocities w of prescribed coordinates and
        multipliers lam.
        """
        return LocalStructure(self, chart, w, lam)

    def gradient(
        self, q: ca.SX, rho: ca.SX, w: ca.SX | None = None, lam: ca.SX | None = None
    ) -> tuple[ca.SX, ca.SX]:
        """(dH/dq, dH/drho), (nw) and (nrho)."""
        both, n = self._at(q, rho, w, lam, "gradient_q", "y"), self.system.space.nw
        return both[:n], both[n:]

    def velocity(self, q: ca.SX, y: ca.SX, w: ca.SX | None = None) -> ca.SX:
        """`v = X y + C w`, (nw)."""
        return self.basis(q) @ y + (0 if w is None else self._prescribed_basis(q) @ w)

    def bracket(self, q: ca.SX, rho: ca.SX, w: ca.SX | None = None) -> ca.SX:
        """K(q, rho), (nrho, nrho), with additional columns `p . [X_a, C_b]` for w."""
        n = rho.shape[0]
        entries = self._at(q, rho, w, None, "bracket")
        return ca.reshape(entries, n, n + len(self.system.prescribed))

    def kinetic_covector(self, chart: Chart, rho: ca.SX, change: ca.SX, h: ca.SX) -> ca.SX:
        """The covector `W D = (M d / h^2, (X^T M X)^{-1} r)` for a change D = (d, r) in (q, rho)
        during h at the center of a chart. D . W D is twice the sum of the kinetic energies for the
        velocity d / h and for the momentum r.
        """
        nw, nv, x = self.system.space.nw, self.system.space.nv, self.basis(chart.center)
        mass = ca.reshape(self._at(chart.center, rho, None, None, "mass"), nw, nw)
        of_velocity = chart.frame.T @ mass @ chart.frame @ change[:nv] / h**2
        return ca.vertcat(of_velocity, ca.solve(x.T @ mass @ x, change[nv:]))

    def normal(self, q: ca.SX, rho: ca.SX, w: ca.SX | None = None) -> tuple[ca.SX, ca.SX, ca.SX]:
        """`J = Dh X` (k, nrho), `G = J (X^T M X)^{-1} J^T` (k, k) and `Dh v` (k) for the holonomic
        constraints.
        """
        # three matrices in one vector, column by column
        n, k = rho.shape[0], self.system.n_holonomic_constraints
        entries = self._at(q, rho, w, None, "holonomic", "gram", "slip")
        parts = ca.vertsplit(entries, [0, k * n, k * (n + k), k * (n + k + 1)])
        return ca.reshape(parts[0], k, n), ca.reshape(parts[1], k, k), parts[2]

    def _at(self, q: ca.SX, rho: ca.SX, w: ca.SX | None, lam: ca.SX | None, *names: str) -> ca.SX:
        symbols, expressions = self._expressions
        stacked = ca.vertcat(*(ca.vec(ca.densify(expressions[name])) for name in names))
        rest = (
            ca.SX.zeros(symbol.shape[0]) if value is None else value
            for symbol, value in zip(symbols[2:], (w, lam))
        )
        return ca.substitute(stacked, ca.vertcat(*symbols), ca.vertcat(q, rho, *rest))

    @cached_property
    def _expressions(self) -> tuple[tuple[ca.SX, ca.SX, ca.SX, ca.SX], dict[str, ca.SX]]:
        system, space = self.system, self.system.space
        q, v = ca.SX.sym("q", space.nq), ca.SX.sym("v", space.nw)
        w = ca.SX.sym("w", len(system.prescribed))
        lam = ca.SX.sym("lam", system.n_holonomic_constraints)
        x, c = self.basis(q), self._prescribed_basis(q)
        rho = ca.SX.sym("rho", x.shape[1])
        lagrangian = self._augmented(q, v, lam)
        # X^T (M (X y + C w) + L_v(q, 0)) = rho
        mass, p0 = ca.hessian(lagrangian, v)
        p0 = ca.substitute(p0, v, ca.SX.zeros(space.nw)) + mass @ (c @ w)
        solve = self._solver(q, x, mass)
        y = solve(rho - x.T @ p0)
        velocity = x @ y + c @ w
        p = mass @ (x @ y) + p0
        # W of all columns of (X, C); X^T W - W^T X + X^T P X
        both = ca.horzcat(x, c)
        derivatives = self._basis_derivatives(q, p)
        gradient_q = trivialized_jacobian(space, q, lambda q: self._augmented(q, v, lam)).T
        momentum_change = both.T @ derivatives
        bracket = momentum_change - momentum_change.T + both.T @ bracket_form(space, p) @ both
        slope = trivialized_jacobian(space, q, system.holonomic)
        holonomic = slope @ x
        expressions = {
            "y": y,
            "momentum": p,
            "mass": mass,
            "energy": ca.dot(rho, y) - ca.substitute(lagrangian, v, velocity),
            "gradient_q": -ca.substitute(gradient_q, v, velocity) - derivatives @ ca.vertcat(y, w),
            "bracket": bracket[: x.shape[1], :],
            "holonomic": holonomic,
            "gram": holonomic @ solve(holonomic.T) if lam.numel() else ca.SX(0, 0),
            "slip": slope @ velocity,
        }
        return (q, rho, w, lam), expressions

    def _augmented(self, q: ca.SX, v: ca.SX, lam: ca.SX) -> ca.SX:
        """`L - lam . h`, the Lagrangian of the augmented energy."""
        lagrangian = self.system.lagrangian_at(q, v)
        return lagrangian - ca.dot(lam, self.system.holonomic(q)) if lam.numel() else lagrangian

    def _prescribed_basis(self, q: ca.SX) -> ca.SX:
        """C(q), (nw, prescribed): the velocities that unit velocities of the prescribed
        coordinates cause.
        """
        w = ca.SX.sym("w", len(self.system.prescribed))
        if not w.numel():
            return ca.SX(self.system.space.nw, 0)
        return self.system.space.frame(q) @ ca.jacobian(self.system.mechanics.particular(q, w), w)

    def _solver(self, q: ca.SX, x: ca.SX, mass: ca.SX) -> Callable[[ca.SX], ca.SX]:
        """The function that solves `X^T M X y = rho` for y.

        With few constraints, X^T M X is dense even if M and A are sparse. Then v = X y is the
        solution of `M v + A^T lam = p,  A v = 0`, where p is any momentum with `X^T p = rho`.
        Here, only the independent components of p are nonzero. The size of the expressions grows
        as n^2, not n^3.
        """
        system = self.system
        n_constraints, nrho = system.n_velocity_constraints, system.nrho
        flat = system.space.nw == system.space.nv and not system.prescribed
        if not (flat and 0 < 2 * n_constraints < nrho == x.shape[1]):
            return factorized(x.T @ mass @ x)
        places = system.mechanics.elimination.independent
        independent_rows, a = ca.sparsify(ca.simplify(x[places, :])), system.constraint_matrix(q)

        def solve(rho: ca.SX) -> ca.SX:
            # v = M^{-1} (p - A^T (A M^{-1} A^T)^{-1} A M^{-1} p)
            p = ca.SX(x.shape[0], rho.shape[1])
            p[places, :] = ca.solve(independent_rows.T, rho)
            solved = ca.solve(mass, ca.horzcat(p, a.T))
            unconstrained, reaction = solved[:, : rho.shape[1]], solved[:, rho.shape[1] :]
            v = unconstrained - reaction @ ca.solve(a @ reaction, a @ unconstrained)
            return ca.solve(independent_rows, v[places, :])

        return solve

    def _basis_derivatives(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """W (nw, nrho + prescribed), with p held constant."""
        space, frozen = self.system.space, ca.SX.sym("p", self.system.space.nw)

        def both(q: ca.SX) -> ca.SX:
            return ca.horzcat(self.basis(q), self._prescribed_basis(q))

        if self._spacing is None:
            derivatives = trivialized_jacobian(space, q, lambda q: both(q).T @ frozen).T
            return ca.substitute(derivatives, frozen, p)
        # central differences: p . (X(q + d) - X(q - d)) / (2 spacing)
        rows = []
        for step in ca.horzsplit(self._spacing * ca.SX.eye(space.nv)):
            ahead, behind = (both(space.retract(q, d)) for d in (step, -step))
            rows.append(p.T @ (ahead - behind) / (2 * self._spacing))
        return space.frame(q) @ ca.vertcat(*rows)


class LocalStructure:
    """An almost-Poisson structure in the local coordinates zeta = (d, rho) of a chart."""

    def __init__(
        self,
        structure: AlmostPoisson,
        chart: Chart,
        w: ca.SX | None = None,
        lam: ca.SX | None = None,
    ):
        self.structure, self.chart, self._w, self._lam = structure, chart, w, lam
        self._n = structure.system.space.nv

    @cached_property
    def curved(self) -> list[int]:
        """The indices of the coordinates d on which H may depend other than quadratically."""
        d = ca.SX.sym("d", self._n)
        rho = ca.SX.sym("rho", self.structure.basis(self.chart.center).shape[1])
        depends = ca.which_depends(self.energy(ca.vertcat(d, rho)), d, 1, False)
        return [i for i in range(self._n) if depends[i]]

    def energy(self, zeta: ca.SX) -> ca.SX:
        """H(zeta)."""
        q, rho = self._place(zeta)
        return self.structure.energy(q, rho, self._w, self._lam)

    def gradient(self, zeta: ca.SX) -> ca.SX:
        """dH/dzeta, (nv + nrho)."""
        q, rho = self._place(zeta)
        gradient_q, y = self.structure.gradient(q, rho, self._w, self._lam)
        return ca.vertcat(self.chart.covector(zeta[: self._n], gradient_q), y)

    def constraint_gradient(self, zeta: ca.SX) -> ca.SX:
        """The derivatives (nv, k) of the holonomic constraints with respect to d."""
        (q, _), system = self._place(zeta), self.structure.system
        slope = trivialized_jacobian(system.space, q, system.holonomic)
        return self.chart.covector(zeta[: self._n], slope.T)

    def kinetic_covector(self, zeta: ca.SX, change: ca.SX, h: ca.SX) -> ca.SX:
        """The covector for a change at the center of the chart, where d = 0 in zeta."""
        return self.structure.kinetic_covector(self.chart, zeta[self._n :], change, h)

    def rate(self, zeta: ca.SX, gradient: ca.SX, u: ca.SX) -> ca.SX:
        """`Pi(zeta) gradient + (0, X^T f(q, v, u))` with `v = X gradient_rho`. Then
        `gradient . rate = f . v`, so with a discrete gradient, the energy changes only by the work
        of f. With prescribed velocities w, `v = X gradient_rho + C w`.
        """
        (q, rho), d = self._place(zeta), zeta[: self._n]
        x, t = self.structure.basis(q), self.chart.inverse_tangent(d)
        y = gradient[self._n :]
        v = self.structure.velocity(q, y, self._w)
        # rho' = X^T (f - T^T dH/dd) - K y, with T = dd/dq along the frame
        f = self.structure.system.generalized_force(q, v, u) - t.T @ gradient[: self._n]
        k = self.structure.bracket(q, rho, self._w)
        moving = y if self._w is None else ca.vertcat(y, self._w)
        return ca.vertcat(t @ v, x.T @ f - k @ moving)

    def _place(self, zeta: ca.SX) -> tuple[ca.SX, ca.SX]:
        return self.chart.position(zeta[: self._n]), zeta[self._n :]
