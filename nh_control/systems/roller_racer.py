"""The roller racer: two bodies on wheels joined by a pivot, propelled by steering alone."""

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
    """A seat with its rider and a handlebar without mass but with inertia."""

    m: float = parameter(30.0, "kg", "mass of seat and rider, above the rear axle")
    I1: float = parameter(2.0, "kg m^2", "yaw inertia of seat and rider")
    I2: float = parameter(0.5, "kg m^2", "yaw inertia of the handlebar and its wheels")
    d1: float = parameter(0.5, "m", "distance of the pivot before the rear axle")
    d2: float = parameter(0.1, "m", "distance of the handlebar's axle before the pivot")
    torque_limit: float = parameter(20.0, "N m", "largest torque on the handlebar")


def roller_racer(parameters: RollerRacerParameters = RollerRacerParameters()) -> System:
    """Racer with q = (phi, theta, x, y): the angle of the handlebar against the seat and the pose
    of the rear axle's middle; the input is the torque (N m) of the rider between both.

    `L = (m |v|^2 + I1 omega^2 + I2 (omega + phi')^2) / 2`; no axle slips sideways: `v_side = 0`,
    `cos(phi) (v_side + d1 omega) - sin(phi) v_forward + d2 (omega + phi') = 0`. With
    `c = d1 cos(phi) + d2 > 0`, basis `(1, -d2/c, 0, 0)` and the symmetry direction
    `(0, sin(phi), c, 0)`. After Krishnaprasad and Tsakiris (2001).
    """

    def lagrangian(q: ca.SX, v: ca.SX, p: RollerRacerParameters) -> ca.SX:
        spin = p.I1 * v[1] ** 2 + p.I2 * (v[1] + v[0]) ** 2
        return (p.m * (v[2] ** 2 + v[3] ** 2) + spin) / 2

    def reach(phi: ca.SX, p: RollerRacerParameters) -> ca.SX:
        return p.d1 * ca.cos(phi) + p.d2

    def constraint(q: ca.SX, p: RollerRacerParameters) -> ca.SX:
        front = ca.horzcat(p.d2, reach(q[0], p), -ca.sin(q[0]), ca.cos(q[0]))
        return ca.vertcat(ca.horzcat(0, 0, 0, 1), front)

    def connection(r: ca.SX, p: RollerRacerParameters) -> ca.SX:
        return ca.vertcat(p.d2 / reach(r[0], p), 0, 0)

    def basis(r: ca.SX, p: RollerRacerParameters) -> ca.SX:
        return ca.vertcat(ca.sin(r[0]), reach(r[0], p), 0)

    return System(
        name="roller_racer",
        space=Product(Rn("phi"), SE2()),
        lagrangian=lagrangian,
        inputs=("steer_torque",),
        input_units=("N m",),
        force=lambda q, v, u, p: ca.vertcat(u, 0, 0, 0),
        velocity_constraint=constraint,
        distribution=lambda q, p: ca.horzcat(
            ca.vertcat(1, -connection(q, p)), ca.vertcat(0, basis(q, p))
        ),
        symmetry=Symmetry(n_shape=1, connection=connection),
        domain=lambda q, p: reach(q[0], p),
        parameters=parameters,
        input_limits=lambda p: np.array([[-p.torque_limit, p.torque_limit]]),
    )
