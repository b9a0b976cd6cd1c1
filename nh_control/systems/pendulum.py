"""The planar pendulum with a torque at its pivot [johnson2014 II-A]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class PendulumParameters(Parameters):
    """A point mass on a massless rod."""

    m: float = parameter(1.0, "kg", "mass")
    l: float = parameter(1.0, "m", "length")
    g: float = parameter(9.8, "m/s^2", "gravity")


def pendulum(parameters: PendulumParameters = PendulumParameters()) -> System:
    """Pendulum with angle theta (rad) from the downward vertical:
    `L = m l^2 theta_dot^2 / 2 + m g l cos(theta)`, input torque (N m).
    """
    return System(
        name="pendulum",
        space=Rn("theta"),
        lagrangian=lambda q, v, p: p.m * p.l * (p.l * v[0] ** 2 / 2 + p.g * ca.cos(q[0])),
        inputs=("torque",),
        input_units=("N m",),
        force=lambda q, v, u, p: u,
        parameters=parameters,
    )
