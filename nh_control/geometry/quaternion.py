"""Unit quaternions (w, x, y, z) as CasADi expressions. R(q) maps body axes to world axes, and
rotation vectors are in the body frame.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from nh_control.geometry.even_functions import arctan_over, cosine, sinc, tangent_coefficient


def multiply(a: ca.SX, b: ca.SX) -> ca.SX:
    """The quaternion product a b (4), with `R(a b) = R(a) R(b)`."""
    av, bv = a[1:4], b[1:4]
    return ca.vertcat(a[0] * b[0] - ca.dot(av, bv), a[0] * bv + b[0] * av + ca.cross(av, bv))


def conjugate(q: ca.SX) -> ca.SX:
    """The inverse rotation (4)."""
    return ca.vertcat(q[0], -q[1:4])


def hat(w: ca.SX) -> ca.SX:
    """The skew-symmetric matrix (3, 3) with `hat(w) a = w x a`."""
    return ca.skew(w)


def rotate(q: ca.SX, a: ca.SX) -> ca.SX:
    """The vector `R(q) a` (3)."""
    t = 2 * ca.cross(q[1:4], a)  # a + 2 w (v x a) + 2 v x (v x a)
    return a + q[0] * t + ca.cross(q[1:4], t)


def rotate_back(q: ca.SX, a: ca.SX) -> ca.SX:
    """The vector `R(q)^T a` (3)."""
    return rotate(conjugate(q), a)


def matrix(q: ca.SX) -> ca.SX:
    """The rotation matrix R(q) (3, 3)."""
    return ca.horzcat(*(rotate(q, ca.SX.eye(3)[:, i]) for i in range(3)))


def exp(d: ca.SX) -> ca.SX:
    """The rotation by the rotation vector d (3), `(cos |d|/2, sinc(|d|/2) d/2)`."""
    square = ca.sumsqr(d) / 4
    return ca.vertcat(cosine(square), sinc(square) * d / 2)


def log(q: ca.SX) -> ca.SX:
    """The rotation vector (3) for the shorter rotation, |log| <= pi."""
    sign = ca.if_else(q[0] < 0, -1, 1)  # w >= 0: the shorter rotation of q and -q
    w, v = sign * q[0], sign * q[1:4]
    return 2 * arctan_over(ca.sumsqr(v), w) * v


def dexp_inverse(d: ca.SX) -> ca.SX:
    """The right-trivialized `dexp^{-1}_d = I - hat(d)/2 + c hat(d)^2` (3, 3) with
    `c = (1 - (a/2) cot(a/2)) / a^2` and a = |d| [celledoni2021 2.3].
    """
    h = hat(d)
    return ca.SX.eye(3) - h / 2 + tangent_coefficient(ca.sumsqr(d)) * h @ h


def cay(d: ca.SX) -> ca.SX:
    """The Cayley map `(1, d/2) / sqrt(1 + |d|^2 / 4)`."""
    return ca.vertcat(1, d / 2) / ca.sqrt(1 + ca.sumsqr(d) / 4)


def cay_inverse(q: ca.SX) -> ca.SX:
    """The inverse `2 (x, y, z) / w` of `cay` for angles below pi."""
    return 2 * q[1:4] / q[0]


def dcay_inverse(d: ca.SX) -> ca.SX:
    """The right-trivialized `dcay^{-1}_d = I - hat(d)/2 + d d^T / 4` (3, 3)."""
    return ca.SX.eye(3) - hat(d) / 2 + d @ d.T / 4


def z_axes(wxyz: np.ndarray) -> np.ndarray:
    """The third columns (..., 3) of the rotation matrices for arrays of quaternions (..., 4),
    which may have any length.
    """
    w, x, y, z = (wxyz[..., i] for i in range(4))
    s, axis = 2 / np.einsum("...i,...i", wxyz, wxyz), np.empty((*w.shape, 3))
    axis[..., 0], axis[..., 1] = s * (x * z + w * y), s * (y * z - w * x)
    axis[..., 2] = 1 - s * (x * x + y * y)
    return axis
