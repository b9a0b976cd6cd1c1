"""Local coordinates d about a configuration c, `q = retract(c, d)`, for steps with midpoint c:
`q = c + d` on R^n, `q = c tau(d)` on a Lie group, and along a great circle from c on S^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import casadi as ca
import numpy as np

from nh_control.geometry.homogeneous import simple_factors
from nh_control.geometry.rotations import S2
from nh_control.geometry.spaces import Space


class Chart:
    """Coordinates about `center` (nq), `q(d) = along(center, F d)`, with a `frame` F (nw, nv) at
    the center, by default the frame `near` a configuration (see `Space.frame`).
    """

    def __init__(
        self,
        space: Space,
        center: ca.SX,
        near: ca.SX | None = None,
        frame: ca.SX | None = None,
    ):
        self.space, self.center = space, center
        self.frame = space.frame(center, near) if frame is None else frame

    @classmethod
    def about_middle(cls, space: Space, q: ca.SX, d: ca.SX) -> Chart:
        """The chart about `retract(q, d / 2)`. Its frame is the frame at q (nq), transported to
        the center. q has the coordinates -d / 2 (nv).
        """
        center = space.retract(q, d / 2)
        if space.nw == space.nv:
            return cls(space, center)
        return cls(space, center, frame=_carried(space, q, center, space.frame(q)))

    def position(self, d: ca.SX) -> ca.SX:
        """The configuration q(d) (nq)."""
        return self.space.along(self.center, self.frame @ d)

    def tangent(self, d: ca.SX) -> ca.SX:
        """The stored velocities (nw, nv) at q(d) for unit rates d'."""
        if self.space.nw == self.space.nv:
            return ca.solve(self.inverse_tangent(d), ca.SX.eye(self.space.nv))
        if not isinstance(self.space, S2):
            return ca.diagcat(*(chart.tangent(d[v]) for chart, v, _ in self._factors()))
        # on a sphere: d along(center, w)/dw F at w = F d
        w = ca.SX.sym("w", self.space.nw)
        slope = ca.jacobian(self.space.along(self.center, w), w) @ self.frame
        return ca.substitute(slope, w, ca.densify(self.frame @ d))

    def inverse_tangent(self, d: ca.SX) -> ca.SX:
        """The matrix T(d) (nv, nw) in `d' = T(d) v` for a motion with velocity v. At d = 0, it is
        the transposed frame.
        """
        if self.space.nw == self.space.nv:
            return self.space.local_jacobians(self.center, d)[1]
        if not d.nnz():
            return self.frame.T
        if not isinstance(self.space, S2):
            return ca.diagcat(*(chart.inverse_tangent(d[v]) for chart, v, _ in self._factors()))
        # on a sphere, the tangent (3, 2) has a left inverse
        tangent = self.tangent(d)
        return ca.solve(tangent.T @ tangent, tangent.T)

    def velocity(self, d: ca.SX, rate: ca.SX) -> ca.SX:
        """The velocity v (nw) of a motion with rate d' (nv)."""
        if self.space.nw == self.space.nv:
            return ca.solve(self.inverse_tangent(d), rate)
        return self.tangent(d) @ rate

    def covector(self, d: ca.SX, gradient: ca.SX) -> ca.SX:
        """The gradient `T(d)^{-T} gradient` (nv), with respect to d, of a function that has the
        trivialized `gradient` (nw) at q(d).
        """
        if self.space.nw == self.space.nv:
            return ca.solve(self.inverse_tangent(d).T, gradient)
        return self.tangent(d).T @ gradient

    def end_jacobians(self, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Two Jacobians of the coordinates d of a configuration. The first (nv, nv) is along
        variations of the center, in its frame, which is transported with the center. The second
        (nv, nw) is along variations of the configuration.
        """
        if self.space.nw == self.space.nv:
            return self.space.local_jacobians(self.center, d)
        if not isinstance(self.space, S2):
            both = [chart.end_jacobians(d[v]) for chart, v, _ in self._factors()]
            return ca.diagcat(*(by_c for by_c, _ in both)), ca.diagcat(*(by_q for _, by_q in both))
        # d(c, q) is constant if both move together: d_c = -d_q dq/dc
        by_q, e = self.inverse_tangent(d), ca.SX.sym("e", self.space.nv)
        moved = ca.jacobian(self._varied(e).position(d), e)
        return -by_q @ ca.substitute(moved, e, ca.SX.zeros(self.space.nv)), by_q

    def gradients(
        self, d: ca.SX, rate: ca.SX, force: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The gradients (nv) of a function of the configuration q(d) and its velocity v. They are
        taken with respect to d, to d' and to variations of the center, as in `end_jacobians`.
        `rate` is d'. `force` and p (nw) are the function's gradients with respect to q and v.
        """
        if self.space.nw == self.space.nv:
            # v = T(d)^{-1} d': the velocity also depends on d
            pull, d_ = self.covector(d, force), ca.SX.sym("d", self.space.nv)
            second_derivative = ca.jtimes(self.velocity(d_, rate), d_, p, True)
            by_d = pull + ca.substitute(second_derivative, d_, d)
            return by_d, self.covector(d, p), -self.end_jacobians(d)[0].T @ pull
        if not isinstance(self.space, S2):
            parts = [
                chart.gradients(d[v], rate[v], force[w], p[w]) for chart, v, w in self._factors()
            ]
            by_d, by_rate, by_center = (ca.vertcat(*column) for column in zip(*parts))
            return by_d, by_rate, by_center
        d_, e = ca.SX.sym("d", self.space.nv), ca.SX.sym("e", self.space.nv)
        q = self._varied(e).position(d_)
        # on a sphere: the gradient of force . q(d, e) + p . v(d, e), with the center moved by e
        both = ca.dot(force, q) + ca.dot(p, ca.jtimes(q, d_, rate))
        symbols, values = ca.vertcat(d_, e), ca.vertcat(d, ca.SX.zeros(self.space.nv))
        gradient = ca.substitute(ca.gradient(both, symbols), symbols, values)
        return gradient[: d.shape[0]], self.tangent(d).T @ p, gradient[d.shape[0] :]

    def _varied(self, e: ca.SX) -> Chart:
        """The chart about the center moved by e (nv) in its frame, which is transported with the
        center.
        """
        center = self.position(e)
        return Chart(
            self.space, center, frame=_carried(self.space, self.center, center, self.frame)
        )

    def moving_frame(self, q: ca.SX) -> ca.SX:
        """An orthonormal frame E (nw, nv) of the velocities at q: the chart's frame, transported
        from the center along the geodesic. Therefore, on a sphere, the frame's vectors commute at
        the center.
        """
        if self.space.nw == self.space.nv:
            return self.frame
        return _carried(self.space, self.center, q, self.frame)

    def turned(self, q: ca.SX, d: ca.SX) -> ca.SX:
        """The tangent vectors d (nv, k) at q, in the frame at q, transported to the center."""
        if self.space.nw == self.space.nv:
            return d
        return self.frame.T @ _carried(self.space, q, self.center, self.space.frame(q) @ d)

    def _factors(self) -> Iterator[tuple[Chart, list[int], list[int]]]:
        """The charts for the factors of a product, with the indices of their local coordinates and
        of their stored velocities.
        """
        first = 0
        for factor, place, stored in simple_factors(self.space):
            v, w = list(range(first, first + factor.nv)), list(stored)
            yield Chart(factor, self.center[list(place)], frame=self.frame[w, v]), v, w
            first += factor.nv


def _carried(space: Space, q0: ca.SX, q1: ca.SX, velocities: ca.SX) -> ca.SX:
    """The parallel transport of stored velocities (nw, k) from q0 to q1."""
    columns = ca.horzsplit(velocities)
    return ca.sparsify(ca.horzcat(*(space.transport(q0, q1, column) for column in columns)))


def trivialized_jacobian(space: Space, q: ca.SX, expression: Callable[[ca.SX], ca.SX]) -> ca.SX:
    """The Jacobian (k, nw) of `expression(q)` (k) along trivialized variations of q (nq),
    `d expression(along(q, e)) / de` at e = 0. On a sphere, the rows are tangent vectors.
    """
    e = ca.SX.sym("e", space.nw)
    jacobian = ca.jacobian(expression(space.along(q, e)), e)
    return ca.densify(ca.substitute(jacobian, e, ca.SX.zeros(space.nw)))


def bracket_form(space: Space, p: ca.SX) -> ca.SX:
    """The matrix `p . [e_i, e_j]` (nw, nw) for unit velocities e_i. It is zero on R^n and on S^2,
    where velocities are vectors in R^3. On left-trivialized groups, it contains the Lie bracket,
    which is `[a, b] = a x b` on SO(3).
    """
    if isinstance(space, S2):
        return ca.SX(space.nw, space.nw)
    if space.nw != space.nv:
        parts = ((factor, p[list(w)]) for factor, _, w in simple_factors(space))
        return ca.diagcat(*(bracket_form(factor, part) for factor, part in parts))
    form = ca.SX(space.nv, space.nv)
    for k, constants in enumerate(_structure_constants(space)):
        form += p[k] * constants
    return form


def adjoint_operator(space: Space, d: ca.SX) -> ca.SX:
    """The matrix ad_d (nv, nv) in the Lie algebra of a group, `ad_d e_j = [d, e_j]`."""
    return ca.vertcat(*(d.T @ constants for constants in _structure_constants(space)))


def _structure_constants(space: Space) -> list[ca.SX]:
    """The structure constants c_ij^k in `[e_i, e_j] = c_ij^k e_k`, as a matrix (nv, nv) for every
    k.

    For any retraction, the bracket is the skew-symmetric part of the second derivative of
    `local(o, retract(retract(o, a), b))` at a = b = 0, which is the first term of the
    Baker-Campbell-Hausdorff series. The constants are numbers.
    """
    n, origin = space.nv, ca.SX(space.origin)
    a, b = ca.SX.sym("a", n), ca.SX.sym("b", n)
    product = space.local(origin, space.retract(space.retract(origin, a), b))
    constants = []
    for k in range(n):
        mixed = ca.jacobian(ca.gradient(product[k], a), b)
        value = np.array(ca.Function("mixed", [a, b], [mixed])(0, 0))
        constants.append(ca.SX(ca.sparsify(ca.DM(np.round(value - value.T, 12)))))
    return constants


def middle_and_end(space: Space, q: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The midpoint `c = retract(q, d / 2)` and the end (nq) of a step. With a symmetric
    retraction, the step leads from -d/2 to d/2 in the chart about c; on spheres, d is transported
    to c. If this end equals `retract(q, d)`, the latter is returned, because it rounds only once.
    """
    c = space.retract(q, d / 2)
    if _adds_up(space):
        return c, space.retract(q, d)
    chart = Chart(space, c, q)
    return c, chart.position(chart.turned(q, d) / 2)


def has_symmetric_retraction(space: Space) -> bool:
    """Whether `retract(retract(q, d), -d) = q`, which is required for charts about the midpoint of
    a step.
    """
    return _two_steps_are_one(space, 1, -1)


def _adds_up(space: Space) -> bool:
    """Whether `retract(retract(q, d), d) = retract(q, 2 d)`, which holds on R^n and for
    exponential maps.
    """
    return _two_steps_are_one(space, 1, 1)


def _two_steps_are_one(space: Space, first: float, second: float) -> bool:
    """Whether steps by `first` d and `second` d equal one step by their sum, at a random d."""
    d = np.random.default_rng(0).normal(size=space.nv) / 4
    two_steps = space.retract(space.retract(space.origin, first * d), second * d)
    one_step = space.retract(space.origin, (first + second) * d)
    return bool(np.allclose(two_steps, one_step, rtol=0, atol=1e-12))
