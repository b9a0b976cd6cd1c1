"""The Lagrangian's equations of motion against Newton's and Euler's [celledoni2021 (36)-(38)], and
the tensions of the links.
"""

import numpy as np
import pytest
from payload_cases import parameters, random_motion

from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.systems import link_tensions, quadrotor_payload
from nh_control.systems import quadrotor_payload_continuous as continuous


def forces(n, rng):
    """Thrusts (n), torques (n, 3) and wind forces (n + 1, 3)."""
    return rng.uniform(5, 15, n), rng.normal(size=(n, 3)) * 0.3, rng.normal(size=(n + 1, 3))


def acceleration(p, q, v, thrust, torque, wind):
    """Of the system's Lagrangian: payload, body rates, links."""
    u = np.concatenate([np.column_stack([thrust, torque]).ravel(), wind.ravel()])
    return ContinuousSystem(quadrotor_payload(p, wind=True)).acceleration(q, v, u)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_lagrangian_s_accelerations_are_newton_s(n):
    """With wind on all bodies, which on the quadrotors adds to their thrusts."""
    rng, p = np.random.default_rng(n), parameters(n)
    q, v = random_motion(n, rng)
    thrust, torque, wind = forces(n, rng)
    found = acceleration(p, q, v, thrust, torque, wind)
    quads = continuous.phase(p, q, v)[6:].reshape(n, 18)
    links, w, R, omega = np.split(quads, [3, 6, 15], axis=1)
    push = thrust[:, None] * R.reshape(n, 3, 3)[:, :, 2] + wind[1:]
    y_ddot, w_dot, omega_dot = continuous.accelerations(p, links, w, omega, push, torque, wind[0])
    np.testing.assert_allclose(found[:3], y_ddot, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found[3 : 3 + 3 * n], omega_dot.ravel(), rtol=0, atol=1e-11)
    turning = np.cross(w_dot, links) + np.cross(w, np.cross(w, links))
    np.testing.assert_allclose(found[3 + 3 * n :], turning.ravel(), rtol=0, atol=1e-11)


def test_tensions_are_what_the_equations_of_motion_leave():
    """`m_y (y'' + g e3) = sum tension_i q_i + wind` with y'' of the Lagrangian's equations, and
    wind on the payload and on every quadrotor.
    """
    rng, p = np.random.default_rng(5), parameters(2)
    q, v = random_motion(2, rng)
    u = np.concatenate([rng.uniform(5, 15, 8), rng.normal(size=9)])
    acceleration = ContinuousSystem(quadrotor_payload(p, wind=True)).acceleration(q, v, u)[:3]
    needed = p.payload_mass * (acceleration + [0, 0, p.g]) - u[8:11]
    tensions = link_tensions(p, q, v, u)
    np.testing.assert_allclose(tensions @ q[11:].reshape(2, 3), needed, rtol=0, atol=1e-12)
    still = ContinuousSystem(quadrotor_payload(p)).acceleration(q, v, u[:8])[:3]
    needed = p.payload_mass * (still + [0, 0, p.g])
    tensions = link_tensions(p, q, v, u[:8])
    np.testing.assert_allclose(tensions @ q[11:].reshape(2, 3), needed, rtol=0, atol=1e-12)
