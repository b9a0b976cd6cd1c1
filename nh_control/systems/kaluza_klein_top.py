"""The heavy top on a larger group, where its Hamiltonian is quadratic."""

from __future__ import annotations

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.system import System
from nh_control.systems.rigid_body import HeavyTopParameters


def kaluza_klein_top(parameters: HeavyTopParameters = HeavyTopParameters()) -> System:
    """The Kaluza-Klein construction of the heavy top on SO(3) x R^3 [celledoni2021 (25)-(32);
    Holm, Geometric Mechanics II, 8.5]: `L = omega^T J omega / 2 + |y' + Gamma|^2 / 2`,
    `Gamma = R^T e_z`.

    The momentum `p = y' + Gamma` of y, the last three components of a state, is constant. Motions
    with `p = -M g l chi` are the motions of `heavy_top`. With the paper's scaling, y is not a
    length. The Hamiltonian is `|Pi|^2_{1/J} / 2 + |p - Gamma|^2 / 2`, which is the printed
    Hamiltonian without the constant |Gamma|^2 / 2.
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: HeavyTopParameters) -> ca.SX:
        # Gamma = R^T e_z
        gamma = quaternion.rotate_back(q[:4], ca.SX([0, 0, 1]))
        spin = ca.dot(ca.vertcat(params.Jx, params.Jy, params.Jz), v[:3] ** 2) / 2
        return spin + ca.sumsqr(v[3:] + gamma) / 2

    return System(
        name="kaluza_klein_top",
        space=Product(SO3(), Rn("y_x", "y_y", "y_z")),
        lagrangian=lagrangian,
        parameters=parameters,
    )


def momentum_of_y(parameters: HeavyTopParameters) -> np.ndarray:
    """The momentum p (3) of y that gives the motions of the heavy top, `-M g l chi`."""
    return -parameters.M * parameters.g * parameters.l * np.array(parameters.chi)
