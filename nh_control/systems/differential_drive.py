"""A differential drive: a body on two driven wheels, with their dynamics."""

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
    """A body of about the size of a small service robot, on two wheels and a caster without
    mass.
    """

    m_body: float = parameter(9.0, "kg", "mass of the body without the wheels")
    m_wheel: float = parameter(0.5, "kg", "mass of each wheel")
    I_body: float = parameter(0.2, "kg m^2", "yaw inertia of the body about its center of mass")
    J_roll: float = parameter(0.0016, "kg m^2", "inertia of a wheel and motor about the axle")
    J_yaw: float = parameter(0.0008, "kg m^2", "inertia of a wheel about its vertical")
    d: float = parameter(
        0.05, "m", "distance of the body's center of mass before the axle", above=-math.inf
    )
    b: float = parameter(0.15, "m", "half the distance between the wheels")
    r: float = parameter(0.08, "m", "radius of the wheels")
    torque_limit: float = parameter(1.5, "N m", "largest torque on a wheel")


def differential_drive(
    parameters: DifferentialDriveParameters = DifferentialDriveParameters(),
) -> System:
    """Body with the pose of the middle of its axle and the angles of its wheels, q = (left, right,
    theta, x, y), wheels turning about y (to the left); inputs are the torques (N m) of the motors.

    `L = (m |v|^2 + 2 m_body d omega v_side + I omega^2 + J_roll (left'^2 + right'^2)) / 2` with
    the total mass m and yaw inertia about the axle's middle `I = I_body + m_body d^2 + 2 (J_yaw +
    m_wheel b^2)`; `v_side = 0, v_forward - b omega - r left' = 0, v_forward + b omega - r right' =
    0`. Basis: rotation, `(-b/r, b/r, 1, 0, 0)`, and forward motion, `(1/r, 1/r, 0, 1, 0)`. The
    standard model of Fierro and Lewis (1997), Dhaouadi and Abu Hatab (2013).
    """

    def lagrangian(q: ca.SX, v: ca.SX, p: DifferentialDriveParameters) -> ca.SX:
        yaw = p.I_body + p.m_body * p.d**2 + 2 * (p.J_yaw + p.m_wheel * p.b**2)
        body = (p.m_body + 2 * p.m_wheel) * (v[3] ** 2 + v[4] ** 2) + yaw * v[2] ** 2
        offset = 2 * p.m_body * p.d * v[2] * v[4]
        return (body + offset + p.J_roll * (v[0] ** 2 + v[1] ** 2)) / 2

    def constraint(q: ca.SX, p: DifferentialDriveParameters) -> Expression:
        return ca.vertcat(
            ca.horzcat(0, 0, 0, 0, 1),
            ca.horzcat(-p.r, 0, -p.b, 1, 0),
            ca.horzcat(0, -p.r, p.b, 1, 0),
        )

    def distribution(q: ca.SX, p: DifferentialDriveParameters) -> Expression:
        yaw = ca.vertcat(-p.b / p.r, p.b / p.r, 1, 0, 0)
        return ca.horzcat(yaw, ca.vertcat(1 / p.r, 1 / p.r, 0, 1, 0))

    return System(
        name="differential_drive",
        space=Product(Rn("left", "right"), SE2()),
        lagrangian=lagrangian,
        inputs=("left_torque", "right_torque"),
        input_units=("N m", "N m"),
        force=lambda q, v, u, p: ca.vertcat(u, 0, 0, 0),
        velocity_constraint=constraint,
        distribution=distribution,
        symmetry=Symmetry(n_shape=2),
        parameters=parameters,
        input_limits=lambda p: np.outer([p.torque_limit] * 2, [-1, 1]),
    )
