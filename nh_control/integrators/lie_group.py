"""Lie group methods (Runge-Kutta-Munthe-Kaas and commutator-free), defined by their tables."""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols, no_residual
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.homogeneous import HomogeneousSpace
from nh_control.integrators.lie_stages import (
    Field,
    commutator_free_stages,
    munthe_kaas_stages,
)
from nh_control.integrators.lie_tableaux import TABLES, CommutatorFree, MuntheKaas, Table
from nh_control.integrators.registry import Integrator, first_of, if_prescribed
from nh_control.mechanics.lie_equations import LieEquations, refuses
from nh_control.mechanics.system import System


def lie_step(
    table: Table, action: HomogeneousSpace, field: Field, x: ca.SX, h: ca.SX
) -> tuple[ca.SX, ca.SX | None]:
    """One step h of `x' = generator(x) field(x)` from x (nx). Returns the final state, and the
    final state of the embedded method (None if the table has no embedded method).
    """
    if isinstance(table, MuntheKaas):
        return _munthe_kaas(table, action, field, x, h)
    return _commutator_free(table, action, field, x, h)


def _munthe_kaas(
    table: MuntheKaas, action: HomogeneousSpace, field: Field, x: ca.SX, h: ca.SX
) -> tuple[ca.SX, ca.SX | None]:
    stages = munthe_kaas_stages(table, action, field, x, h, field(x))
    weights = [table.b, *([table.b_hat] if table.b_hat else [])]
    # x1 = tau(u) . x with the weights b, and with b_hat for the embedded method
    x1, *embedded = (action.normalize(action.act(stages.end(b), x)) for b in weights)
    return x1, embedded[0] if embedded else None


def _commutator_free(
    table: CommutatorFree, action: HomogeneousSpace, field: Field, x: ca.SX, h: ca.SX
) -> tuple[ca.SX, ca.SX | None]:
    # x1 = exp(h sum b_i f_i) ... . x, one factor per row of the table
    stages = commutator_free_stages(table, action, field, x, h, field(x))
    hat = None if table.embedded is None else action.normalize(stages.moved(table.embedded))
    return action.normalize(stages.moved(table.end)), hat


def lie_group(system: System, h: float, table: Table, coordinates: str = "exp") -> DiscreteSystem:
    """A Lie group method for the continuous equations in (q, rho) (see `LieEquations`). Groups act
    on poses and unit vectors, so quaternions and vectors keep their unit length exactly. Energy
    and momenta drift.

    The method is explicit, with nz = 0. Inputs are constant over a step. `coordinates` are those
    of the groups: "exp", and for Munthe-Kaas methods with dtau^{-1} also "cay" or "second". Raises
    ValueError for systems that `if_unfit` refuses, and for coordinates that reduce the order of
    the method.
    """
    if coordinates != "exp" and table.needs_exp:
        raise ValueError(
            f"{table.name}: needs the exponential, whose flows it composes, got coordinates "
            f"{coordinates!r}; use rkmk3, rkmk4 or rkmk5"
        )
    if reason := if_unfit(system):
        raise ValueError(f"{system.name} {reason}; use an integrator that takes it")
    equations, main = LieEquations(system, coordinates), table.main

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, u, _, h, _ = symbols

        def field(x: ca.SX) -> ca.SX:
            return equations.field(x, u, system.parameter_symbols)

        start = system.mechanics.state_of(q, rho)
        end, _ = lie_step(main, equations.action, field, start, h)
        return system.mechanics.components_of(end)

    name = NAMES.get(table.name, table.name)
    return DiscreteSystem(system, h, Method(name, 0, no_residual, readout))


if_unfit = first_of(if_prescribed, refuses)
"""Refuses systems without `LieEquations` and systems with prescribed coordinates, because the
inputs to a step are the next values of these coordinates, not their accelerations.
"""
NAMES = {"rkmk54": "rkmk5", "cf32": "cf3", "cf32_third_stage": "cf3_third_stage", "cf43": "cf4"}
"""Names of the pairs' main methods."""

INTEGRATORS = tuple(
    Integrator(
        name=NAMES.get(name, name),
        make=partial(lie_group, table=table),
        order=table.order,
        symmetric=False,
        explicit=True,
        preserves=("the manifold", "velocity constraints at the nodes"),
        refuses=if_unfit,
        source=table.source,
    )
    for name, table in TABLES.items()
)
