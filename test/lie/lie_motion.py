"""Equations of motion on rotations and directions, written by hand in numpy, and their accurate
solution.

Nothing here uses nh_control. A `Motion` has first-order equations in variables of its own;
`states` turns solutions (..., n) into what the package calls a state: configuration and momentum,
quaternions (w, x, y, z), directions and their momenta as vectors of R^3, z up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import cross
from scipy.integrate import solve_ivp


@dataclass(frozen=True)
class Motion:
    """`y' = derivative(t, y)` and the package's states of solutions y (..., n)."""

    derivative: Callable
    states: Callable

    def solve(self, y, times, tolerance=1e-13):
        """States at `times` by DOP853, restarted at every one of them because its interpolant is
        less accurate than its steps.
        """
        values = [np.asarray(y, dtype=float)]
        for start, end in zip(times[:-1], times[1:]):
            run = solve_ivp(
                self.derivative, (start, end), values[-1], "DOP853", rtol=tolerance, atol=tolerance
            )
            if not run.success:
                raise RuntimeError(run.message)
            values.append(run.y[:, -1])
        return self.states(np.array(values))


def quaternion_rate(q, omega):
    """`q' = q (0, omega) / 2` for body angular velocity omega."""
    return np.concatenate([[-q[1:] @ omega], q[0] * omega + cross(q[1:], omega)]) / 2


def rotate(q, a):
    """`R(q) a` for arrays (..., 4) and (..., 3), by R = I + 2 w hat(v) + 2 hat(v)^2."""
    v = q[..., 1:]
    return a + 2 * q[..., :1] * cross(v, a) + 2 * cross(v, cross(v, a))


def tangential(q, a):
    """Part of a normal to the unit vector q, arrays (..., 3)."""
    return a - np.sum(q * a, -1, keepdims=True) * q


def rigid_body(inertia, torque=lambda t: np.zeros(3)) -> Motion:
    """Euler's equations `J omega' = J omega x omega + torque(t)` with y = (q, omega)."""
    inertia = np.asarray(inertia)

    def derivative(t, y):
        q, omega = y[:4], y[4:]
        return np.concatenate(
            [quaternion_rate(q, omega), (cross(inertia * omega, omega) + torque(t)) / inertia]
        )

    return Motion(derivative, lambda y: np.concatenate([y[..., :4], inertia * y[..., 4:]], -1))


def floating_body(inertia, mass, g, wrench) -> Motion:
    """Euler's equations with `m r'' = R force - m g e3`, y = (q, omega, r, r'); the wrench
    (torque, force) is in the body frame, the state's momentum too.
    """
    inertia, down = np.asarray(inertia), np.array([0.0, 0.0, -1.0])

    def derivative(t, y):
        q, omega, v, w = y[:4], y[4:7], y[10:], wrench(t)
        omega_dot = (cross(inertia * omega, omega) + w[:3]) / inertia
        return np.concatenate(
            [quaternion_rate(q, omega), omega_dot, v, rotate(q, w[3:]) / mass + g * down]
        )

    def states(y):
        q, omega, r, v = y[..., :4], y[..., 4:7], y[..., 7:10], y[..., 10:]
        return np.concatenate([q, r, inertia * omega, mass * rotate(q * [1, -1, -1, -1], v)], -1)

    return Motion(derivative, states)


def heavy_top(mass, length, inertia, g, chi) -> Motion:
    """`Pi' = Pi x J^{-1} Pi + M g l Gamma x chi`, Gamma = R^T e3, with y = (q, Pi)."""
    inertia, chi, up = np.asarray(inertia), np.asarray(chi), np.array([0.0, 0.0, 1.0])

    def derivative(t, y):
        q, pi = y[:4], y[4:]
        omega = pi / inertia
        gamma = rotate(q * [1, -1, -1, -1], up)
        return np.concatenate(
            [quaternion_rate(q, omega), cross(pi, omega) + mass * g * length * cross(gamma, chi)]
        )

    return Motion(derivative, lambda y: y)


def _hats(a):
    """Skew matrices (n, 3, 3) of vectors (n, 3)."""
    x, y, z = a.T
    o = np.zeros_like(x)
    return np.moveaxis(np.array([[o, -z, y], [z, o, -x], [-y, x, o]]), -1, 0)


def spherical_pendulum(masses, lengths, g) -> Motion:
    """`R(q) w' = [sum_{j != i} M_ij |w_j|^2 hat(q_i) q_j - (sum_{j >= i} m_j) g L_i hat(q_i) e3]`,
    `q_i' = w_i x q_i`, with y = (q_1 ... q_N, w_1 ... w_N).
    """
    masses, lengths = np.asarray(masses, float), np.asarray(lengths, float)
    n = len(masses)
    outer = np.cumsum(masses[::-1])[::-1]
    m = np.array(
        [[outer[max(i, j)] * lengths[i] * lengths[j] for j in range(n)] for i in range(n)]
    )
    weight = outer * lengths * g
    up = np.array([0.0, 0.0, 1.0])

    def derivative(t, y):
        q, w = y.reshape(2, n, 3)
        hats = _hats(q)
        blocks = np.einsum("ij,iba,jbc->iajc", m, hats, hats)
        for i in range(n):
            blocks[i, :, i] = m[i, i] * np.eye(3)
        centrifugal = (m - np.diag(np.diag(m))) @ (np.sum(w**2, 1)[:, None] * q)
        right = cross(q, centrifugal) - weight[:, None] * cross(q, up)
        w_dot = np.linalg.solve(blocks.reshape(3 * n, 3 * n), right.reshape(-1))
        return np.concatenate([cross(w, q).reshape(-1), w_dot])

    def states(y):
        q, w = np.moveaxis(y.reshape(*y.shape[:-1], 2, n, 3), -3, 0)
        p = tangential(q, np.einsum("ij,...jk->...ik", m, cross(w, q)))
        return np.stack([q, p], -3).reshape(y.shape)

    return Motion(derivative, states)
