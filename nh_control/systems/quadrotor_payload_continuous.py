"""Newton's and Euler's equations of quadrotors that carry a payload, in numpy, and the tensions of
the links.
"""

from __future__ import annotations

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.systems.quadrotor_payload import (
    QuadrotorPayloadParameters,
    split_configuration,
    split_velocity,
)

E3 = np.array([0.0, 0.0, 1.0])


def accelerations(
    parameters: QuadrotorPayloadParameters,
    q: np.ndarray,
    w: np.ndarray,
    omega: np.ndarray,
    force: np.ndarray,
    torque: np.ndarray,
    payload_force: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Accelerations (v' (3), w' (n, 3), Omega' (n, 3)) of payload, links and quadrotors
    [celledoni2021 (37), (38)].

    `Mq (v' + g e3) = sum q_i (q_i . f_i + m_i l_i |w_i|^2) + f_y,  Mq = m_y I + sum m_i q_i q_i^T`
    `w_i' = q_i x (f_i / m_i - v' - g e3) / l_i,  J Omega_i' = M_i - Omega_i x J Omega_i`
    with link directions q (n, 3) from the payload to the quadrotors, `q_i' = w_i x q_i`, inertial
    angular velocities w (n, 3) normal to q, body angular velocities omega (n, 3), world forces f
    (n, 3) on the quadrotors without gravity and f_y (3) on the payload, body torques M (n, 3). z
    up: the paper's e3 points down and its q_i to the payload, so `e3 -> -e3, q_i -> -q_i` and its
    `u_i = -T_i R_i e3` is the thrust along our body z. Its w_i are inertial, not in body frames as
    the text says (corrected).
    """
    p, l = parameters, np.array(parameters.lengths)[:, None]
    mass = p.payload_mass * np.eye(3) + p.quadrotor_mass * q.T @ q
    along = np.sum(q * force, axis=1) + p.quadrotor_mass * l[:, 0] * np.sum(w**2, axis=1)
    proper = np.linalg.solve(mass, along @ q + payload_force)
    inertia = np.array([p.Jx, p.Jy, p.Jz])
    w_dot = np.cross(q, force / p.quadrotor_mass - proper) / l
    return proper - p.g * E3, w_dot, (torque - np.cross(omega, inertia * omega)) / inertia


def derivative(
    parameters: QuadrotorPayloadParameters,
    phase: np.ndarray,
    thrust: np.ndarray,
    torque: np.ndarray,
    payload_force: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Right-hand side for ODE solvers: phase (6 + 18 n) is (y, v, then q_i, w_i, R_i row by row,
    Omega_i of every quadrotor i), thrust (n), torque (n, 3).
    """
    n = parameters.n
    v, quads = phase[3:6], phase[6:].reshape(n, 18)
    q, w, R, omega = quads[:, :3], quads[:, 3:6], quads[:, 6:15].reshape(n, 3, 3), quads[:, 15:]
    force = np.asarray(thrust)[:, None] * R[:, :, 2]
    v_dot, w_dot, omega_dot = accelerations(parameters, q, w, omega, force, torque, payload_force)
    R_dot = np.cross(R, omega[:, None, :])
    return np.concatenate(
        [v, v_dot, np.hstack([np.cross(w, q), w_dot, R_dot.reshape(n, 9), omega_dot]).ravel()]
    )


def phase(parameters: QuadrotorPayloadParameters, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Phase (6 + 18 n) of a configuration q (nq) and velocity v (nw) of `quadrotor_payload`."""
    y, attitudes, links = split_configuration(q, parameters.n)
    y_dot, omegas, rates = split_velocity(v, parameters.n)
    quads = [
        [a, np.cross(a, b), quat2mat(R).ravel(), o]
        for a, b, R, o in zip(links, rates, attitudes, omegas)
    ]
    return np.concatenate([y, y_dot, *(part for quad in quads for part in quad)])


def link_tensions(
    parameters: QuadrotorPayloadParameters, q: np.ndarray, v: np.ndarray, u: np.ndarray
) -> np.ndarray:
    """Tensions (n) in N of the links at configuration q (nq), velocity v (nw) and input u (nu),
    from the exact accelerations; a cable is slack where <= 0.

    `tension_i = q_i . (f_i - m_i (v' + g e3)) + m_i l_i |q_i'|^2`: Newton's law of quadrotor i
    along its link. u may end with the external forces of `wind`.
    """
    p, n = parameters, parameters.n
    _, attitudes, directions = split_configuration(np.asarray(q), n)
    _, omegas, link_rates = split_velocity(np.asarray(v), n)
    links, rates = np.array(directions), np.array(link_rates)
    u = np.asarray(u, dtype=float)
    if len(u) not in (4 * n, 7 * n + 3):
        raise ValueError(
            f"link_tensions: expected {4 * n} inputs, or {7 * n + 3} with wind, got {len(u)}"
        )
    wind = u[4 * n :].reshape(-1, 3) if len(u) > 4 * n else np.zeros((n + 1, 3))
    force = np.array([u[4 * i] * quat2mat(R)[:, 2] for i, R in enumerate(attitudes)]) + wind[1:]
    v_dot, _, _ = accelerations(
        p, links, np.cross(links, rates), np.array(omegas), force, np.zeros((n, 3)), wind[0]
    )
    m, l = p.quadrotor_mass, np.array(p.lengths)
    return np.sum(links * (force - m * (v_dot + p.g * E3)), axis=1) + m * l * np.sum(
        rates**2, axis=1
    )
