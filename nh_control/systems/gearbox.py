"""A continuous gearbox driven by an asymmetric pendulum [celledoni2016 4.4]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class GearboxParameters(Parameters):
    """Two oscillators and a pendulum that sets their ratio. The defaults are from
    [celledoni2016 (24)].
    """

    m: float = parameter(1.0, "kg", "mass of each oscillator")
    k: float = parameter(1.0, "N/m", "stiffness of each oscillator")
    J: float = parameter(1.0, "kg m^2", "inertia of the pendulum")
    V1: float = parameter(1.0, "N m", "weight of the pendulum")
    V2: float = parameter(0.2, "N m", "asymmetry of its potential", at_least=0.0)


def gearbox(parameters: GearboxParameters = GearboxParameters()) -> System:
    """Oscillators x_1, x_2 (m) whose velocities are coupled by an angle theta (rad),
    `L = (m (x_1'^2 + x_2'^2) + J theta'^2) / 2 - V`,
    `V = k (x_1^2 + x_2^2) / 2 + V1 cos(theta) - V2 sin(2 theta)`, `x_1' + sin(theta) x_2' = 0`
    [celledoni2016 (24)], after Modin and Verdier (2014).

    The energy is T + V, but (24a) prints T - V (corrected). The basis is (-sin(theta), 1, 0),
    (0, 0, 1). The input is a torque (N m) on the pendulum, which is not in the paper.
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: GearboxParameters) -> ca.SX:
        kinetic = (params.m * (v[0] ** 2 + v[1] ** 2) + params.J * v[2] ** 2) / 2
        # -V = -k |x|^2 / 2 - V1 cos(theta) + V2 sin(2 theta)
        springs = params.k * (q[0] ** 2 + q[1] ** 2) / 2
        return kinetic - springs - params.V1 * ca.cos(q[2]) + params.V2 * ca.sin(2 * q[2])

    return System(
        name="gearbox",
        space=Rn("x_1", "x_2", "theta"),
        lagrangian=lagrangian,
        inputs=("pendulum_torque",),
        input_units=("N m",),
        force=lambda q, v, u, params: ca.vertcat(0, 0, u),
        velocity_constraint=lambda q, params: ca.horzcat(1, ca.sin(q[2]), 0),
        distribution=lambda q, params: ca.vertcat(
            ca.horzcat(-ca.sin(q[2]), 0), ca.horzcat(1, 0), ca.horzcat(0, 1)
        ),
        parameters=parameters,
    )
