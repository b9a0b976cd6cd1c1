"""A car, described by the kinematic bicycle (single-track) model with inertia."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class CarParameters(Parameters):
    """A compact car with driven rear wheels."""

    m: float = parameter(1200.0, "kg", "mass")
    I: float = parameter(1600.0, "kg m^2", "yaw inertia about the center of mass, all included")
    J_steer: float = parameter(2.0, "kg m^2", "inertia of the front wheels about their steering")
    J_wheel: float = parameter(2.5, "kg m^2", "inertia of the driven wheels about their axle")
    l: float = parameter(2.5, "m", "distance between the axles")
    b: float = parameter(1.2, "m", "distance of the center of mass in front of the rear axle")
    r: float = parameter(0.3, "m", "radius of the wheels")
    drive_torque_limit: float = parameter(1500.0, "N m", "largest torque on the rear axle")
    steer_torque_limit: float = parameter(60.0, "N m", "largest steering torque")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.J_steer >= self.I:
            raise ValueError(
                f"CarParameters: J_steer = {self.J_steer:g} is part of the yaw inertia "
                f"I = {self.I:g} and must be smaller"
            )


def car(parameters: CarParameters = CarParameters()) -> System:
    """A car that does not slip. q = (wheel, delta, theta, x, y) contains the angle of the rear
    wheels about y (to the left), the steering angle, and the pose of the middle of the rear axle.
    The inputs are the torques (N m) on the rear axle and on the steering.

    `L = (m (v_forward^2 + (v_side + b omega)^2) + I omega^2 + J_steer (2 omega delta' + delta'^2)
    + J_wheel wheel'^2) / 2`. The constraints are `v_side = 0`,
    `cos(delta) (v_side + l omega) - sin(delta) v_forward = 0`, `v_forward - r wheel' = 0`, for
    `|delta| < pi/2`. The basis consists of d/d delta and motion along the curve,
    `(1/r, 0, tan(delta)/l, 1, 0)`. This is the kinematic single-track model in Rajamani (2012)
    2.2, with inertia added.
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: CarParameters) -> ca.SX:
        wheel, steer, omega, forward, side = v[0], v[1], v[2], v[3], v[4]
        body = params.m * (forward**2 + (side + params.b * omega) ** 2) + params.I * omega**2
        # I contains J_steer, so this is J_steer (omega + delta')^2 without omega^2
        steering = params.J_steer * (2 * omega * steer + steer**2)
        return (body + steering + params.J_wheel * wheel**2) / 2

    def constraint(q: ca.SX, params: CarParameters) -> ca.SX:
        s, c = ca.sin(q[1]), ca.cos(q[1])
        return ca.vertcat(
            # no sideways velocity at the rear and front axles, then rolling
            ca.horzcat(0, 0, 0, 0, 1),
            ca.horzcat(0, 0, params.l * c, -s, c),
            ca.horzcat(-params.r, 0, 0, 1, 0),
        )

    def distribution(q: ca.SX, params: CarParameters) -> ca.SX:
        # per unit of forward velocity: wheel' = 1 / r, omega = tan(delta) / l
        along = ca.vertcat(1 / params.r, 0, ca.tan(q[1]) / params.l, 1, 0)
        return ca.horzcat(ca.vertcat(0, 1, 0, 0, 0), along)

    return System(
        name="car",
        space=Product(Rn("wheel", "delta"), SE2()),
        lagrangian=lagrangian,
        inputs=("drive_torque", "steer_torque"),
        input_units=("N m", "N m"),
        force=lambda q, v, u, params: ca.vertcat(u, 0, 0, 0),
        velocity_constraint=constraint,
        distribution=distribution,
        symmetry=Symmetry(n_shape=2),
        domain=lambda q, params: ca.cos(q[1]),
        parameters=parameters,
        input_limits=lambda params: np.outer(
            [params.drive_torque_limit, params.steer_torque_limit], [-1, 1]
        ),
    )
