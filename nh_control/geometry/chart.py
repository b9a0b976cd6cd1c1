"""Local coordinates d about a configuration c, `q = retract(c, d)`, for steps whose middle is c:
on R^n `q = c + d`, on a Lie group `q = c tau(d)`.
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
        """T(d), (nv, nv), with `d' = T(d) v` for a motion of velocity v; the identity at d = 0."""
        return self.space.local_jacobians(self.center, d)[1]

    def velocity(self, d: ca.SX, rate: ca.SX) -> ca.SX:
        """Velocity v (nv) of a motion with the rate d' (nv)."""
        return ca.solve(self.inverse_tangent(d), rate)

    def covector(self, d: ca.SX, gradient: ca.SX) -> ca.SX:
        """Gradient by d (nv), `T(d)^{-T} gradient`, of a function with the trivialized `gradient`
        (nv) at q(d).
        """
        return ca.solve(self.inverse_tangent(d).T, gradient)


def trivialized_jacobian(space: Space, q: ca.SX, expression: Callable[[ca.SX], ca.SX]) -> ca.SX:
    """Jacobian (k, nv) of `expression(q)` (k) along trivialized variations of q (nq),
    `d expression(retract(q, e)) / de` at e = 0.
    """
    e = ca.SX.sym("e", space.nv)
    jacobian = ca.jacobian(expression(space.retract(q, e)), e)
    return ca.densify(ca.substitute(jacobian, e, ca.SX.zeros(space.nv)))


def bracket_form(space: Space, p: ca.SX) -> ca.SX:
    """`p . [e_i, e_j]` for the unit velocities e_i, (nv, nv): zero on R^n, the bracket of the Lie
    algebra on left-trivialized groups, `[a, b] = a x b` on SO(3).
    """
    form = ca.SX(space.nv, space.nv)
    for k, constants in enumerate(_structure_constants(space)):
        form += p[k] * constants
    return form


def adjoint_operator(space: Space, d: ca.SX) -> ca.SX:
    """ad_d (nv, nv) of the Lie algebra of a group, `ad_d e_j = [d, e_j]`."""
    return ca.vertcat(*(d.T @ constants for constants in _structure_constants(space)))


def _structure_constants(space: Space) -> list[ca.SX]:
    """c_ij^k of `[e_i, e_j] = c_ij^k e_k`, a matrix (nv, nv) for every k.

    For any retraction the bracket is the skew part of the second derivative of
    `local(o, retract(retract(o, a), b))` at a = b = 0, the first term of the
    Baker-Campbell-Hausdorff series. The constants are evaluated once, as numbers.
    """
    n, origin = space.nv, ca.SX(space.origin)
    a, b = ca.SX.sym("a", n), ca.SX.sym("b", n)
    product = space.local(origin, space.retract(space.retract(origin, a), b))
    found = []
    for k in range(n):
        mixed = ca.jacobian(ca.gradient(product[k], a), b)
        value = np.array(ca.Function("mixed", [a, b], [mixed])(0, 0))
        found.append(ca.SX(ca.sparsify(ca.DM(np.round(value - value.T, 12)))))
    return found


def middle_and_end(space: Space, q: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Middle `c = retract(q, d / 2)` and end `retract(c, d / 2)` of a step, (nq) each. With a
    symmetric retraction the step leads from -d/2 to d/2 in the chart about c.

    Where both ends are equal the end is `retract(q, d)`, which rounds once.
    """
    c = space.retract(q, d / 2)
    return c, space.retract(q, d) if _adds_up(space) else space.retract(c, d / 2)


def has_symmetric_retraction(space: Space) -> bool:
    """Whether `retract(retract(q, d), -d) = q`: charts about the middle of a step need it."""
    return _two_steps_are_one(space, 1, -1)


def _adds_up(space: Space) -> bool:
    """Whether `retract(retract(q, d), d) = retract(q, 2 d)`, as for vectors and exponentials."""
    return _two_steps_are_one(space, 1, 1)


def _two_steps_are_one(space: Space, first: float, second: float) -> bool:
    """Whether steps of `first` d and `second` d make one of their sum, at a random d."""
    d = np.random.default_rng(0).normal(size=space.nv) / 4
    two_steps = space.retract(space.retract(space.origin, first * d), second * d)
    one_step = space.retract(space.origin, (first + second) * d)
    return bool(np.allclose(two_steps, one_step, rtol=0, atol=1e-12))
