"""The Suslov problem: a rigid body that cannot rotate about one axis [celledoni2016 4.3]."""

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


def _inertia(p: SuslovParameters) -> Expression:
    """Inertia matrix (3, 3)."""
    return ca.vertcat(
        ca.horzcat(p.I11, 0, p.I13), ca.horzcat(0, p.I22, p.I23), ca.horzcat(p.I13, p.I23, p.I33)
    )


@dataclass(frozen=True)
class SuslovParameters(Parameters):
    """Inertia of the body in a frame with I12 = 0 whose third axis is the constrained one; the
    paper gives no values.
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
    """Body about a fixed point with q a unit quaternion (w, x, y, z) and body angular velocity
    omega, `L = omega^T I omega / 2`, `omega_z = 0` [celledoni2016 4.3].

    Basis (1, 0, 0), (0, 1, 0), so rho = (I11 omega_x, I22 omega_y). Without torques
    `rho_1' = -omega_y s, rho_2' = omega_x s, s = I13 omega_x + I23 omega_y`: turning about the
    axis with s = 0 is an equilibrium, stable for one sense. The rotation is reconstructed on
    SO(3). Inputs: body torques (N m) about the free axes.
    """
    return System(
        name="suslov",
        space=SO3(),
        lagrangian=lambda q, v, p: v.T @ _inertia(p) @ v / 2,
        inputs=("torque_x", "torque_y"),
        input_units=("N m", "N m"),
        force=lambda q, v, u, p: ca.vertcat(u, 0),
        velocity_constraint=lambda q, p: ca.horzcat(0, 0, 1),
        distribution=lambda q, p: ca.vertcat(ca.SX.eye(2), ca.SX(1, 2)),
        symmetry=Symmetry(n_shape=0),
        parameters=parameters,
    )
