"""What a configuration and a velocity must be: finite numbers, on their manifold, that turn
nothing by more than half a turn in a step.
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
"""Distance from the manifold of numbers that were written with few digits, which are taken and put
onto it, and of those that are kept as they are.
"""


def configuration(owner: object, space: Space, q: ArrayLike) -> np.ndarray:
    """The configuration q (nq) on its manifold: quaternions and directions whose length is 1 to
    ROUNDED are normalized. Raises ValueError for any other shape, length or number.
    """
    q = numbers(owner, f"a configuration {space.names}", q, space.nq)
    if space.nq == space.nv:
        return q
    on = space.retract(q, np.zeros(space.nv))
    off = np.abs(on - q)
    if not off.max() <= ROUNDED:
        raise ValueError(
            f"{owner}: a configuration must lie on its manifold to {ROUNDED:g}, got {q.tolist()} "
            f"of {space.names}; divide quaternions and directions by their lengths"
        )
    return on if off.max() > EXACT else q


def numbers(owner: object, what: str, values: ArrayLike, size: int) -> np.ndarray:
    """The values (size) as an array, one number in its place; raises ValueError for another shape,
    or one not finite.
    """
    array = np.array(values, dtype=float)
    if size == 1 and array.ndim == 0:
        array = array[None]
    if array.shape != (size,) or not all_finite(array):
        raise ValueError(f"{owner}: {what} must be {size} finite numbers, got {array.tolist()}")
    return array


def require_short(owner: object, space: Space, v: np.ndarray, h: float) -> None:
    """Raise ValueError for a velocity (nw) that turns something by half a turn or more in a step
    h (s).
    """
    if told := too_fast(turn(space, v, h), h):
        raise ValueError(f"{owner}: {told}")


def turns(space: Space) -> bool:
    """Whether something in the space turns: a rotation, a pose or a direction."""
    return any(True for _ in _turning(space))


def turn(space: Space, v: np.ndarray, h: float) -> float:
    """The largest angle (rad) by which a velocity (nw) turns a rotation, a pose or a direction in
    a step h (s), 0 without any.
    """
    return max((h * math.hypot(*v[at : at + 3]) for _, _, at in _turning(space)), default=0.0)


def too_fast(angle: float, h: float) -> str:
    """A word about an angle (rad) in a step h (s) of half a turn or more, "" about a smaller
    one.
    """
    if angle < np.pi:
        return ""
    return (
        f"a velocity of {angle / h:.4g} rad/s turns by {angle:.3g} rad in one step, which can "
        f"tell less than half a turn only; choose h < {np.pi * h / angle:.2g} s"
    )


def on_manifold(space: Space, q: ca.SX) -> ca.SX:
    """One number for every rotation and direction of q (nq), positive where it is one, to twice
    ROUNDED.
    """
    lengths = (ca.sumsqr(q[at : at + n]) for at, n, _ in _turning(space))
    rows = [(2 * ROUNDED) ** 2 - (length - 1) ** 2 for length in lengths]
    return ca.vertcat(ca.SX(0, 1), *rows)


def _turning(space: Space) -> Iterator[tuple[int, int, int]]:
    """Where the n numbers of unit length of every rotation, pose and direction begin in a
    configuration, n, and where its rates of rotation begin in a velocity.
    """
    at = rate = 0
    for factor in space.factors if isinstance(space, Product) else (space,):
        if isinstance(factor, (SO3, SE3, S2)):
            yield at, 3 if isinstance(factor, S2) else 4, rate
        at, rate = at + factor.nq, rate + factor.nw
