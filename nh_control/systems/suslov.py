"""The Suslov problem [celledoni2016 4.3], a rigid body that cannot rotate about one axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.rotations import SO3
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Expression
from nh_control.systems.rigid_body import check_inertias


def _inertia(params: SuslovParameters) -> Expression:
    """Inertia matrix (3, 3)."""
    return ca.vertcat(
        ca.horzcat(params.I11, 0, params.I13),
        ca.horzcat(0, params.I22, params.I23),
        ca.horzcat(params.I13, params.I23, params.I33),
    )


@dataclass(frozen=True)
class SuslovParameters(Parameters):
    """Inertia of the body in a frame with I12 = 0. The third axis is the constrained axis. The
    paper does not state any values.
    """

    I11: float = parameter(1.0, "kg m^2", "inertia about the first axis")
    I22: float = parameter(2.0, "kg m^2", "inertia about the second axis")
    I33: float = parameter(1.5, "kg m^2", "inertia about the third axis")
    I13: float = parameter(0.4, "kg m^2", "product of inertia, first and third", above=-math.inf)
    I23: float = parameter(-0.3, "kg m^2", "product of inertia, second and third", above=-math.inf)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_inertias("SuslovParameters", np.linalg.eigvalsh(np.asarray(_inertia(self))).tolist())


def suslov(parameters: SuslovParameters = SuslovParameters()) -> System:
    """A body that rotates about a fixed point. q is a unit quaternion (w, x, y, z). With the body
    angular velocity omega, `L = omega^T I omega / 2`, `omega_z = 0` [celledoni2016 4.3].

    The basis is (1, 0, 0), (0, 1, 0), so rho = (I11 omega_x, I22 omega_y). Without torques,
    `rho_1' = -omega_y s, rho_2' = omega_x s, s = I13 omega_x + I23 omega_y`. Rotation about the
    axis with s = 0 is an equilibrium that is stable in one direction. The attitude is
    reconstructed on SO(3). The inputs are body torques (N m) about the free axes.
    """
    return System(
        name="suslov",
        space=SO3(),
        lagrangian=lambda q, v, params: v.T @ _inertia(params) @ v / 2,
        inputs=("torque_x", "torque_y"),
        input_units=("N m", "N m"),
        force=lambda q, v, u, params: ca.vertcat(u, 0),
        # omega_z = 0
        velocity_constraint=lambda q, params: ca.horzcat(0, 0, 1),
        distribution=lambda q, params: ca.vertcat(ca.SX.eye(2), ca.SX(1, 2)),
        symmetry=Symmetry(n_shape=0),
        parameters=parameters,
    )
