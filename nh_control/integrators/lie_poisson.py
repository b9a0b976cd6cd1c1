"""Integrators on T*G that transport momenta with the coadjoint action. Free motions stay on their
coadjoint orbits to round-off, even if the equations of a step are not solved accurately.
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
"""Relative difference below which momenta count as equal."""
Mean: TypeAlias = Callable[[ca.SX, ca.SX, ca.SX], ca.SX]


def lie_midpoint(system: System, h: float) -> DiscreteSystem:
    """Implicit Lie midpoint rule, which is second order and symmetric [Engo and Faltinsen 2001].

    `g1 = g0 exp(eta),  p1 = Ad*_{exp(eta)} p0 + Ad*_{exp(eta/2)} k,  eta = h v`,
    `dL/dv (g, v) = (Ad*_{exp(eta/2)} p0 + Ad*_{exp(-eta/2)} p1) / 2`, with the midpoint
    `g = g0 exp(eta / 2)` and `k = h (dL/dg + f)(g, v)`.

    Only k changes the momentum in the frame at rest, by `Ad*_{g^{-1}} k`. Therefore the motion of
    a left-invariant Lagrangian stays on its coadjoint orbit in g*. The (Pi, Gamma) of a heavy top,
    `Gamma = Q^T Gamma_0`, stay on their orbit in se(3)*, where the same step is
    `Ad*_{(exp(eta), w)}` with `k = -exp(-eta/2) w x Gamma`. `slgi` uses a different dL/dv, which
    is `dexp*_eta p0` for free motions (discrete Euler-Poincare equations), and is symplectic.
    `lie_midpoint` is not symplectic, and does not conserve momenta about a body's symmetry axes.
    On R^n, both methods are `midpoint`. Raises ValueError for systems that `refuses` refuses.
    """

    def mean(p0: ca.SX, p1: ca.SX, eta: ca.SX) -> ca.SX:
        # both momenta transported to the middle, g0 exp(eta / 2)
        there, back = (
            transport_momentum(system.space, eta / 2, p0),
            transport_momentum(system.space, -eta / 2, p1),
        )
        return (there + back) / 2

    return _transporting(system, h, "lie_midpoint", 1, mean, refuses)


def lie_mean_value(system: System, h: float, points: int = 6) -> DiscreteSystem:
    """A second-order symmetric method that conserves both energy and coadjoint orbits [Engo and
    Faltinsen 2001]. The step's algebra element is the mean value discrete gradient.

    `g1 = g0 exp(eta),  dL/dv = (p0 + p1) / 2,  eta = h v`,
    `p1 = Ad*_{exp(eta)} p0 + h int_0^1 Ad*_{exp((1 - s) eta)} (dL/dg + f)(g0 exp(s eta), v) ds`.

    `v . Ad*_{exp(a eta)} k = v . k`, so `E1 - E0 = v . (p1 - p0) + V1 - V0` is the work of f up to
    the quadrature error of `points` Gauss points, which is zero without a potential. Momenta in
    the frame at rest are conserved, as with `lie_midpoint`. On R^n, the method is `mean_value`.
    Raises ValueError for systems that `refuses` refuses, and for mass matrices that depend on the
    configuration.
    """

    def mean(p0: ca.SX, p1: ca.SX, eta: ca.SX) -> ca.SX:
        return (p0 + p1) / 2

    return _transporting(system, h, "lie_mean_value", points, mean, _refuses_mean_value)


def _transporting(
    system: System, h: float, name: str, points: int, mean: Mean, refusal: Refusal
) -> DiscreteSystem:
    """The step whose velocity belongs to the momentum `mean(p0, p1, eta)` at the midpoint, with
    `points` Gauss points for the impulse.
    """
    if reason := refusal(system):
        raise ValueError(f"{name}: {system.name} {reason}; use nonholonomic_midpoint")
    space = system.space
    rule = [(float(c), float(b)) for c, b in zip(*gauss(points))]

    def after(symbols: StepSymbols) -> ca.SX:
        """The final momentum p1. All impulses are first transported back to the beginning of the
        step.
        """
        q, p, u, v, h, gradients = symbols
        for c, b in rule:
            arguments = Arcs(space, q, h * v, c)
            slope = arguments.trivialized_gradient(gradients(arguments.point, v)[0])
            # k_i = b_i h (dL/dg + f)(g0 exp(c_i eta), v)
            impulse = b * h * (slope + system.generalized_force(arguments.point, v, u))
            p += transport_momentum(space, -c * h * v, impulse)
        # p1 = Ad*_{exp(eta)} (p0 + sum_i Ad*_{exp(-c_i eta)} k_i)
        return transport_momentum(space, h * v, p)

    def residual(symbols: StepSymbols) -> ca.SX:
        q, p, _, v, h, gradients = symbols
        middle = Arcs(space, q, h * v, 0.5)
        p1 = after(symbols)
        # the velocity belongs to the mean momentum, dL/dv(g, v) = mean(p0, p1)
        return mean(p, p1, h * v) - gradients(middle.point, v)[1]

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, _, _, v, h, _ = symbols
        return Arcs(space, q, h * v, 0.0).end, after(symbols)

    return DiscreteSystem(system, h, Method(name, space.nv, residual, readout))


def _if_mass_turns(system: System) -> str:
    """Refuses mass matrices that depend on the configuration. The check compares dL/dv at random
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
"""Refuses constraints, prescribed coordinates and spaces that are not Lie groups."""

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
