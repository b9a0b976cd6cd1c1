"""The equations of a step as CasADi functions: residual and read-out of a method, and their
derivatives in the local coordinates of the state space.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from nh_control.mechanics.lagrangian import Slopes, SlopesAt
from nh_control.mechanics.system import System


class StepEquations:
    """Functions of the state x (nx), the input u (nu), the unknowns z (n_z) and, for derivatives,
    the next state x1 = g(x, u, z).

    `start(x, u) -> s, r, r_z` at z = 0, with the sizes s of r's terms in x and u;
    `residual(x, u, z) -> r`; `jacobian(x, u, z) -> r_z`;
    `readout(x, u, z) -> x1, domain`. With moved states, `r(retract(x, dx), u, z)` and
    `y = local(x1, g(retract(x, dx), u, z))`, and w = (dx, u), o = (w, z):
    `first(x, u, z, x1) -> r_z, r_w, y_w, y_z`;
    `second(x, u, z, x1, lam, mu) -> hess(lam . y - mu . r)` over o. Raises ValueError where the
    residual has another shape than z.

    The Lagrangian enters r and y through its slopes c = dL/da at points a(x, u, z) only, so
    derivatives are put together by the chain rule,
    `dr/do = r_o + r_c L_aa a_o`, from small expressions with c as a symbol and from L_aa and the
    third derivative of L alone.
    """

    def __init__(self, system: System, method, name: str):
        self.system, self.method, self.name = system, method, name
        space = system.state_space
        self.nx, self.ndx, self.n_z = space.nq, space.nv, method.n_z
        self.nu = system.nu + len(system.prescribed)
        self._slopes_at = SlopesAt(system)
        x, u, z = ca.SX.sym("x", self.nx), ca.SX.sym("u", self.nu), ca.SX.sym("z", self.n_z)
        r, g = self._expressions(x, u, z)
        if r.shape != z.shape:
            raise ValueError(f"{self.name}: the residual must have shape {z.shape}, got {r.shape}")
        at, c = self._slopes_at.points, self._slopes_at.symbols
        self._slopes = Slopes(system, at.shape[0])
        self._plain = x, u, z, c
        self._point = ca.Function("point", [x, u, z], [at])
        self._r = ca.Function("balance", [x, u, z, c], [r])
        self._g = ca.Function("after", [x, u, z, c], [g, self._domain(g)])

    @property
    def n_domain(self) -> int:
        """Number of values that must be positive at the end of a step."""
        return self._g.size1_out(1)

    @cached_property
    def step(self) -> list[ca.Function]:
        """start, residual, jacobian and readout."""
        x, u, z = self._symbols(3)
        c = self._slopes.first(self._point(x, u, z))
        s, r, r_z = self._at_zero(x, u, ca.DM.zeros(self.n_z))
        return [
            ca.Function("start", [x, u], [s, ca.densify(r), r_z], ["x", "u"], ["s", "r", "r_z"]),
            ca.Function(
                "residual", [x, u, z], [ca.densify(self._r(x, u, z, c))], ["x", "u", "z"], ["r"]
            ),
            ca.Function(
                "jacobian", [x, u, z], [self._jacobian(x, u, z)], ["x", "u", "z"], ["r_z"]
            ),
            ca.Function(
                "readout", [x, u, z], self._g(x, u, z, c), ["x", "u", "z"], ["x1", "domain"]
            ),
        ]

    @cached_property
    def first(self) -> ca.Function:
        """First derivatives."""
        x, u, z, x1 = self._symbols(4)
        a = self._point(x, u, z)
        parts, nw = (
            ca.Function("parts", self._moved_symbols[:5], self._first_parts),
            self.ndx + self.nu,
        )
        r_o, r_c, y_o, y_c, a_o = parts(x, u, z, x1, self._slopes.first(a))
        bend = self._slopes.second_times(a, a_o)
        r, y = r_o + r_c @ bend, y_o + y_c @ bend
        return ca.Function(
            "first",
            [x, u, z, x1],
            [r[:, nw:], r[:, :nw], y[:, :nw], y[:, nw:]],
            ["x", "u", "z", "x1"],
            ["r_z", "r_w", "y_w", "y_z"],
        )

    @cached_property
    def second(self) -> ca.Function:
        """Contracted second derivative, by `k = phi_c,  t = L_aa k,  hess_o(phi + t . a) + phi_oc
        L_aa a_o + (...)^T + a_o^T (L_aaa k + L_aa phi_cc L_aa) a_o` for phi = lam . y - mu . r."""
        x, u, z, x1, lam, mu = self._symbols(6)
        a = self._point(x, u, z)
        c = self._slopes.first(a)
        weights, parts = self._second_parts
        k = weights(x, u, z, x1, c, lam, mu)
        oo, co, cc, a_o = parts(x, u, z, x1, c, lam, mu, self._slopes.second_times(a, k))
        bend = self._slopes.second_times(a, a_o)
        mixed = co.T @ bend
        hessian = (
            oo + mixed + mixed.T + a_o.T @ self._slopes.third_times(a, k, a_o) + bend.T @ cc @ bend
        )
        return ca.Function(
            "second",
            [x, u, z, x1, lam, mu],
            [hessian],
            ["x", "u", "z", "x1", "lam", "mu"],
            ["hessian"],
        )

    def _symbols(self, n: int):
        """The first n of x, u, z, x1, lam, mu."""
        sizes = {
            "x": self.nx,
            "u": self.nu,
            "z": self.n_z,
            "x1": self.nx,
            "lam": self.ndx,
            "mu": self.n_z,
        }
        return [self._slopes.kind.sym(name, size) for name, size in list(sizes.items())[:n]]

    def _split(self, x):
        return x[: self.system.space.nq], x[self.system.space.nq :]

    def _expressions(self, x, u, z):
        state = self._split(x)
        r = self.method.residual(*state, u, z, self._slopes_at)
        return r, ca.vertcat(*self.method.readout(*state, u, z, self._slopes_at))

    def _domain(self, x) -> ca.SX:
        domain = self.system.domain
        return ca.SX(0, 1) if domain is None else ca.vertcat(domain(self._split(x)[0]))

    def _at_zero(self, x, u, z):
        """Sizes of r's terms, r and r_z; with slopes that are called the sizes take c for an
        argument like x and u.
        """
        a = self._point(x, u, z)
        c = self._slopes.first(a)
        r_w, r_c, a_w = self._parts(0, 1)(x, u, z, c)
        sizes = ca.fabs(ca.vertcat(x, u))
        if self._slopes.called:
            scale = ca.fabs(r_w) @ sizes + ca.fabs(r_c) @ ca.fabs(c)
        else:
            scale = ca.fabs(r_w + r_c @ self._slopes.second_times(a, a_w)) @ sizes
        return ca.densify(scale), self._r(x, u, z, c), self._jacobian(x, u, z)

    def _jacobian(self, x, u, z):
        a = self._point(x, u, z)
        r_z, r_c, a_z = self._parts(2)(x, u, z, self._slopes.first(a))
        return r_z + r_c @ self._slopes.second_times(a, a_z)

    def _parts(self, *which: int) -> ca.Function:
        """r_v, r_c, a_v for some v of x, u, z."""
        symbols = self._plain
        v = ca.vertcat(*(symbols[k] for k in which))
        r, a = self._r(*symbols), self._point(*symbols[:3])
        return ca.Function(
            "parts", symbols, [ca.jacobian(r, v), ca.jacobian(r, symbols[3]), ca.jacobian(a, v)]
        )

    @cached_property
    def _moved_symbols(self):
        x, u, z, c = self._plain
        return x, u, z, ca.SX.sym("x1", self.nx), c, ca.SX.sym("dx", self.ndx)

    @cached_property
    def _moved(self):
        """(r, y, a) of moved states."""
        x, u, z, x1, c, dx = self._moved_symbols
        space = self.system.state_space
        moved = space.retract(x, dx)
        return (
            self._r(moved, u, z, c),
            space.local(x1, self._g(moved, u, z, c)[0]),
            self._point(moved, u, z),
        )

    @cached_property
    def _first_parts(self):
        _, u, z, _, c, dx = self._moved_symbols
        (r, y, a), o = self._moved, ca.vertcat(dx, u, z)
        return self._at_rest(
            ca.jacobian(r, o),
            ca.jacobian(r, c),
            ca.jacobian(y, o),
            ca.jacobian(y, c),
            ca.jacobian(a, o),
        )

    @cached_property
    def _second_parts(self) -> tuple[ca.Function, ca.Function]:
        x, u, z, x1, c, dx = self._moved_symbols
        (r, y, a), o = self._moved, ca.vertcat(dx, u, z)
        lam, mu, t = (
            ca.SX.sym("lam", self.ndx),
            ca.SX.sym("mu", self.n_z),
            ca.SX.sym("t", a.shape[0]),
        )
        phi = ca.dot(lam, y) - ca.dot(mu, r)
        k, arguments = ca.gradient(phi, c), [x, u, z, x1, c, lam, mu]
        parts = self._at_rest(
            ca.hessian(phi + ca.dot(t, a), o)[0],
            ca.jacobian(k, o),
            ca.jacobian(k, c),
            ca.jacobian(a, o),
        )
        return ca.Function("weights", arguments, self._at_rest(k)), ca.Function(
            "parts", [*arguments, t], parts
        )

    def _at_rest(self, *expressions):
        return ca.substitute(list(expressions), [self._moved_symbols[5]], [ca.SX.zeros(self.ndx)])
