"""Steps along one-parameter subgroups and great circles, and what an impulse and a momentum at one
point of a step are at its ends.
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
    """A step from q0 along `exp(t d)`: its `end` at t = 1, its `point` at t = theta, and the
    velocity `w` at that point, for theta 0, 1/2 or 1.

    Let F(point, w) be a function with the trivialized gradients k = dF/d(point) and m = dF/dw.
    As a function of both ends of the step, F has the gradient `-p0`, `p0 = start_momentum(k, m)`,
    along trivialized variations of q0, and the gradient `p1 = end_momentum(p0, k, m)` along those
    of the end.
    """

    end: ca.SX
    point: ca.SX
    w: ca.SX

    @abstractmethod
    def trivialized_gradient(self, by_numbers: ca.SX) -> ca.SX:
        """k (nw) of a derivative by the stored numbers of the place (nq)."""

    @abstractmethod
    def start_momentum(self, k: ca.SX, m: ca.SX) -> ca.SX:
        """The momentum at q0, (nv)."""

    @abstractmethod
    def end_momentum(self, p0: ca.SX, k: ca.SX, m: ca.SX) -> ca.SX:
        """The momentum at the end, (nv)."""


class Subgroup(Arc):
    """On a Lie group, all in the body frame, `end = q0 exp(d)`, w = d:
    `start_momentum = (dexp^{-1}_d)^* (m + theta dexp^*_{-theta d} k) - Ad*_{exp(-theta d)} k`,
    `end_momentum = Ad*_{exp(d)} (p0 + Ad*_{exp(-theta d)} k)`.
    """

    def __init__(self, space: Space, q0: ca.SX, d: ca.SX, theta: float):
        self._action, self._group, self._theta = pose_action(space), group_of(space), theta
        self.end, self.point = (apply_exp(space, q0, t * d) for t in (1, theta))
        self.w = d

    def trivialized_gradient(self, by_numbers: ca.SX) -> ca.SX:
        return self._action.generator(self.point).T @ by_numbers

    def start_momentum(self, k: ca.SX, m: ca.SX) -> ca.SX:
        back = -self._theta * self.w
        pulled = apply_transpose(lambda e: self._group.dexp(back, e), k)
        total = m + self._theta * pulled
        there = apply_transpose(lambda e: self._group.dtau_inverse(self.w, e), total)
        return there - coadjoint_transport(self._group, back, k)

    def end_momentum(self, p0: ca.SX, k: ca.SX, m: ca.SX) -> ca.SX:
        total = p0 + coadjoint_transport(self._group, -self._theta * self.w, k)
        return coadjoint_transport(self._group, self.w, total)


class GreatCircle(Arc):
    """On the sphere, as functions of the two ends (q0, q1): at the middle
    `w = |d| (q1 - q0) / |q1 - q0|`. k and m are vectors of R^3.
    """

    def __init__(self, space: Space, q0: ca.SX, d: ca.SX, theta: float):
        turn = ca.cross(q0, space.frame(q0) @ d)
        self.end, self.point = (apply_exp(space, q0, t * turn) for t in (1, theta))
        self.w = ca.cross(turn, self.point)
        self._slopes = self._by_ends(q0, theta)
        self._frames = space.frame(q0), space.frame(self.end)

    def _by_ends(self, q0: ca.SX, theta: float) -> list[ca.SX]:
        """Derivatives of (point, w) by the ends, (6, 3) each."""
        a, b = ca.SX.sym("a", 3), ca.SX.sym("b", 3)
        half_sine_square, half_cosine = ca.sumsqr(b - a) / 4, ca.sqrt(ca.sumsqr(a + b)) / 2
        place = {
            0.0: (a, geodesic_tangent(a, b)),
            0.5: (normalize(a + b), arctan_over(half_sine_square, half_cosine) * (b - a)),
            1.0: (b, -geodesic_tangent(b, a)),
        }[theta]
        slopes = [ca.jacobian(ca.vertcat(*place), end) for end in (a, b)]
        return ca.substitute(slopes, [a, b], [q0, self.end])

    def trivialized_gradient(self, by_numbers: ca.SX) -> ca.SX:
        return by_numbers

    def start_momentum(self, k: ca.SX, m: ca.SX) -> ca.SX:
        return -(self._slopes[0] @ self._frames[0]).T @ ca.vertcat(k, m)

    def end_momentum(self, p0: ca.SX, k: ca.SX, m: ca.SX) -> ca.SX:
        return (self._slopes[1] @ self._frames[1]).T @ ca.vertcat(k, m)


class Arcs(Arc):
    """The arc on a product space, one arc for each factor. Raises ValueError for a space with a
    factor that `unknown_factor` names.
    """

    def __init__(self, space: Space, q0: ca.SX, d: ca.SX, theta: float):
        self._parts: list[tuple[Arc, list[int], list[int], list[int]]] = []
        at = 0
        for factor, q, w in simple_factors(space):
            v, at = [*range(at, at + factor.nv)], at + factor.nv
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
    """`exp(f) . q` (nq) by the action on a simple space, f as in `pose_action`."""
    action = pose_action(space)
    return action.normalize(action.act(f, q))


def group_of(space: Space) -> LieGroup:
    """The group that a simple space is."""
    action = pose_action(space)
    return action.group if isinstance(action, GroupAction) else VectorGroup(space.nv)


def coadjoint_transport(group: LieGroup, d: ca.SX, p: ca.SX) -> ca.SX:
    """`Ad*_{exp(d)} p` (dim): the body momentum at `g exp(d)` of what is p at g and has the same
    momentum in the frame at rest.
    """
    return group.coadjoint(group.normalize(group.tau(-d)), p)


def transport_momentum(space: Space, d: ca.SX, p: ca.SX) -> ca.SX:
    """`Ad*_{exp(d)} p` (nv) on a space without spheres, see `coadjoint_transport`."""
    parts = [(group_of(factor), [*w]) for factor, _, w in simple_factors(space)]
    return ca.vertcat(*(coadjoint_transport(group, d[w], p[w]) for group, w in parts))


def apply_transpose(linear: Callable[[ca.SX], ca.SX], p: ca.SX) -> ca.SX:
    """`L^T p` of a linear map L from R^n to R^n."""
    e = ca.SX.sym("e", p.shape[0])
    return ca.jtimes(linear(e), e, p, True)


def unknown_factor(space: Space) -> str:
    """Names a factor of the space on which no group is known to act, "" if there is none."""
    for factor, _, _ in simple_factors(space):
        try:
            pose_action(factor)
        except ValueError as reason:
            return f"has a space of its own: {reason}"
    return ""
