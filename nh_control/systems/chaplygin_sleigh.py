"""The Chaplygin sleigh, a planar body on a skate [kobilarov2010 6.1], [celledoni2016 4.2]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Expression


@dataclass(frozen=True)
class ChaplyginSleighParameters(Parameters):
    """A planar body on a skate."""

    m: float = parameter(1.0, "kg", "mass")
    I: float = parameter(1.0, "kg m^2", "yaw inertia about the center of mass")
    a: float = parameter(1.0, "m", "distance of the skate behind the center of mass")
    yaw_torque_limit: float = parameter(20.0, "N m", "largest yaw torque")
    thrust_limit: float = parameter(20.0, "N", "largest thrust")


def chaplygin_sleigh(
    parameters: ChaplyginSleighParameters = ChaplyginSleighParameters(),
) -> System:
    """A sleigh with the pose (theta, x, y) of its center of mass, with
    `L = I omega^2 / 2 + m |v|^2 / 2` and `a omega - v_side = 0` [kobilarov2010 (29)-(33)].

    The basis is e1 = (1, 0, a), e2 = (0, 1, 0), so rho = ((I + a^2 m) omega, m v_forward). The
    inputs are a yaw torque (N m) and a forward thrust (N).
    """

    def basis(_: ca.SX, params: ChaplyginSleighParameters) -> Expression:
        return ca.vertcat(ca.horzcat(1, 0), ca.horzcat(0, 1), ca.horzcat(params.a, 0))

    return System(
        name="chaplygin_sleigh",
        space=SE2(),
        lagrangian=lambda q, v, params: (
            (params.I * v[0] ** 2 + params.m * (v[1] ** 2 + v[2] ** 2)) / 2
        ),
        inputs=("yaw_torque", "thrust"),
        input_units=("N m", "N"),
        force=lambda q, v, u, params: ca.vertcat(u[0], u[1], 0),
        velocity_constraint=lambda q, params: ca.horzcat(params.a, 0, -1),
        distribution=basis,
        symmetry=Symmetry(n_shape=0),
        parameters=parameters,
        input_limits=_limits,
    )


def chaplygin_sleigh_contact(
    parameters: ChaplyginSleighParameters = ChaplyginSleighParameters(),
) -> System:
    """The same sleigh with the pose (theta, x, y) of the skate's contact, with
    `L = ((I + m a^2) omega^2 + m |v|^2) / 2 + m a omega v_side` and `v_side = 0`
    [celledoni2016 4.2]. The paper's J is I here.

    The basis is (1, 0, 0) / sqrt(I + m a^2), (0, 1, 0) / sqrt(m). In this basis, the mass matrix
    is the identity, and `rho_1' = -c rho_1 rho_2, rho_2' = c rho_1^2, c = a sqrt(m) / (I + m
    a^2)` (22). The inputs are the same as for `chaplygin_sleigh`.
    """

    def basis(_: ca.SX, params: ChaplyginSleighParameters) -> ca.SX:
        return ca.diagcat(
            1 / ca.sqrt(params.I + params.m * params.a**2), 1 / ca.sqrt(params.m), ca.SX(1, 0)
        )

    def lagrangian(q: ca.SX, v: ca.SX, params: ChaplyginSleighParameters) -> ca.SX:
        # inertia about the contact, which is a behind the center of mass
        spin = (params.I + params.m * params.a**2) * v[0] ** 2
        return (spin + params.m * (v[1] ** 2 + v[2] ** 2)) / 2 + params.m * params.a * v[0] * v[2]

    return System(
        name="chaplygin_sleigh_contact",
        space=SE2(),
        lagrangian=lagrangian,
        inputs=("yaw_torque", "thrust"),
        input_units=("N m", "N"),
        force=lambda q, v, u, params: ca.vertcat(u[0], u[1], 0),
        velocity_constraint=lambda q, params: ca.horzcat(0, 0, 1),
        distribution=basis,
        symmetry=Symmetry(n_shape=0),
        parameters=parameters,
        input_limits=_limits,
    )


def _limits(params: ChaplyginSleighParameters) -> np.ndarray:
    return np.outer([params.yaw_torque_limit, params.thrust_limit], [-1, 1])
