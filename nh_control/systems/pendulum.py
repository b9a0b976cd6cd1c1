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
    """A pendulum at the angle theta (rad) from the downward vertical, with
    `L = m l^2 theta_dot^2 / 2 + m g l cos(theta)`. The input is a torque (N m).
    """
    return System(
        name="pendulum",
        space=Rn("theta"),
        # m l (l theta'^2 / 2 + g cos(theta))
        lagrangian=lambda q, v, params: (
            params.m * params.l * (params.l * v[0] ** 2 / 2 + params.g * ca.cos(q[0]))
        ),
        inputs=("torque",),
        input_units=("N m",),
        force=lambda q, v, u, params: u,
        parameters=parameters,
    )
