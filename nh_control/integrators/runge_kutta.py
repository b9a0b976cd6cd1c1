"""Classical Runge-Kutta methods for the equations of motion without multipliers, for
comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols, no_residual
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.coordinate_systems import coordinates
from nh_control.integrators.refusals import if_curved, if_unfit
from nh_control.integrators.registry import Integrator, first_of, if_spherical
from nh_control.integrators.stages import weighted
from nh_control.mechanics.system import System

EXPLICIT = {
    "rk2": (((), (1 / 2,)), (0, 1)),
    "heun": (((), (1,)), (1 / 2, 1 / 2)),
    "rk4": (((), (1 / 2,), (0, 1 / 2), (0, 0, 1)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
}
"""Coefficients of each stage, and weights, for the explicit midpoint rule, Heun's rule and the
classical fourth-order method.
"""
ORDERS = {"rk2": 2, "heun": 2, "rk4": 4}


def explicit_runge_kutta(system: System, h: float, rule: str = "rk4") -> DiscreteSystem:
    """Explicit Runge-Kutta method for the continuous equations in (q, rho). The `rule` is a key of
    EXPLICIT: "rk2", "heun" or "rk4".

    The equations are `q' = w,  rho' = X^T (dL/dq + f) + (dX/dt)^T dL/dw,  (w, dL/dw) =
    lift(q, rho)`. The multipliers are eliminated and the constraints hold at every stage, but
    energy and momenta drift. The rates of first-order coordinates replace their components of w.
    The method is explicit, with nz = 0. Forces and the mass matrix are derived from the
    Lagrangian. `coordinates` chooses the coordinates. Raises ValueError for an unknown rule, and
    for systems that `if_curved` refuses.
    """
    if rule not in EXPLICIT:
        raise ValueError(f"unknown explicit Runge-Kutta rule {rule!r}, of {sorted(EXPLICIT)}")
    space, (a, b) = coordinates(system, rule, if_curved), EXPLICIT[rule]

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, u, _, h, _ = symbols
        derivatives: list[tuple[ca.SX, ca.SX]] = []
        for i in range(len(b)):
            # (q, rho)_i = (q, rho) + h sum_j a_ij (q', rho')_j
            q_i, rho_i = _moved(q, rho, h, a[i], derivatives)
            derivatives.append(space.rates(system.mechanics.gradients, q_i, rho_i, u))
        return _moved(q, rho, h, b, derivatives)

    return DiscreteSystem(system, h, Method(rule, 0, no_residual, readout, first_order=True))


def implicit_midpoint(system: System, h: float) -> DiscreteSystem:
    """Implicit midpoint rule for the continuous equations in (q, rho), second order and symmetric.
    A step is `(q1, rho1) = (q, rho) + h z,  z = rates((q, rho) + h/2 z)`, with the rates in
    `explicit_runge_kutta`.

    Without constraints and with a constant mass matrix, the method is `midpoint`. With
    constraints, it does not satisfy a discrete Lagrange-d'Alembert principle. nz is the size of
    (q, rho). `coordinates` chooses the coordinates. Raises ValueError for systems that `if_unfit`
    refuses, and for spheres, because the equations in (q, rho) do not transport the frames of
    spheres.
    """
    space = coordinates(system, "implicit_midpoint", _if_unfit)
    n = space.n

    def residual(symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, gradients = symbols
        local, q0 = space.about(q, h * z[:n])
        # (q, rho) + h/2 z
        middle = q0 + h / 2 * z[:n]
        return z - ca.vertcat(*local.rates(gradients, middle, rho + h / 2 * z[n:], u))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, _, z, h, _ = symbols
        local, q0 = space.about(q, h * z[:n])
        return local.position(q0 + h * z[:n]), rho + h * z[n:]

    nz = n + system.nrho
    method = Method("implicit_midpoint", nz, residual, readout, first_order=True)
    return DiscreteSystem(system, h, method)


def _moved(
    q: ca.SX,
    rho: ca.SX,
    h: ca.SX,
    weights: Sequence[float],
    derivatives: Sequence[tuple[ca.SX, ca.SX]],
) -> tuple[ca.SX, ca.SX]:
    if not derivatives:
        return q, rho
    by_q, by_rho = zip(*derivatives)
    # (q, rho) + h sum_j w_j (q', rho')_j
    return q + h * weighted(weights, by_q), rho + h * weighted(weights, by_rho)


_if_unfit = first_of(if_unfit, if_spherical)

INTEGRATORS = (
    *(
        Integrator(
            name=rule,
            make=partial(explicit_runge_kutta, rule=rule),
            order=ORDERS[rule],
            symmetric=False,
            explicit=True,
            preserves=("velocity constraints at the nodes",),
            refuses=if_curved,
            source="Runge and Kutta, on celledoni2016 (8)",
            first_order=True,
        )
        for rule in EXPLICIT
    ),
    Integrator(
        name="implicit_midpoint",
        make=implicit_midpoint,
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("velocity constraints at the nodes",),
        refuses=_if_unfit,
        source="implicit midpoint rule, on celledoni2016 (8)",
        first_order=True,
    ),
)
