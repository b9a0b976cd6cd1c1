"""Midpoint variational integrators: discrete Euler-Lagrange and discrete Lagrange-d'Alembert."""

from __future__ import annotations

import casadi as ca

from nh_control.discrete.method import Method
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.discrete_lagrangian import discrete_momenta
from nh_control.mechanics.system import System

FORCINGS = {"symmetric": 0.5, "left": 1.0}


def midpoint(system: System, h: float, forcing: str = "symmetric") -> DiscreteSystem:
    """Midpoint variational integrator with discrete forces, second order, symplectic if unforced
    [johnson2014 (2)].

    `p0 + D1 Ld + F- = 0,  p1 = D2 Ld + F+,  F- = a h f(q_mid, v_mid, u),  F+ = (1 - a) h f(q_mid,
    v_mid, u)`; `forcing` is "symmetric" (a = 1/2, second order) or "left" (a = 1, the split of the
    paper's examples). State (q, p). Raises ValueError if the system has velocity constraints: use
    `nonholonomic_midpoint`.
    """
    if system.m:
        raise ValueError(
            f"midpoint: {system.name} has {system.m} velocity constraints; use "
            f"nonholonomic_midpoint"
        )
    return _lagrange_dalembert(system, h, forcing, "midpoint")


def nonholonomic_midpoint(system: System, h: float, forcing: str = "symmetric") -> DiscreteSystem:
    """Discrete Lagrange-d'Alembert on the midpoint rule, second order in q and rho.

    `rho + X(q0)^T (D1 Ld + F-) = 0,  A(q_mid) local(q0, q1) = 0,  rho1 = X(q1)^T (D2 Ld + F+)`;
    the unknown is the mean velocity
    `z = local(q0, q1) / h`. State (q, rho). Unconstrained systems are allowed (then it is
    `midpoint`).
    """
    return _lagrange_dalembert(system, h, forcing, "nonholonomic_midpoint")


def _lagrange_dalembert(system: System, h: float, forcing: str, name: str) -> DiscreteSystem:
    if forcing not in FORCINGS:
        raise ValueError(f"{name}: unknown forcing {forcing!r}, choose one of {sorted(FORCINGS)}")
    left, space = FORCINGS[forcing], system.space

    n, nk = system.n_rho, len(system.prescribed)

    def segment(q, u, z, h):
        target = system.prescribed_part(u) - system.prescribed_part(q)
        return space.segment(q, ca.vertcat(h * z[: space.nv - nk], target))

    def kick(step, u, h):
        return h * system.generalized_force(step.middle, step.w / h, u[: system.nu])

    def tangent(q):
        return system.admissible_basis(q) if system.m else ca.SX.eye(space.nv)[:, :n]

    def residual(q, rho, u, z, h, gradients):
        step = segment(q, u, z, h)
        force = space.frame(q).T @ kick(step, u, h)
        balance = system.reduce(q, rho) + tangent(q).T @ (
            left * force - discrete_momenta(gradients, h, step)[0]
        )
        if system.n_holonomic:
            impulse = system.holonomic_impulse(q, z[n:])
            return ca.vertcat(balance - impulse, system.holonomic(step.q1))
        return ca.vertcat(balance, system.constraint_matrix(step.middle) @ step.w / h)

    def readout(q, rho, u, z, h, gradients):
        step = segment(q, u, z, h)
        q1 = step.q1
        force = space.frame(q1).T @ kick(step, u, h)
        components = tangent(q1).T @ (discrete_momenta(gradients, h, step)[1] + (1 - left) * force)
        return q1, system.store(q1, components, system.prescribed_part(step.w) / h)

    label, n_z = (
        name if forcing == "symmetric" else f"{name}_{forcing}",
        space.nv - nk + system.n_holonomic,
    )
    return DiscreteSystem(
        system, h, Method(label, n_z, residual, readout, range(n_z - system.n_holonomic, n_z))
    )
