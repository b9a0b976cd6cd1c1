"""Descriptions of a model's constraint rows, for messages."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from nh_control.multibody.constraints import Coincident, Constraint
from nh_control.multibody.parts import MultibodyParts


def named_rows(model: MultibodyParts, heights_of: Sequence[int], rows: Sequence[int]) -> str:
    """See `LagrangianSystem.named_rows`. `heights_of` contains the numbers of the wheels that have
    a height constraint.
    """
    k = model.kinematics(ca.SX(model.space.origin), ca.SX(model.space.nw, 1))
    texts, first = list[str](), 0
    for constraint in model.constraints:
        n = constraint.residual(k).shape[0]
        # number the rows of this constraint from its first row
        if own_rows := [row - first for row in rows if first <= row < first + n]:
            texts.append(_rows_of(constraint, own_rows))
        first += n
    for i, wheel in enumerate(model.wheels[j] for j in heights_of):
        if first + i in rows:
            texts.append(f"the height of {wheel}")
    return f"rows {' and '.join(texts)}"


def named_velocity_rows(model: MultibodyParts, rows: Sequence[int]) -> str:
    """See `LagrangianSystem.named_velocity_rows`."""
    k = model.kinematics(ca.SX(model.space.origin), ca.SX(model.space.nw, 1))
    counts = [wheel.directions(k, wheel.touch(k)).shape[0] for wheel in model.wheels]
    # wheels with friction have no rows in the velocity constraint
    rolling = (pair for pair in zip(model.wheels, counts) if pair[0].friction is None)
    owners = [str(wheel) for wheel, count in rolling for _ in range(count)]
    return f"rows of {' and '.join(dict.fromkeys(owners[row] for row in rows))}"


def _rows_of(constraint: Constraint, rows: Sequence[int]) -> str:
    kind = f"{type(constraint).__name__} {constraint.name!r}"
    if isinstance(constraint, Coincident):
        return f"{[constraint.along[row] for row in rows]} of {kind}"
    return f"{list(rows)} (counted from 0) of {kind}"
