"""The vertical rolling disk, also called a unicycle [celledoni2016 2]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class RollingDiskParameters(Parameters):
    """An upright disk. The paper does not state any values. The defaults are for a uniform
    disk.
    """

    m: float = parameter(2.0, "kg", "mass")
    r: float = parameter(0.25, "m", "radius")
    J_phi: float = parameter(0.0625, "kg m^2", "inertia about the axle")
    J_theta: float = parameter(0.03125, "kg m^2", "inertia about the vertical")
    roll_torque_limit: float = parameter(2.0, "N m", "largest torque about the axle")
    yaw_torque_limit: float = parameter(0.5, "N m", "largest torque about the vertical")


def rolling_disk(parameters: RollingDiskParameters = RollingDiskParameters()) -> System:
    """A disk that stays upright and rolls without slipping. q = (phi, theta, x, y) contains the
    roll angle about the axle (y, to the left) and the pose of the contact point, with
    `L = (J_phi phi_dot^2 + J_theta omega^2 + m |v|^2) / 2`, `v_forward - r phi_dot = 0`,
    `v_side = 0` [celledoni2016 (2)].

    The basis is X1 = (1, 0, r, 0), X2 = (0, 1, 0, 0), so rho = ((J_phi + m r^2) phi_dot, J_theta
    omega). The inputs are torques (N m) about the axle and about the vertical.
    """

    return System(
        name="rolling_disk",
        space=Product(Rn("phi"), SE2()),
        lagrangian=lambda q, v, params: (
            (
                params.J_phi * v[0] ** 2
                + params.J_theta * v[1] ** 2
                + params.m * (v[2] ** 2 + v[3] ** 2)
            )
            / 2
        ),
        inputs=("roll_torque", "yaw_torque"),
        input_units=("N m", "N m"),
        force=lambda q, v, u, params: ca.vertcat(u, 0, 0),
        # v_forward - r phi' = 0 and v_side = 0
        velocity_constraint=lambda q, params: ca.vertcat(
            ca.horzcat(-params.r, 0, 1, 0), ca.horzcat(0, 0, 0, 1)
        ),
        distribution=lambda q, params: ca.vertcat(
            ca.horzcat(1, 0), ca.horzcat(0, 1), ca.horzcat(params.r, 0), ca.horzcat(0, 0)
        ),
        symmetry=Symmetry(n_shape=1),
        parameters=parameters,
        input_limits=lambda params: np.outer(
            [params.roll_torque_limit, params.yaw_torque_limit], [-1, 1]
        ),
    )
