"""A homogeneous ball that rolls on a turntable. Its center moves on a circle."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, Benchmark
from nh_control.benchmarks.motion import METHOD, integrate
from nh_control.geometry import quaternion

RADIUS, MASS, RATE = 0.3, 1.4, 2.5
"""Radius and mass of the ball (m, kg), and rate of the turntable (rad/s)."""
PLACE, SPEED, SPIN = (0.5, 0.2), (0.3, -0.4), 1.1
"""Initial position and velocity of the center (m, m/s), and rate about the vertical (rad/s)."""


def ball_on_turntable() -> nh.System:
    """Return the system with q = (x, y, unit quaternion) and the constraint `A(q) v = b(q)`, which
    makes the point of contact move with the table.
    """
    inertia = 0.4 * MASS * RADIUS**2

    # v + omega x (-R e_z) = velocity of the table, with omega = R(q) times the body rates.
    def rolling(q: ca.SX) -> ca.SX:
        spin = quaternion.matrix(q[2:])
        under = RADIUS * ca.vertcat(-spin[1, :], spin[0, :])
        return ca.horzcat(ca.SX.eye(2), under)

    return nh.System(
        name="ball_on_turntable",
        space=nh.Product(nh.Rn("x", "y"), nh.SO3()),
        lagrangian=lambda q, v: (MASS * ca.sumsqr(v[:2]) + inertia * ca.sumsqr(v[2:])) / 2,
        velocity_constraint=rolling,
        velocity_drift=lambda q: RATE * ca.vertcat(-q[1], q[0]),
    )


def start() -> tuple[np.ndarray, np.ndarray]:
    """Return the configuration and velocity. The ball rolls, and its axes are aligned with the
    world's.
    """
    slip = RATE * np.array([-PLACE[1], PLACE[0]]) - SPEED
    spin = slip[1] / RADIUS, -slip[0] / RADIUS, SPIN
    return np.array([*PLACE, 1.0, 0.0, 0.0, 0.0]), np.array([*SPEED, *spin])


def center(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the position and velocity of the center at time t. The center moves on a circle at
    2/7 of the table's rate.
    """
    rate = 2 / 7 * RATE
    c, s = np.cos(rate * t), np.sin(rate * t)
    rotation, aside = np.array([[c, -s], [s, c]]), np.array([[0.0, 1.0], [-1.0, 0.0]])
    return PLACE + aside @ (rotation - np.eye(2)) @ SPEED / rate, rotation @ SPEED


def compute() -> Mapping[str, float]:
    system = ball_on_turntable()
    q, v = start()
    q, v = integrate(system, q, v, 10.0, steps=2000)
    return {"x, m": q[0], "y, m": q[1], "x', m/s": v[0], "y', m/s": v[1]}


TURNTABLE = Benchmark(
    name="turntable",
    title="ball that rolls on a turntable: its center after 10 s",
    source="circle with 2/7 of the table's rate: Burns (1981), Am. J. Phys. 49, 56",
    reference=CLOSED_FORM,
    published=dict(zip(("x, m", "y, m", "x', m/s", "y', m/s"), np.concatenate(center(10.0)))),
    compute=compute,
    method=METHOD,
)
