"""Integrators on T*G that move momenta by the coadjoint action: free motions stay on their
coadjoint orbits to round-off, for any error of the solution of a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import casadi as ca
import numpy as np

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.arcs import Arcs, transport_momentum, unknown_factor
from nh_control.integrators.registry import (
    Integrator,
    Refusal,
    first_of,
    if_combined,
    if_constrained,
)
from nh_control.mechanics.system import System
from nh_control.numerics.quadrature import gauss

SAME = 1e-10
"""Relative difference of momenta that counts as zero."""
Mean: TypeAlias = Callable[[ca.SX, ca.SX, ca.SX], ca.SX]


def lie_midpoint(system: System, h: float) -> DiscreteSystem:
    """Implicit Lie midpoint rule, second order and symmetric [Engo and Faltinsen 2001].

    `g1 = g0 exp(eta),  p1 = Ad*_{exp(eta)} p0 + Ad*_{exp(eta/2)} k,  eta = h v`,
    `dL/dv (g, v) = (Ad*_{exp(eta/2)} p0 + Ad*_{exp(-eta/2)} p1) / 2`, with the middle
    `g = g0 exp(eta / 2)` and `k = h (dL/dg + f)(g, v)`.

    Only k changes the momentum in the frame at rest, by `Ad*_{g^{-1}} k`. So a left-invariant
    Lagrangian's motion stays on its coadjoint orbit in g*, and a heavy top's (Pi, Gamma),
    `Gamma = Q^T Gamma_0`, on its orbit in se(3)*: there the same step is `Ad*_{(exp(eta), w)}`,
    `k = -exp(-eta/2) w x Gamma`. `slgi` is another choice of dL/dv, `dexp*_eta p0` for free
    motions (discrete Euler-Poincare equations), which makes it symplectic; this one is not, and
    does not keep momenta about a body's own axes of symmetry. On R^n both are `midpoint`. Raises
    ValueError for systems that `refuses` names a reason for.
    """

    def mean(p0: ca.SX, p1: ca.SX, eta: ca.SX) -> ca.SX:
        there, back = (
            transport_momentum(system.space, eta / 2, p0),
            transport_momentum(system.space, -eta / 2, p1),
        )
        return (there + back) / 2

    return _transporting(system, h, "lie_midpoint", 1, mean, refuses)


def lie_mean_value(system: System, h: float, points: int = 6) -> DiscreteSystem:
    """Energy and coadjoint orbits together, second order and symmetric [Engo and Faltinsen 2001]:
    the mean value discrete gradient as the algebra element of the step.

    `g1 = g0 exp(eta),  dL/dv = (p0 + p1) / 2,  eta = h v`,
    `p1 = Ad*_{exp(eta)} p0 + h int_0^1 Ad*_{exp((1 - s) eta)} (dL/dg + f)(g0 exp(s eta), v) ds`.

    `v . Ad*_{exp(a eta)} k = v . k`, so `E1 - E0 = v . (p1 - p0) + V1 - V0` is the work of f,
    up to the error of the quadrature by `points` Gauss points, which is none without a potential.
    Momenta in the frame at rest are kept as by `lie_midpoint`. On R^n it is `mean_value`. Raises
    ValueError for systems that `refuses` names a reason for, and for mass matrices that depend on
    the configuration.
    """

    def mean(p0: ca.SX, p1: ca.SX, eta: ca.SX) -> ca.SX:
        return (p0 + p1) / 2

    return _transporting(system, h, "lie_mean_value", points, mean, _refuses_mean_value)


def _transporting(
    system: System, h: float, name: str, points: int, mean: Mean, refusal: Refusal
) -> DiscreteSystem:
    """The step with the velocity of the momentum `mean(p0, p1, eta)` at the middle, and `points`
    Gauss points for the impulse.
    """
    if reason := refusal(system):
        raise ValueError(f"{name}: {system.name} {reason}; use nonholonomic_midpoint")
    space = system.space
    rule = [(float(c), float(b)) for c, b in zip(*gauss(points))]

    def after(symbols: StepSymbols) -> ca.SX:
        """p1, all impulses carried back to the start first."""
        q, p, u, v, h, gradients = symbols
        for c, b in rule:
            arguments = Arcs(space, q, h * v, c)
            slope = arguments.trivialized_gradient(gradients(arguments.point, v)[0])
            impulse = b * h * (slope + system.generalized_force(arguments.point, v, u))
            p += transport_momentum(space, -c * h * v, impulse)
        return transport_momentum(space, h * v, p)

    def residual(symbols: StepSymbols) -> ca.SX:
        q, p, _, v, h, gradients = symbols
        middle = Arcs(space, q, h * v, 0.5)
        p1 = after(symbols)
        return mean(p, p1, h * v) - gradients(middle.point, v)[1]

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, _, _, v, h, _ = symbols
        return Arcs(space, q, h * v, 0.0).end, after(symbols)

    return DiscreteSystem(system, h, Method(name, space.nv, residual, readout))


def _if_mass_turns(system: System) -> str:
    """Refuses mass matrices that depend on the configuration: dL/dv is compared at random
    configurations and at the origin.
    """
    (q, v, _), space = system.symbols, system.space
    arguments = [q, v, system.parameter_symbols]
    momentum = ca.Function("momentum", arguments, [system.mechanics.gradients(q, v)[1]])
    for d, w in np.random.default_rng(0).normal(size=(4, 2, space.nv)):
        places = space.origin, space.retract(space.origin, d / 2)
        here, there = (np.asarray(momentum(q, w, system.parameter_values)) for q in places)
        if np.abs(there - here).max() > SAME * np.abs(here).max():
            return "has a mass matrix that depends on its configuration"
    return ""


refuses = first_of(if_constrained, if_combined, lambda system: unknown_factor(system.space))
"""Refuses constraints, prescribed coordinates and spaces that are no Lie groups."""

_refuses_mean_value = first_of(refuses, _if_mass_turns)

INTEGRATORS = (
    Integrator(
        name="lie_midpoint",
        make=lie_midpoint,
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("momenta in the frame at rest", "coadjoint orbits"),
        refuses=refuses,
        source="Engo and Faltinsen (2001); celledoni2021 3.3",
    ),
    Integrator(
        name="lie_mean_value",
        make=lie_mean_value,
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("energy", "momenta in the frame at rest", "coadjoint orbits"),
        refuses=_refuses_mean_value,
        source="Engo and Faltinsen (2001); celledoni2021 3.3",
    ),
)
