"""Energy-preserving collocation of higher order on D* (Cohen and Hairer 2011)."""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.chart import Chart, middle_and_end
from nh_control.integrators.discrete_gradients import refuses
from nh_control.integrators.registry import Integrator
from nh_control.mechanics.almost_poisson import AlmostPoisson
from nh_control.mechanics.system import System
from nh_control.numerics.quadrature import gauss, integrals, lagrange


def energy_collocation(
    system: System, h: float, stages: int = 2, points: int = 6
) -> DiscreteSystem:
    """Collocation for the mean value gradient, order 2 `stages` (Cohen and Hairer 2011 (3.1)).

    `K_i = Pi(U(c_i)) G_i + (0, X^T f(q_i, v_i, u))`, `v_i = X G_i,rho`,
    `G_i = sum_m w_m l_i(t_m) / b_i grad H(U(t_m))`, `U(t) = zeta0 + h sum_j K_j int_0^t l_j`,
    `zeta1 = zeta0 + h sum_i b_i K_i`, with l_i the polynomials of the Gauss points c and (t, w)
    Gauss quadrature. zeta = (d, rho) in the chart at the step's middle. One stage is `mean_value`.

    `H1 - H0 = h sum_i b_i f_i . v_i`: exact for H of degree d with 2 points >= stages d, else up
    to the quadrature's error (with 6 points and h = 0.1 s at round-off). Velocity constraints hold
    at the stages. Raises ValueError for a system that it cannot take, and for fewer points than
    stages.
    """
    if reason := refuses(system):
        raise ValueError(f"energy_collocation: {system.name} {reason}; use nonholonomic_midpoint")
    if not 1 <= stages <= points:
        raise ValueError(
            f"energy_collocation: needs 1 <= stages <= points, got {stages} and {points}"
        )
    space, n, size = system.space, system.space.nv, system.space.nv + system.nrho
    (c, b), (t, w) = gauss(stages), gauss(points)
    inner, quadrature = integrals(c, c), integrals(c, t)
    weights = [[w[k] * l(t[k]) / b_i for k in range(points)] for l, b_i in zip(lagrange(c), b)]
    structure = AlmostPoisson(system, system.mechanics.admissible_basis)

    def stage_rates(z: ca.SX, h: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The rates K (size, stages), and the change of zeta."""
        rates = ca.reshape(z, size, stages)
        return rates, h * rates @ ca.DM(b)

    def residual(symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, _ = symbols
        rates, change = stage_rates(z, h)
        center, _ = middle_and_end(space, q, change[:n])
        local = structure.local(Chart(space, center))
        zeta0 = ca.vertcat(-change[:n] / 2, rho)
        nodes = (zeta0 + h * rates @ ca.DM(row) for row in quadrature)
        h_gradients = ca.horzcat(*(local.gradient(zeta) for zeta in nodes))
        rows = []
        for i in range(stages):
            place = zeta0 + h * rates @ ca.DM(inner[i])
            rows.append(rates[:, i] - local.rate(place, h_gradients @ ca.DM(weights[i]), u))
        return ca.vertcat(*rows)

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, _, z, h, _ = symbols
        change = stage_rates(z, h)[1]
        return middle_and_end(space, q, change[:n])[1], rho + change[n:]

    name = f"energy_collocation_{2 * stages}" + (f"_{points}" if points != 6 else "")
    return DiscreteSystem(system, h, Method(name, stages * size, residual, readout))


INTEGRATORS = tuple(
    Integrator(
        name=f"energy_collocation_{2 * stages}",
        make=partial(energy_collocation, stages=stages),
        order=2 * stages,
        symmetric=True,
        explicit=False,
        preserves=("energy", "velocity constraints at the points"),
        refuses=refuses,
        source="Cohen and Hairer (2011); celledoni2016 (8)",
    )
    for stages in (2, 3)
)
