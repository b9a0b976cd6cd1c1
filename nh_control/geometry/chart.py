"""Local coordinates d about a configuration c, `q = retract(c, d)`, as a step uses them whose
middle is c: on R^n q = c + d, on a Lie group q = c tau(d).
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Space


class Chart:
    """Coordinates about `center` (nq) on a space without spheres."""

    def __init__(self, space: Space, center: ca.SX):
        self.space, self.center = space, center

    def position(self, d: ca.SX) -> ca.SX:
        """q(d), (nq)."""
        return self.space.retract(self.center, d)

    def inverse_tangent(self, d: ca.SX) -> ca.SX:
        """T(d), (nv, nv): a motion with velocity v has `d' = T(d) v`; the identity at d = 0."""
        return self.space.local_jacobians(self.center, d)[1]

    def velocity(self, d: ca.SX, rate: ca.SX) -> ca.SX:
        """Velocity v (nv) of a motion with the rate d' (nv)."""
        return ca.solve(self.inverse_tangent(d), rate)

    def covector(self, d: ca.SX, slope: ca.SX) -> ca.SX:
        """Derivative by d (nv) of what has the derivative `slope` (nv) along trivialized
        variations of q(d).
        """
        return ca.solve(self.inverse_tangent(d).T, slope)


def trivialized_jacobian(space: Space, q: ca.SX, expression: Callable[[ca.SX], ca.SX]) -> ca.SX:
    """Derivative of `expression(q)` (k) along the trivialized variations of q (nq), (k, nv)."""
    e = ca.SX.sym("e", space.nv)
    slope = ca.jacobian(expression(space.retract(q, e)), e)
    return ca.densify(ca.substitute(slope, e, ca.SX.zeros(space.nv)))


def bracket_form(space: Space, p: ca.SX) -> ca.SX:
    """`p . [e_i, e_j]` of the unit velocities, (nv, nv): zero on R^n, the algebra's bracket on
    left-trivialized Lie groups, `[a, b] = a x b` on SO(3).

    It is the skew part of the second derivative of `local(o, retract(retract(o, a), b))` at zero
    for any retraction, evaluated once.
    """
    n, origin = space.nv, ca.SX(space.origin)
    a, b = ca.SX.sym("a", n), ca.SX.sym("b", n)
    product = space.local(origin, space.retract(space.retract(origin, a), b))
    form = ca.SX(n, n)
    for k in range(n):
        mixed = ca.jacobian(ca.gradient(product[k], a), b)
        value = np.array(ca.Function("mixed", [a, b], [mixed])(0, 0))
        constants = np.round(value - value.T, 12)
        form += p[k] * ca.sparsify(ca.DM(constants))
    return form


def middle_and_end(space: Space, q: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Middle `c = retract(q, d / 2)` and end `retract(c, d / 2)` of a step, (nq) each: in the
    chart at c it leads from -d/2 to d/2 if the retraction is symmetric.

    Where that is `retract(q, d)` the end is found so, with one rounding.
    """
    c = space.retract(q, d / 2)
    return c, space.retract(q, d) if _adds_up(space) else space.retract(c, d / 2)


def has_symmetric_retraction(space: Space) -> bool:
    """Whether `retract(retract(q, d), -d) = q`: steps in charts about their middle need it."""
    return _lead_to_the_same(space, 1, -1)


def _adds_up(space: Space) -> bool:
    """Whether `retract(retract(q, d), d) = retract(q, 2 d)`: addition, and exponentials."""
    return _lead_to_the_same(space, 1, 1)


def _lead_to_the_same(space: Space, first: float, second: float) -> bool:
    d = np.random.default_rng(0).normal(size=space.nv) / 4
    two_steps = space.retract(space.retract(space.origin, first * d), second * d)
    one_step = space.retract(space.origin, (first + second) * d)
    return bool(np.allclose(two_steps, one_step, rtol=0, atol=1e-12))
