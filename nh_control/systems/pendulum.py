"""The planar pendulum with a torque at its pivot [johnson2014 II-A]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.system import System
from nh_control.systems.parameters import require_positive


@dataclass(frozen=True)
class PendulumParameters:
    """Mass `m` (kg), length `l` (m), gravity `g` (m/s^2)."""

    m: float = 1.0
    l: float = 1.0
    g: float = 9.8

    def __post_init__(self):
        require_positive(self)


def pendulum(parameters: PendulumParameters = PendulumParameters()) -> System:
    """Pendulum with angle theta (rad) from the downward vertical:
    `L = m l^2 theta_dot^2 / 2 + m g l cos(theta)`, input torque (N m).
    """
    m, l, g = parameters.m, parameters.l, parameters.g
    return System(
        name="pendulum",
        space=Rn("theta"),
        lagrangian=lambda q, v: m * l**2 * v[0] ** 2 / 2 + m * g * l * ca.cos(q[0]),
        inputs=("torque",),
        input_units=("N m",),
        force=lambda q, v, u: u,
        parameters=parameters,
    )
