"""Symplectic integrators on the cotangent bundle of a Lie group. They evaluate the Lagrangian at
one point of the step's curve `g0 exp(t h v)`.
"""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.arcs import Arcs, unknown_factor
from nh_control.integrators.registry import Integrator, first_of, if_constrained
from nh_control.mechanics.system import System

NAMES = {0.0: "slgi_0", 0.5: "slgi_half", 1.0: "slgi_1"}
"""Names of the methods by theta."""


def slgi(system: System, h: float, theta: float = 0.5) -> DiscreteSystem:
    """Symplectic Lie group integrator on T*G. For theta = 1/2, it is symmetric and has order 2.
    Otherwise it has order 1 [celledoni2021 (15)-(17)].

    It is the variational integrator for `Ld = h L(g, v)` at the point `g = g0 exp(theta h v)` of
    the step `g1 = g0 exp(h v)`. The printed formulas use right-trivialized momenta
    `mu = Ad*_{g^{-1}} p`. With body momenta p, `k = h (dL/dg + f)(g, v)`, `m = dL/dv (g, v)` and
    `eta = h v`, they become

    `dexp*_eta (p0 + Ad*_{exp(-theta eta)} k) = m + theta dexp*_{-theta eta} k`
    `p1 = Ad*_{exp(eta)} p0 + Ad*_{exp((1 - theta) eta)} k`

    The unknown is v. Forces enter like f2, through their virtual work at g. f2 contains the
    transport of the momentum. Without it, the method does not converge (corrected). Holonomic
    constraints, `h(q1) = 0`, and prescribed coordinates are treated as in `midpoint`. Directions
    in S^2 move along great circles, the orbits of the shortest rotations.

    For theta = 1/2, the method is `midpoint` on R^n and, without forces, also on SO(3) and SE(2)
    with the retraction "exp". Otherwise `midpoint` differs by O(h^3) per step. One reason is that
    other retractions differ from "exp". `midpoint` also defines the middle of poses in SE(3) and
    of directions differently, and it does not pull forces back from the middle to the ends. Raises
    ValueError for systems that `refuses` refuses, and for other values of theta.
    """
    if reason := refuses(system):
        raise ValueError(f"slgi: {system.name} {reason}; use nonholonomic_midpoint")
    if theta not in NAMES:
        raise ValueError(f"slgi: theta must be one of {tuple(NAMES)}, got {theta}")
    step = _ExponentialStep(system, theta)
    nz = step.n_velocities + system.n_holonomic_constraints
    multipliers = range(step.n_velocities, nz)
    method = Method(
        NAMES[theta], nz, step.residual, step.readout, multipliers=multipliers, redundant=True
    )
    return DiscreteSystem(system, h, method)


class _ExponentialStep:
    """The equations of `slgi`. The unknowns are the velocities (n_velocities) that are not
    prescribed, and the multipliers of the holonomic constraints.
    """

    def __init__(self, system: System, theta: float):
        self.system, self.theta = system, theta
        self.n_velocities = system.space.nv - len(system.prescribed)

    def residual(self, symbols: StepSymbols) -> ca.SX:
        arcs, k, m = self._at_point(symbols)
        p0 = arcs.start_momentum(k, m)[: self.n_velocities]
        # dexp*_eta (p0 + Ad*_{exp(-theta eta)} k) = m + theta dexp*_{-theta eta} k, solved for p0
        balance = self._momentum_after_impulse(symbols) - p0
        return ca.vertcat(balance, self.system.holonomic(arcs.end))

    def readout(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        system, n = self.system, self.n_velocities
        arcs, k, m = self._at_point(symbols)
        p0 = ca.vertcat(self._momentum_after_impulse(symbols), ca.SX(len(system.prescribed), 1))
        # p1 = Ad*_{exp(eta)} p0 + Ad*_{exp((1 - theta) eta)} k
        p1 = arcs.end_momentum(p0, k, m)[:n]
        velocities = system.prescribed_part(arcs.w) / symbols.h
        return arcs.end, system.mechanics.store(arcs.end, p1, velocities)

    def _at_point(self, symbols: StepSymbols) -> tuple[Arcs, ca.SX, ca.SX]:
        """The arcs of the step, `k = h (dL/dg + f)` and `m = dL/dv` at the point theta."""
        q, _, u, z, h, gradients = symbols
        system = self.system
        change = system.prescribed_part(u) - system.prescribed_part(q)
        displacement = ca.vertcat(h * z[: self.n_velocities], change)
        arcs = Arcs(system.space, q, displacement, self.theta)
        v = arcs.w / h
        by_numbers, m = gradients(arcs.point, v)
        force = system.generalized_force(arcs.point, v, u[: system.nu])
        return arcs, h * (arcs.trivialized_gradient(by_numbers) + force), m

    def _momentum_after_impulse(self, symbols: StepSymbols) -> ca.SX:
        """p0 minus the impulse of the holonomic constraints."""
        q, mechanics = symbols.q, self.system.mechanics
        p0 = mechanics.reduce(q, symbols.rho)
        if not self.system.n_holonomic_constraints:
            return p0
        return p0 - mechanics.holonomic_impulse(q, symbols.z[self.n_velocities :])


refuses = first_of(if_constrained, lambda system: unknown_factor(system.space))
"""Refuses velocity constraints, and spaces without a known group action."""

INTEGRATORS = tuple(
    Integrator(
        name=name,
        make=partial(slgi, theta=theta),
        order=2 if theta == 0.5 else 1,
        symmetric=theta == 0.5,
        explicit=False,
        preserves=("symplectic form", "momenta", "holonomic constraints"),
        refuses=refuses,
        source="celledoni2021 (15)-(17); Bogfjellmo and Marthinsen (2016)",
        redundant=True,
    )
    for theta, name in NAMES.items()
)
