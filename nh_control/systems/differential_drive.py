"""A differential drive, a body on two driven wheels, including the dynamics of the wheels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Expression


@dataclass(frozen=True)
class DifferentialDriveParameters(Parameters):
    """A body with the size of a small service robot, on two wheels and a massless caster."""

    m_body: float = parameter(9.0, "kg", "mass of the body without the wheels")
    m_wheel: float = parameter(0.5, "kg", "mass of each wheel")
    I_body: float = parameter(0.2, "kg m^2", "yaw inertia of the body about its center of mass")
    J_roll: float = parameter(0.0016, "kg m^2", "inertia of a wheel and motor about the axle")
    J_yaw: float = parameter(0.0008, "kg m^2", "inertia of a wheel about its vertical")
    d: float = parameter(
        0.05, "m", "distance of the body's center of mass in front of the axle", above=-math.inf
    )
    b: float = parameter(0.15, "m", "half the distance between the wheels")
    r: float = parameter(0.08, "m", "radius of the wheels")
    torque_limit: float = parameter(1.5, "N m", "largest torque on a wheel")


def differential_drive(
    parameters: DifferentialDriveParameters = DifferentialDriveParameters(),
) -> System:
    """A body with q = (left, right, theta, x, y), the angles of its wheels about y (to the left)
    and the pose of the middle of its axle. The inputs are the motor torques (N m).

    `L = (m |v|^2 + 2 m_body d omega v_side + I omega^2 + J_roll (left'^2 + right'^2)) / 2` with
    the total mass m and the yaw inertia about the middle of the axle,
    `I = I_body + m_body d^2 + 2 (J_yaw + m_wheel b^2)`. The constraints are `v_side = 0`,
    `v_forward - b omega - r left' = 0` and `v_forward + b omega - r right' = 0`. The basis
    consists of rotation, `(-b/r, b/r, 1, 0, 0)`, and forward motion, `(1/r, 1/r, 0, 1, 0)`. This
    is the standard model in Fierro and Lewis (1997), and in Dhaouadi and Abu Hatab (2013).
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: DifferentialDriveParameters) -> ca.SX:
        # Steiner terms move the inertias to the middle of the axle
        yaw = (
            params.I_body
            + params.m_body * params.d**2
            + 2 * (params.J_yaw + params.m_wheel * params.b**2)
        )
        body = (params.m_body + 2 * params.m_wheel) * (v[3] ** 2 + v[4] ** 2) + yaw * v[2] ** 2
        offset = 2 * params.m_body * params.d * v[2] * v[4]
        return (body + offset + params.J_roll * (v[0] ** 2 + v[1] ** 2)) / 2

    def constraint(q: ca.SX, params: DifferentialDriveParameters) -> Expression:
        return ca.vertcat(
            ca.horzcat(0, 0, 0, 0, 1),
            ca.horzcat(-params.r, 0, -params.b, 1, 0),
            ca.horzcat(0, -params.r, params.b, 1, 0),
        )

    def distribution(q: ca.SX, params: DifferentialDriveParameters) -> Expression:
        yaw = ca.vertcat(-params.b / params.r, params.b / params.r, 1, 0, 0)
        return ca.horzcat(yaw, ca.vertcat(1 / params.r, 1 / params.r, 0, 1, 0))

    return System(
        name="differential_drive",
        space=Product(Rn("left", "right"), SE2()),
        lagrangian=lagrangian,
        inputs=("left_torque", "right_torque"),
        input_units=("N m", "N m"),
        force=lambda q, v, u, params: ca.vertcat(u, 0, 0, 0),
        velocity_constraint=constraint,
        distribution=distribution,
        symmetry=Symmetry(n_shape=2),
        parameters=parameters,
        input_limits=lambda params: np.outer([params.torque_limit] * 2, [-1, 1]),
    )
