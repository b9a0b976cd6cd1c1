"""Gauss methods for nonholonomic constraints with a symmetric projection."""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.coordinate_systems import Coordinates, coordinates
from nh_control.integrators.refusals import if_irregular
from nh_control.integrators.registry import Integrator
from nh_control.integrators.stages import Stages, gauss_tables, parts, stages, weighted
from nh_control.mechanics.system import System

STAGES = (1, 2, 3)


def nonholonomic_gauss(system: System, h: float, s: int = 2) -> DiscreteSystem:
    """Gauss method with s points. The constraints and their reactions are evaluated at the points,
    and a symmetric projection enforces the constraints at both ends. The method has order 2s in q
    and rho.

    `Q_i = q0 + h sum_j a_ij V_j,  p = lift(q0, rho) + A(q0)^T mu`,
    `p + h sum_j a_ij (dL/dq + f)_j + sum_j a_ij A(Q_j)^T K_j = dL/dv(Q_i, V_i),  A(Q_i) V_i = 0`,
    `p1 = p + h sum_j b_j (dL/dq + f)_j + sum_j b_j A(Q_j)^T K_j + (-1)^s A(q1)^T mu`,
    `A M^{-1} p1 = 0` at q1, `rho1 = X(q1)^T p1`. The unknowns are V_i (n), the impulses K_i (m)
    and mu (m), with nz = s (n + m) + m. Holonomic constraints are included with Dh in A, so h(q) =
    0 would drift. Therefore q moves with `V_i + M^{-1} Dh^T nu` at Q_i. A single nu (k) of order
    h^(2s) for all points makes h(q1) = 0. The sign (-1)^s is the sign of the method's stability
    function at infinity. With the opposite sign, the equations are singular for odd s. Without
    constraints, on R^n, the method is the variational Gauss method. Such projections are described
    in [Hairer, Lubich and Wanner, Geometric Numerical Integration, V.4.1]. The orders are
    measured. The mass matrix is derived from the Lagrangian. `coordinates` chooses the
    coordinates. Raises ValueError for other values of s, and for systems that `if_irregular`
    refuses.
    """
    if s not in STAGES:
        raise ValueError(f"nonholonomic_gauss: s must be one of {STAGES} stages, got {s}")
    space, (b, a) = coordinates(system, "nonholonomic_gauss", if_irregular), gauss_tables(s)
    n_velocities, m, k = s * space.n, space.n_constraints, space.n_holonomic
    n_stages = n_velocities + s * m

    def step(symbols: StepSymbols) -> tuple[Coordinates, Stages, ca.SX, ca.SX]:
        q, rho, u, z, h, gradients = symbols
        v, mu = parts(z[:n_velocities], s), z[n_stages : n_stages + m]
        nu = z[n_stages + m :] if k else None
        displacement = h * weighted(b, v)
        local, q0 = space.about(q, displacement)
        p0 = local.node(q, q0, rho, mu if m else None)[1]
        nodes = stages(local, a, gradients, q0, p0, u, v, z[n_velocities:n_stages], h, nu)
        # mu is the same at both ends, so the projection is symmetric
        p1 = nodes.momentum(h, b, b) + (-1) ** s * local.reaction(q0 + displacement, mu)
        return local, nodes, q0 + displacement, p1

    def residual(symbols: StepSymbols) -> ca.SX:
        h = symbols.h
        local, nodes, q1, p1 = step(symbols)
        # p + h sum_j a_ij W_j + sum_j a_ij R_j = dL/dv(Q_i, V_i)
        balance = [nodes.momentum(h, row, row) - p for row, p in zip(a, nodes.p)]
        slips = [local.constraint(q_i) @ v_i for q_i, v_i in zip(nodes.q, nodes.v)]
        surface = system.holonomic(local.position(q1))
        return ca.vertcat(*balance, *slips, local.slip(q1, p1), surface)

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        local, _, q1, p1 = step(symbols)
        return local.position(q1), local.stored(q1, p1)

    method = Method(f"nonholonomic_gauss_{s}", n_stages + m + k, residual, readout)
    return DiscreteSystem(system, h, method)


INTEGRATORS = tuple(
    Integrator(
        name=f"nonholonomic_gauss_{s}",
        make=partial(nonholonomic_gauss, s=s),
        order=2 * s,
        symmetric=True,
        explicit=False,
        preserves=(
            "velocity constraints at the nodes",
            "velocity constraints at the points",
            "holonomic constraints",
        ),
        refuses=if_irregular,
        source=f"Gauss with {s} points, Hairer, Lubich and Wanner V.4.1",
    )
    for s in STAGES
)
