"""Gonzalez' energy-preserving method on the full cotangent space [celledoni2016 (15)]."""

from __future__ import annotations

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.chart import Chart, middle_and_end
from nh_control.integrators.discrete_gradients import midpoint_gradient
from nh_control.integrators.energy_steps import refuses
from nh_control.integrators.registry import Integrator, first_of, if_prescribed
from nh_control.mechanics.almost_poisson import AlmostPoisson
from nh_control.mechanics.distribution import Basis
from nh_control.mechanics.system import System


def gonzalez_f(system: System, h: float) -> DiscreteSystem:
    """Gonzalez-F, `(zeta1 - zeta0) / h = Pi(middle) g + (0, f + A(q_mid)^T lam)` and
    `A(q_mid) g_p = 0` in zeta = (q, p), where g is the midpoint discrete gradient of H(q, p)
    [celledoni2016 (15)].

    H(q, p) changes only by the work of f. At the nodes, p violates the constraints by O(h^2). A
    state is (q, rho, sigma) with `p = p(rho) + A^T sigma`, where p(rho) is the momentum of the
    admissible velocity, and `sigma = (A M^{-1} A^T)^{-1} A v`. `energy` and `velocity` belong to
    rho, and `H = energy + sigma^T A M^{-1} A^T sigma / 2`. A state that is created from a velocity
    has sigma = 0. The mass matrix must be regular on all velocities. Raises ValueError for an
    unsupported system.
    """
    if reason := _refuses(system):
        raise ValueError(
            f"gonzalez_f: {system.name} {reason}; use gonzalez or nonholonomic_midpoint"
        )
    space, n, m = system.space, system.space.nv, system.n_velocity_constraints

    def momentum(q: ca.SX, state: ca.SX, frame: Basis) -> ca.SX:
        """p (nv) in the frame of velocities at q."""
        stored, sigma = ca.vertsplit(state, [0, state.shape[0] - m, state.shape[0]])
        rho = system.mechanics.reduce(q, stored, frame(q))
        admissible = _admissible(system, frame).momentum(q, rho)
        return frame(q).T @ (admissible + system.constraint_matrix(q).T @ sigma)

    def chart(q: ca.SX, d: ca.SX) -> tuple[Chart, ca.SX]:
        """The chart at the middle of a step, and the final configuration."""
        center, q1 = middle_and_end(space, q, d)
        return Chart(space, center, q), q1

    def residual(symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, _ = symbols
        about, _ = chart(q, h * z[:n])
        frame, p = about.moving_frame, momentum(q, rho, about.moving_frame)
        rates, lam = ca.vertcat(about.turned(q, z[:n]), z[n : 2 * n]), z[2 * n :]
        half = h * rates / 2
        # with the full frame as the basis, zeta = (d, p) has no constraints
        local = AlmostPoisson(system, frame).local(about)
        a = system.constraint_matrix(about.center) @ about.frame
        zeta0, zeta1 = ca.vertcat(-half[:n], p), ca.vertcat(half[:n], p + 2 * half[n:])
        g = midpoint_gradient(local, zeta0, zeta1)
        middle = ca.vertcat(ca.SX(n, 1), p + half[n:])
        balance = rates - local.rate(middle, g, u)
        # reactions act on p only
        balance[n:] -= a.T @ lam
        return ca.vertcat(balance, a @ rates[:n])

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, _, z, h, _ = symbols
        about, q1 = chart(q, h * z[:n])
        frame = about.moving_frame(q1)
        p1 = momentum(q, rho, about.moving_frame) + h * z[n : 2 * n]
        basis = system.mechanics.admissible_basis(q1, frame)
        rho1 = (frame.T @ basis).T @ p1
        admissible = _admissible(system, about.moving_frame).momentum(q1, rho1)
        a = system.constraint_matrix(q1) @ frame
        # least squares: A^T sigma = p1 - p(rho1)
        rest = ca.solve(a @ a.T, a @ (p1 - frame.T @ admissible))
        return q1, ca.vertcat(system.mechanics.store(q1, rho1, ca.SX(0, 1), frame), rest)

    memory = tuple(f"sigma_{i + 1}" for i in range(m))
    method = Method("gonzalez_f", 2 * n + m, residual, readout, memory=memory)
    return DiscreteSystem(system, h, method)


def _admissible(system: System, frame: Basis) -> AlmostPoisson:
    """The structure in the system's basis."""
    return AlmostPoisson(system, lambda q: system.mechanics.admissible_basis(q, frame(q)))


def _if_holonomic(system: System) -> str:
    """Refuses systems whose states (q, rho, sigma) would not contain the full momentum."""
    if system.n_holonomic_constraints:
        return "has holonomic constraints, whose part of the momentum is not in its states"
    return if_prescribed(system)


def _if_unconstrained(system: System) -> str:
    return (
        ""
        if system.n_velocity_constraints
        else "has no velocity constraints: the method would be gonzalez"
    )


_refuses = first_of(refuses, _if_holonomic, _if_unconstrained)

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
