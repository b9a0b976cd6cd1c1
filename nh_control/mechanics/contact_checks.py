"""Checks for the contacts and grips that a system declares."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.numerics.expressions import Returned


def check_contacts(system: LagrangianSystem) -> None:
    """Raise ValueError for contacts and grips that do not fit the system: repeated names, gaps
    that are not scalar, a number of tangents other than one or two, rows that do not exist, and a
    smoothing that is not positive.
    """
    if not system.has_contacts:
        return
    check_smoothing(system)
    names = [contact.name for contact in system.contacts]
    names += [grip.name for grip in system.grips if grip.name]
    if len(set(names)) < len(names):
        raise ValueError(f"{system.name}: names of contacts must differ, got {names}")
    _check_shapes(system)
    _check_grips(system)


def check_smoothing(system: LagrangianSystem) -> None:
    """Raise ValueError for a smoothing that is not positive and finite."""
    smoothing = system.smoothing
    if not (isinstance(smoothing, Real) and 0 < smoothing < math.inf):
        raise ValueError(
            f"{system.name}: smoothing, the height (J) of the contacts' barrier, must be positive "
            f"and finite, got {smoothing}; 1e-8 is a usual value"
        )


def _check_shapes(system: LagrangianSystem) -> None:
    q, nw = system.symbols[0], system.space.nw
    for contact in system.contacts:
        where = f"{system.name}: contact {contact.name!r}"
        shape = system.value_at(contact.gap, q).shape
        if shape != (1, 1):
            raise ValueError(f"{where}: gap(q) must be one number, got shape {shape}")
        if not contact.has_friction:
            _check_place(system, where, contact.place, 1)
            continue
        # tangents from a material point, or from a sliding velocity
        if contact.point is not None:
            shape, expected = (
                system.value_at(contact.point, q).shape,
                "point(q) must have shape (k, 1)",
            )
            fits = shape[1] == 1
        elif contact.slip is not None:
            shape = system.value_at(contact.slip, q).shape
            expected, fits = f"slip(q) must have shape (k, {nw})", shape[1] == nw
        if not (fits and 1 <= shape[0] <= 2):
            raise ValueError(f"{where}: {expected} with k = 1 or 2 tangents, got {shape}")
        _check_place(system, where, contact.place, 1 + shape[0])


def _check_place(
    system: LagrangianSystem, where: str, place: Callable[..., Returned] | None, rows: int
) -> None:
    if place is None:
        return
    shape = system.value_at(place, system.symbols[0]).shape
    # columns: position, normal, tangents
    if shape[0] != 3 or shape[1] < 1 + rows:
        raise ValueError(
            f"{where}: place(q) must have shape (3, {1 + rows}), the position and the unit "
            f"vectors of {rows} impulses, got {shape}"
        )


def _check_grips(system: LagrangianSystem) -> None:
    count = system.constraint_rows(system.symbols[0]).shape[0]
    rows = [row for grip in system.grips for row in grip.rows]
    if any(row >= count for row in rows):
        raise ValueError(
            f"{system.name}: grips refer to rows {rows} (counted from 0) of velocity_constraint, "
            f"which has {count} rows"
        )
    if len(set(rows)) < len(rows):
        raise ValueError(f"{system.name}: two grips refer to the same row, got {rows}")
    for grip in system.grips:
        where = f"{system.name}: grip of rows {grip.rows}"
        _check_place(system, where, grip.place, len(grip.rows))
