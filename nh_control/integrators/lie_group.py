"""Lie group methods: Runge-Kutta-Munthe-Kaas and commutator-free ones, by their tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import casadi as ca

from nh_control.discrete.method import Gradients, Method, no_residual
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.homogeneous import HomogeneousSpace
from nh_control.integrators.lie_tableaux import (
    TABLES,
    CommutatorFree,
    Exponentials,
    MuntheKaas,
    Table,
)
from nh_control.integrators.registry import Integrator
from nh_control.integrators.stages import weighted
from nh_control.mechanics.lie_equations import LieEquations, refuses
from nh_control.mechanics.system import System

Field = Callable[[ca.SX], ca.SX]


def lie_step(
    table: Table, action: HomogeneousSpace, field: Field, x: ca.SX, h: ca.SX
) -> tuple[ca.SX, ca.SX | None]:
    """One step h of `x' = generator(x) field(x)` from x (nx): its end and that of the embedded
    method, None where the table has none.
    """
    if isinstance(table, MuntheKaas):
        return _munthe_kaas(table, action, field, x, h)
    return _commutator_free(table, action, field, x, h)


def _munthe_kaas(
    table: MuntheKaas, action: HomogeneousSpace, field: Field, x: ca.SX, h: ca.SX
) -> tuple[ca.SX, ca.SX | None]:
    """`k_i = dtau^{-1}_{u_i}(h f(tau(u_i) . x)),  u_i = sum_j a_ij k_j`, at the end
    `tau(sum b_i k_i) . x` [celledoni2021 (6)]; with brackets in the place of dtau^{-1}.
    """
    slopes: list[ca.SX] = []

    def moved(weights: Sequence[float], stage: int) -> ca.SX:
        u = weighted(weights, slopes)
        for c, i, j in table.brackets[stage] if table.brackets else ():
            u += c * action.bracket(slopes[i], slopes[j])
        return u

    for i, row in enumerate(table.a):
        if not i:
            slopes.append(h * field(x))
            continue
        u = moved(row, i)
        slope = h * field(action.act(u, x))
        slopes.append(slope if table.brackets else action.dtau_inverse(u, slope))
    ends = [moved(table.b, len(slopes))]
    if table.b_hat:
        ends.append(moved(table.b_hat, len(slopes)))
    x1, *embedded = (action.settle(action.act(u, x)) for u in ends)
    return x1, embedded[0] if embedded else None


def _commutator_free(
    table: CommutatorFree, action: HomogeneousSpace, field: Field, x: ca.SX, h: ca.SX
) -> tuple[ca.SX, ca.SX | None]:
    """`x_i = tau(h sum_k w_k f_k) ... . x_base,  f_i = f(x_i)` [celledoni2021 2.2]."""
    points, slopes = [x], [h * field(x)]

    def moved(way: Exponentials) -> ca.SX:
        point = points[way.base]
        for row in way.rows:
            point = action.act(weighted(row, slopes), point)
        return point

    for way in table.stages:
        points.append(moved(way))
        slopes.append(h * field(points[-1]))
    hat = None if table.embedded is None else action.settle(moved(table.embedded))
    return action.settle(moved(table.end)), hat


def lie_group(system: System, h: float, table: Table, coordinates: str = "exp") -> DiscreteSystem:
    """A Lie group method on the continuous equations in (q, rho), see `LieEquations`: poses and
    unit vectors move by their groups, so they stay what they are; energy and momenta drift.

    Nothing is solved, n_z = 0. Inputs are held over a step. `coordinates` are those of the groups,
    "exp", or for Munthe-Kaas methods with dtau^{-1} "cay" or "second", too. Raises ValueError for
    systems that `refuses` names a reason for, and for coordinates that cost the method its order.
    """
    if coordinates != "exp" and table.needs_exp:
        raise ValueError(
            f"{table.name}: needs the exponential, whose flows it composes, got coordinates "
            f"{coordinates!r}; use rkmk3, rkmk4 or rkmk5"
        )
    equations, main = LieEquations(system, coordinates), table.main

    def readout(
        q: ca.SX, rho: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[ca.SX, ca.SX]:
        p = system.parameter_symbols
        end, _ = lie_step(
            main, equations.action, lambda x: equations.field(x, u, p), ca.vertcat(q, rho), h
        )
        return end[: system.space.nq], end[system.space.nq :]

    name = NAMES.get(table.name, table.name)
    return DiscreteSystem(system, h, Method(name, 0, no_residual, readout))


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
        refuses=refuses,
        source=table.source,
    )
    for name, table in TABLES.items()
)
