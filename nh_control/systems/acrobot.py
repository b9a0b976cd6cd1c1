"""The acrobot, two links that hang from a shoulder and have a motor only at the elbow."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class AcrobotParameters(Parameters):
    """Two uniform links."""

    m1: float = parameter(1.0, "kg", "mass of the upper link")
    m2: float = parameter(1.0, "kg", "mass of the lower link")
    l1: float = parameter(1.0, "m", "length of the upper link")
    l2: float = parameter(1.0, "m", "length of the lower link")
    g: float = parameter(9.81, "m/s^2", "gravity")
    torque_limit: float = parameter(15.0, "N m", "largest torque at the elbow")


def acrobot(parameters: AcrobotParameters = AcrobotParameters()) -> System:
    """Two links at the angles a = shoulder and b = shoulder + elbow (rad) from the downward
    vertical. The links are uniform bars with `I_i = m_i l_i^2 / 12` about their centers c_i.

    `L = sum m_i |c_i'|^2 / 2 + I_1 a'^2 / 2 + I_2 b'^2 / 2 - g sum m_i z_i` with
    `c_1 = l1/2 (sin a, -cos a)`, `c_2 = l1 (sin a, -cos a) + l2/2 (sin b, -cos b)`. The input is
    the torque (N m) on the elbow. This is the acrobot of Spong, IEEE Control Systems 15(1), 1995.
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: AcrobotParameters) -> ca.SX:
        (a, b), (a_rate, b_rate) = (q[0], q[0] + q[1]), (v[0], v[0] + v[1])
        upper = params.m1 * (params.l1 * a_rate) ** 2 / 6  # about the shoulder, m l^2 / 3
        lower = params.m2 * ((params.l1 * a_rate) ** 2 / 2 + (params.l2 * b_rate) ** 2 / 6)
        # the coupling m2 c_1' . c_2' between the links contains cos(b - a) = cos(elbow)
        lower += params.m2 * params.l1 * params.l2 / 2 * ca.cos(q[1]) * a_rate * b_rate
        height = -(params.m1 / 2 + params.m2) * params.l1 * ca.cos(a)
        height -= params.m2 * params.l2 / 2 * ca.cos(b)
        return upper + lower - params.g * height

    return System(
        name="acrobot",
        space=Rn("shoulder", "elbow"),
        lagrangian=lagrangian,
        inputs=("torque",),
        input_units=("N m",),
        force=lambda q, v, u, params: ca.vertcat(0, u),
        parameters=parameters,
        input_limits=lambda params: np.array([[-params.torque_limit, params.torque_limit]]),
    )
