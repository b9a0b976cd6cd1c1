"""Checks for first-order coordinates: their position, units and rates, and the absence of
inertia.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.lagrangian_system import LagrangianSystem

ROUND_OFF = 1e-12
"""Entries of a matrix count as zero below this size, relative to the largest entry."""


def check_names(system: LagrangianSystem) -> None:
    """Raise ValueError if first-order coordinates have no rate or unit, or are not the last
    coordinates of a space Rn, before the prescribed ones.
    """
    names, rate = system.first_order, system.first_order_rate
    if bool(names) != (rate is not None):
        raise ValueError(
            f"{system.name}: first_order contains names of coordinates and "
            "first_order_rate(q, v, u) returns their rates, each needs the other; got first_order "
            f"{names} {'without a rate' if names else 'with a rate'}"
        )
    if system.first_order_units and len(system.first_order_units) != len(names):
        raise ValueError(
            f"{system.name}: {len(names)} first-order coordinates but "
            f"{len(system.first_order_units)} first_order_units"
        )
    last = system.space.factors[-1] if isinstance(system.space, Product) else system.space
    last_names = (*names, *system.prescribed)
    if names and not (isinstance(last, Rn) and last.names[-len(last_names) :] == last_names):
        raise ValueError(
            f"{system.name}: first-order coordinates {names} must be the last ones of a space Rn, "
            f"before prescribed ones: Product(..., Rn({', '.join(map(repr, last_names))})), got "
            f"{system.space.names}"
        )


def check_equations(system: LagrangianSystem) -> None:
    """Raise ValueError if the system's functions depend on the rates of first-order coordinates,
    which only a step computes, or if they constrain these coordinates.
    """
    if not system.first_order:
        return
    q, v, u = system.symbols
    coordinates, rates = system.first_order_part(q), system.first_order_part(v)
    # no inertia, no constraint, and no algebraic loop between rates
    unfit = {
        "lagrangian": (system.lagrangian_at(q, v), rates, "the rates"),
        "first_order_rate": (system.rate_at(q, v, u), rates, "the rates"),
        "holonomic_constraint": (system.holonomic(q), coordinates, "the values"),
    }
    for function, (expression, symbols, what) in unfit.items():
        if ca.depends_on(expression, symbols):
            raise ValueError(
                f"{system.name}: {function} depends on {what} of the first-order coordinates "
                f"{system.first_order}, which have no inertia and move only by "
                "first_order_rate(q, v, u); omit them there"
            )
    _require_no_part(system, "velocity_constraint", system.constraint_matrix(q).T)
    if system.distribution is not None:
        _require_no_part(system, "distribution", system.declared_basis(q))


def _require_no_part(system: LagrangianSystem, function: str, rows: ca.SX) -> None:
    """Raise ValueError unless the matrix, with a row for every velocity, is zero for first-order
    coordinates.
    """
    # rows of the first-order coordinates
    end = system.space.nw - len(system.prescribed)
    for d in np.random.default_rng(0).normal(size=(3, system.space.nv)):
        nearby = system.space.retract(system.nominal_configuration, d)
        values = np.abs(system.value(ca.densify(rows), nearby))
        entries = values[end - len(system.first_order) : end]
        if not entries.max(initial=0.0) <= ROUND_OFF * values.max(initial=1.0):
            raise ValueError(
                f"{system.name}: {function} must be zero for the velocities of the first-order "
                f"coordinates {system.first_order}, got {entries.tolist()} at q = "
                f"{nearby.tolist()}"
            )
