"""Velocities of positions, and kinetic energies, without hand-written derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import casadi as ca

from nh_control.geometry.space import Space
from nh_control.numerics.expressions import Expression, Returned, as_expression

_SPACE: ContextVar[Space] = ContextVar("space")


@contextmanager
def evaluated_on(space: Space) -> Iterator[None]:
    """Within this context, `velocity` and `kinetic_energy` use the given space by default."""
    token = _SPACE.set(space)
    try:
        yield
    finally:
        _SPACE.reset(token)


def velocity(
    position: Returned | Callable[[ca.SX], Returned],
    q: ca.SX,
    v: ca.SX,
    space: Space | None = None,
) -> ca.SX:
    """The rate `d position(q) / dt` (n) of a position or angle at the configuration q (nq) with
    velocity v (nw).

    `position` is an expression (n) in the symbols q, or a function of q. Inside one of a
    `System`'s functions, pass that function's arguments q and v; the space is then the system's.
    Elsewhere, pass the `space`. On a Lie group, v is the velocity in the body frame. Raises
    ValueError without a space, for wrong sizes, and if `position` is an expression but q is not a
    symbol.
    """
    space = space or _SPACE.get(None)
    if space is None:
        raise ValueError(
            "velocity: outside of the functions of a System, pass the configuration space, "
            "space=nh.Rn(...)"
        )
    if (q.numel(), v.numel()) != (space.nq, space.nw):
        raise ValueError(
            f"velocity: {space} needs q with {space.nq} entries and v with {space.nw}, got "
            f"{q.numel()} and {v.numel()}: pass the whole q and v of the function"
        )
    # fresh symbols, because q and v may be expressions
    q_, v_, e = ca.SX.sym("q", space.nq), ca.SX.sym("v", space.nw), ca.SX.sym("e", space.nw)
    if callable(position):
        at = as_expression(position(q_))
    elif q.is_valid_input():
        at = ca.substitute(as_expression(position), q, q_)
    else:
        raise ValueError(
            "velocity: q is not a vector of symbols; pass the position as a function of q"
        )
    # q' = d along(q, e)/de v, then d position/dq q'
    rate = ca.substitute(ca.jtimes(space.along(q_, e), e, v_), e, ca.SX.zeros(space.nw))
    moves = ca.jtimes(ca.vec(at), q_, rate)
    return ca.substitute(moves, ca.vertcat(q_, v_), ca.vertcat(q, v))


def kinetic_energy(
    mass: Expression,
    position: Returned | Callable[[ca.SX], Returned],
    q: ca.SX,
    v: ca.SX,
    inertia: Expression = 0.0,
    angle: Returned | Callable[[ca.SX], Returned] = 0.0,
    space: Space | None = None,
) -> ca.SX:
    """The kinetic energy `m |d position / dt|^2 / 2 + inertia (d angle / dt)^2 / 2` (J) of a body
    with the given mass (kg) and center of mass `position` (m). For rotations in a plane, pass the
    moment of inertia (kg m^2) about this point and the angle (rad). See `velocity`.
    """
    moving, turning = velocity(position, q, v, space), velocity(angle, q, v, space)
    return (mass * ca.sumsqr(moving) + inertia * ca.sumsqr(turning)) / 2
