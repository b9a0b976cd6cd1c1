"""Symplectic integrators on the cotangent bundle of a Lie group: one point on the exponential's
curve of a step."""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Gradients, Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.arcs import Arcs, unknown_factor
from nh_control.integrators.registry import Integrator, first_of, if_constrained
from nh_control.mechanics.system import System

NAMES = {0.0: "slgi_0", 0.5: "slgi_half", 1.0: "slgi_1"}
"""The registered ones by theta."""


def slgi(system: System, h: float, theta: float = 0.5) -> DiscreteSystem:
    """Symplectic Lie group integrator on T*G, of second order and symmetric for theta = 1/2, else
    of first order [celledoni2021 (15)-(17)].

    It is the variational integrator of `Ld = h L(g, v)` at the point `g = g0 exp(theta h v)` of
    the step `g1 = g0 exp(h v)`. With body momenta p, `k = h (dL/dg + f)(g, v)`,
    `m = dL/dv (g, v)`, `eta = h v`, the printed formulas, in right-trivialized momenta
    `mu = Ad*_{g^{-1}} p`, become

    `dexp*_eta (p0 + Ad*_{exp(-theta eta)} k) = m + theta dexp*_{-theta eta} k`
    `p1 = Ad*_{exp(eta)} p0 + Ad*_{exp((1 - theta) eta)} k`

    The unknown is v. Forces enter as f2 does, by their virtual work at g; f2 contains the
    momentum's transport, without which the method does not converge (corrected). Holonomic
    constraints, `h(q1) = 0`, and prescribed coordinates are as in `midpoint`; directions in S^2
    move on great circles, the orbits of the least rotations.

    For theta = 1/2 on R^n it is `midpoint`; without forces also on SO(3) and SE(2) if their
    retraction there is "exp". `midpoint` differs by O(h^3) a step with other retractions, by its
    middle of a pose in SE(3) and of a direction, and by forces that it does not pull back from the
    middle to the ends.
    Raises ValueError for systems that `refuses` names a reason for, and for another theta.
    """
    if reason := refuses(system):
        raise ValueError(f"slgi: {system.name} {reason}; use nonholonomic_midpoint")
    if theta not in NAMES:
        raise ValueError(f"slgi: theta must be one of {tuple(NAMES)}, got {theta}")
    moving = system.space.nv - len(system.prescribed)

    def ends(
        q: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[Arcs, ca.SX, ca.SX]:
        """The step, and k and m at its point."""
        target = system.prescribed_part(u) - system.prescribed_part(q)
        step = Arcs(system.space, q, ca.vertcat(h * z[:moving], target), theta)
        v = step.w / h
        by_numbers, m = gradients(step.point, v)
        force = system.generalized_force(step.point, v, u[: system.nu])
        return step, h * (step.trivialized_gradient(by_numbers) + force), m

    def start(q: ca.SX, rho: ca.SX, z: ca.SX) -> ca.SX:
        """Momentum after the constraints' impulse."""
        p0 = system.mechanics.reduce(q, rho)
        return (
            p0 - system.mechanics.holonomic_impulse(q, z[moving:])
            if system.n_holonomic_constraints
            else p0
        )

    def residual(symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, gradients = symbols
        step, k, m = ends(q, u, z, h, gradients)
        balance = start(q, rho, z) - step.start_momentum(k, m)[:moving]
        return ca.vertcat(balance, system.holonomic(step.end))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, u, z, h, gradients = symbols
        step, k, m = ends(q, u, z, h, gradients)
        p0 = ca.vertcat(start(q, rho, z), ca.SX(len(system.prescribed), 1))
        p1 = step.end_momentum(p0, k, m)[:moving]
        return step.end, system.mechanics.store(step.end, p1, system.prescribed_part(step.w) / h)

    nz = moving + system.n_holonomic_constraints
    method = Method(NAMES[theta], nz, residual, readout, range(moving, nz))
    return DiscreteSystem(system, h, method)


refuses = first_of(if_constrained, lambda system: unknown_factor(system.space))
"""Refuses velocity constraints, and spaces on which no group is known to act."""

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
    )
    for theta, name in NAMES.items()
)
