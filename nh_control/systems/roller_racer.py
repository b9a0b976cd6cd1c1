"""The roller racer, two bodies on wheels that are connected by a pivot and propelled only by
steering.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class RollerRacerParameters(Parameters):
    """A seat with its rider, and a handlebar that has an inertia but no mass."""

    m: float = parameter(30.0, "kg", "mass of seat and rider, above the rear axle")
    I1: float = parameter(2.0, "kg m^2", "yaw inertia of seat and rider")
    I2: float = parameter(0.5, "kg m^2", "yaw inertia of the handlebar and its wheels")
    d1: float = parameter(0.5, "m", "distance of the pivot in front of the rear axle")
    d2: float = parameter(0.1, "m", "distance of the handlebar's axle in front of the pivot")
    torque_limit: float = parameter(20.0, "N m", "largest torque on the handlebar")


def roller_racer(parameters: RollerRacerParameters = RollerRacerParameters()) -> System:
    """A racer with q = (phi, theta, x, y), the angle of the handlebar relative to the seat and the
    pose of the middle of the rear axle. The input is the rider's torque (N m) between the
    handlebar and the seat.

    `L = (m |v|^2 + I1 omega^2 + I2 (omega + phi')^2) / 2`. No axle slips sideways, so `v_side = 0`
    and `cos(phi) (v_side + d1 omega) - sin(phi) v_forward + d2 (omega + phi') = 0`. With
    `c = d1 cos(phi) + d2 > 0`, the basis is `(1, -d2/c, 0, 0)` and the symmetry direction
    `(0, sin(phi), c, 0)`. After Krishnaprasad and Tsakiris (2001).
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: RollerRacerParameters) -> ca.SX:
        spin = params.I1 * v[1] ** 2 + params.I2 * (v[1] + v[0]) ** 2
        return (params.m * (v[2] ** 2 + v[3] ** 2) + spin) / 2

    def reach(phi: ca.SX, params: RollerRacerParameters) -> ca.SX:
        return params.d1 * ca.cos(phi) + params.d2

    def constraint(q: ca.SX, params: RollerRacerParameters) -> ca.SX:
        # cos(phi) (v_side + d1 omega) - sin(phi) v_forward + d2 (omega + phi')
        front = ca.horzcat(params.d2, reach(q[0], params), -ca.sin(q[0]), ca.cos(q[0]))
        return ca.vertcat(ca.horzcat(0, 0, 0, 1), front)

    def connection(r: ca.SX, params: RollerRacerParameters) -> ca.SX:
        # phi' turns the seat by -d2 / c when it stands still
        return ca.vertcat(params.d2 / reach(r[0], params), 0, 0)

    def basis(r: ca.SX, params: RollerRacerParameters) -> ca.SX:
        return ca.vertcat(ca.sin(r[0]), reach(r[0], params), 0)

    return System(
        name="roller_racer",
        space=Product(Rn("phi"), SE2()),
        lagrangian=lagrangian,
        inputs=("steer_torque",),
        input_units=("N m",),
        force=lambda q, v, u, params: ca.vertcat(u, 0, 0, 0),
        velocity_constraint=constraint,
        distribution=lambda q, params: ca.horzcat(
            ca.vertcat(1, -connection(q, params)), ca.vertcat(0, basis(q, params))
        ),
        symmetry=Symmetry(n_shape=1, connection=connection),
        domain=lambda q, params: reach(q[0], params),
        parameters=parameters,
        input_limits=lambda params: np.array([[-params.torque_limit, params.torque_limit]]),
    )
