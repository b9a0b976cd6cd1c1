"""Newton-Euler equations, in NumPy, for quadrotors that carry a payload, and the link tensions."""

from __future__ import annotations

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.geometry import quaternion
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
    """Accelerations (v' (3), w' (n, 3), Omega' (n, 3)) of the payload, links and quadrotors
    [celledoni2021 (37), (38)].

    `Mq (v' + g e3) = sum q_i (q_i . f_i + m_i l_i |w_i|^2) + f_y,  Mq = m_y I + sum m_i q_i q_i^T`
    `w_i' = q_i x (f_i / m_i - v' - g e3) / l_i,  J Omega_i' = M_i - Omega_i x J Omega_i` with the
    link directions q (n, 3) from the payload to the quadrotors, `q_i' = w_i x q_i`, inertial
    angular velocities w (n, 3) normal to q, body angular velocities omega (n, 3), forces f (n, 3)
    on the quadrotors without gravity and f_y (3) on the payload in the world, and body torques M
    (n, 3). Here z is up. In the paper, e3 points down and q_i points to the payload, so
    `e3 -> -e3, q_i -> -q_i`, and the paper's `u_i = -T_i R_i e3` is the thrust along the body's z
    axis here. The paper's w_i are inertial, not in body frames as the text states (corrected).
    """
    l = np.array(parameters.lengths)[:, None]
    proper = _proper_acceleration(parameters, q, _dot(w, w), force, payload_force)
    inertia = np.array([parameters.Jx, parameters.Jy, parameters.Jz])
    w_dot = np.cross(q, force / parameters.quadrotor_mass - proper) / l
    return proper - parameters.g * E3, w_dot, (torque - np.cross(omega, inertia * omega)) / inertia


def _proper_acceleration(
    parameters: QuadrotorPayloadParameters,
    q: np.ndarray,
    squares: np.ndarray,
    force: np.ndarray,
    payload_force: np.ndarray | float,
) -> np.ndarray:
    """`v' + g e3` (..., 3) of the payload (see `accelerations`), with directions q (..., n, 3),
    `squares` |w_i|^2 (..., n) and world forces (..., n, 3) and (..., 3).
    """
    m = parameters.quadrotor_mass
    # Mq = m_y I + sum m_i q_i q_i^T
    mass = parameters.payload_mass * np.eye(3) + m * np.swapaxes(q, -1, -2) @ q
    # q_i . f_i + m_i l_i |w_i|^2
    along = _dot(q, force) + m * np.array(parameters.lengths) * squares
    total = (along[..., None, :] @ q)[..., 0, :] + payload_force
    return np.linalg.solve(mass, total[..., None])[..., 0]


def derivative(
    parameters: QuadrotorPayloadParameters,
    phase: np.ndarray,
    thrust: np.ndarray,
    torque: np.ndarray,
    payload_force: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Right-hand side for ODE solvers. The phase (6 + 18 n) consists of (y, v), followed by (q_i,
    w_i, R_i row by row, Omega_i) for each quadrotor i. The inputs are the thrust (n) and the
    torque (n, 3).
    """
    n = parameters.n
    v, quads = phase[3:6], phase[6:].reshape(n, 18)
    q, w, R, omega = quads[:, :3], quads[:, 3:6], quads[:, 6:15].reshape(n, 3, 3), quads[:, 15:]
    force = np.asarray(thrust)[:, None] * R[:, :, 2]
    v_dot, w_dot, omega_dot = accelerations(parameters, q, w, omega, force, torque, payload_force)
    # since R' = R hat(Omega), each row r of R has the rate r x Omega
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
    """Link tensions (n), in N, at configuration q (nq), velocity v (nw) and input u (nu), from the
    exact accelerations. A cable is slack if its tension is <= 0. For tables (N, nq), (N, nw) and
    (N, nu), the result is a table (N, n).

    `tension_i = q_i . (f_i - m_i (v' + g e3)) + m_i l_i |q_i'|^2` is Newton's law for quadrotor i
    along its link. u may end with external forces if there is `wind`.
    """
    n, m = parameters.n, parameters.quadrotor_mass
    q, v, u = np.asarray(q), np.asarray(v), np.asarray(u, dtype=float)
    if u.shape[-1] not in (4 * n, 7 * n + 3):
        raise ValueError(
            f"link_tensions: expected {4 * n} inputs, or {7 * n + 3} with wind, got {u.shape[-1]}"
        )
    rows = u.shape[:-1]
    attitudes = q[..., 3 : 3 + 4 * n].reshape((*rows, n, 4))
    links = q[..., 3 + 4 * n :].reshape((*rows, n, 3))
    rates = v[..., 3 + 3 * n :].reshape((*rows, n, 3))
    squares = _dot(rates, rates)
    wind = np.zeros((n + 1, 3))
    if u.shape[-1] > 4 * n:
        wind = u[..., 4 * n :].reshape((*rows, n + 1, 3))
    force = u[..., : 4 * n : 4, None] * quaternion.z_axes(attitudes) + wind[..., 1:, :]
    proper = _proper_acceleration(parameters, links, squares, force, wind[..., 0, :])
    return (
        _dot(links, force - m * proper[..., None, :]) + m * np.array(parameters.lengths) * squares
    )


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i", a, b)
