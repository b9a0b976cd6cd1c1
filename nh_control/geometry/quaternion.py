"""Unit quaternions (w, x, y, z) as CasADi expressions, R(q) from body axes to world axes; rotation
vectors are in the body frame.
"""

from __future__ import annotations

import casadi as ca

from nh_control.geometry.even_functions import arctan_over, cosine, sinc, tangent_coefficient


def multiply(p: ca.SX, q: ca.SX) -> ca.SX:
    """Quaternion product p q (4), `R(p q) = R(p) R(q)`."""
    pv, qv = p[1:4], q[1:4]
    return ca.vertcat(p[0] * q[0] - ca.dot(pv, qv), p[0] * qv + q[0] * pv + ca.cross(pv, qv))


def conjugate(q: ca.SX) -> ca.SX:
    """The inverse rotation (4)."""
    return ca.vertcat(q[0], -q[1:4])


def hat(w: ca.SX) -> ca.SX:
    """Skew matrix with `hat(w) a = w x a`, (3, 3)."""
    return ca.skew(w)


def rotate(q: ca.SX, a: ca.SX) -> ca.SX:
    """Vector `R(q) a`, (3)."""
    t = 2 * ca.cross(q[1:4], a)  # a + 2 w (v x a) + 2 v x (v x a)
    return a + q[0] * t + ca.cross(q[1:4], t)


def rotate_back(q: ca.SX, a: ca.SX) -> ca.SX:
    """Vector `R(q)^T a`, (3)."""
    return rotate(conjugate(q), a)


def matrix(q: ca.SX) -> ca.SX:
    """Rotation matrix R(q), (3, 3)."""
    return ca.horzcat(*(rotate(q, ca.SX.eye(3)[:, i]) for i in range(3)))


def exp(d: ca.SX) -> ca.SX:
    """Rotation by the rotation vector d (3): `(cos |d|/2, sinc(|d|/2) d/2)`."""
    square = ca.sumsqr(d) / 4
    return ca.vertcat(cosine(square), sinc(square) * d / 2)


def log(q: ca.SX) -> ca.SX:
    """Rotation vector (3) of the shorter rotation, |log| <= pi."""
    sign = ca.if_else(q[0] < 0, -1, 1)  # of q and -q the one with w >= 0: the shorter rotation
    w, v = sign * q[0], sign * q[1:4]
    return 2 * arctan_over(ca.sumsqr(v), w) * v


def dexp_inverse(d: ca.SX) -> ca.SX:
    """Right-trivialized `dexp^{-1}_d = I - hat(d)/2 + c hat(d)^2` (3, 3),
    `c = (1 - (a/2) cot(a/2)) / a^2`, a = |d| [celledoni2021 2.3].
    """
    h = hat(d)
    return ca.SX.eye(3) - h / 2 + tangent_coefficient(ca.sumsqr(d)) * h @ h


def cay(d: ca.SX) -> ca.SX:
    """Cayley rotation `(1, d/2) / sqrt(1 + |d|^2 / 4)`."""
    return ca.vertcat(1, d / 2) / ca.sqrt(1 + ca.sumsqr(d) / 4)


def cay_inverse(q: ca.SX) -> ca.SX:
    """Inverse of `cay` for angles below pi: `2 (x, y, z) / w`."""
    return 2 * q[1:4] / q[0]


def dcay_inverse(d: ca.SX) -> ca.SX:
    """Right-trivialized `dcay^{-1}_d = I - hat(d)/2 + d d^T / 4` (3, 3)."""
    return ca.SX.eye(3) - hat(d) / 2 + d @ d.T / 4
