"""Equations of motion derived from the Lagrangian, against force balances written by hand."""

import casadi as ca
import continuous
import numpy as np
import pytest
from transforms3d.quaternions import quat2mat

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.system import System
from nh_control.systems import (
    QuadrotorPayloadParameters,
    chaplygin_sleigh,
    pendulum,
    quadrotor_payload,
    snakeboard,
)
from nh_control.systems.quadrotor_payload import split_configuration, split_velocity
from nh_control.systems.quadrotor_payload_continuous import accelerations
from nh_control.systems.rigid_body import rigid_body

BY_HAND = {
    "pendulum": (pendulum, continuous.pendulum),
    "sleigh": (chaplygin_sleigh, continuous.sleigh),
    "snakeboard": (snakeboard, continuous.snakeboard),
}


def random_point(system, rng):
    """A configuration, an admissible velocity and an input of order one."""
    q = system.space.retract(system.space.origin, rng.uniform(-1, 1, system.space.nv))
    v = np.asarray(ca.DM(system.space.frame(ca.SX(q)))) @ rng.normal(size=system.space.nv)
    if system.n_velocity_constraints:
        a = np.asarray(ca.DM(system.numeric.constraint_matrix(ca.SX(q))))
        v -= np.linalg.pinv(a) @ a @ v
    return q, v, rng.normal(size=system.nu)


@pytest.mark.parametrize("name", BY_HAND)
def test_accelerations_are_those_of_force_balances(name):
    make, by_hand = BY_HAND[name]
    system, motion, rng = make(), by_hand(), np.random.default_rng(1)
    equations = ContinuousSystem(system)
    for _ in range(5):
        q, v, u = random_point(system, rng)
        qd = motion.rates(q, v)
        qdd = motion.acceleration(q, qd, u)
        expected = motion.velocity(q + 1e-30j * qd, qd + 1e-30j * qdd).imag / 1e-30  # complex step
        np.testing.assert_allclose(
            equations.acceleration(q, v, u), expected, rtol=1e-12, atol=1e-12
        )


def test_a_rigid_body_turns_by_eulers_equations():
    system, rng = rigid_body(), np.random.default_rng(2)
    inertia = np.array([system.parameters.Jx, system.parameters.Jy, system.parameters.Jz])
    q, omega, torque = random_point(system, rng)
    expected = (torque - np.cross(omega, inertia * omega)) / inertia
    np.testing.assert_allclose(
        ContinuousSystem(system).acceleration(q, omega, torque), expected, rtol=1e-13, atol=1e-13
    )


def test_a_payload_on_links_between_rotors_moves_by_newtons_and_eulers_equations():
    """R^3 x SO(3)^2 x (S^2)^2."""
    p = QuadrotorPayloadParameters()
    system, rng = quadrotor_payload(p), np.random.default_rng(3)
    q, v, u = random_point(system, rng)
    (_, attitudes, links), (_, omegas, rates) = split_configuration(q, p.n), split_velocity(v, p.n)
    links, rates, thrusts = np.array(links), np.array(rates), u.reshape(p.n, 4)
    turns = np.cross(links, rates)
    force = np.array([t * quat2mat(R)[:, 2] for t, R in zip(thrusts[:, 0], attitudes)])
    v_dot, w_dot, omega_dot = accelerations(
        p, links, turns, np.array(omegas), force, thrusts[:, 1:]
    )
    swings = np.cross(w_dot, links) + np.cross(turns, rates)
    expected = np.concatenate([v_dot, omega_dot.ravel(), swings.ravel()])
    np.testing.assert_allclose(
        ContinuousSystem(system).acceleration(q, v, u), expected, rtol=1e-11, atol=1e-11
    )


def test_a_rod_keeps_its_length():
    """Along the rod the acceleration is that of the circle, across it of gravity and push."""
    rod = System(
        name="rod",
        space=Rn("x", "z"),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2 - 9.8 * q[1],
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u, 0),
        holonomic_constraint=lambda q: ca.sumsqr(q) - 0.49,
    )
    angle, omega, push = 0.6, 1.7, 2.0
    radial, across = (
        np.array([np.sin(angle), -np.cos(angle)]),
        np.array([np.cos(angle), np.sin(angle)]),
    )
    acceleration = ContinuousSystem(rod).acceleration(0.7 * radial, 0.7 * omega * across, [push])
    expected = -0.7 * omega**2 * radial + (across @ [push, -9.8]) * across
    np.testing.assert_allclose(acceleration, expected, rtol=1e-13, atol=1e-13)


def test_wrong_shapes_are_refused():
    with pytest.raises(
        ValueError, match=r"pendulum: v must be 1 finite numbers, got \[0.0, 1.0\]"
    ):
        ContinuousSystem(pendulum()).acceleration([0.0], [0.0, 1.0], [0.0])
