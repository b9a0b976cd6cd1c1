"""Steps along one-parameter subgroups and great circles, and the momenta at both ends that result
from a force and a momentum at a point of the step. Symplectic Lie group methods consist of these
parts [celledoni2021 (15)-(17)].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import casadi as ca

from nh_control.geometry.even_functions import arctan_over
from nh_control.geometry.groups import LieGroup, VectorGroup
from nh_control.geometry.homogeneous import GroupAction, pose_action, simple_factors
from nh_control.geometry.rotations import S2, geodesic_tangent, normalize
from nh_control.geometry.spaces import Space


class Arc(ABC):
    """A step from q0 along `exp(t d)`, with its `end` at t = 1, its `point` at t = theta, and the
    velocity `w` at that point. theta is 0, 1/2 or 1.

    Let k = dF/d(point) and m = dF/dw be the trivialized gradients of a function F(point, w). As a
    function of both ends of the step, F has the gradient `-p0` along trivialized variations of q0,
    with `p0 = start_momentum(k, m)`, and the gradient `p1 = end_momentum(p0, k, m)` along
    trivialized variations of the end.
    """

    end: ca.SX
    point: ca.SX
    w: ca.SX

    @abstractmethod
    def trivialized_gradient(self, by_numbers: ca.SX) -> ca.SX:
        """The trivialized gradient k (nw) for a gradient (nq) with respect to the entries of
        `point`.
        """

    @abstractmethod
    def start_momentum(self, k: ca.SX, m: ca.SX) -> ca.SX:
        """The momentum (nv) at q0."""

    @abstractmethod
    def end_momentum(self, p0: ca.SX, k: ca.SX, m: ca.SX) -> ca.SX:
        """The momentum (nv) at the end of the step."""


class Subgroup(Arc):
    """The arc `end = q0 exp(d)` on a Lie group, with w = d in the body frame,
    `p0 = (dexp^{-1}_d)^* (m + theta dexp^*_{-theta d} k) - Ad*_{exp(-theta d)} k` and
    `p1 = Ad*_{exp(d)} (p0 + Ad*_{exp(-theta d)} k)` [celledoni2021 (15)-(17), left-trivialized].
    """

    def __init__(self, space: Space, q0: ca.SX, d: ca.SX, theta: float):
        self._action, self._group, self._theta = pose_action(space), group_of(space), theta
        self.end, self.point = (apply_exp(space, q0, t * d) for t in (1, theta))
        self.w = d

    def trivialized_gradient(self, by_numbers: ca.SX) -> ca.SX:
        return self._action.generator(self.point).T @ by_numbers

    def start_momentum(self, k: ca.SX, m: ca.SX) -> ca.SX:
        back = -self._theta * self.w
        # the gradient with respect to d: m from w = d, and theta dexp^*_{-theta d} k from the
        # point
        by_point = apply_transpose(lambda e: self._group.dexp(back, e), k)
        by_step = m + self._theta * by_point
        # a variation of q0 with the end held fixed changes d by -dexp^{-1}_d: pull the gradient
        # back
        momentum = apply_transpose(lambda e: self._group.dtau_inverse(self.w, e), by_step)
        # the variation of q0 also moves the point: add its part, in the axes of q0
        return momentum - coadjoint_transport(self._group, back, k)

    def end_momentum(self, p0: ca.SX, k: ca.SX, m: ca.SX) -> ca.SX:
        # conservation of the spatial momentum: p0 and the impulse k, transported to the end
        total = p0 + coadjoint_transport(self._group, -self._theta * self.w, k)
        return coadjoint_transport(self._group, self.w, total)


class GreatCircle(Arc):
    """An arc on the sphere, with `point` and `w` as functions of both ends (q0, q1). At theta =
    1/2, `w = |d| (q1 - q0) / |q1 - q0|`. k and m are vectors in R^3.
    """

    def __init__(self, space: Space, q0: ca.SX, d: ca.SX, theta: float):
        rotation = ca.cross(q0, space.frame(q0) @ d)  # the step's rotation vector
        self.end, self.point = (apply_exp(space, q0, t * rotation) for t in (1, theta))
        self.w = ca.cross(rotation, self.point)
        self._jacobians = self._by_ends(q0, theta)
        self._frames = space.frame(q0), space.frame(self.end)

    def _by_ends(self, q0: ca.SX, theta: float) -> list[ca.SX]:
        """The derivatives (6, 3) of (point, w) with respect to both ends."""
        a, b = ca.SX.sym("a", 3), ca.SX.sym("b", 3)
        # sine^2 and cosine of half the angle between the ends, from the lengths of b -+ a
        half_sine_square, half_cosine = ca.sumsqr(b - a) / 4, ca.sqrt(ca.sumsqr(a + b)) / 2
        point_and_velocity = {
            0.0: (a, geodesic_tangent(a, b)),
            0.5: (normalize(a + b), arctan_over(half_sine_square, half_cosine) * (b - a)),
            1.0: (b, -geodesic_tangent(b, a)),
        }[theta]
        jacobians = [ca.jacobian(ca.vertcat(*point_and_velocity), end) for end in (a, b)]
        return ca.substitute(jacobians, [a, b], [q0, self.end])

    def trivialized_gradient(self, by_numbers: ca.SX) -> ca.SX:
        return by_numbers

    def start_momentum(self, k: ca.SX, m: ca.SX) -> ca.SX:
        return -(self._jacobians[0] @ self._frames[0]).T @ ca.vertcat(k, m)

    def end_momentum(self, p0: ca.SX, k: ca.SX, m: ca.SX) -> ca.SX:
        return (self._jacobians[1] @ self._frames[1]).T @ ca.vertcat(k, m)


class Arcs(Arc):
    """An arc on a product space, which consists of one arc per factor. Raises ValueError if a
    factor has no known group action (see `unknown_factor`).
    """

    def __init__(self, space: Space, q0: ca.SX, d: ca.SX, theta: float):
        self._parts: list[tuple[Arc, list[int], list[int], list[int]]] = []
        first = 0
        for factor, q, w in simple_factors(space):
            v, first = [*range(first, first + factor.nv)], first + factor.nv
            kind = GreatCircle if isinstance(factor, S2) else Subgroup
            self._parts.append((kind(factor, q0[[*q]], d[v], theta), [*q], v, [*w]))
        self.end, self.point, self.w = (
            ca.vertcat(*(getattr(arc, name) for arc, *_ in self._parts))
            for name in ("end", "point", "w")
        )

    def trivialized_gradient(self, by_numbers: ca.SX) -> ca.SX:
        return ca.vertcat(*(arc.trivialized_gradient(by_numbers[q]) for arc, q, *_ in self._parts))

    def start_momentum(self, k: ca.SX, m: ca.SX) -> ca.SX:
        return ca.vertcat(*(arc.start_momentum(k[w], m[w]) for arc, _, _, w in self._parts))

    def end_momentum(self, p0: ca.SX, k: ca.SX, m: ca.SX) -> ca.SX:
        return ca.vertcat(*(arc.end_momentum(p0[v], k[w], m[w]) for arc, _, v, w in self._parts))


def apply_exp(space: Space, q: ca.SX, f: ca.SX) -> ca.SX:
    """`exp(f) . q` (nq) for the action on a space that is not a product, with f as in
    `pose_action`.
    """
    action = pose_action(space)
    return action.normalize(action.act(f, q))


def group_of(space: Space) -> LieGroup:
    """The Lie group of a space that is a group (neither a product nor a sphere)."""
    action = pose_action(space)
    return action.group if isinstance(action, GroupAction) else VectorGroup(space.nv)


def coadjoint_transport(group: LieGroup, d: ca.SX, p: ca.SX) -> ca.SX:
    """`Ad*_{exp(d)} p` (dim): the body momentum at `g exp(d)` with the same spatial momentum as
    the body momentum p at g.
    """
    return group.coadjoint(group.normalize(group.tau(-d)), p)


def transport_momentum(space: Space, d: ca.SX, p: ca.SX) -> ca.SX:
    """`Ad*_{exp(d)} p` (nv) on a space without spheres."""
    parts = [(group_of(factor), [*w]) for factor, _, w in simple_factors(space)]
    return ca.vertcat(*(coadjoint_transport(group, d[w], p[w]) for group, w in parts))


def apply_transpose(linear: Callable[[ca.SX], ca.SX], p: ca.SX) -> ca.SX:
    """`L^T p` for a linear map L from R^n to R^n."""
    e = ca.SX.sym("e", p.shape[0])
    return ca.jtimes(linear(e), e, p, True)


def unknown_factor(space: Space) -> str:
    """The reason why a method does not support this space, which is a factor without a known group
    action. "" if all factors have a known action.
    """
    for factor, _, _ in simple_factors(space):
        try:
            pose_action(factor)
        except ValueError as reason:
            return f"has an unknown space: {reason}"
    return ""
