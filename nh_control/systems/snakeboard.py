"""The snakeboard: a board on two steered axles, propelled by a rotor [kobilarov2010 6.2]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class SnakeboardParameters(Parameters):
    """A board on two steered axles with a rotor; the paper gives no values.

    `m l^2` is the total yaw inertia of board, rotor and wheels, so `m l^2 > I` is needed.
    """

    m: float = parameter(1.0, "kg", "mass")
    l: float = parameter(2.0, "m", "half the distance between the axles")
    I: float = parameter(1.0, "kg m^2", "inertia of the rotor")
    J: float = parameter(1.2, "kg m^2", "inertia of one axle about its steering axis")
    rotor_torque_limit: float = parameter(20.0, "N m", "largest torque on the rotor")
    steer_torque_limit: float = parameter(20.0, "N m", "largest steering torque")

    def __post_init__(self) -> None:
        super().__post_init__()
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

    def lagrangian(q: ca.SX, v: ca.SX, p: SnakeboardParameters) -> ca.SX:
        spin = p.I * (v[0] ** 2 / 2 + v[0] * v[2]) + p.J * v[1] ** 2
        return spin + p.m * (p.l**2 * v[2] ** 2 + v[3] ** 2 + v[4] ** 2) / 2

    def constraint(q: ca.SX, p: SnakeboardParameters) -> ca.SX:
        s, c, l = ca.sin(q[1]), ca.cos(q[1]), p.l
        return ca.vertcat(ca.horzcat(0, 0, -l * c, -s, c), ca.horzcat(0, 0, l * c, s, c))

    def symmetry_direction(phi: ca.SX, p: SnakeboardParameters) -> ca.SX:
        return ca.vertcat(ca.sin(phi), -p.l * ca.cos(phi), 0)

    def connection(r: ca.SX, p: SnakeboardParameters) -> ca.SX:
        turned = p.I / (p.m * p.l**2) * ca.sin(r[1]) * symmetry_direction(r[1], p)
        return ca.horzcat(turned, ca.SX(3, 1))

    return System(
        name="snakeboard",
        space=Product(Rn("psi", "phi"), SE2()),
        lagrangian=lagrangian,
        inputs=("rotor_torque", "steer_torque"),
        input_units=("N m", "N m"),
        force=lambda q, v, u, p: ca.vertcat(u, 0, 0, 0),
        velocity_constraint=constraint,
        distribution=lambda q, p: ca.diagcat(ca.SX.eye(2), symmetry_direction(q[1], p)),
        symmetry=Symmetry(n_shape=2, connection=connection),
        domain=lambda q, p: ca.cos(q[1]),
        parameters=parameters,
        input_limits=lambda p: np.outer([p.rotor_torque_limit, p.steer_torque_limit], [-1, 1]),
    )
