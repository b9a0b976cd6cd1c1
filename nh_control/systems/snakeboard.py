"""The snakeboard: a board on two steered axles, propelled by a rotor [kobilarov2010 6.2]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.mechanics.system import Symmetry, System
from nh_control.systems.parameters import require_positive


@dataclass(frozen=True)
class SnakeboardParameters:
    """Parameters of the snakeboard; the paper gives no values.

    Mass `m` (kg), half length `l` (m), rotor inertia `I` (kg m^2), inertia `J` (kg m^2) of one
    axle about its steering axis, and the actuators' limits (N m). `m l^2` is the total yaw inertia
    of board, rotor and wheels, so `m l^2 > I` is needed.
    """

    m: float = 1.0
    l: float = 2.0
    I: float = 1.0
    J: float = 1.2
    rotor_torque_limit: float = 20.0
    steer_torque_limit: float = 20.0

    def __post_init__(self):
        require_positive(self)
        if self.m * self.l**2 <= self.I:
            raise ValueError(
                f"SnakeboardParameters: m l^2 = {self.m * self.l**2:g} is the total yaw inertia "
                f"and must exceed the rotor's I = {self.I:g}"
            )


def snakeboard(parameters: SnakeboardParameters = SnakeboardParameters()) -> System:
    """Snakeboard with q = (psi, phi, theta, x, y), v = (psi_dot, phi_dot, omega, v_forward,
    v_side), `L = v^T M v / 2`.

    psi turns the rotor, phi the rear truck by +phi and the front truck by -phi; inputs are the
    torques (N m) on both. Constraints (34) in the body frame:
    `-l cos(phi) omega - sin(phi) v_forward + cos(phi) v_side = 0` (rear),
    `l cos(phi) omega + sin(phi) v_forward + cos(phi) v_side = 0` (front), regular for |phi| <
    pi/2. Basis of the admissible velocities: d/dpsi, d/dphi, e(phi) = (sin phi, -l cos phi, 0).
    The reduced Lagrangian lacks the 1/2 in print (corrected).
    """
    m, l, rotor, axle = parameters.m, parameters.l, parameters.I, parameters.J
    yaw = m * l**2

    def lagrangian(q, v):
        spin = rotor * (v[0] ** 2 / 2 + v[0] * v[2]) + axle * v[1] ** 2
        return spin + (yaw * v[2] ** 2 + m * (v[3] ** 2 + v[4] ** 2)) / 2

    def constraint(q):
        s, c = ca.sin(q[1]), ca.cos(q[1])
        return ca.vertcat(ca.horzcat(0, 0, -l * c, -s, c), ca.horzcat(0, 0, l * c, s, c))

    def symmetry_direction(phi):
        return ca.vertcat(ca.sin(phi), -l * ca.cos(phi), 0)

    def connection(r):
        return ca.horzcat(rotor / yaw * ca.sin(r[1]) * symmetry_direction(r[1]), ca.SX(3, 1))

    return System(
        name="snakeboard",
        space=Product(Rn("psi", "phi"), SE2()),
        lagrangian=lagrangian,
        inputs=("rotor_torque", "steer_torque"),
        input_units=("N m", "N m"),
        force=lambda q, v, u: ca.vertcat(u, 0, 0, 0),
        velocity_constraint=constraint,
        distribution=lambda q: ca.diagcat(ca.SX.eye(2), symmetry_direction(q[1])),
        symmetry=Symmetry(2, connection=connection, basis=lambda r: symmetry_direction(r[1])),
        domain=lambda q: ca.cos(q[1]),
        parameters=parameters,
        input_limits=np.array([[-1, 1]])
        * np.array([[parameters.rotor_torque_limit], [parameters.steer_torque_limit]]),
    )
