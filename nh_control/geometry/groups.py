"""Lie groups in numbers, with coordinates tau from the algebra: what actions on homogeneous spaces
are made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

import casadi as ca

from nh_control.geometry import quaternion, se2
from nh_control.geometry.even_functions import (
    sine_defect,
    sine_defect_slope,
    tangent_coefficient,
    tangent_slope,
    versine,
    versine_slope,
)

Blocks: TypeAlias = tuple[tuple[int, ...], ...]


class LieGroup(ABC):
    """A Lie group G whose elements are stored in `n` numbers, its algebra in `dim` numbers.

    `coordinates` names tau, one of `kinds`: "exp", "cay" for the Cayley map, "second" for
    coordinates of the second kind. All functions take and return CasADi expressions.
    """

    dim: int
    n: int
    kinds: tuple[str, ...] = ("exp", "cay", "second")

    def __init__(self, coordinates: str = "exp"):
        if coordinates not in self.kinds:
            raise ValueError(
                f"{type(self).__name__}: unknown coordinates {coordinates!r}, choose one of "
                f"{self.kinds}"
            )
        self.coordinates = coordinates

    @property
    def blocks(self) -> Blocks:
        """Places of the stored numbers that are one vector, see `HomogeneousSpace`."""
        return (tuple(range(self.n)),)

    @property
    def algebra_blocks(self) -> Blocks:
        """The same of the algebra's numbers and its dual's."""
        return (tuple(range(self.dim)),)

    @abstractmethod
    def tau(self, v: ca.SX) -> ca.SX:
        """Group element (n) with the coordinates v (dim)."""

    @abstractmethod
    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """`u'` (dim) of a motion g = tau(u) with `g' g^{-1} = v`: dexp^{-1}_u(v) for "exp"."""

    @abstractmethod
    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """[u, v] (dim)."""

    @abstractmethod
    def ad_star(self, u: ca.SX, mu: ca.SX) -> ca.SX:
        """ad*_u mu (dim), `<ad*_u mu, v> = <mu, [u, v]>`."""

    @abstractmethod
    def multiply(self, g: ca.SX, k: ca.SX) -> ca.SX:
        """Product g k (n)."""

    @abstractmethod
    def adjoint(self, g: ca.SX, v: ca.SX) -> ca.SX:
        """Ad_g v (dim)."""

    @abstractmethod
    def coadjoint(self, g: ca.SX, mu: ca.SX) -> ca.SX:
        """Ad*_{g^{-1}} mu (dim), `<Ad*_{g^{-1}} mu, Ad_g v> = <mu, v>`: an action of g."""

    @abstractmethod
    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """dexp_u(v) (dim) [celledoni2021 (7)]: `g' g^{-1}` of g = exp(u) with u' = v."""

    def dtau_inverse_left(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """`u'` (dim) of a motion g = tau(u) with `g^{-1} g' = v`."""
        if self.coordinates == "second":
            return self.dtau_inverse(u, self.adjoint(self.tau(u), v))
        return self.dtau_inverse(-u, v)

    def normalize(self, g: ca.SX) -> ca.SX:
        """g without what round-off has added to it."""
        return g


class VectorGroup(LieGroup):
    """R^n with addition."""

    def __init__(self, n: int, coordinates: str = "exp"):
        super().__init__(coordinates)
        self.dim = self.n = n

    @property
    def blocks(self) -> Blocks:
        return tuple((i,) for i in range(self.n))

    @property
    def algebra_blocks(self) -> Blocks:
        return self.blocks

    def tau(self, v: ca.SX) -> ca.SX:
        return v

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return v

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return ca.SX(self.dim, 1)

    def ad_star(self, u: ca.SX, mu: ca.SX) -> ca.SX:
        return ca.SX(self.dim, 1)

    def multiply(self, g: ca.SX, k: ca.SX) -> ca.SX:
        return g + k

    def adjoint(self, g: ca.SX, v: ca.SX) -> ca.SX:
        return v

    def coadjoint(self, g: ca.SX, mu: ca.SX) -> ca.SX:
        return mu

    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return v


class SO3Group(LieGroup):
    """SO(3) as unit quaternions (w, x, y, z), rotation vectors as coordinates; the second kind is
    `exp(v1 e1) exp(v2 e2) exp(v3 e3)`, for |v2| < pi/2.
    """

    dim, n = 3, 4

    def tau(self, v: ca.SX) -> ca.SX:
        if self.coordinates == "cay":
            return quaternion.cay(v)
        if self.coordinates == "exp":
            return quaternion.exp(v)
        turns = [quaternion.exp(v[i] * ca.DM.eye(3)[:, i]) for i in range(3)]
        return quaternion.multiply(quaternion.multiply(turns[0], turns[1]), turns[2])

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        turned = ca.cross(u, v)
        if self.coordinates == "cay":
            return v - turned / 2 + ca.dot(u, v) / 4 * u
        if self.coordinates == "exp":
            return v - turned / 2 + tangent_coefficient(ca.sumsqr(u)) * ca.cross(u, turned)
        c, s = ca.cos(u[0]), ca.sin(u[0])
        side, up = c * v[1] + s * v[2], c * v[2] - s * v[1]
        return ca.vertcat(v[0] - ca.tan(u[1]) * up, side, up / ca.cos(u[1]))

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return ca.cross(u, v)

    def ad_star(self, u: ca.SX, mu: ca.SX) -> ca.SX:
        return ca.cross(mu, u)

    def multiply(self, g: ca.SX, k: ca.SX) -> ca.SX:
        return quaternion.multiply(g, k)

    def adjoint(self, g: ca.SX, v: ca.SX) -> ca.SX:
        return quaternion.rotate(g, v)

    def coadjoint(self, g: ca.SX, mu: ca.SX) -> ca.SX:
        return quaternion.rotate(g, mu)

    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        square, turned = ca.sumsqr(u), ca.cross(u, v)
        return v + versine(square) * turned + sine_defect(square) * ca.cross(u, turned)

    def normalize(self, g: ca.SX) -> ca.SX:
        return g / ca.sqrt(ca.sumsqr(g))


class SE2Group(LieGroup):
    """SE(2), poses (theta, x, y), theta unwrapped; the second kind is `ccsk` of `geometry.se2`."""

    dim, n = 3, 3

    def __init__(self, coordinates: str = "exp"):
        super().__init__(coordinates)
        self._map = se2.RETRACTIONS["ccsk" if coordinates == "second" else coordinates]

    @property
    def blocks(self) -> Blocks:
        return (0,), (1, 2)

    @property
    def algebra_blocks(self) -> Blocks:
        return self.blocks

    def tau(self, v: ca.SX) -> ca.SX:
        return self._map.tau(v)

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self._map.dtau_inverse(u) @ v

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return se2.ad(u) @ v

    def ad_star(self, u: ca.SX, mu: ca.SX) -> ca.SX:
        return se2.ad(u).T @ mu

    def multiply(self, g: ca.SX, k: ca.SX) -> ca.SX:
        return se2.compose(g, k)

    def adjoint(self, g: ca.SX, v: ca.SX) -> ca.SX:
        return se2.adjoint(g) @ v

    def coadjoint(self, g: ca.SX, mu: ca.SX) -> ca.SX:
        return se2.adjoint(se2.between(g, ca.SX.zeros(3))).T @ mu

    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        square, moved = u[0] ** 2, se2.ad(u) @ v
        return v + versine(square) * moved + sine_defect(square) * (se2.ad(u) @ moved)


class SE3Group(LieGroup):
    """SE(3), a unit quaternion and a position; algebra elements (w, a) of rotation and
    translation.

    exp [celledoni2021 2.2, 2.3]: `t = a + (1 - cos z)/z^2 w x a + (z - sin z)/z^3 w x (w x a)`,
    z = |w|. cay: `t = (I - hat(w)/2)^{-1} a`. The second kind is a rotation by exp(w), then the
    translation a.
    """

    dim, n = 6, 7

    @property
    def blocks(self) -> Blocks:
        return (0, 1, 2, 3), (4, 5, 6)

    @property
    def algebra_blocks(self) -> Blocks:
        return (0, 1, 2), (3, 4, 5)

    def tau(self, v: ca.SX) -> ca.SX:
        w, a = v[:3], v[3:]
        if self.coordinates == "second":
            return ca.vertcat(quaternion.exp(w), a)
        turned, square = ca.cross(w, a), ca.sumsqr(w)
        if self.coordinates == "cay":
            t = (a + turned / 2 + w * ca.dot(w, a) / 4) / (1 + square / 4)
            return ca.vertcat(quaternion.cay(w), t)
        t = a + versine(square) * turned + sine_defect(square) * ca.cross(w, turned)
        return ca.vertcat(quaternion.exp(w), t)

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        w, a, o, b = u[:3], u[3:], v[:3], v[3:]
        turned = ca.cross(w, o)
        square = ca.sumsqr(w)
        if self.coordinates == "cay":
            lever = ca.cross(o, a)
            return ca.vertcat(
                o - turned / 2 + ca.dot(w, o) / 4 * w,
                b - (ca.cross(w, b) - lever) / 2 - ca.cross(w, lever) / 4,
            )
        if self.coordinates == "second":
            bent = o - turned / 2 + tangent_coefficient(square) * ca.cross(w, turned)
            return ca.vertcat(bent, b + ca.cross(o, a))
        slope = ca.dot(w, a) * tangent_slope(square)
        return _series_of_ad(u, v, -1 / 2, 0, tangent_coefficient(square), slope)

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        w, a, o, b = u[:3], u[3:], v[:3], v[3:]
        return ca.vertcat(ca.cross(w, o), ca.cross(w, b) + ca.cross(a, o))

    def ad_star(self, u: ca.SX, mu: ca.SX) -> ca.SX:
        turning, pushing = mu[:3], mu[3:]
        return ca.vertcat(
            ca.cross(turning, u[:3]) + ca.cross(pushing, u[3:]), ca.cross(pushing, u[:3])
        )

    def multiply(self, g: ca.SX, k: ca.SX) -> ca.SX:
        q = quaternion.multiply(g[:4], k[:4])
        return ca.vertcat(q, g[4:] + quaternion.rotate(g[:4], k[4:]))

    def adjoint(self, g: ca.SX, v: ca.SX) -> ca.SX:
        turned, pushed = quaternion.rotate(g[:4], v[:3]), quaternion.rotate(g[:4], v[3:])
        return ca.vertcat(turned, pushed + ca.cross(g[4:], turned))

    def coadjoint(self, g: ca.SX, mu: ca.SX) -> ca.SX:
        turning, pushing = (quaternion.rotate(g[:4], part) for part in (mu[:3], mu[3:]))
        return ca.vertcat(turning + ca.cross(g[4:], pushing), pushing)

    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        square, rho = ca.sumsqr(u[:3]), ca.dot(u[:3], u[3:])
        return _series_of_ad(
            u,
            v,
            versine(square),
            rho * versine_slope(square),
            sine_defect(square),
            rho * sine_defect_slope(square),
        )

    def normalize(self, g: ca.SX) -> ca.SX:
        return ca.vertcat(g[:4] / ca.sqrt(ca.sumsqr(g[:4])), g[4:])


def _series_of_ad(
    u: ca.SX,
    v: ca.SX,
    odd: ca.SX | float,
    odd_slope: ca.SX | float,
    even: ca.SX,
    even_slope: ca.SX,
) -> ca.SX:
    """phi(ad_u) v on se(3) for phi(0) = 1, with g1, rho g1~, g2, rho g2~ of [celledoni2021 2.3]
    for `odd` and `even` and their slopes.
    """
    w, a, o, b = u[:3], u[3:], v[:3], v[3:]
    turned = ca.cross(w, o)
    moved = ca.cross(a, o) + ca.cross(w, b)
    twice = ca.cross(a, turned) + ca.cross(w, moved)
    again = ca.cross(w, turned)
    return ca.vertcat(
        o + odd * turned + even * again,
        b + odd * moved + odd_slope * turned + even * twice + even_slope * again,
    )
