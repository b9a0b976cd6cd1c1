"""The Chaplygin sleigh: a planar body on a skate [kobilarov2010 6.1], [celledoni2016 4.2]."""

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
    """Sleigh with the pose (theta, x, y) of its center of mass, `L = I omega^2 / 2 + m |v|^2 / 2`,
    `a omega - v_side = 0` [kobilarov2010 (29)-(33)].

    Basis e1 = (1, 0, a), e2 = (0, 1, 0), so rho = ((I + a^2 m) omega, m v_forward). Inputs: a yaw
    torque (N m) and a forward thrust (N).
    """

    def basis(_: ca.SX, p: ChaplyginSleighParameters) -> Expression:
        return ca.vertcat(ca.horzcat(1, 0), ca.horzcat(0, 1), ca.horzcat(p.a, 0))

    return System(
        name="chaplygin_sleigh",
        space=SE2(),
        lagrangian=lambda q, v, p: (p.I * v[0] ** 2 + p.m * (v[1] ** 2 + v[2] ** 2)) / 2,
        inputs=("yaw_torque", "thrust"),
        input_units=("N m", "N"),
        force=lambda q, v, u, p: ca.vertcat(u[0], u[1], 0),
        velocity_constraint=lambda q, p: ca.horzcat(p.a, 0, -1),
        distribution=basis,
        symmetry=Symmetry(n_shape=0),
        parameters=parameters,
        input_limits=_limits,
    )


def chaplygin_sleigh_contact(
    parameters: ChaplyginSleighParameters = ChaplyginSleighParameters(),
) -> System:
    """The same sleigh with the pose (theta, x, y) of the skate's contact, `L = ((I + m a^2)
    omega^2 + m |v|^2) / 2 + m a omega v_side`, `v_side = 0` [celledoni2016 4.2], its J named I.

    Basis (1, 0, 0) / sqrt(I + m a^2), (0, 1, 0) / sqrt(m), in which the mass matrix is one:
    `rho_1' = -c rho_1 rho_2, rho_2' = c rho_1^2, c = a sqrt(m) / (I + m a^2)` (22). Inputs as with
    the center of mass.
    """

    def basis(_: ca.SX, p: ChaplyginSleighParameters) -> ca.SX:
        return ca.diagcat(1 / ca.sqrt(p.I + p.m * p.a**2), 1 / ca.sqrt(p.m), ca.SX(1, 0))

    def lagrangian(q: ca.SX, v: ca.SX, p: ChaplyginSleighParameters) -> ca.SX:
        spin = (p.I + p.m * p.a**2) * v[0] ** 2
        return (spin + p.m * (v[1] ** 2 + v[2] ** 2)) / 2 + p.m * p.a * v[0] * v[2]

    return System(
        name="chaplygin_sleigh_contact",
        space=SE2(),
        lagrangian=lagrangian,
        inputs=("yaw_torque", "thrust"),
        input_units=("N m", "N"),
        force=lambda q, v, u, p: ca.vertcat(u[0], u[1], 0),
        velocity_constraint=lambda q, p: ca.horzcat(0, 0, 1),
        distribution=basis,
        symmetry=Symmetry(n_shape=0),
        parameters=parameters,
        input_limits=_limits,
    )


def _limits(p: ChaplyginSleighParameters) -> np.ndarray:
    return np.outer([p.yaw_torque_limit, p.thrust_limit], [-1, 1])
