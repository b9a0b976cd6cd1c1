"""The Chaplygin sleigh: a planar body on a skate [kobilarov2010 6.1]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from nh_control.geometry.spaces import SE2
from nh_control.mechanics.system import Symmetry, System
from nh_control.systems.parameters import require_positive


@dataclass(frozen=True)
class ChaplyginSleighParameters:
    """Mass `m` (kg), yaw inertia `I` (kg m^2) about the center of mass, distance `a` (m) of the
    skate behind it.
    """

    m: float = 1.0
    I: float = 1.0
    a: float = 1.0

    def __post_init__(self):
        require_positive(self)


def chaplygin_sleigh(
    parameters: ChaplyginSleighParameters = ChaplyginSleighParameters(),
) -> System:
    """Sleigh with the pose (theta, x, y) of its center of mass, `L = I omega^2 / 2 + m |v|^2 / 2`,
    `a omega - v_side = 0` [kobilarov2010 (29)-(33)].

    Basis e1 = (1, 0, a), e2 = (0, 1, 0), so rho = ((I + a^2 m) omega, m v_forward). Inputs: a yaw
    torque (N m) and a forward thrust (N).
    """
    m, inertia, a = parameters.m, parameters.I, parameters.a
    basis = ca.SX([[1, 0], [0, 1], [a, 0]])
    return System(
        name="chaplygin_sleigh",
        space=SE2(),
        lagrangian=lambda q, v: inertia * v[0] ** 2 / 2 + m * (v[1] ** 2 + v[2] ** 2) / 2,
        inputs=("yaw_torque", "thrust"),
        input_units=("N m", "N"),
        force=lambda q, v, u: ca.vertcat(u[0], u[1], 0),
        velocity_constraint=lambda q: ca.horzcat(a, 0, -1),
        distribution=lambda q: basis,
        symmetry=Symmetry(0, connection=lambda r: ca.SX(3, 0), basis=lambda r: basis),
        parameters=parameters,
    )


def skate_point(parameters: ChaplyginSleighParameters, q):
    """Contact point (x_s, y_s) of the skate at pose q, the coordinates in which the paper draws
    paths.
    """
    return q[1] - parameters.a * ca.cos(q[0]), q[2] - parameters.a * ca.sin(q[0])
