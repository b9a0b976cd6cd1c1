"""Functions that split and join products of spaces and change the retractions of factors."""

from __future__ import annotations

from nh_control.geometry.homogeneous import simple_factors
from nh_control.geometry.rotations import SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn, Space


def split_space(space: Space, count: int) -> tuple[Space, Space]:
    """The space of the first `count` coordinates and the space of the others. Raises ValueError if
    `count` is out of range, or if the split is inside a factor that is not an Rn.
    """
    if not 0 <= count <= space.nq:
        raise ValueError(f"must be from 0 to {space.nq}, got {count}")
    before, after = list[Space](), list[Space]()
    for factor, stored, _ in simple_factors(space):
        # number of this factor's coordinates before the split
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
            raise ValueError(f"{count} splits the coordinates of {factor}")
    return join_spaces(*before), join_spaces(*after)


def join_spaces(*factors: Space) -> Space:
    """The product of all spaces that are not empty: `Rn()` if there is none, and the space itself
    if there is only one.
    """
    nonempty = [factor for factor in factors if factor.nq]
    if len(nonempty) > 1:
        return Product(*nonempty)
    return nonempty[0] if nonempty else Rn()


def with_retraction(space: Space, retraction: str) -> Space:
    """The same space with a different retraction for the factors SE2, SO3 and SE3; Rn has only one
    retraction. Raises ValueError for a factor without this retraction.
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
