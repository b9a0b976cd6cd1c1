"""Energy-preserving collocation of higher order on D* (Cohen and Hairer 2011)."""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.energy_steps import EnergyStep, EnergySteps, refuses
from nh_control.integrators.registry import Integrator
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
    at the stages. Holonomic constraints h(q) have multipliers lam_i at the stages,
    `G_i + D_i^T lam_i`, with D_i their mean derivatives as G_i are those of H, `D_i d_i' = 0` and
    h(q1) = 0, see `EnergySteps`. Raises ValueError for a system that it cannot take, and for fewer
    points than stages.
    """
    if reason := refuses(system):
        raise ValueError(f"energy_collocation: {system.name} {reason}; use nonholonomic_midpoint")
    if not 1 <= stages <= points:
        raise ValueError(
            f"energy_collocation: needs 1 <= stages <= points, got {stages} and {points}"
        )
    steps, k = EnergySteps(system, stages=stages), system.n_holonomic_constraints
    n, size, multipliers = steps.n_free, steps.n_rates, steps.multipliers
    (c, b), (t, w) = gauss(stages), gauss(points)
    inner, quadrature = integrals(c, c), integrals(c, t)
    weights = [[w[k] * l(t[k]) / b_i for k in range(points)] for l, b_i in zip(lagrange(c), b)]

    def step(symbols: StepSymbols) -> tuple[EnergyStep, ca.SX, ca.SX]:
        """The step, its unknown rates (n_rates, stages), and rho-."""
        rates = ca.reshape(symbols.z[: multipliers.start], size, stages)
        change = symbols.h * rates @ ca.DM(b)
        taken = steps.at(symbols, change)
        return taken, rates, taken.start + change[n:]

    def residual(symbols: StepSymbols) -> ca.SX:
        z, h = symbols.z, symbols.h
        taken, unknown, rho1 = step(symbols)
        local, rates = taken.local(), taken.rates(unknown)
        zeta0 = ca.vertcat(-taken.d / 2, taken.start)
        nodes = [zeta0 + h * rates @ ca.DM(row) for row in quadrature]
        h_gradients = ca.horzcat(*(local.gradient(zeta) for zeta in nodes))
        slopes = ca.horzcat(*(ca.vec(local.constraint_gradient(zeta)) for zeta in nodes))
        impulses = ca.reshape(z[multipliers.start : multipliers.stop], k, stages)
        rows, kept = [], []
        for i in range(stages):
            place = zeta0 + h * rates @ ca.DM(inner[i])
            g, slope = h_gradients @ ca.DM(weights[i]), slopes @ ca.DM(weights[i])
            if k:
                slope = ca.reshape(slope, -1, k)
                g[: slope.shape[0]] += slope @ impulses[:, i] / h
                kept.append(slope.T @ rates[: slope.shape[0], i])
            rate = local.rate(place, g, taken.inputs)
            rows.append(taken.unknown(rates[:, i] - rate))
        # h(q1) = 0 and all but the last of the constraints at the points imply the last one
        return ca.vertcat(*rows, *kept[:-1], taken.end_rows(rho1))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        taken, _, rho1 = step(symbols)
        return taken.end(rho1)

    name = f"energy_collocation_{2 * stages}" + (f"_{points}" if points != 6 else "")
    method = Method(name, steps.nz, residual, readout, multipliers=multipliers)
    return DiscreteSystem(system, h, method)


INTEGRATORS = tuple(
    Integrator(
        name=f"energy_collocation_{2 * stages}",
        make=partial(energy_collocation, stages=stages),
        order=2 * stages,
        symmetric=True,
        explicit=False,
        preserves=("energy", "velocity constraints at the points", "holonomic constraints"),
        refuses=refuses,
        source="Cohen and Hairer (2011); celledoni2016 (8)",
    )
    for stages in (2, 3)
)
