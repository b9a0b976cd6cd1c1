"""The cotangent bundle of a Lie group as a Lie group, G x g*."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from nh_control.geometry.groups import Blocks, LieGroup


class CotangentGroup(LieGroup):
    """The group G x g* with the product `(g, mu)(k, nu) = (g k, mu + Ad*_{g^{-1}} nu)`
    [celledoni2021 (11)]. Left multiplication acts on T*G in right trivialization.

    An algebra element (x, y) is mapped to `(exp(x), (dexp_{-x})^T y)` by "exp", and to
    `(exp(x), y)` by "second".
    """

    kinds = ("exp", "second")

    def __init__(self, group: LieGroup, coordinates: str = "exp"):
        super().__init__(coordinates)
        if group.coordinates != "exp":
            raise ValueError(
                f"Cotangent: needs a group with coordinates 'exp', got {group.coordinates!r}"
            )
        self.group, self.dim, self.n = group, 2 * group.dim, group.n + group.dim

    @property
    def blocks(self) -> Blocks:
        n = self.group.n
        return (*self.group.blocks, *(tuple(n + i for i in b) for b in self.group.algebra_blocks))

    def tau(self, v: ca.SX) -> ca.SX:
        x, y = self._split(v)
        return ca.vertcat(self.group.tau(x), self._momentum(x, y))

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """`x' = dexp^{-1}_x f1` and `mu' = f2 - ad*_{f1} mu` for v = (f1, f2), where mu is the
        momentum in tau(u) [celledoni2021 (12)]. For "exp", y' follows from
        `y = (dexp^{-1}_{-x})^T mu`.
        """
        (x, y), (f1, f2) = self._split(u), self._split(v)
        mu = self._momentum(x, y)
        # [celledoni2021 (12)]
        x_rate, mu_rate = self.group.dtau_inverse(x, f1), f2 - self.group.ad_star(f1, mu)
        if self.coordinates == "second":
            return ca.vertcat(x_rate, mu_rate)
        # y = (dexp^{-1}_{-x})^T mu, differentiated along (x', mu')
        x_, mu_ = (ca.SX.sym(name, self.group.dim) for name in ("x", "mu"))
        y_ = _transposed(lambda e: self.group.dtau_inverse(-x_, e), mu_)
        rate = ca.jtimes(y_, ca.vertcat(x_, mu_), ca.vertcat(x_rate, mu_rate))
        return ca.vertcat(x_rate, ca.substitute(rate, ca.vertcat(x_, mu_), ca.vertcat(x, mu)))

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """`[(x, y), (w, z)] = ([x, w], ad*_w y - ad*_x z)`."""
        (x, y), (w, z), star = self._split(u), self._split(v), self.group.ad_star
        return ca.vertcat(self.group.bracket(x, w), star(w, y) - star(x, z))

    def ad_star(self, u: ca.SX, mu: ca.SX) -> ca.SX:
        """`ad*_(x, y) (a, w) = (ad*_x a - ad*_w y, -[x, w])`."""
        (x, y), (a, w) = self._split(u), self._split(mu)
        star = self.group.ad_star
        return ca.vertcat(star(x, a) - star(w, y), -self.group.bracket(x, w))

    def multiply(self, g: ca.SX, k: ca.SX) -> ca.SX:
        n = self.group.n
        momentum = g[n:] + self.group.coadjoint(g[:n], k[n:])
        return ca.vertcat(self.group.multiply(g[:n], k[:n]), momentum)

    def adjoint(self, g: ca.SX, v: ca.SX) -> ca.SX:
        """`Ad_(g, mu) (x, y) = (x1, Ad*_{g^{-1}} y + ad*_{x1} mu)` with `x1 = Ad_g x`."""
        x, y = self._split(v)
        n = self.group.n
        x1 = self.group.adjoint(g[:n], x)
        return ca.vertcat(x1, self.group.coadjoint(g[:n], y) + self.group.ad_star(x1, g[n:]))

    def coadjoint(self, g: ca.SX, mu: ca.SX) -> ca.SX:
        """`(Ad*_{g^{-1}} a + ad*_{w1} mu, w1)` with `w1 = Ad_g w` for a group element (g, mu) and
        a covector (a, w). It satisfies `<coadjoint(g, c), adjoint(g, v)> = <c, v>`.
        """
        n, (a, w) = self.group.n, self._split(mu)
        w1 = self.group.adjoint(g[:n], w)
        return ca.vertcat(self.group.coadjoint(g[:n], a) + self.group.ad_star(w1, g[n:]), w1)

    def dexp(self, u: ca.SX, v: ca.SX) -> ca.SX:
        x, y = self._split(u)
        # right-trivialized derivative of (exp(x), mu(x, y)):
        # f1 = dexp_x x', f2 = mu' + ad*_{f1} mu
        x_, y_ = (ca.SX.sym(name, self.group.dim) for name in "xy")
        mu = self._momentum_of_exp(x_, y_)
        rate = ca.jtimes(mu, ca.vertcat(x_, y_), v)
        mu, rate = ca.substitute([mu, rate], [x_, y_], [x, y])
        f1 = self.group.dexp(x, v[: self.group.dim])
        return ca.vertcat(f1, rate + self.group.ad_star(f1, mu))

    def normalize(self, g: ca.SX) -> ca.SX:
        n = self.group.n
        return ca.vertcat(self.group.normalize(g[:n]), g[n:])

    def _momentum(self, x: ca.SX, y: ca.SX) -> ca.SX:
        return y if self.coordinates == "second" else self._momentum_of_exp(x, y)

    def _momentum_of_exp(self, x: ca.SX, y: ca.SX) -> ca.SX:
        return _transposed(lambda e: self.group.dexp(-x, e), y)

    def _split(self, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        return v[: self.group.dim], v[self.group.dim :]


def _transposed(linear: Callable[[ca.SX], ca.SX], y: ca.SX) -> ca.SX:
    """`L^T y` for a square linear map L."""
    n = y.shape[0]
    return ca.horzcat(*(linear(ca.SX.eye(n)[:, i]) for i in range(n))).T @ y
