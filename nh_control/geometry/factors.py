"""Products of spaces: their parts before and after a coordinate, and retractions of their
factors.
"""

from __future__ import annotations

from nh_control.geometry.homogeneous import simple_factors
from nh_control.geometry.rotations import SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn, Space


def split_space(space: Space, count: int) -> tuple[Space, Space]:
    """The space of the first `count` coordinates and that of the others. Raises ValueError for a
    count below zero or beyond the coordinates, and where it parts a factor that is no Rn.
    """
    if not 0 <= count <= space.nq:
        raise ValueError(f"must be from 0 to {space.nq}, got {count}")
    before, after = list[Space](), list[Space]()
    for factor, stored, _ in simple_factors(space):
        inside = count - stored.start
        if inside >= factor.nq:
            before.append(factor)
        elif inside <= 0:
            after.append(factor)
        elif isinstance(factor, Rn):
            names, velocity_names = factor.names, factor.velocity_names
            before.append(Rn(*names[:inside], velocity_names=velocity_names[:inside]))
            after.append(Rn(*names[inside:], velocity_names=velocity_names[inside:]))
        else:
            raise ValueError(f"{count} parts the coordinates of {factor}")
    return join_spaces(*before), join_spaces(*after)


def join_spaces(*factors: Space) -> Space:
    """The product of spaces, without those of no coordinates: a single one itself, `Rn()` for
    none.
    """
    kept = [factor for factor in factors if factor.nq]
    if len(kept) > 1:
        return Product(*kept)
    return kept[0] if kept else Rn()


def with_retraction(space: Space, retraction: str) -> Space:
    """The same space with factors SE2, SO3 and SE3 of another retraction; an Rn has but one.
    Raises ValueError for a factor without this retraction.
    """
    factors = (_with_retraction(factor, retraction) for factor, *_ in simple_factors(space))
    return join_spaces(*factors)


def _with_retraction(factor: Space, retraction: str) -> Space:
    if isinstance(factor, Rn):
        return factor
    if isinstance(factor, SE2):
        return SE2(factor.names, factor.velocity_names, retraction)
    if isinstance(factor, SO3 | SE3):
        return type(factor)(factor.names[0].removesuffix("qw"), retraction)
    raise ValueError(f"{factor} has no other retraction")
