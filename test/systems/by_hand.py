"""Equations of motion of the nonholonomic systems, written by hand: free bodies in inertial
coordinates, joined by the forces of their constraints.

Nothing here uses nh_control. `M Q'' = F + A^T lam, A Q' = 0` with a constant M, so that no term of
the package's body velocities, mass matrices or bases appears.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import cos, sin


@dataclass(frozen=True)
class Bodies:
    """`acceleration(Q, rates, u)` in inertial coordinates Q; `phase(q, v)` is (Q, rates) of the
    package's configuration and velocity, `velocity(Q, rates)` the way back, defined for complex
    numbers, too; both end to end as `phase` and `state`.
    """

    acceleration: Callable
    phase: Callable
    state: Callable

    def rate(self, q, v, u) -> np.ndarray:
        """Time derivative of the package's (q, v)."""
        at, rates = self.phase(q, v)
        step = 1e-30j
        moved = self.state(at + step * rates, rates + step * self.acceleration(at, rates, u))
        return np.concatenate(moved).imag / step.imag


def joined(mass, constraint, force) -> Callable:
    """Acceleration of bodies with constant masses (n); rows of A may be dependent."""

    def acceleration(q, rates, u):
        a, m = constraint(q), len(constraint(q))
        a_dot = np.imag(constraint(q + 1e-30j * rates)) / 1e-30
        matrix = np.block([[np.diag(mass), -a.T], [a, np.zeros((m, m))]])
        right = np.concatenate([force(q, rates, u), -a_dot @ rates])
        return np.linalg.lstsq(matrix, right, rcond=1e-12)[0][: len(mass)]

    return acceleration


def turn(angle, forward, side):
    """Components along x, y of a vector given along and across a heading."""
    return np.array(
        [cos(angle) * forward - sin(angle) * side, sin(angle) * forward + cos(angle) * side]
    )


def rolling_disk(p) -> Bodies:
    """Q = (x, y, theta, phi), constraints (2) of celledoni2016."""

    def constraint(q):
        zero, one = 0 * q[0], 1 + 0 * q[0]
        return np.array([[one, zero, zero, -p.r * cos(q[2])], [zero, one, zero, -p.r * sin(q[2])]])

    return Bodies(
        joined([p.m, p.m, p.J_theta, p.J_phi], constraint, lambda q, v, u: [0, 0, u[1], u[0]]),
        phase=lambda q, v: (
            np.array([q[2], q[3], q[1], q[0]]),
            np.array([*turn(q[1], v[2], v[3]), v[1], v[0]]),
        ),
        state=lambda q, v: (
            np.array([q[3], q[2], q[0], q[1]]),
            np.array([v[3], v[2], *turn(-q[2], v[0], v[1])]),
        ),
    )


def sleigh_contact(p) -> Bodies:
    """Q = (x, y, theta) of the center of mass, the skate a behind it."""

    def constraint(q):
        return np.array([[-sin(q[2]), cos(q[2]), -p.a + 0 * q[2]]])

    return Bodies(
        joined(
            [p.m, p.m, p.I], constraint, lambda q, v, u: [u[1] * cos(q[2]), u[1] * sin(q[2]), u[0]]
        ),
        phase=lambda q, v: (
            np.array([*(q[1:] + turn(q[0], p.a, 0)), q[0]]),
            np.array([*turn(q[0], v[1], v[2] + p.a * v[0]), v[0]]),
        ),
        state=lambda q, v: (
            np.array([q[2], *(q[:2] - turn(q[2], p.a, 0))]),
            np.array([v[2], *(turn(-q[2], v[0], v[1]) - [0, p.a * v[2]])]),
        ),
    )


def chaotic_quartic(p) -> Bodies:
    """Q = q."""
    n = p.n

    def constraint(q):
        return np.array([[1, *np.zeros(n), *q[1 : n + 1]]])

    def force(q, v, u):
        w, z = q[1 : n + 1], q[n + 1 :]
        slope = np.concatenate([[q[0]], w + w * z**2, z + w**2 * z])
        slope[n + 1] += z[0] * z[1] ** 2
        slope[n + 2] += z[1] * z[0] ** 2
        return -slope

    def same(q, v):
        return q, v

    return Bodies(joined(np.ones(2 * n + 1), constraint, force), same, same)


def gearbox(p) -> Bodies:
    """Q = q."""

    def force(q, v, u):
        return [-p.k * q[0], -p.k * q[1], p.V1 * sin(q[2]) + 2 * p.V2 * cos(2 * q[2]) + u[0]]

    def same(q, v):
        return q, v

    return Bodies(
        joined([p.m, p.m, p.J], lambda q: np.array([[1, sin(q[2]), 0]]), force), same, same
    )


def differential_drive(p) -> Bodies:
    """Q = (x, y, theta of the body; left wheel x, y, theta, roll; right wheel), wheels fixed to
    the body and rolling at their contacts.
    """
    sides = (p.b, -p.b)
    wheel = [p.m_wheel, p.m_wheel, p.J_yaw, p.J_roll]

    def constraint(q):
        rows = []
        for i, side in enumerate(sides):
            at = 3 + 4 * i
            arm = turn(q[2], -p.d, side)
            c, s = cos(q[at + 2]), sin(q[at + 2])
            for entries in (
                {at: 1, 0: -1, 2: arm[1]},
                {at + 1: 1, 1: -1, 2: -arm[0]},
                {at + 2: 1, 2: -1},
                {at: 1, at + 3: -p.r * c},
                {at + 1: 1, at + 3: -p.r * s},
            ):
                row = np.zeros(11, q.dtype)
                row[list(entries)] = list(entries.values())
                rows.append(row)
        return np.array(rows)

    def force(q, v, u):
        return [*np.zeros(6), u[0], *np.zeros(3), u[1]]

    def phase(q, v):
        left, right, theta, x, y = q
        at, rate = [], []
        for side, roll, spin in ((sides[0], left, v[0]), (sides[1], right, v[1])):
            at += [*([x, y] + turn(theta, 0, side)), theta, roll]
            rate += [*turn(theta, v[3] - side * v[2], v[4]), v[2], spin]
        body = [*([x, y] + turn(theta, p.d, 0)), theta]
        return np.array(body + at), np.array([*turn(theta, v[3], v[4] + p.d * v[2]), v[2], *rate])

    def state(q, v):
        return (
            np.array([q[6], q[10], q[2], *(q[:2] - turn(q[2], p.d, 0))]),
            np.array([v[6], v[10], v[2], *(turn(-q[2], v[0], v[1]) - [0, p.d * v[2]])]),
        )

    return Bodies(
        joined([p.m_body, p.m_body, p.I_body, *wheel, *wheel], constraint, force), phase, state
    )


