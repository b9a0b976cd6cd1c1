"""The equations of a step as CasADi functions: a method's residual and read-out, and their
derivatives in the local coordinates of the state space.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.mechanics.lagrangian import GradientSymbols, LagrangianDerivatives
from nh_control.mechanics.states import below_half_a_turn, has_rotations, on_manifold
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph
from nh_control.numerics.linear_solves import factorized
from nh_control.numerics.rounding import rounding_sizes


class StepEquations:
    """The equations for a method's step: the residual r(x, u, z, p) = 0 and the next state x1 =
    g(x, u, z, p). x (nx) is the state, u (nu) the input and z (nz) the vector of unknowns; p
    (n_parameters) contains the system's parameters and the step h.

    The functions of `step`:

    - `start(x, u, p) -> s, r, r_z` at z = 0, with the sizes s of the terms of r in x and u
    - `residual(x, u, z, p) -> r`
    - `jacobian(x, u, z, p) -> r_z`
    - `readout(x, u, z, p) -> x1, domain`
    - `terms(x, u, z, p) -> s` (see `rounding_sizes`)
    - `contacts(x, u, z, p) -> w, w_y, coefficients` for a method with contacts, where y are the
      unknowns other than the impulses

    With a variation dx of the state, `r(retract(x, dx), u, z, p)` and
    `y = local(x1, g(retract(x, dx), u, z, p))` are differentiated with respect to w = (dx, u) and
    o = (w, z). With `parameters=True`, w = (dx, u, p).

    - `first(x, u, z, p, x1) -> r_z, r_w, y_w, y_z`
    - `second(x, u, z, p, x1, lam, mu) -> hess(lam . y - mu . r)` over o
    - `adjoint(x, u, z, p, x1, lam, mu) -> y_z^T lam - r_z^T mu`

    The Lagrangian enters r and y only through its gradients c = dL/da at points a(x, u, z, p). By
    the chain rule, `dr/do = r_o + r_c L_ab b_o` with b = (a, p). The expressions stay small
    because c is a symbol in them. Only L is differentiated two or three times.

    Raises ValueError if the residual and z have different shapes.
    """

    def __init__(self, system: System, method: Method, name: str):
        if len(method.substeps) > 1:
            raise ValueError(
                f"{name}: a composition has no residual; use the method of its substeps"
            )
        self.system, self.method, self.name = system, method, name
        self.states = space = method.state_space(system)
        self.nx, self.ndx, self.nz = space.nq, space.nv, method.nz
        self.nu = system.nu + len(system.prescribed)
        self._gradients = GradientSymbols(system)
        x, u, z = ca.SX.sym("x", self.nx), ca.SX.sym("u", self.nu), ca.SX.sym("z", self.nz)
        h = ca.SX.sym("h")
        p = ca.vertcat(system.parameter_symbols, h)
        self.n_parameters = p.shape[0]
        r, g = self._expressions(x, u, z, h)
        if r.shape != z.shape:
            raise ValueError(f"{self.name}: the residual must have shape {z.shape}, got {r.shape}")
        q = x[: system.space.nq]
        # the points a at which the method evaluates the gradients c of L
        (points,) = system.mechanics.at_signs([self._gradients.points], q)
        c = self._gradients.symbols
        self._derivatives = LagrangianDerivatives(system, points.shape[0])
        self._plain = x, u, z, p, c
        self._point = ca.Function("point", [x, u, z, p], [points])
        self._r = ca.Function("balance", [x, u, z, p, c], [r])
        nq = system.space.nq
        # all values that must be positive at the end of a step
        domain = system.domain_at(g[:nq])
        self.n_model_domain = domain.shape[0]
        slow = self._turns(g, h)
        self.n_turns = slow.shape[0]
        inside = ca.vertcat(domain, on_manifold(system.space, q), slow)
        self._g = ca.Function("after", [x, u, z, p, c], [g, inside])
        self.first = cache(self._first)
        self.second = cache(self._second)

    @property
    def rank(self) -> int:
        """The rank of r_z; redundant constraints do not contribute to it."""
        return self.nz - self.system.n_redundant

    @property
    def n_domain(self) -> int:
        """Number of values that must be positive after a step: `n_model_domain` values for the
        model's domain, values that tell whether the initial configuration was on its manifold, and
        `n_turns` values for the final velocity.
        """
        return self._g.size1_out(1)

    @cached_property
    def step(self) -> list[ca.Function]:
        """The functions start, residual, jacobian, readout, terms and, if there are contacts,
        contacts.
        """
        x, u, z, p = arguments = self._symbols(4)
        c = self._derivatives.first(self._stacked(x, u, z, p))
        s, r, r_z = self._at_zero(x, u, ca.DM.zeros(self.nz), p)
        r1, names = ca.densify(self._r(x, u, z, p, c)), ["x", "u", "z", "p"]
        start = [s, ca.densify(r), r_z]
        return [
            ca.Function("start", [x, u, p], start, ["x", "u", "p"], ["s", "r", "r_z"]),
            ca.Function("residual", arguments, [r1], names, ["r"]),
            ca.Function("jacobian", arguments, [self._jacobian(x, u, z, p)], names, ["r_z"]),
            ca.Function("readout", arguments, self._g(x, u, z, p, c), names, ["x1", "domain"]),
            ca.Function("terms", arguments, [self._terms(x, u, z, p, c)], names, ["s"]),
            *self._contacts(),
        ]

    @cached_property
    def adjoint(self) -> ca.Function:
        """`phi_z + a_z^T L_aa phi_c` for phi = lam . y - mu . r."""
        x, u, z, p, c = self._plain
        x1, lam, mu = (
            ca.SX.sym(n, k) for n, k in zip(("x1", "lam", "mu"), (self.nx, self.ndx, self.nz))
        )
        # explicit parts first, with c as a symbol; then the chain rule through c = L_a(b)
        y = self.states.local(x1, self._g(x, u, z, p, c)[0])
        phi = ca.dot(lam, y) - ca.dot(mu, self._r(x, u, z, p, c))
        derivatives = [ca.gradient(phi, z), ca.gradient(phi, c)]
        a_z = ca.jacobian(self._point(x, u, z, p), z)
        parts = ca.Function("parts", [*self._plain, x1, lam, mu], [*derivatives, a_z])
        x, u, z, p, x1, lam, mu = arguments = self._symbols(7)
        b = self._stacked(x, u, z, p)
        phi_z, phi_c, a_z = parts(x, u, z, p, self._derivatives.first(b), x1, lam, mu)
        gradient = phi_z + a_z.T @ self._derivatives.second_times(b, phi_c)
        names = ["x", "u", "z", "p", "x1", "lam", "mu"]
        return ca.Function("adjoint", arguments, [gradient], names, ["gradient"])

    def n_columns(self, parameters: bool) -> int:
        """Number of variables of the derivatives: dx, u and, if `parameters`, p."""
        return self.ndx + self.nu + (self.n_parameters if parameters else 0)

    def _first(self, parameters: bool = False) -> ca.Function:
        """First derivatives; with `parameters`, also with respect to the parameters."""
        x, u, z, p, x1 = arguments = self._symbols(5)
        b = self._stacked(x, u, z, p)
        parts = ca.Function("parts", self._moved_symbols[:6], self._first_parts(parameters))
        # chain rule: dr/do = r_o + r_c L_ab b_o, and the same for y
        r_o, r_c, y_o, y_c, b_o = parts(x, u, z, p, x1, self._derivatives.first(b))
        second_derivative, n = self._derivatives.second_times(b, b_o), self.n_columns(parameters)
        r, y = r_o + r_c @ second_derivative, y_o + y_c @ second_derivative
        outputs = [r[:, n:], r[:, :n], y[:, :n], y[:, n:]]
        names = ["r_z", "r_w", "y_w", "y_z"]
        return ca.Function("first", arguments, outputs, ["x", "u", "z", "p", "x1"], names)

    def _second(self, parameters: bool = False) -> ca.Function:
        """Contracted second derivative of phi = lam . y - mu . r; with `parameters`, also with
        respect to the parameters. With `k = phi_c` and `t = L_aa k`, it is `hess_o(phi + t . a) +
        phi_oc L_ab b_o + (...)^T + b_o^T (L_abb k + L_ba phi_cc L_ab) b_o`.
        """
        x, u, z, p, x1, lam, mu = arguments = self._symbols(7)
        b = self._stacked(x, u, z, p)
        # phi depends on o directly and through c = L_a(b(o)); k = phi_c weights L's derivatives
        c = self._derivatives.first(b)
        weights, parts = self._second_parts(parameters)
        k = weights(x, u, z, p, x1, c, lam, mu)
        t = self._derivatives.second_times(b, k)
        oo, co, cc, b_o = parts(x, u, z, p, x1, c, lam, mu, t)
        second_derivative = self._derivatives.second_times(b, b_o)
        mixed = co.T @ second_derivative
        # third derivatives of L, contracted with k: b_o^T L_abb[k] b_o
        third = b_o.T @ self._derivatives.third_times(b, k, b_o)
        hessian = oo + mixed + mixed.T + third + second_derivative.T @ cc @ second_derivative
        names = ["x", "u", "z", "p", "x1", "lam", "mu"]
        return ca.Function("second", arguments, [hessian], names, ["hessian"])

    def _symbols(self, n: int) -> list[Any]:
        """The first n of x, u, z, p, x1, lam, mu."""
        sizes = {"x": self.nx, "u": self.nu, "z": self.nz, "p": self.n_parameters}
        sizes |= {"x1": self.nx, "lam": self.ndx, "mu": self.nz}
        return [self._derivatives.kind.sym(name, size) for name, size in list(sizes.items())[:n]]

    def _stacked(self, x: Graph, u: Graph, z: Graph, p: Graph) -> Graph:
        """The arguments b of the Lagrangian's derivatives: all points and the parameters."""
        return ca.vertcat(self._point(x, u, z, p), *self._of_system(p))

    def _of_system(self, p: Graph) -> Iterator[Graph]:
        """The individual parameters without h. A slice is not used because CasADi's [:0] of a
        scalar is not empty.
        """
        return (p[i] for i in range(self.n_parameters - 1))

    def _expressions(self, x: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX) -> tuple[ca.SX, ca.SX]:
        symbols, mechanics = self._step_symbols(x, u, z, h), self.system.mechanics
        r = self.method.residual(symbols)
        q1, rho1 = self.method.readout(symbols)
        x1 = mechanics.state_of(q1, rho1)
        r, x1 = ca.cse(mechanics.at_signs([r, x1], symbols.q))
        return r, x1

    def _step_symbols(self, x: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX) -> StepSymbols:
        q, rho = self.system.mechanics.components_of(x)
        return StepSymbols(q, rho, u, z, h, self._gradients)

    def _turns(self, x1: ca.SX, h: ca.SX) -> ca.SX:
        """Values that are positive unless the velocity after a step would rotate a body by half a
        turn in the next step. Only explicit methods need them: an implicit method that diverges
        fails to solve the equations, but an explicit method shows no other sign of divergence.
        """
        system = self.system
        if self.nz or not has_rotations(system.space):
            return ca.SX(0, 1)
        q1, rho1 = system.mechanics.components_of(x1)
        # v1 = X M^{-1} b + c
        mass, momentum, basis, drift = system.mechanics.inertia(q1, rho1)
        velocity = basis @ factorized(mass)(momentum) + drift
        (velocity,) = system.mechanics.at_signs([velocity], q1)
        return below_half_a_turn(system.space, velocity, h)

    def _at_zero(self, x: Graph, u: Graph, z: Graph, p: Graph) -> tuple[Graph, Graph, Graph]:
        """The sizes of the terms in r, then r and r_z. The sizes are `|dr/dw| |w|` for w = (x, u).
        If the Lagrangian's derivatives are function calls, c counts as another argument and is not
        differentiated.
        """
        b = self._stacked(x, u, z, p)
        c = self._derivatives.first(b)
        r_w, r_c, a_w = self._parts(0, 1)(x, u, z, p, c)
        sizes = ca.fabs(ca.vertcat(x, u))
        if self._derivatives.called:
            scale = ca.fabs(r_w) @ sizes + ca.fabs(r_c) @ ca.fabs(c)
        else:
            scale = ca.fabs(r_w + r_c @ self._derivatives.second_times(b, a_w)) @ sizes
        return ca.densify(scale), self._r(x, u, z, p, c), self._jacobian(x, u, z, p)

    def _contacts(self) -> list[ca.Function]:
        """The function that returns the contact velocities in the directions of the impulses,
        their derivatives with respect to the other unknowns, and the friction coefficients. Empty
        without contacts.
        """
        contacts, (x, u, z, p, _) = self.method.contacts, self._plain
        if contacts is None:
            return []
        symbols = self._step_symbols(x, u, z, p[-1])
        # w(x, u, y) does not depend on the impulses, the last unknowns
        w = contacts.velocities(symbols)
        outputs = [w, ca.jacobian(w, z[: contacts.first]), contacts.coefficients(symbols)]
        outputs = self.system.mechanics.at_signs(outputs, symbols.q)
        dense, names = [ca.densify(output) for output in outputs], ["w", "w_y", "coefficients"]
        return [ca.Function("contacts", [x, u, z, p], dense, ["x", "u", "z", "p"], names)]

    @cached_property
    def _terms(self) -> ca.Function:
        """Sizes of the terms whose round-off adds up in r. The gradients c are arguments here
        because derivatives through z and through c may cancel and hide the sizes, for example in
        `v x p` for a falling body.
        """
        return ca.Function("sizes", self._plain, [rounding_sizes(self._r, self._plain)])

    def _jacobian(self, x: Graph, u: Graph, z: Graph, p: Graph) -> Graph:
        # dr/dz = r_z + r_c L_ab b_z
        b = self._stacked(x, u, z, p)
        r_z, r_c, a_z = self._parts(2)(x, u, z, p, self._derivatives.first(b))
        return r_z + r_c @ self._derivatives.second_times(b, a_z)

    def _parts(self, *which: int) -> ca.Function:
        """r_v, r_c and a_v, where v contains those of x, u, z that are selected by index."""
        x, u, z, p, c = symbols = self._plain
        v = ca.vertcat(*(symbols[k] for k in which))
        r, a = self._r(x, u, z, p, c), self._point(x, u, z, p)
        return ca.Function(
            "parts", symbols, [ca.jacobian(r, v), ca.jacobian(r, c), ca.jacobian(a, v)]
        )

    @cached_property
    def _moved_symbols(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
        x, u, z, p, c = self._plain
        return x, u, z, p, ca.SX.sym("x1", self.nx), c, ca.SX.sym("dx", self.ndx)

    @cached_property
    def _moved(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """(r, y, a) at the varied state retract(x, dx)."""
        x, u, z, p, x1, c, dx = self._moved_symbols
        space = self.states
        # r and y at retract(x, dx), in local coordinates about x1
        moved = space.retract(x, dx)
        y = space.local(x1, self._g(moved, u, z, p, c)[0])
        return self._r(moved, u, z, p, c), y, self._point(moved, u, z, p)

    def _variables(self, parameters: bool) -> tuple[ca.SX, ca.SX]:
        """(o, b): the variables of the derivatives, and the arguments of the Lagrangian that
        depend on them.
        """
        _, u, z, p, _, _, dx = self._moved_symbols
        a = self._moved[2]
        if parameters:
            return ca.vertcat(dx, u, p, z), ca.vertcat(a, *self._of_system(p))
        return ca.vertcat(dx, u, z), a

    def _first_parts(self, parameters: bool) -> list[ca.SX]:
        c = self._moved_symbols[5]
        (r, y, _), (o, b) = self._moved, self._variables(parameters)
        derivatives = (ca.jacobian(f, v) for f in (r, y) for v in (o, c))
        return self._at_rest(*derivatives, ca.jacobian(b, o))

    def _second_parts(self, parameters: bool) -> tuple[ca.Function, ca.Function]:
        x, u, z, p, x1, c, _ = self._moved_symbols
        (r, y, a), (o, b) = self._moved, self._variables(parameters)
        lam, mu = ca.SX.sym("lam", self.ndx), ca.SX.sym("mu", self.nz)
        t = ca.SX.sym("t", a.shape[0])
        # t . a stands for the second derivatives of the points, weighted by t = L_aa k
        phi = ca.dot(lam, y) - ca.dot(mu, r)
        k, arguments = ca.gradient(phi, c), [x, u, z, p, x1, c, lam, mu]
        parts = self._at_rest(
            ca.hessian(phi + ca.dot(t, a), o)[0],
            ca.jacobian(k, o),
            ca.jacobian(k, c),
            ca.jacobian(b, o),
        )
        weights = ca.Function("weights", arguments, self._at_rest(k))
        return weights, ca.Function("parts", [*arguments, t], parts)

    def _at_rest(self, *expressions: ca.SX) -> list[ca.SX]:
        rest = ca.SX.zeros(self.ndx)
        return ca.substitute(list(expressions), [self._moved_symbols[6]], [rest])
