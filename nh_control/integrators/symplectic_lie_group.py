"""Symplectic integrators on the cotangent bundle of a Lie group: one point on the exponential's
curve of a step."""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Gradients, Method
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.chart import covector
from nh_control.geometry.spaces import Segment
from nh_control.integrators.discrete_lagrangian import discrete_momenta
from nh_control.integrators.registry import Integrator, if_constrained
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

    The unknown is v. Forces enter as f2 does, through the virtual work at g; f2 contains the
    momentum's transport, without which the method does not converge (corrected). Holonomic
    constraints h(q1) = 0 and prescribed coordinates are as in `midpoint`; directions in S^2 move
    on great circles, the orbits of the least rotations. For theta = 1/2 on R^n it is `midpoint`;
    on SO(3) and SE(2), without forces, `midpoint` on the space with the retraction "exp"; other
    retractions of `midpoint` (Cayley by default), its middle of a pose in SE(3) and of a direction,
    and its forces, which are not pulled back from the middle to the ends, differ by O(h^3) a step.
    Raises ValueError if the system has velocity constraints, or theta is another number.
    """
    if system.m:
        raise ValueError(
            f"slgi: {system.name} has {system.m} velocity constraints; use nonholonomic_midpoint"
        )
    if theta not in NAMES:
        raise ValueError(f"slgi: theta must be one of {tuple(NAMES)}, got {theta}")
    space = system.space.with_retraction("exp")
    moving = space.nv - len(system.prescribed)

    def way(q: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX) -> Segment:
        target = system.prescribed_part(u) - system.prescribed_part(q)
        return space.arc(q, ca.vertcat(h * z[:moving], target), theta)

    def momenta(step: Segment, u: ca.SX, h: ca.SX, gradients: Gradients) -> tuple[ca.SX, ca.SX]:
        def pushed(q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
            slope, p = gradients(q, v)
            force = system.generalized_force(q, v, u[: system.nu])
            return slope + covector(space, q, force), p

        return discrete_momenta(pushed, h, step)

    def residual(
        q: ca.SX, rho: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> ca.SX:
        step = way(q, u, z, h)
        before = momenta(step, u, h, gradients)[0]
        balance = system.reduce(q, rho) - system.admissible_tangents(q).T @ before
        if system.n_holonomic:
            balance -= system.holonomic_impulse(q, z[moving:])
        return ca.vertcat(balance, system.holonomic(step.q1))

    def readout(
        q: ca.SX, rho: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[ca.SX, ca.SX]:
        step = way(q, u, z, h)
        after = system.admissible_tangents(step.q1).T @ momenta(step, u, h, gradients)[1]
        return step.q1, system.store(step.q1, after, system.prescribed_part(step.w) / h)

    n_z = moving + system.n_holonomic
    method = Method(NAMES[theta], n_z, residual, readout, range(moving, n_z))
    return DiscreteSystem(system, h, method)


INTEGRATORS = tuple(
    Integrator(
        name=name,
        make=partial(slgi, theta=theta),
        order=2 if theta == 0.5 else 1,
        symmetric=theta == 0.5,
        explicit=False,
        preserves=("symplectic form", "momenta", "holonomic constraints"),
        refuses=if_constrained,
        source="celledoni2021 (15)-(17); Bogfjellmo and Marthinsen (2016)",
    )
    for theta, name in NAMES.items()
)