def car(p) -> Bodies:
    """Q = (x, y, theta of the center of mass; heading psi of the front wheels; roll)."""

    def constraint(q):
        c, s, cf, sf, zero = cos(q[2]), sin(q[2]), cos(q[3]), sin(q[3]), 0 * q[0]
        return np.array(
            [
                [-s, c, -p.b + zero, zero, zero],
                [-sf, cf, (p.l - p.b) * cos(q[3] - q[2]), zero, zero],
                [c, s, zero, zero, -p.r + zero],
            ]
        )

    return Bodies(
        joined(
            [p.m, p.m, p.I - p.J_steer, p.J_steer, p.J_wheel],
            constraint,
            lambda q, v, u: [0, 0, -u[1], u[1], u[0]],
        ),
        phase=lambda q, v: (
            np.array([*(q[3:] + turn(q[2], p.b, 0)), q[2], q[2] + q[1], q[0]]),
            np.array([*turn(q[2], v[3], v[4] + p.b * v[2]), v[2], v[2] + v[1], v[0]]),
        ),
        state=lambda q, v: (
            np.array([q[4], q[3] - q[2], q[2], *(q[:2] - turn(q[2], p.b, 0))]),
            np.array([v[4], v[3] - v[2], v[2], *(turn(-q[2], v[0], v[1]) - [0, p.b * v[2]])]),
        ),
    )


def roller_racer(p) -> Bodies:
    """Q = (x, y, theta of the seat; heading psi of the handlebar)."""

    def constraint(q):
        zero = 0 * q[0]
        return np.array(
            [
                [-sin(q[2]), cos(q[2]), zero, zero],
                [-sin(q[3]), cos(q[3]), p.d1 * cos(q[3] - q[2]), p.d2 + zero],
            ]
        )

    return Bodies(
        joined([p.m, p.m, p.I1, p.I2], constraint, lambda q, v, u: [0, 0, -u[0], u[0]]),
        phase=lambda q, v: (
            np.array([q[2], q[3], q[1], q[1] + q[0]]),
            np.array([*turn(q[1], v[2], v[3]), v[1], v[1] + v[0]]),
        ),
        state=lambda q, v: (
            np.array([q[3] - q[2], q[2], q[0], q[1]]),
            np.array([v[3] - v[2], v[2], *turn(-q[2], v[0], v[1])]),
        ),
    )


def quaternion_rate(q, omega):
    """`q' = q (0, omega) / 2` for a body angular velocity."""
    w, a = q[0], q[1:4]
    return np.concatenate([[-a @ omega], w * omega + np.cross(a, omega)]) / 2


def matrix(q):
    """Rotation matrix of the unit quaternion (w, x, y, z)."""
    w, a = q[0], q[1:4]
    hat = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    return np.eye(3) + 2 * w * hat + 2 * hat @ hat


@dataclass(frozen=True)
class Turning:
    """A system with an attitude: `acceleration(q, v, u)` of the package's own (q, v)."""

    acceleration: Callable

    def rate(self, q, v, u) -> np.ndarray:
        """Time derivative of (q, v), q a quaternion and positions."""
        way = np.concatenate([quaternion_rate(q, v[:3]), v[3:]])
        return np.concatenate([way, self.acceleration(q, v, u)])


def suslov(p) -> Turning:
    """Euler's equations with a torque about the third axis that keeps omega_z = 0."""
    inertia = np.array([[p.I11, 0, p.I13], [0, p.I22, p.I23], [p.I13, p.I23, p.I33]])

    def acceleration(q, v, u):
        known = np.cross(inertia @ v, v) + [u[0], u[1], 0]
        third = np.array([[0], [0], [1.0]])
        system = np.block([[inertia, -third], [third.T, np.zeros((1, 1))]])
        return np.linalg.solve(system, [*known, 0])[:3]

    return Turning(acceleration)


def rolling_ball(p) -> Turning:
    """Newton and Euler about the center with the contact's force F (3), below it by r."""
    inertia = np.diag([p.Jx, p.Jy, p.Jz])
    down = np.array([[0, p.r, 0], [-p.r, 0, 0], [0, 0, 0]])  # (0, 0, -r) x F

    def acceleration(q, v, u):
        r, omega = matrix(q), v[:3]
        turning = np.cross(inertia @ omega, omega) + u
        # unknown: omega' and F; the center's acceleration is r (Omega'_y, -Omega'_x, 0)
        center = p.r * np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0]]) @ r
        matrix_ = np.block([[inertia, -r.T @ down], [p.m * center, -np.eye(3)]])
        rates = np.linalg.solve(matrix_, np.concatenate([turning, np.zeros(3)]))[:3]
        return np.concatenate([rates, (center @ rates)[:2]])

    return Turning(acceleration)
