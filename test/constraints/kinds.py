"""One machine with every combination of what a system may have, and its momenta by hand."""

from __future__ import annotations

from itertools import product

import casadi as ca
import numpy as np
from numpy import cos, sin

import nh_control as nh
from nh_control.geometry.rotations import S2
from nh_control.geometry.spaces import Product

PARTS = ("skate", "gear", "motor", "clock", "bob")
KINDS = [
    tuple(part for part, there in zip(PARTS, choice) if there)
    for choice in product((False, True), repeat=len(PARTS))
]
MASSES = np.array([1.2, 1.2, 0.8, 0.3])
"""Of x, y, the heading a and the angle b of a wheel."""


def machine(kind: tuple[str, ...]) -> nh.System:
    """A body (x, y, a) with a wheel b, pushed along its heading and turned. A "skate" is a
    velocity constraint, a "gear" b = 2 a + x / 2 a holonomic one, which a "clock" (a prescribed
    coordinate) drives; a "motor" lags behind the push (first order); a "bob" is a direction.
    """
    tail = [name for part, name in (("motor", "lag"), ("clock", "t")) if part in kind]
    flat = nh.Rn("x", "y", "a", "b", *tail)
    first = 3 if "bob" in kind else 0  # numbers of the direction and of its velocity
    lag = first + 4

    def heading(q):
        return ca.cos(q[first + 2]), ca.sin(q[first + 2])

    def lagrangian(q, v):
        kinetic = ca.dot(MASSES, v[first : first + 4] ** 2) / 2
        bob = (ca.sumsqr(v[:3]) / 2 - 3 * q[2]) if "bob" in kind else 0
        return kinetic + bob - q[first + 3] ** 2 / 2

    def force(q, v, u):
        c, s = heading(q)
        push = q[lag] if "motor" in kind else u[0]
        return ca.vertcat(ca.SX(first, 1), c * push, s * push, u[1], 0, ca.SX(len(tail), 1))

    def skate(q):
        c, s = heading(q)
        return ca.horzcat(ca.SX(1, first), -s, c, 0, 0, ca.SX(1, len(tail)))

    def gear(q):
        driven = q[q.shape[0] - 1] ** 2 if "clock" in kind else 0
        return q[first + 3] - 2 * q[first + 2] - q[first] / 2 - driven

    return nh.System(
        "machine_" + "_".join(kind) if kind else "machine",
        Product(S2("bob_"), flat) if "bob" in kind else flat,
        lagrangian,
        inputs=("push", "turn"),
        force=force,
        velocity_constraint=skate if "skate" in kind else None,
        dependent=((2 if "bob" in kind else 0) + 1,) if "skate" in kind else None,
        holonomic_constraint=gear if "gear" in kind else None,
        first_order=("lag",) if "motor" in kind else (),
        first_order_rate=(lambda q, v, u: (u[0] - q[lag]) / 0.1) if "motor" in kind else None,
        prescribed=("t",) if "clock" in kind else (),
        nominal=(*(0.6, 0, -0.8) * ("bob" in kind), *np.zeros(4 + len(tail))),
    )


def motion(kind: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """A configuration and a velocity that keep all constraints."""
    a, speed, turn, time = 0.3, 0.7, 0.4, 0.2
    x, rate = 0.1, 0.9 if "clock" in kind else 0.0
    time *= "clock" in kind
    b = 2 * a + x / 2 + time**2
    q, v = [x, -0.2, a, b], [speed * cos(a), speed * sin(a), turn]
    v.append(2 * turn + v[0] / 2 + 2 * time * rate)
    if "motor" in kind:
        q, v = [*q, 0.5], [*v, 0.0]
    if "clock" in kind:
        q, v = [*q, time], [*v, rate]
    if "bob" in kind:
        q, v = [0.48, 0.36, -0.8, *q], [0.3, -0.4, 0.0, *v]
    return np.array(q), np.array(v)


def momenta(kind: tuple[str, ...], v: np.ndarray, mu: float) -> np.ndarray:
    """The stored momenta `X^T (M v + Dh^T mu)` of a motion, with the velocity of the clock."""
    first = 3 if "bob" in kind else 0
    p = MASSES * v[first : first + 4] + mu * np.array([-0.5, 0.0, -2.0, 1.0])
    if "skate" in kind:  # v_y = tan(a) v_x
        p = np.array([p[0] + np.tan(0.3) * p[1], *p[2:]])
    return np.concatenate([v[:first], p, v[len(v) - ("clock" in kind) :]])
