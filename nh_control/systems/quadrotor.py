"""A quadrotor on R^3 x SO(3), a rigid body with torques and a thrust along its z axis."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.systems.rigid_body import check_inertias


@dataclass(frozen=True)
class QuadrotorParameters(Parameters):
    """A quadrotor with a mass of 1 kg that is 0.6 m across."""

    m: float = parameter(1.0, "kg", "mass")
    Jx: float = parameter(0.008, "kg m^2", "inertia about x")
    Jy: float = parameter(0.008, "kg m^2", "inertia about y")
    Jz: float = parameter(0.014, "kg m^2", "inertia about z")
    g: float = parameter(9.81, "m/s^2", "gravity")
    thrust_limit: float = parameter(20.0, "N", "largest thrust")
    roll_torque_limit: float = parameter(1.0, "N m", "largest torque about x")
    pitch_torque_limit: float = parameter(1.0, "N m", "largest torque about y")
    yaw_torque_limit: float = parameter(0.2, "N m", "largest torque about z")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_inertias("QuadrotorParameters", (self.Jx, self.Jy, self.Jz))
        if self.m * self.g >= self.thrust_limit:
            raise ValueError(
                f"QuadrotorParameters: a thrust of at most {self.thrust_limit:g} N cannot hold "
                f"the weight of {self.m * self.g:.4g} N"
            )


def quadrotor(parameters: QuadrotorParameters = QuadrotorParameters()) -> System:
    """A quadrotor at r = (x, y, z) with the attitude R. The configuration is q = (r, quaternion
    wxyz), and the velocity is v = (r', omega) with omega in the body's axes. The inputs are the
    thrust (N) along the body's z axis and the torques (N m) about the body's axes.

    `L = m |r'|^2 / 2 + omega^T J omega / 2 - m g z`, and the force is `R (0, 0, thrust)`. See Lee,
    Leok and McClamroch, Conference on Decision and Control 2010, (2)-(5), with z up.
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: QuadrotorParameters) -> ca.SX:
        # omega^T J omega
        turning = ca.dot(ca.vertcat(params.Jx, params.Jy, params.Jz), v[3:] ** 2)
        return (params.m * ca.sumsqr(v[:3]) + turning) / 2 - params.m * params.g * q[2]

    def limits(params: QuadrotorParameters) -> np.ndarray:
        torques = np.array(
            [params.roll_torque_limit, params.pitch_torque_limit, params.yaw_torque_limit]
        )
        return np.vstack([[0.0, params.thrust_limit], np.outer(torques, [-1, 1])])

    return System(
        name="quadrotor",
        space=Product(Rn("x", "y", "z"), SO3()),
        lagrangian=lagrangian,
        inputs=("thrust", "roll_torque", "pitch_torque", "yaw_torque"),
        input_units=("N", "N m", "N m", "N m"),
        force=lambda q, v, u, params: ca.vertcat(
            quaternion.rotate(q[3:], ca.vertcat(0, 0, u[0])), u[1:]
        ),
        parameters=parameters,
        input_limits=limits,
    )
