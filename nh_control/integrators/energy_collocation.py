"""Higher-order energy-preserving collocation on D* (Cohen and Hairer 2011)."""

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
    """Collocation with the mean value gradient. The order is 2 `stages` (Cohen and Hairer 2011
    (3.1)).

    `K_i = Pi(U(c_i)) G_i + (0, X^T f(q_i, v_i, u))`, `v_i = X G_i,rho`,
    `G_i = sum_m w_m l_i(t_m) / b_i grad H(U(t_m))`, `U(t) = zeta0 + h sum_j K_j int_0^t l_j`,
    `zeta1 = zeta0 + h sum_i b_i K_i`, with the Lagrange polynomials l_i of the Gauss points c, and
    Gauss quadrature (t, w). zeta = (d, rho) are coordinates of the chart at the middle of the
    step. With one stage, the method is `mean_value`.

    `H1 - H0 = h sum_i b_i f_i . v_i` is exact for H of degree d if 2 points >= stages d. Otherwise
    it holds up to the quadrature error (round-off with 6 points and h = 0.1 s). Velocity
    constraints hold at the stages. Holonomic constraints h(q) have multipliers lam_i at the
    stages, with `G_i + D_i^T lam_i`, `D_i d_i' = 0` and h(q1) = 0 (see `EnergySteps`). D_i is the
    mean derivative of h, like G_i for H. Raises ValueError for an unsupported system, and for
    fewer points than stages.
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
        """The step, its unknown rates (n_rates, stages), and rho- at the end of the step."""
        rates = ca.reshape(symbols.z[: multipliers.start], size, stages)
        change = symbols.h * rates @ ca.DM(b)
        current = steps.at(symbols, change)
        return current, rates, current.start + change[n:]

    def residual(symbols: StepSymbols) -> ca.SX:
        z, h = symbols.z, symbols.h
        current, unknown, rho1 = step(symbols)
        local, rates = current.local(), current.rates(unknown)
        zeta0 = ca.vertcat(-current.d / 2, current.start)
        # U(t_m) = zeta0 + h sum_j K_j int_0^t_m l_j
        nodes = [zeta0 + h * rates @ ca.DM(row) for row in quadrature]
        h_gradients = ca.horzcat(*(local.gradient(zeta) for zeta in nodes))
        slopes = ca.horzcat(*(ca.vec(local.constraint_gradient(zeta)) for zeta in nodes))
        impulses = ca.reshape(z[multipliers.start : multipliers.stop], k, stages)
        rows, constraints = [], []
        for i in range(stages):
            place = zeta0 + h * rates @ ca.DM(inner[i])
            # G_i = sum_m w_m l_i(t_m) / b_i grad H(U(t_m))
            g, slope = h_gradients @ ca.DM(weights[i]), slopes @ ca.DM(weights[i])
            if k:
                slope = ca.reshape(slope, -1, k)
                g[: slope.shape[0]] += slope @ impulses[:, i] / h
                constraints.append(slope.T @ rates[: slope.shape[0], i])
            rate = local.rate(place, g, current.inputs)
            rows.append(current.unknown(rates[:, i] - rate))
        # h(q1) = 0 and the constraints at all other points imply the constraint at the last point
        return ca.vertcat(*rows, *constraints[:-1], current.end_rows(rho1))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        current, _, rho1 = step(symbols)
        return current.end(rho1)

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
