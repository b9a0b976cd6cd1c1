"""A ball that rolls on a plane. If its inertias differ, it is Chaplygin's ball."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Expression
from nh_control.systems.rigid_body import check_inertias


@dataclass(frozen=True)
class RollingBallParameters(Parameters):
    """A ball with its center of mass at its center."""

    m: float = parameter(1.0, "kg", "mass")
    r: float = parameter(0.2, "m", "radius")
    Jx: float = parameter(0.012, "kg m^2", "inertia about x")
    Jy: float = parameter(0.016, "kg m^2", "inertia about y")
    Jz: float = parameter(0.020, "kg m^2", "inertia about z")
    torque_limit: float = parameter(2.0, "N m", "largest torque about each axis")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_inertias("RollingBallParameters", (self.Jx, self.Jy, self.Jz))


def rolling_ball(parameters: RollingBallParameters = RollingBallParameters()) -> System:
    """A ball with q = (unit quaternion (w, x, y, z), x, y) on the plane z = 0. With the body
    angular velocity omega, `L = (omega^T J omega + m (x'^2 + y'^2)) / 2`. With the inertial
    angular velocity `Omega = R(q) omega`, `x' = r Omega_y, y' = -r Omega_x`.

    The basis consists of rotations about the inertial axes with the corresponding rolling, so rho
    is the inertial angular momentum about the point of contact. Without torques, rho is constant.
    This is Chaplygin's ball (1903), which is described in Bloch (2003) 5.7 for equal inertias. The
    ball may spin about the vertical. The inputs are torques (N m) about the body's axes. The
    symmetry has the rotation as its shape and R^2 as its group.
    """

    def rolling(params: RollingBallParameters) -> Expression:
        # x' = r Omega_y, y' = -r Omega_x
        return params.r * ca.vertcat(ca.horzcat(0, 1, 0), ca.horzcat(-1, 0, 0))

    return System(
        name="rolling_ball",
        space=Product(SO3(), Rn("x", "y")),
        lagrangian=lambda q, v, params: (
            (
                ca.dot(ca.vertcat(params.Jx, params.Jy, params.Jz), v[:3] ** 2)
                + params.m * ca.sumsqr(v[3:])
            )
            / 2
        ),
        inputs=("torque_x", "torque_y", "torque_z"),
        input_units=("N m",) * 3,
        force=lambda q, v, u, params: ca.vertcat(u, 0, 0),
        velocity_constraint=lambda q, params: ca.horzcat(
            -rolling(params) @ quaternion.matrix(q[:4]), ca.SX.eye(2)
        ),
        distribution=lambda q, params: ca.vertcat(quaternion.matrix(q[:4]).T, rolling(params)),
        symmetry=Symmetry(n_shape=4),
        parameters=parameters,
        input_limits=lambda params: np.outer([params.torque_limit] * 3, [-1, 1]),
    )
