"""Vehicles as users write them first: in plain coordinates, by L and A(q) alone."""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.system import System


def _across(angle, arm=0.0, others=0):
    """The row of a wheel at an angle that does not slip sideways, at `arm` from the middle of a
    body with (x', y', theta') first.
    """
    return [-ca.sin(angle), ca.cos(angle), arm, *[0] * others]


def _rows(*rows):
    return ca.vertcat(*(ca.horzcat(*row) for row in rows))


def _planar(q, v, mass, inertia, potential=0.1):
    """Lagrangian of a body in a shallow bowl."""
    return (mass * (v[0] ** 2 + v[1] ** 2) + inertia * v[2] ** 2) / 2 - potential * (
        q[0] ** 2 + q[1] ** 2
    )


def sleigh() -> System:
    """A sleigh whose center of mass is 0.7 m beside its blade."""
    m, a, J = 1.0, 0.7, 2.0

    def lagrangian(q, v):
        swing = v[2] * (v[1] * ca.cos(q[2]) - v[0] * ca.sin(q[2]))
        kinetic = m / 2 * (v[0] ** 2 + v[1] ** 2 + 2 * a * swing) + (J + m * a**2) / 2 * v[2] ** 2
        return kinetic - 0.3 * (q[0] ** 2 + q[1] ** 2)

    return System(
        name="plain_sleigh",
        space=Rn("x", "y", "theta"),
        lagrangian=lagrangian,
        velocity_constraint=lambda q: _rows(_across(q[2])),
    )


def trailer() -> System:
    """A car with rear wheels in the middle, steered ones 0.5 m ahead, held by a spring, and a
    trailer of 0.4 m.
    """

    def rows(q):
        second = [-ca.sin(q[4]), ca.cos(q[4]), 0, 0, -0.4]
        return _rows(_across(q[2], 0.0, 2), _across(q[2] + q[3], 0.5 * ca.cos(q[3]), 2), second)

    return System(
        name="plain_trailer",
        space=Rn("x", "y", "theta", "steer", "trailer"),
        lagrangian=lambda q, v: (
            _planar(q, v, 1.0, 0.3) + 0.02 * v[3] ** 2 + 0.05 * v[4] ** 2 - 0.2 * (q[3] - 0.4) ** 2
        ),
        velocity_constraint=rows,
    )


VEHICLES = {make.__name__: make for make in (sleigh, trailer)}


def admissible(system: System, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The closest velocity that keeps the constraints."""
    a = system.value(system.constraint_matrix(system.symbols[0]), q)
    return v - np.linalg.pinv(a) @ a @ v


def start(system: System) -> tuple[np.ndarray, np.ndarray]:
    """A configuration, and a velocity that turns through several quarters of a circle."""
    n = system.space.nv
    q = np.r_[0.4, 0.1, 0.2, 0.5 * np.ones(n - 3)]
    v = np.r_[np.cos(0.2), np.sin(0.2), 1.5, np.zeros(n - 3)]
    return q, admissible(system, q, v)


def reference(system: System, seconds: float) -> np.ndarray:
    """Configuration at the end, by SciPy on the equations with multipliers."""
    q, v = start(system)
    motion, n = ContinuousSystem(system), len(q)

    def rates(_, y):
        return np.concatenate([y[n:], motion.acceleration(y[:n], y[n:])])

    solved = solve_ivp(rates, (0, seconds), np.r_[q, v], "DOP853", rtol=1e-12, atol=1e-12)
    return solved.y[:n, -1]
