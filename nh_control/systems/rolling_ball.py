"""A ball that rolls on a plane: Chaplygin's ball where its inertias differ."""

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
    """A ball whose center of mass is its center."""

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
    """Ball with q = (unit quaternion (w, x, y, z), x, y) on the plane z = 0, body angular velocity
    omega, `L = (omega^T J omega + m (x'^2 + y'^2)) / 2`, `x' = r Omega_y, y' = -r Omega_x` with
    the inertial angular velocity `Omega = R(q) omega`.

    Basis: turning about the inertial axes with the rolling that follows, so rho is the inertial
    angular momentum about the point of contact, constant without torques: Chaplygin's ball (1903),
    as in Bloch (2003) 5.7 for equal inertias. It may spin about the vertical. Inputs: torques
    (N m) about the body's axes. The rotation is the shape of the symmetry, of the group R^2.
    """

    def rolling(p: RollingBallParameters) -> Expression:
        return p.r * ca.vertcat(ca.horzcat(0, 1, 0), ca.horzcat(-1, 0, 0))

    return System(
        name="rolling_ball",
        space=Product(SO3(), Rn("x", "y")),
        lagrangian=lambda q, v, p: (
            (ca.dot(ca.vertcat(p.Jx, p.Jy, p.Jz), v[:3] ** 2) + p.m * ca.sumsqr(v[3:])) / 2
        ),
        inputs=("torque_x", "torque_y", "torque_z"),
        input_units=("N m",) * 3,
        force=lambda q, v, u, p: ca.vertcat(u, 0, 0),
        velocity_constraint=lambda q, p: ca.horzcat(
            -rolling(p) @ quaternion.matrix(q[:4]), ca.SX.eye(2)
        ),
        distribution=lambda q, p: ca.vertcat(quaternion.matrix(q[:4]).T, rolling(p)),
        symmetry=Symmetry(n_shape=4),
        parameters=parameters,
        input_limits=lambda p: np.outer([p.torque_limit] * 3, [-1, 1]),
    )
