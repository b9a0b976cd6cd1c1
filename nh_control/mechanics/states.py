"""Checks of configurations and velocities: finite numbers, on their manifold, with less than half
a turn in a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import Product, Space
from nh_control.numerics.expressions import all_finite

ROUNDED, EXACT = 1e-3, 1e-12
"""Distances from the manifold: numbers within the first (written with few digits) are accepted and
projected, numbers within the second are kept.
"""


def configuration(owner: object, space: Space, q: ArrayLike) -> np.ndarray:
    """The configuration q (nq), or all of a table (N, nq), on its manifold: quaternions and
    directions whose length is 1 to ROUNDED are normalized. Raises ValueError for any other shape,
    length or number.
    """
    q = rows(owner, f"a configuration {space.names}", q, space.nq)
    if space.nq == space.nv:
        return q
    on = space.retract(q, np.zeros(space.nv))
    off = np.abs(on - q).max(axis=-1, keepdims=True)
    if not (off <= ROUNDED).all():
        worst = q.reshape(-1, space.nq)[np.argmax(off)]
        raise ValueError(
            f"{owner}: a configuration must lie on its manifold to {ROUNDED:g}, got "
            f"{worst.tolist()} of {space.names}; divide quaternions and directions by their "
            f"lengths"
        )
    return np.where(off > EXACT, on, q)


def numbers(owner: object, what: str, values: ArrayLike, size: int) -> np.ndarray:
    """The values as an array (size); raises ValueError for another shape and for numbers that are
    not finite. A single number is accepted for size 1.
    """
    array = np.array(values, dtype=float)
    if size == 1 and array.ndim == 0:
        array = array[None]
    if array.shape != (size,) or not all_finite(array):
        raise ValueError(f"{owner}: {what} must be {size} finite numbers, got {array.tolist()}")
    return array


def rows(owner: object, what: str, values: ArrayLike, size: int) -> np.ndarray:
    """The values as an array (size), or (N, size) for a table. Raises ValueError as `numbers`
    does, with the first wrong row of a table.
    """
    if np.ndim(values) != 2:
        return numbers(owner, what, values, size)
    table = np.array(values, dtype=float)
    if table.shape[1] != size or not np.isfinite(table).all():
        for row in table:
            numbers(owner, what, row, size)
    return table


def require_short(owner: object, space: Space, v: np.ndarray, h: float) -> None:
    """Raise ValueError for a velocity (nw), or one of a table (N, nw), that rotates something by
    half a turn or more in a step h (s).
    """
    if problem := rotation_problem(
        np.max(rotation_angles(space, np.atleast_2d(v), h), initial=0.0), h
    ):
        raise ValueError(f"{owner}: {problem}")


def has_rotations(space: Space) -> bool:
    """Whether something in the space rotates: a rotation, a pose or a direction."""
    return any(True for _ in _rotations(space))


def rotation_angle(space: Space, v: np.ndarray, h: float) -> float:
    """The largest angle (rad) by which a velocity (nw) rotates a body or a direction in a step
    h (s), 0 without any.
    """
    return max(
        (h * math.hypot(*v[first : first + 3]) for _, _, first in _rotations(space)), default=0.0
    )


def rotation_angles(space: Space, table: np.ndarray, h: float) -> np.ndarray:
    """The angles (N) of `rotation_angle` for all velocities of a table (N, nw)."""
    angles = [
        h * np.hypot.reduce(table[:, first : first + 3], axis=1)
        for _, _, first in _rotations(space)
    ]
    return np.max([np.zeros(len(table)), *angles], axis=0)


def rotation_problem(angle: float, h: float) -> str:
    """An error message for an angle (rad) of half a turn or more in a step h (s), "" for a
    smaller one.
    """
    if angle < np.pi:
        return ""
    return (
        f"a velocity of {angle / h:.4g} rad/s turns by {angle:.3g} rad in one step, but "
        f"a step distinguishes less than half a turn; choose h < {np.pi * h / angle:.2g} s"
    )


def on_manifold(space: Space, q: ca.SX) -> ca.SX:
    """A number for every rotation and direction of q (nq), positive if its length is 1 within
    twice ROUNDED.
    """
    lengths = (ca.sumsqr(q[first : first + n]) for first, n, _ in _rotations(space))
    rows = [(2 * ROUNDED) ** 2 - (length - 1) ** 2 for length in lengths]
    return ca.vertcat(ca.SX(0, 1), *rows)


def own_sizes(space: Space, q: ca.SX) -> ca.SX:
    """Sizes of the numbers of q (nq): 1 for rotations and directions, else `|q_i|`."""
    sizes = ca.fabs(q)
    for first, n, _ in _rotations(space):
        sizes[first : first + n] = 1.0
    return sizes


def below_half_a_turn(space: Space, v: ca.SX, h: ca.SX) -> ca.SX:
    """One number for every rotation, pose and direction, positive where a velocity (nw) rotates it
    by less than half a turn in a step h (s): `pi^2 - h^2 |omega|^2`.
    """
    rates = (v[first : first + 3] for _, _, first in _rotations(space))
    return ca.vertcat(ca.SX(0, 1), *(math.pi**2 - h**2 * ca.sumsqr(w) for w in rates))


def _rotations(space: Space) -> Iterator[tuple[int, int, int]]:
    """For every rotation, pose and direction: the index in a configuration of its first number of
    unit length, how many there are, and the index in a velocity of its first rate of rotation.
    """
    first = rate = 0
    for factor in space.factors if isinstance(space, Product) else (space,):
        if isinstance(factor, (SO3, SE3, S2)):
            yield first, 3 if isinstance(factor, S2) else 4, rate
        first, rate = first + factor.nq, rate + factor.nw
