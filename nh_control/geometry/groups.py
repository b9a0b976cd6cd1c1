"""Lie groups with coordinate maps tau from their algebras. All elements are stored as vectors."""

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
    """A Lie group G. Group elements are stored as `n` numbers, and elements of the algebra as
    `dim` numbers.

    `coordinates` (one of `kinds`) is the name of the map tau from the algebra to the group: "exp",
    "cay" for the Cayley map, or "second" for canonical coordinates of the second kind. All
    functions take and return CasADi expressions.
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
        """The indices of stored numbers that form a vector (see `HomogeneousSpace.blocks`)."""
        return (tuple(range(self.n)),)

    @property
    def algebra_blocks(self) -> Blocks:
        """The indices of the numbers in an algebra element, or in a dual element, that form a
        vector.
        """
        return (tuple(range(self.dim)),)

    @abstractmethod
    def tau(self, v: ca.SX) -> ca.SX:
        """The group element (n) with the coordinates v (dim)."""

    @abstractmethod
    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """u' (dim) if g = tau(u) and `g' g^{-1} = v`; for exp, see [celledoni2021 (8)]."""

    @abstractmethod
    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """The bracket [u, v] (dim)."""

    @abstractmethod
    def ad_star(self, u: ca.SX, mu: ca.SX) -> ca.SX:
        """ad*_u mu (dim), with `<ad*_u mu, v> = <mu, [u, v]>`."""

    @abstractmethod
    def multiply(self, g: ca.SX, k: ca.SX) -> ca.SX:
        """The product g k (n)."""

    @abstractmethod
    def adjoint(self, g: ca.SX, v: ca.SX) -> ca.SX:
        """Ad_g v (dim)."""

    @abstractmethod
    def coadjoint(self, g: ca.SX, mu: ca.SX) -> ca.SX:
        """Ad*_{g^{-1}} mu (dim), with `<Ad*_{g^{-1}} mu, Ad_g v> = <mu, v>`. This is an action of
        g.
        """

    @abstractmethod
    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """dexp_u(v) (dim): `g' g^{-1}` for g = exp(u) and u' = v [celledoni2021 (7)]."""

    def dtau_inverse_left(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """u' (dim) if g = tau(u) and `g^{-1} g' = v`. It is `dtau^{-1}_{-u}(v)` if tau(-u) inverts
        g.
        """
        if self.coordinates == "second":
            return self.dtau_inverse(u, self.adjoint(self.tau(u), v))
        return self.dtau_inverse(-u, v)

    def normalize(self, g: ca.SX) -> ca.SX:
        """g projected onto the group to remove round-off: quaternions get unit length."""
        return g


class VectorGroup(LieGroup):
    """The group R^n with addition."""

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
    """SO(3) as unit quaternions (w, x, y, z), with rotation vectors as algebra elements.
    Coordinates of the second kind are `exp(v1 e1) exp(v2 e2) exp(v3 e3)` for |v2| < pi/2.
    """

    dim, n = 3, 4

    def tau(self, v: ca.SX) -> ca.SX:
        if self.coordinates == "cay":
            return quaternion.cay(v)
        if self.coordinates == "exp":
            return quaternion.exp(v)
        # second kind: exp(v1 e1) exp(v2 e2) exp(v3 e3)
        factors = [quaternion.exp(v[i] * ca.DM.eye(3)[:, i]) for i in range(3)]
        return quaternion.multiply(quaternion.multiply(factors[0], factors[1]), factors[2])

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        bracket = ca.cross(u, v)
        if self.coordinates == "cay":  # v - [u, v]/2 + (u . v) u / 4
            return v - bracket / 2 + ca.dot(u, v) / 4 * u
        if self.coordinates == "exp":  # v - [u, v]/2 + c [u, [u, v]]
            return v - bracket / 2 + tangent_coefficient(ca.sumsqr(u)) * ca.cross(u, bracket)
        # second kind: rotate v by -u1 about e1, then invert the columns e1, e2, R(u2 e2) e3
        c, s = ca.cos(u[0]), ca.sin(u[0])
        v2, v3 = c * v[1] + s * v[2], c * v[2] - s * v[1]
        return ca.vertcat(v[0] - ca.tan(u[1]) * v3, v2, v3 / ca.cos(u[1]))

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
        # v + (1 - cos a)/a^2 [u, v] + (a - sin a)/a^3 [u, [u, v]], a = |u|
        square, bracket = ca.sumsqr(u), ca.cross(u, v)
        return v + versine(square) * bracket + sine_defect(square) * ca.cross(u, bracket)

    def normalize(self, g: ca.SX) -> ca.SX:
        return g / ca.sqrt(ca.sumsqr(g))


class SE2Group(LieGroup):
    """SE(2) as poses (theta, x, y) with unwrapped theta. Coordinates of the second kind are those
    of `se2.ccsk`.
    """

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
        # (Ad_{g^{-1}})^T mu
        return se2.adjoint(se2.between(g, ca.SX.zeros(3))).T @ mu

    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        # the same series as on SO(3): ad_u^3 = -a^2 ad_u, a = u1
        square, bracket = u[0] ** 2, se2.ad(u) @ v
        return v + versine(square) * bracket + sine_defect(square) * (se2.ad(u) @ bracket)


class SE3Group(LieGroup):
    """SE(3) as a unit quaternion and a position (7), with algebra elements (w, a): rotation, then
    translation.

    The translation t of tau(w, a) is `t = a + (1 - cos z)/z^2 w x a + (z - sin z)/z^3 w x (w x a)`
    with z = |w| for "exp" [celledoni2021 2.2, 2.3], `t = (I - hat(w)/2)^{-1} a` for "cay", and
    `t = a` for "second".
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
        # (I - hat(w)/2)^{-1} a = (a + w x a / 2 + w w^T a / 4) / (1 + |w|^2 / 4)
        w_a, square = ca.cross(w, a), ca.sumsqr(w)
        if self.coordinates == "cay":
            t = (a + w_a / 2 + w * ca.dot(w, a) / 4) / (1 + square / 4)
            return ca.vertcat(quaternion.cay(w), t)
        t = a + versine(square) * w_a + sine_defect(square) * ca.cross(w, w_a)
        return ca.vertcat(quaternion.exp(w), t)

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        w, a, o, b = u[:3], u[3:], v[:3], v[3:]
        w_o = ca.cross(w, o)
        square = ca.sumsqr(w)
        if self.coordinates == "cay":
            # w' = dcay^{-1}_w o, and a' from t' = b + o x t with t = (I - hat(w)/2)^{-1} a
            o_a = ca.cross(o, a)
            return ca.vertcat(
                o - w_o / 2 + ca.dot(w, o) / 4 * w,
                b - (ca.cross(w, b) - o_a) / 2 - ca.cross(w, o_a) / 4,
            )
        if self.coordinates == "second":  # t = a: a' = b + o x a
            rotation = o - w_o / 2 + tangent_coefficient(square) * ca.cross(w, w_o)
            return ca.vertcat(rotation, b + ca.cross(o, a))
        # phi(z) = z / (e^z - 1) [celledoni2021 2.3]
        derivative = ca.dot(w, a) * tangent_slope(square)
        return _series_of_ad(u, v, -1 / 2, 0, tangent_coefficient(square), derivative)

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        w, a, o, b = u[:3], u[3:], v[:3], v[3:]
        return ca.vertcat(ca.cross(w, o), ca.cross(w, b) + ca.cross(a, o))

    def ad_star(self, u: ca.SX, mu: ca.SX) -> ca.SX:
        angular, linear = mu[:3], mu[3:]
        return ca.vertcat(
            ca.cross(angular, u[:3]) + ca.cross(linear, u[3:]), ca.cross(linear, u[:3])
        )

    def multiply(self, g: ca.SX, k: ca.SX) -> ca.SX:
        q = quaternion.multiply(g[:4], k[:4])
        return ca.vertcat(q, g[4:] + quaternion.rotate(g[:4], k[4:]))

    def adjoint(self, g: ca.SX, v: ca.SX) -> ca.SX:
        angular, linear = quaternion.rotate(g[:4], v[:3]), quaternion.rotate(g[:4], v[3:])
        return ca.vertcat(angular, linear + ca.cross(g[4:], angular))

    def coadjoint(self, g: ca.SX, mu: ca.SX) -> ca.SX:
        angular, linear = (quaternion.rotate(g[:4], part) for part in (mu[:3], mu[3:]))
        return ca.vertcat(angular + ca.cross(g[4:], linear), linear)

    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        # phi(z) = (e^z - 1) / z [celledoni2021 2.3]
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
    g1: ca.SX | float,
    rho_g1_tilde: ca.SX | float,
    g2: ca.SX,
    rho_g2_tilde: ca.SX,
) -> ca.SX:
    """`phi(ad_u) v` (6) on se(3) for an analytic phi with phi(0) = 1:
    `v + g1 ad_u v + rho g1~ (0, w x o) + g2 ad_u^2 v + rho g2~ (0, w x (w x o))` for u = (w, a),
    v = (o, b), `rho = w . a` [celledoni2021 2.3].

    On so(3), phi(ad_w) is `1 + g1 hat(w) + g2 hat(w)^2`. The terms with g~, which are the
    derivatives of g1 and g2 with respect to |w|, divided by |w|, are due to the nilpotent part of
    ad_u.
    """
    w, a, o, b = u[:3], u[3:], v[:3], v[3:]
    ad_angular = ca.cross(w, o)
    ad_linear = ca.cross(a, o) + ca.cross(w, b)
    ad2_angular = ca.cross(w, ad_angular)
    ad2_linear = ca.cross(a, ad_angular) + ca.cross(w, ad_linear)
    return ca.vertcat(
        o + g1 * ad_angular + g2 * ad2_angular,
        b
        + g1 * ad_linear
        + rho_g1_tilde * ad_angular
        + g2 * ad2_linear
        + rho_g2_tilde * ad2_angular,
    )
