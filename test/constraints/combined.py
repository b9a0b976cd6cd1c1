"""Systems whose constraints are combined, and their equations of motion by hand.

The hand-written ones use nothing of nh_control: constant masses in inertial coordinates with all
constraints at the level of accelerations, `M a = F + C^T lam, C a = g(q, v)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy import cos, sin
from scipy.integrate import solve_ivp

from nh_control.benchmarks import turntable
from nh_control.geometry import quaternion
from nh_control.geometry.spaces import SE2, Product
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class Case:
    """A system, its start (q, v), its steady input, and (q, v) at time t by other means."""

    system: System
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    solution: Callable[[float], tuple[np.ndarray, np.ndarray]]


def motion(acceleration, q, v, t):
    """(q, v) at time t of `q'' = acceleration(q, v)`."""
    n = len(q)

    def rate(_, y):
        return np.concatenate([y[n:], acceleration(y[:n], y[n:])])

    found = solve_ivp(rate, (0, t), np.concatenate([q, v]), "DOP853", rtol=1e-13, atol=1e-13)
    return found.y[:n, -1], found.y[n:, -1]


def constrained(mass, force, c, g):
    """Accelerations of constant masses under constraints C a = g."""
    zero = np.zeros((len(c), len(c)))
    matrix = np.block([[np.diag(mass), -c.T], [c, zero]])
    return np.linalg.solve(matrix, np.concatenate([force, g]))[: len(mass)]


def along(theta):
    """Unit vectors forward and to the side."""
    return np.array([cos(theta), sin(theta)]), np.array([-sin(theta), cos(theta)])


# A skate that pulls an arm ---------------------------------------------------------------------

M_SKATE, I_SKATE, M_ARM, I_ARM, HITCH, REACH = 2.0, 0.3, 0.5, 0.05, 0.4, 0.6
TORQUE, PUSH = 0.2, 1.0


def wheel_with_arm() -> Case:
    """A body on a skate (A v = 0), an arm pinned to its back (h = 0), a torque and a push."""

    def ends(q):
        return (
            ca.vertcat(q[1] - HITCH * ca.cos(q[0]), q[2] - HITCH * ca.sin(q[0])),
            ca.vertcat(q[4] + REACH * ca.cos(q[3]), q[5] + REACH * ca.sin(q[3])),
        )

    def lagrangian(q, v):
        skate = M_SKATE * (v[1] ** 2 + v[2] ** 2) + I_SKATE * v[0] ** 2
        return (skate + M_ARM * (v[4] ** 2 + v[5] ** 2) + I_ARM * v[3] ** 2) / 2

    system = System(
        name="wheel_with_arm",
        space=Product(SE2(), SE2(("arm_theta", "arm_x", "arm_y"), ("arm_w", "arm_vf", "arm_vs"))),
        lagrangian=lagrangian,
        inputs=("torque", "push"),
        force=lambda q, v, u: ca.vertcat(u[0], u[1], 0, -u[0], 0, 0),
        velocity_constraint=lambda q: ca.horzcat(0, 0, 1, 0, 0, 0),
        holonomic_constraint=lambda q: ends(q)[0] - ends(q)[1],
    )
    theta, turn = 0.3, 2.6
    at = HITCH * -along(theta)[0] - REACH * along(turn)[0]
    q = np.array([theta, 0.0, 0.0, turn, *at])
    rate, speed, arm_rate = 0.8, 1.2, -0.5
    hitch = speed * along(theta)[0] - HITCH * rate * along(theta)[1]
    center = hitch - REACH * arm_rate * along(turn)[1]
    v = np.array([rate, speed, 0.0, arm_rate, *(side @ center for side in along(turn))])

    def acceleration(q, w):
        (f, s), (af, as_) = along(q[0]), along(q[3])
        c = np.zeros((3, 6))
        c[0, 1:3], c[1:, 1:3], c[1:, 4:] = s, np.eye(2), -np.eye(2)
        c[1:, 0], c[1:, 3] = -HITCH * s, -REACH * as_
        bend = HITCH * w[0] ** 2 * f + REACH * w[3] ** 2 * af
        g = np.concatenate([[w[0] * (f @ w[1:3])], -bend])
        force = np.array([TORQUE, *(PUSH * f), -TORQUE, 0.0, 0.0])
        return constrained([I_SKATE, M_SKATE, M_SKATE, I_ARM, M_ARM, M_ARM], force, c, g)

    def coordinates(v):
        (f, s), (af, as_) = along(q[0]), along(q[3])
        return np.array([v[0], *(v[1] * f + v[2] * s), v[3], *(v[4] * af + v[5] * as_)])

    def solution(t):
        end, w = motion(acceleration, q, coordinates(v), t)
        (f, s), (af, as_) = along(end[0]), along(end[3])
        body = w[0], f @ w[1:3], s @ w[1:3], w[3], af @ w[4:], as_ @ w[4:]
        return end, np.array(body)

    return Case(system, q, v, np.array([TORQUE, PUSH]), solution)


# A ball on a turntable -------------------------------------------------------------------------


def ball_on_turntable() -> Case:
    """A homogeneous ball that rolls on a plane that turns, `A(q) v = b(q)`: its center moves on a
    circle with 2/7 of the plane's rate, and it keeps its spin about the vertical, whatever it is.
    """
    system, (q, v) = turntable.ball_on_turntable(), turntable.start()
    radius, rate = turntable.RADIUS, turntable.RATE

    def spin(at, w):
        """World angular velocity of a ball that rolls: `w + omega x (-r e3) = rate e3 x at`."""
        slip = rate * np.array([-at[1], at[0]]) - w
        return np.array([slip[1] / radius, -slip[0] / radius, turntable.SPIN])

    def turned(t):
        def turning(s, p):
            w = spin(*turntable.center(s))
            return np.array([-w @ p[1:], *(p[0] * w + np.cross(w, p[1:]))]) / 2

        found = solve_ivp(turning, (0, t), q[2:], "DOP853", rtol=1e-13, atol=1e-13)
        return found.y[:, -1] / np.linalg.norm(found.y[:, -1])

    def body(p, w):
        r = np.array(ca.DM(quaternion.matrix(ca.DM(p))))
        return r.T @ w

    def solution(t):
        at, w = turntable.center(t)
        p = turned(t)
        return np.array([*at, *p]), np.array([*w, *body(p, spin(at, w))])

    return Case(system, q, v, np.zeros(0), solution)


CASES = {case.system.name: case for case in (wheel_with_arm(), ball_on_turntable())}
