"""The group SE(2) with elements g = (theta, x, y) and algebra elements v = (rotation, x, y), and
its retractions [kobilarov2010 App. B].
"""

from __future__ import annotations

import casadi as ca

from nh_control.geometry.even_functions import sinc, tangent_coefficient, versine
from nh_control.geometry.retraction import Retraction


def rotate(theta: ca.SX, t: ca.SX) -> ca.SX:
    """The planar vector `t` (2) rotated by `theta`."""
    c, s = ca.cos(theta), ca.sin(theta)
    return ca.vertcat(c * t[0] - s * t[1], s * t[0] + c * t[1])


def compose(g: ca.SX, k: ca.SX) -> ca.SX:
    """The group product g k; theta is not wrapped."""
    return ca.vertcat(g[0] + k[0], g[1:3] + rotate(g[0], k[1:3]))


def between(g: ca.SX, k: ca.SX) -> ca.SX:
    """The group element g^{-1} k."""
    return ca.vertcat(k[0] - g[0], rotate(-g[0], k[1:3] - g[1:3]))


def ad(v: ca.SX) -> ca.SX:
    """The matrix ad_v (3, 3) of the bracket ad_v w = [v, w] [kobilarov2010 App. B]."""
    return ca.vertcat(ca.horzcat(0, 0, 0), ca.horzcat(v[2], 0, -v[0]), ca.horzcat(-v[1], v[0], 0))


def adjoint(g: ca.SX) -> ca.SX:
    """The matrix of Ad_g (3, 3)."""
    c, s = ca.cos(g[0]), ca.sin(g[0])
    return ca.vertcat(ca.horzcat(1, 0, 0), ca.horzcat(g[2], c, -s), ca.horzcat(-g[1], s, c))


def exp(v: ca.SX) -> ca.SX:
    """The exponential map `exp(v) = (v1, V (v2, v3))` with
    `V = [[sin v1, cos v1 - 1], [1 - cos v1, sin v1]] / v1` [kobilarov2010 (41) ff.].
    """
    s, c = sinc(v[0] ** 2), v[0] * versine(v[0] ** 2)
    return ca.vertcat(v[0], s * v[1] - c * v[2], c * v[1] + s * v[2])


def log(g: ca.SX) -> ca.SX:
    """The inverse of `exp` for |theta| < 2 pi."""
    # V^{-1} = [[c, s], [-s, c]] with s = theta / 2, c = (theta / 2) cot(theta / 2)
    half, cot = g[0] / 2, 1 - g[0] ** 2 * tangent_coefficient(g[0] ** 2)
    return ca.vertcat(g[0], cot * g[1] + half * g[2], -half * g[1] + cot * g[2])


def dexp_inverse(v: ca.SX) -> ca.SX:
    """The right-trivialized `dexp^{-1}_v = I - ad_v / 2 + c ad_v^2` with
    `c = (1 - (v1/2) cot(v1/2)) / v1^2`. [kobilarov2010 (42)] truncates c to 1/12.
    """
    a = ad(v)
    return ca.SX.eye(3) - a / 2 + tangent_coefficient(v[0] ** 2) * a @ a


def cay(v: ca.SX) -> ca.SX:
    """The Cayley map of [kobilarov2010 App. B], with the sign of the diagonal corrected."""
    scale = 1 / (4 + v[0] ** 2)
    return ca.vertcat(
        2 * ca.atan(v[0] / 2),
        scale * (4 * v[1] - 2 * v[0] * v[2]),
        scale * (2 * v[0] * v[1] + 4 * v[2]),
    )


def cay_inverse(g: ca.SX) -> ca.SX:
    """The inverse of `cay` for |theta| < pi."""
    w = ca.tan(g[0] / 2)
    return ca.vertcat(2 * w, g[1] + w * g[2], g[2] - w * g[1])


def dcay_inverse(v: ca.SX) -> ca.SX:
    """The right-trivialized `dcay^{-1}_v = I - ad_v / 2 + [v1 v, 0, 0] / 4` [kobilarov2010
    (44)].
    """
    return ca.SX.eye(3) - ad(v) / 2 + ca.horzcat(v[0] * v, ca.SX(3, 2)) / 4


def ccsk(v: ca.SX) -> ca.SX:
    """The map for canonical coordinates of the second kind,
    `ccsk(v) = exp(v1 e1) exp(v2 e2) exp(v3 e3)` [kobilarov2010 5].
    """
    return ca.vertcat(v[0], rotate(v[0], v[1:3]))


def ccsk_inverse(g: ca.SX) -> ca.SX:
    """The inverse of `ccsk`."""
    return ca.vertcat(g[0], rotate(-g[0], g[1:3]))


def dccsk_inverse(v: ca.SX) -> ca.SX:
    """The right-trivialized `dccsk^{-1}_v = Ad_(-v1, 0, 0)`, because e2 and e3 commute."""
    return adjoint(ca.vertcat(-v[0], 0, 0))


def sccsk(v: ca.SX) -> ca.SX:
    """The map for symmetrized coordinates of the second kind,
    `exp(v1 e1 / 2) exp(v2 e2 + v3 e3) exp(v1 e1 / 2)`, with `sccsk(-v) = sccsk(v)^{-1}`.
    """
    return ca.vertcat(v[0], rotate(v[0] / 2, v[1:3]))


def sccsk_inverse(g: ca.SX) -> ca.SX:
    """The inverse of `sccsk`."""
    return ca.vertcat(g[0], rotate(-g[0] / 2, g[1:3]))


def dsccsk_inverse(v: ca.SX) -> ca.SX:
    """The right-trivialized inverse of `dsccsk_v = [[1, 0], [J t / 2, R(v1/2)]]`, with the
    translation t of `sccsk(v)` and J t = (t_y, -t_x).
    """
    t = rotate(v[0] / 2, v[1:3])
    lever = rotate(-v[0] / 2, ca.vertcat(t[1], -t[0]) / 2)  # R(-v1/2) J t / 2
    rotation = adjoint(ca.vertcat(-v[0] / 2, 0, 0))
    return ca.horzcat(ca.vertcat(1, -lever), rotation[:, 1:3])


RETRACTIONS = {
    r.name: r
    for r in (
        Retraction("exp", exp, log, dexp_inverse),
        Retraction("cay", cay, cay_inverse, dcay_inverse),
        Retraction("ccsk", ccsk, ccsk_inverse, dccsk_inverse),
        Retraction("sccsk", sccsk, sccsk_inverse, dsccsk_inverse),
    )
}
