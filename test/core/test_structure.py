"""What the integrators preserve, and which of them are the same map by different derivations."""

import continuous
import numpy as np
import pytest
from cases import METHODS, discrete

from nh_control.systems import snakeboard

H = 0.1
ROUND_OFF = 1e-12
SOME = ("dla", "dla-left", "rdp-exp-exact-0.5", "rdp-ccsk-truncated-0.3")
PARAMETERS = dict(m=1.0, l=2.0, rotor=1.0, axle=1.2)


def test_a_forced_step_is_symplectic_too_for_forces_of_the_input_alone():
    dsys = discrete("pendulum", "midpoint", H)
    a, _ = dsys.linearize(np.array([2.0, -1.0]), np.array([3.0]))
    assert abs(np.linalg.det(a) - 1) <= ROUND_OFF


def printed_snakeboard_rdp(q, v, inputs, h, m, l, rotor, axle):
    """The simplified RDP of the snakeboard [kobilarov2010 6.2, corrected], exact for
    `dtau^{-1} = I - ad/2`, alpha = 1/2.

    Velocities (ur, xi) live on steps; the impulse at node k is the mean of its two steps' inputs
    times h, half a one at both ends. Returns the states (q, rho) at the nodes.
    """
    e = lambda phi: np.array([np.sin(phi), -l * np.cos(phi)])
    board = lambda u_psi, xi: np.array([m * l**2 * xi[0] + rotor * u_psi, m * xi[1]])
    q = np.array(q, dtype=float)
    spin, steer, along = rotor * (v[0] + v[2]), 2 * axle * v[1], e(q[1]) @ board(v[0], v[2:4])
    states = [np.array([*q, spin, steer, along])]
    previous = np.zeros(2)
    for torque in inputs:
        impulse = h / 2 * (previous + torque)
        spin, steer, previous = spin + impulse[0], steer + impulse[1], torque
        u_phi = steer / (2 * axle)
        phi, middle = q[1], q[1] + h / 2 * u_phi
        # unknown (u_psi, s), xi = s e(middle): rotor (u_psi + xi_1) = spin and e(phi) .
        # board(u_psi, xi) = along, both linear
        column = board(0.0, e(middle))
        matrix = np.array(
            [[rotor, rotor * e(middle)[0]], [e(phi) @ board(1.0, np.zeros(2)), e(phi) @ column]]
        )
        u_psi, s = np.linalg.solve(matrix, [spin, along])
        xi = s * e(middle)
        turn, forward = h * xi
        back, angle = (np.sin(turn) / turn, (1 - np.cos(turn)) / turn) if turn else (1.0, 0.0)
        body = forward * np.array([back, angle])
        c, sn = np.cos(q[2]), np.sin(q[2])
        q = q + np.array(
            [h * u_psi, h * u_phi, turn, c * body[0] - sn * body[1], sn * body[0] + c * body[1]]
        )
        along = e(q[1]) @ board(u_psi, xi)
        states.append(np.array([*q, spin + h / 2 * torque[0], steer + h / 2 * torque[1], along]))
    return np.array(states)


def test_truncated_exp_is_the_snakeboard_scheme_of_the_paper():
    """Initial state of [kobilarov2010 Fig. 4]: psi = pi/2, phi = pi/3, p_1 = -1, psi_dot = 2.5,
    phi_dot = -0.02, theta = 0; p_1 = 2 cos(phi) rho_3.
    """
    h, n = 10 / 128, 128
    dsys = METHODS["rdp-exp-truncated-0.5"](snakeboard(), h)
    phi = np.pi / 3
    motion = continuous.snakeboard(**PARAMETERS)
    q = np.array([np.pi / 2, phi, 0.0, 0.0, 0.0])
    # admissible velocity (psi_dot, phi_dot, s e(phi)) with rho_3 = p_1 / (2 cos phi)
    speed = lambda s: np.array([2.5, -0.02, s * np.sin(phi), -2 * s * np.cos(phi), 0.0])
    rho_3 = lambda s: motion.momenta(q, motion.rates(q, speed(s)))[2]
    v = speed((-1 / (2 * np.cos(phi)) - rho_3(0.0)) / (rho_3(1.0) - rho_3(0.0)))
    times = (np.arange(n) + 0.5) * h
    inputs = np.stack([np.cos(2 * np.pi * times), np.sin(2 * np.pi * times)], -1)
    run = dsys.simulate(dsys.state(q, v), inputs)
    assert abs(2 * np.cos(phi) * run.states[0, 7] + 1) <= ROUND_OFF
    expected = printed_snakeboard_rdp(q, v, inputs, h, **PARAMETERS)
    assert np.abs(run.states - expected).max() <= 1e-11


@pytest.mark.parametrize("method", (*SOME, "gni"))
def test_momenta_of_cyclic_and_decoupled_coordinates(method):
    """rho_1 = I (psi_dot + omega) belongs to the symmetry in psi, rho_2 = 2 J phi_dot to steering
    alone: each changes by its impulse exactly.
    """
    dsys, rng = discrete("snakeboard", method, 0.01), np.random.default_rng(2)
    x = dsys.state([0.2, -0.8, 0.3, 1.0, 2.0], [0.9, 0.08, -0.3, 1.1, 0.0])
    inputs = 0.1 * rng.normal(size=(2000, 2))
    run = dsys.simulate(x, inputs)
    impulses = np.vstack([np.zeros(2), np.cumsum(0.01 * inputs, axis=0)])
    assert (
        np.abs(run.states[:, 5:7] - x[5:7] - impulses).max()
        <= 2000 * 16 * np.finfo(float).eps * np.abs(run.states[:, 5:7]).max()
    )
