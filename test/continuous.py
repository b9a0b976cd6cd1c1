"""Equations of motion of the systems, written by hand from force balances in inertial coordinates,
and their accurate solution.

Nothing here uses nh_control: constrained systems solve `M a = F + A^T lam, A a = -Adot v` for the
accelerations, M the constant mass matrix of (coordinates) and A the constraints as printed
[kobilarov2010 (29), (34)]. A phase is (q, qdot) with coordinate velocities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import cos, sin
from scipy.integrate import solve_ivp


@dataclass(frozen=True)
class Motion:
    """A system by hand: qdd = acceleration(q, qd, u); momenta rho, trivialized velocity v and
    energy of a phase; coordinate rates of a velocity v.

    All but `acceleration` take arrays (..., n). `rates(q, v)` inverts `velocity(q, qd)`.
    """

    n: int
    acceleration: Callable
    momenta: Callable
    velocity: Callable
    rates: Callable
    energy: Callable

    def derivative(self, t, phase, u):
        """Right-hand side of the first-order form under the input function u(t)."""
        q, qd = phase[: self.n], phase[self.n :]
        return np.concatenate([qd, self.acceleration(q, qd, u(t))])

    def phase(self, q, v):
        """Phase of configuration q and trivialized velocity v."""
        return np.concatenate([q, self.rates(q, v)])

    def solve(self, phase, times, u, tolerance=1e-13):
        """Phases (len(times), 2n) by DOP853, restarted at every requested time because its
        interpolant is less accurate than its steps.
        """
        phases = [np.asarray(phase, dtype=float)]
        for start, end in zip(times[:-1], times[1:]):
            run = solve_ivp(
                self.derivative,
                (start, end),
                phases[-1],
                "DOP853",
                args=(u,),
                rtol=tolerance,
                atol=tolerance,
            )
            if not run.success:
                raise RuntimeError(run.message)
            phases.append(run.y[:, -1])
        return np.array(phases)


def constrained_acceleration(mass, a, a_dot, force, qd):
    """Acceleration of `M a = F + A^T lam, A a + Adot v = 0` for a constant mass matrix."""
    n, m = len(mass), len(a)
    matrix = np.block([[mass, -a.T], [a, np.zeros((m, m))]])
    return np.linalg.solve(matrix, np.concatenate([force, -a_dot @ qd]))[:n]


def to_body(theta, vector):
    """Inertial plane vectors (..., 2) in the frame turned by theta (...)."""
    c, s = cos(theta), sin(theta)
    return np.stack(
        [c * vector[..., 0] + s * vector[..., 1], -s * vector[..., 0] + c * vector[..., 1]], -1
    )


def with_body_plane(sign):
    """Map (..., n) velocities with a planar translation last between inertial (sign = 1 in) and
    body frame (sign = -1 back).
    """

    def convert(q, velocity):
        q, velocity = np.asarray(q), np.asarray(velocity)
        return np.concatenate(
            [velocity[..., :-2], to_body(sign * q[..., -3], velocity[..., -2:])], -1
        )

    return convert


def pendulum(m=1.0, l=1.0, g=9.8) -> Motion:
    """Pendulum about its pivot, angle from the downward vertical: m l^2 thetadd = -m g l
    sin(theta) + u.
    """

    def momenta(q, qd):
        return m * l**2 * qd

    return Motion(
        n=1,
        acceleration=lambda q, qd, u: (u - m * g * l * sin(q)) / (m * l**2),
        momenta=momenta,
        velocity=lambda q, qd: qd,
        rates=lambda q, v: v,
        energy=lambda q, qd: m * l**2 * qd[..., 0] ** 2 / 2 - m * g * l * cos(q[..., 0]),
    )


def sleigh(m=1.0, inertia=1.0, a=1.0) -> Motion:
    """Chaplygin sleigh, q = (theta, x, y) of the center of mass, skate at a distance a behind it;
    inputs yaw torque and forward thrust.
    """
    mass = np.diag([inertia, m, m])

    def acceleration(q, qd, u):
        c, s = cos(q[0]), sin(q[0])
        constraint = np.array([[a, s, -c]])
        rate = qd[0] * np.array([[0, c, s]])
        return constrained_acceleration(
            mass, constraint, rate, np.array([u[0], u[1] * c, u[1] * s]), qd
        )

    velocity = with_body_plane(1)

    def momenta(q, qd):
        v = velocity(q, qd)
        return np.stack([inertia * v[..., 0] + a * m * v[..., 2], m * v[..., 1]], -1)

    def energy(q, qd):
        return (inertia * qd[..., 0] ** 2 + m * (qd[..., 1] ** 2 + qd[..., 2] ** 2)) / 2

    return Motion(3, acceleration, momenta, velocity, with_body_plane(-1), energy)


def snakeboard(m=1.0, l=2.0, rotor=1.0, axle=1.2, spring=0.0) -> Motion:
    """Snakeboard, q = (psi, phi, theta, x, y); m l^2 is the total yaw inertia; inputs rotor and
    steering torque; `spring` (N m/rad) centers phi.
    """
    yaw = m * l**2
    mass = np.array(
        [
            [rotor, 0, rotor, 0, 0],
            [0, 2 * axle, 0, 0, 0],
            [rotor, 0, yaw, 0, 0],
            [0, 0, 0, m, 0],
            [0, 0, 0, 0, m],
        ],
        float,
    )

    def acceleration(q, qd, u):
        _, phi, theta = q[:3]
        _, phi_dot, omega = qd[:3]
        rear, front = theta + phi, theta - phi
        a = np.array(
            [
                [0, 0, -l * cos(phi), -sin(rear), cos(rear)],
                [0, 0, l * cos(phi), -sin(front), cos(front)],
            ]
        )
        a_dot = np.array(
            [
                [
                    0,
                    0,
                    l * sin(phi) * phi_dot,
                    -cos(rear) * (omega + phi_dot),
                    -sin(rear) * (omega + phi_dot),
                ],
                [
                    0,
                    0,
                    -l * sin(phi) * phi_dot,
                    -cos(front) * (omega - phi_dot),
                    -sin(front) * (omega - phi_dot),
                ],
            ]
        )
        force = np.array([u[0], u[1] - spring * phi, 0, 0, 0])
        return constrained_acceleration(mass, a, a_dot, force, qd)

    velocity = with_body_plane(1)

    def momenta(q, qd):
        v, phi = velocity(q, qd), q[..., 1]
        board = yaw * v[..., 2] + rotor * v[..., 0]
        return np.stack(
            [
                rotor * (v[..., 0] + v[..., 2]),
                2 * axle * v[..., 1],
                sin(phi) * board - l * cos(phi) * m * v[..., 3],
            ],
            -1,
        )

    def energy(q, qd):
        return np.einsum("...i,ij,...j->...", qd, mass, qd) / 2 + spring * q[..., 1] ** 2 / 2

    return Motion(5, acceleration, momenta, velocity, with_body_plane(-1), energy)


def snakeboard_reduced(m=1.0, l=2.0, rotor=1.0, axle=1.2) -> Callable:
    """The snakeboard's eight first-order equations in (q, rho) as plain Python numbers, the
    fastest form to integrate: f(t, state, u(t)) -> list.

    With omega = s sin(phi), v_forward = -l cos(phi) s: rho_1 = I (psi' + omega), rho_2 = 2 J phi',
    rho_3 = m l^2 s + I psi' sin(phi), and rho' = (u_1, u_2, I psi' phi' cos(phi)), since [e, e] =
    0 leaves only e'(phi) phi' in the last.
    """
    c, s, yaw = math.cos, math.sin, m * l * l

    def rates(t, state, u):
        phi, theta, spin, steer, along = state[1], state[2], state[5], state[6], state[7]
        torque = u(t)
        sp, cp = s(phi), c(phi)
        speed = (along - spin * sp) / (yaw - rotor * sp * sp)
        psi_dot, phi_dot, forward = spin / rotor - speed * sp, steer / (2 * axle), -l * cp * speed
        return [
            psi_dot,
            phi_dot,
            speed * sp,
            forward * c(theta),
            forward * s(theta),
            torque[0],
            torque[1],
            rotor * psi_dot * phi_dot * cp,
        ]

    return rates
