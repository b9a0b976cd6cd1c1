"""Rows of a model's constraints that depend on others: their names, and how to leave them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import casadi as ca
import numpy as np

from nh_control.mechanics.elimination import dependent_rows
from nh_control.mechanics.independence import CLOSE, without_round_off
from nh_control.multibody.constraints import Coincident, Constraint, PointOnPlane
from nh_control.multibody.joints import JOINT_KINDS, JointConstraint
from nh_control.multibody.kinematics import Kinematics
from nh_control.multibody.parts import MultibodyParts

ALTERNATIVES = 3
"""Number of configurations at which other constraints are compared."""


def named_rows(
    model: MultibodyParts, rows: Sequence[int], configurations: Sequence[np.ndarray]
) -> tuple[str, str]:
    """See `LagrangianSystem.named_constraint_rows`."""
    places = [_Place(model, q) for q in configurations[:ALTERNATIVES]]
    texts, remedies = list[str](), list[str]()
    before, first = list[Constraint](), 0
    for constraint in model.constraints:
        n = len(places[0].slopes([constraint]))
        if own := [row - first for row in rows if first <= row < first + n]:
            texts.append(_rows_of(constraint, own))
            remedies.append(_remedy(constraint, n - len(own), before, places))
        before.append(constraint)
        first += n
    return f"rows {' and '.join(texts)}", "; ".join(remedies)


class _Place:
    """The kinematics of a model near a configuration q."""

    def __init__(self, model: MultibodyParts, q: np.ndarray):
        self._e = ca.SX.sym("e", model.space.nv)
        moved = model.space.retract(ca.SX(q), self._e)
        self._kinematics: Kinematics = model.kinematics(moved, ca.SX(model.space.nw, 1))
        self._moving = model.space.nv - len(model.prescribed)

    def slopes(self, constraints: Sequence[Constraint]) -> np.ndarray:
        """Derivatives (rows, n) of constraints by the local coordinates that move."""
        h = ca.vertcat(ca.SX(0, 1), *(c.residual(self._kinematics) for c in constraints))
        slopes = ca.Function("slopes", [self._e], [ca.densify(ca.jacobian(h, self._e))])
        return without_round_off(np.asarray(slopes(0)))[:, : self._moving]


def _rows_of(constraint: Constraint, rows: Sequence[int]) -> str:
    kind = f"{type(constraint).__name__} {constraint.name!r}"
    if isinstance(constraint, Coincident):
        return f"{[constraint.along[row] for row in rows]} of {kind}"
    return f"{list(rows)} (counted from 0) of {kind}"


def _remedy(
    constraint: Constraint, rank: int, before: Sequence[Constraint], places: Sequence[_Place]
) -> str:
    """Constraints of `rank` rows that hold the same motions as this one, as a user writes them."""
    if not rank:
        return f"drop {constraint.name!r}"
    for others, text in _alternatives(constraint, rank, places):
        if all(_replaces([*before, *others], [*before, constraint], place) for place in places):
            return f"declare {text} in place of {constraint.name!r}"
    return f"declare constraints with {rank} rows in place of {constraint.name!r}"


def _replaces(
    others: Sequence[Constraint], redundant: Sequence[Constraint], place: _Place
) -> bool:
    """Whether the rows of others are independent and hold the same motions as redundant ones."""
    rows, all_rows = place.slopes(others), place.slopes([*others, *redundant])
    return dependent_rows(all_rows, CLOSE) == [*range(len(rows), len(all_rows))]


def _alternatives(
    constraint: Constraint, rank: int, places: Sequence[_Place]
) -> Iterator[tuple[list[Constraint], str]]:
    """Constraints of `rank` rows between the points of a constraint, and their text: along axes of
    the world if the points never part along the others, another joint, or planes that turn.
    """
    if not isinstance(constraint, (Coincident, JointConstraint)):
        return
    name, a, b = constraint.name, constraint.a, constraint.b
    for axes in map("".join, combinations("xyz", rank)):
        left_out = [Coincident(name, a, b, axis) for axis in "xyz" if axis not in axes]
        if not any(place.slopes(left_out).any() for place in places):
            yield [Coincident(name, a, b, axes)], f"Coincident({name!r}, a, b, along={axes!r})"
    if isinstance(constraint, JointConstraint):
        for kind, (positions, directions) in JOINT_KINDS.items():
            if len(positions) + len(directions) == rank and kind != "helical":
                joint = replace(constraint, kind=kind, pitch=0.0)
                yield [joint], f"JointConstraint({name!r}, {kind!r}, ...)"
    for axes in map("".join, combinations("xyz", rank)):
        planes = [PointOnPlane(f"{name}_{axis}", a, b, axis) for axis in axes]
        text = (f"PointOnPlane('{name}_{axis}', a, b, normal={axis!r})" for axis in axes)
        yield list(planes), " and ".join(text)
