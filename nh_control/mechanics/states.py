"""Checks for configurations and velocities: values must be finite and on their manifold, and no
step may rotate anything by half a turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.space import rotation_hint
from nh_control.geometry.spaces import Product, Space
from nh_control.numerics.expressions import all_finite

ROUNDED, EXACT = 1e-3, 1e-12
"""Distances from the manifold. Values closer than ROUNDED, for example written with few digits,
are projected. Values closer than EXACT are not changed.
"""
FAR = 0.5
"""Rotation (rad) between two nodes that a velocity of half a turn in a step exceeds. Half a turn
leaves a wide margin for forces that change the velocity within the step.
"""


def configuration(owner: object, space: Space, q: ArrayLike) -> np.ndarray:
    """The configuration q (nq), or a table of configurations (N, nq), on the manifold. Quaternions
    and directions are normalized if their length is 1 within ROUNDED. Raises ValueError for other
    lengths, for a wrong shape and for numbers that are not finite.
    """
    q = rows(owner, f"a configuration {space.names}", q, space.nq, space.names)
    if space.nq == space.nv:
        return q
    # the retraction normalizes
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


def numbers(
    owner: object, what: str, values: ArrayLike, size: int, names: Sequence[str] = ()
) -> np.ndarray:
    """The values as an array (size). For a configuration, `names` contains the names of its
    entries. Raises ValueError for a wrong shape and for numbers that are not finite. A scalar is
    accepted if the size is 1.
    """
    array = np.array(values, dtype=float)
    if size == 1 and array.ndim == 0:
        array = array[None]
    if array.shape != (size,) or not all_finite(array):
        raise ValueError(
            f"{owner}: {what} must be {size} finite numbers, got {array.tolist()}"
            f"{rotation_hint(names, array.size)}"
        )
    return array


def rows(
    owner: object, what: str, values: ArrayLike, size: int, names: Sequence[str] = ()
) -> np.ndarray:
    """The values as an array (size), or (N, size) for a table. Raises ValueError as `numbers`
    does, for the first invalid row of a table.
    """
    if np.ndim(values) != 2:
        return numbers(owner, what, values, size, names)
    table = np.array(values, dtype=float)
    if table.shape[1] != size or not np.isfinite(table).all():
        for row in table:
            numbers(owner, what, row, size, names)
    return table


def require_short(owner: object, space: Space, v: np.ndarray, h: float) -> None:
    """Raise ValueError if a velocity (nw), or one in a table (N, nw), rotates a body or a
    direction by half a turn or more in a step h (s).
    """
    if problem := rotation_problem(
        np.max(rotation_angles(space, np.atleast_2d(v), h), initial=0.0), h
    ):
        raise ValueError(f"{owner}: {problem}")


def has_rotations(space: Space) -> bool:
    """Whether the space contains a rotation, a pose or a direction."""
    return any(True for _ in _rotations(space))


def rotation_angles(space: Space, table: np.ndarray, h: float) -> np.ndarray:
    """The largest angle (N, rad) by which each velocity of a table (N, nw) rotates a body or a
    direction in a step h (s); 0 without rotations.
    """
    angles = [
        h * np.hypot.reduce(table[:, first : first + 3], axis=1)
        for _, _, first in _rotations(space)
    ]
    return np.max([np.zeros(len(table)), *angles], axis=0)


def turned_far(space: Space, q: np.ndarray) -> np.ndarray:
    """Whether each row of a table of configurations (N + 1, nq) differs from the next one by more
    than FAR in a rotation or a direction (N).
    """
    products, least = q[:-1] * q[1:], []
    for first, n, _ in _rotations(space):
        cosines = sum(products[:, i] for i in range(first, first + n))
        # q0 . q1 is cos(angle / 2) for quaternions, up to the sign, and cos(angle) for directions
        least.append(cosines - np.cos(FAR) if n == 3 else np.abs(cosines) - np.cos(FAR / 2))
    return np.min(least, axis=0, initial=0.0) < 0.0


def rotation_problem(angle: float, h: float) -> str:
    """An error message if an angle (rad) in a step h (s) is half a turn or more; otherwise ""."""
    if angle < np.pi:
        return ""
    return (
        f"a velocity of {angle / h:.4g} rad/s rotates by {angle:.3g} rad in one step, but a step "
        f"can only represent less than half a turn; choose h < {np.pi * h / angle:.2g} s"
    )


def on_manifold(space: Space, q: ca.SX) -> ca.SX:
    """A number for every rotation and direction in q (nq). It is positive if the length is 1
    within about ROUNDED.
    """
    # | |x|^2 - 1 | < 2 ROUNDED, squared to be smooth
    lengths = (ca.sumsqr(q[first : first + n]) for first, n, _ in _rotations(space))
    rows = [(2 * ROUNDED) ** 2 - (length - 1) ** 2 for length in lengths]
    return ca.vertcat(ca.SX(0, 1), *rows)


def coordinate_sizes(space: Space, q: ca.SX) -> ca.SX:
    """The sizes of the entries of q (nq): 1 for rotations and directions, else `|q_i|`."""
    sizes = ca.fabs(q)
    for first, n, _ in _rotations(space):
        sizes[first : first + n] = 1.0
    return sizes


def below_half_a_turn(space: Space, v: ca.SX, h: ca.SX) -> ca.SX:
    """The number `pi^2 - h^2 |omega|^2` for every rotation, pose and direction. It is positive if
    the velocity v (nw) rotates the corresponding body or direction by less than half a turn in a
    step h (s).
    """
    rates = (v[first : first + 3] for _, _, first in _rotations(space))
    return ca.vertcat(ca.SX(0, 1), *(math.pi**2 - h**2 * ca.sumsqr(w) for w in rates))


def _rotations(space: Space) -> Iterator[tuple[int, int, int]]:
    """For every rotation, pose and direction: the index of its quaternion or unit vector in a
    configuration, the size of that vector, and the index of its angular velocity in a velocity.
    """
    first = rate = 0
    for factor in space.factors if isinstance(space, Product) else (space,):
        if isinstance(factor, (SO3, SE3, S2)):
            yield first, 3 if isinstance(factor, S2) else 4, rate
        first, rate = first + factor.nq, rate + factor.nw
