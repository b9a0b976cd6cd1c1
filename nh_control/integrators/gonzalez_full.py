"""Gonzalez' energy-preserving method on the full cotangent space [celledoni2016 (15)]."""

from __future__ import annotations

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.chart import Chart, middle_and_end
from nh_control.integrators.discrete_gradients import midpoint_gradient, refuses
from nh_control.integrators.registry import Integrator, first_of
from nh_control.mechanics.almost_poisson import AlmostPoisson
from nh_control.mechanics.system import System


def gonzalez_f(system: System, h: float) -> DiscreteSystem:
    """Gonzalez-F, `(zeta1 - zeta0) / h = Pi(middle) g + (0, f + A(q_mid)^T lam)`,
    `A(q_mid) g_p = 0` in zeta = (q, p), g the midpoint discrete gradient of H(q, p)
    [celledoni2016 (15)].

    H(q, p) grows by the work of f alone; p leaves the constraints by O(h^2) at the nodes. A state
    is (q, rho, sigma), `p = p(rho) + A^T sigma` with p(rho) the momentum of the admissible
    velocity, `sigma = (A M^{-1} A^T)^{-1} A v`; `energy` and `velocity` are those of rho, and
    `H = energy + sigma^T A M^{-1} A^T sigma / 2`. A state made from a velocity has sigma = 0.
    Needs a mass matrix that is regular on all velocities. Raises ValueError for a system that it
    cannot take.
    """
    if reason := _refuses(system):
        raise ValueError(
            f"gonzalez_f: {system.name} {reason}; use gonzalez or nonholonomic_midpoint"
        )
    space, n, m = system.space, system.space.nv, system.n_velocity_constraints
    free = AlmostPoisson(system, lambda q: ca.SX.eye(n))
    bound = AlmostPoisson(system, system.mechanics.admissible_basis)

    def momentum(q: ca.SX, state: ca.SX) -> ca.SX:
        sigma = state[system.nrho :]
        return bound.momentum(q, state[: system.nrho]) + system.constraint_matrix(q).T @ sigma

    def residual(symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, _ = symbols
        rates, lam, p = z[: 2 * n], z[2 * n :], momentum(q, rho)
        half = h * rates / 2
        center, _ = middle_and_end(space, q, 2 * half[:n])
        local, a = free.local(Chart(space, center)), system.constraint_matrix(center)
        zeta0, zeta1 = ca.vertcat(-half[:n], p), ca.vertcat(half[:n], p + 2 * half[n:])
        g = midpoint_gradient(local, zeta0, zeta1)
        middle = ca.vertcat(ca.SX(n, 1), p + half[n:])
        balance = rates - local.rate(middle, g, u)
        balance[n:] -= a.T @ lam
        return ca.vertcat(balance, a @ rates[:n])

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, _, z, h, _ = symbols
        _, q1 = middle_and_end(space, q, h * z[:n])
        p1, a = momentum(q, rho) + h * z[n : 2 * n], system.constraint_matrix(q1)
        rho1 = system.mechanics.admissible_basis(q1).T @ p1
        rest = p1 - bound.momentum(q1, rho1)
        return q1, ca.vertcat(rho1, ca.solve(a @ a.T, a @ rest))

    memory = tuple(f"sigma_{i + 1}" for i in range(m))
    method = Method("gonzalez_f", 2 * n + m, residual, readout, memory=memory)
    return DiscreteSystem(system, h, method)


def _if_unconstrained(system: System) -> str:
    return (
        ""
        if system.n_velocity_constraints
        else "has no velocity constraints, without which it is gonzalez"
    )


_refuses = first_of(refuses, _if_unconstrained)

INTEGRATORS = (
    Integrator(
        name="gonzalez_f",
        make=gonzalez_f,
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("energy of (q, p)", "velocity constraints at the middle"),
        refuses=_refuses,
        source="celledoni2016 (15)",
    ),
)
