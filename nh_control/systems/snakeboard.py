"""The snakeboard [kobilarov2010 6.2], a board on two steered axles that is propelled by a
rotor.
"""

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
    """A board on two steered axles with a rotor. The paper does not state any values.

    `m l^2` is the total yaw inertia of the board, rotor and wheels, so it must exceed `I`.
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
    """A snakeboard with q = (psi, phi, theta, x, y), v = (psi_dot, phi_dot, omega, v_forward,
    v_side), `L = v^T M v / 2`.

    psi is the angle of the rotor. phi turns the rear truck by +phi and the front truck by -phi.
    The inputs are the torques (N m) on both coordinates. The constraints (34) in the body frame
    are `-l cos(phi) omega - sin(phi) v_forward + cos(phi) v_side = 0` (rear),
    `l cos(phi) omega + sin(phi) v_forward + cos(phi) v_side = 0` (front), regular for
    `|phi| < pi/2`. The basis of the admissible velocities is d/dpsi, d/dphi, e(phi) =
    (sin phi, -l cos phi, 0). The printed reduced Lagrangian lacks the factor 1/2 (corrected).
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: SnakeboardParameters) -> ca.SX:
        # I (psi' + omega)^2 / 2 without omega^2, which is in m l^2, and 2 J phi'^2 / 2
        spin = params.I * (v[0] ** 2 / 2 + v[0] * v[2]) + params.J * v[1] ** 2
        return spin + params.m * (params.l**2 * v[2] ** 2 + v[3] ** 2 + v[4] ** 2) / 2

    def constraint(q: ca.SX, params: SnakeboardParameters) -> ca.SX:
        s, c, l = ca.sin(q[1]), ca.cos(q[1]), params.l
        return ca.vertcat(ca.horzcat(0, 0, -l * c, -s, c), ca.horzcat(0, 0, l * c, s, c))

    def symmetry_direction(phi: ca.SX, params: SnakeboardParameters) -> ca.SX:
        return ca.vertcat(ca.sin(phi), -params.l * ca.cos(phi), 0)

    def connection(r: ca.SX, params: SnakeboardParameters) -> ca.SX:
        # the connection is (I / m l^2) sin(phi) e(phi) for psi
        turned = (
            params.I / (params.m * params.l**2) * ca.sin(r[1]) * symmetry_direction(r[1], params)
        )
        return ca.horzcat(turned, ca.SX(3, 1))

    return System(
        name="snakeboard",
        space=Product(Rn("psi", "phi"), SE2()),
        lagrangian=lagrangian,
        inputs=("rotor_torque", "steer_torque"),
        input_units=("N m", "N m"),
        force=lambda q, v, u, params: ca.vertcat(u, 0, 0, 0),
        velocity_constraint=constraint,
        distribution=lambda q, params: ca.diagcat(ca.SX.eye(2), symmetry_direction(q[1], params)),
        symmetry=Symmetry(n_shape=2, connection=connection),
        domain=lambda q, params: ca.cos(q[1]),
        parameters=parameters,
        input_limits=lambda params: np.outer(
            [params.rotor_torque_limit, params.steer_torque_limit], [-1, 1]
        ),
    )
