"""Runge-Kutta-Munthe-Kaas methods with holonomic constraints in index-1 form, with or without
stabilization [mueller2013 4].
"""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols, no_residual
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.lie_group import lie_step
from nh_control.integrators.lie_tableaux import TABLES, Table
from nh_control.integrators.registry import Integrator, first_of, if_constrained, if_prescribed
from nh_control.mechanics.lie_equations import LieEquations, refuses
from nh_control.mechanics.system import System
from nh_control.numerics.linear_solves import factorized

RATE = 10.0
"""Default rate (1/s) at which Baumgarte stabilization damps a constraint violation."""
PROJECTIONS = 2
"""Number of Newton steps to project a configuration onto its constraints."""


def index_one(
    system: System,
    h: float,
    table: Table = TABLES["rkmk4"],
    baumgarte: tuple[float, float] = (0.0, 0.0),
    name: str = "rkmk4_index_one",
) -> DiscreteSystem:
    """A Lie group method for `[M, -C^T; C, 0] (v', lam) = (F, -C' v - 2 alpha C v - beta^2 h)`
    with C = Dh and the velocity that belongs to the momentum of the state [mueller2013 (3), (36),
    (37)].

    Without `baumgarte` (alpha, beta), in 1/s, only the second derivative of h is zero, and errors
    in h and h' accumulate. The method is explicit, with nz = 0. Raises ValueError for systems that
    `if_unfit` refuses.
    """
    equations = _equations(system, name, baumgarte)

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, u, _, h, _ = symbols
        return _moved(equations, table, q, rho, u, h)

    return DiscreteSystem(system, h, Method(name, 0, no_residual, readout))


def projected_index_one(
    system: System, h: float, table: Table = TABLES["rkmk4"], name: str = "rkmk4_projected"
) -> DiscreteSystem:
    """`index_one`, followed by projections of the configuration and then of the momentum. Both are
    orthogonal in the mass metric. The configuration is projected with two Newton steps,
    `q <- retract(q, d)` with `[M, Dh^T; Dh, 0] (d, mu) = (0, -h)`. The projected momentum belongs
    to the closest velocity that satisfies the constraints, `[M, Dh^T; Dh, 0] (v, nu) = (p, 0)`.

    A step violates the constraints by O(h^5). The first Newton step reduces the violation to its
    square, and the second step reduces it to its fourth power, which is round-off. The number of
    Newton steps is fixed, so nz = 0, and derivatives include the projection. Raises ValueError
    like `index_one`.
    """
    equations = _equations(system, name, (0.0, 0.0))
    n = system.nrho

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, u, _, h, gradients = symbols
        q1, p = _moved(equations, table, q, rho, u, h)
        for _ in range(PROJECTIONS):
            # [M, Dh^T; Dh, 0] (d, mu) = (0, -h)
            solve = factorized(system.mechanics.inertia(q1, p)[0])
            violation = ca.vertcat(ca.SX(n, 1), -system.holonomic(q1))
            q1 = system.space.retract(q1, solve(violation)[:n])
        # the closest velocity: [M, Dh^T; Dh, 0] (v, nu) = (p, 0)
        matrix, momentum, basis, _ = system.mechanics.inertia(q1, p)
        return q1, gradients(q1, basis @ factorized(matrix)(momentum))[1]

    return DiscreteSystem(system, h, Method(name, 0, no_residual, readout))


def _equations(system: System, name: str, baumgarte: tuple[float, float]) -> LieEquations:
    if reason := if_unfit(system):
        raise ValueError(f"{name}: {system.name} {reason}; use midpoint, or rkmk4")
    return LieEquations(system, baumgarte=baumgarte)


def _moved(
    equations: LieEquations, table: Table, q: ca.SX, rho: ca.SX, u: ca.SX, h: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """(q, p) after a step without projection."""
    parameters, n = equations.system.parameter_symbols, q.shape[0]
    state = ca.vertcat(q, rho)

    def field(x: ca.SX) -> ca.SX:
        return equations.field(x, u, parameters)

    end, _ = lie_step(table.main, equations.action, field, state, h)
    return end[:n], end[n:]


def _without_constraints(system: System) -> str:
    return "" if system.n_holonomic_constraints else "has no holonomic constraints"


def _on_spheres(system: System) -> str:
    return "" if system.space.nw == system.space.nv else "has unit vectors"


if_unfit = first_of(if_prescribed, refuses, if_constrained, _without_constraints, _on_spheres)
"""Refuses systems without holonomic constraints, and spaces that are not Lie groups."""

INTEGRATORS = tuple(
    Integrator(
        name=name,
        make=make,
        order=4,
        symmetric=False,
        explicit=True,
        preserves=preserves,
        refuses=if_unfit,
        source="mueller2013 (3), (36), (37)",
    )
    for name, make, preserves in (
        ("rkmk4_index_one", index_one, ("the manifold",)),
        (
            "rkmk4_baumgarte",
            partial(index_one, baumgarte=(RATE, RATE), name="rkmk4_baumgarte"),
            ("the manifold",),
        ),
        ("rkmk4_projected", projected_index_one, ("the manifold", "holonomic constraints")),
    )
)
