"""An underwater vehicle with thrusters, its pose on SE(3); the water moves with it and brakes it.

nh_control simulate underwater_vehicle.py
nh_control simulate underwater_vehicle.py --disturb vehicle:constant:0,2,0,0,0,0 --integral
nh_control run underwater_vehicle.py --reference station --perturb-position 0.5 --perturb-seed 4
ros2 launch nh_control scenario.launch.py scenario:=$PWD/underwater_vehicle.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SE3
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.scenarios import (
    BodyState,
    Parameters,
    Scenario,
    error_seed,
    initial_error,
    on_body,
    parameter,
)
from nh_control.scenarios.declared_frames import FrameTree, floating
from nh_control.scenarios.perturbation import SeededPerturbation
from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Shape, VisualModel

WORLD = "sea"


@dataclass(frozen=True)
class UnderwaterVehicleParameters(Parameters):
    """A vehicle that weighs what its water does; numbers with the water that moves along."""

    ahead: float = parameter(17.0, "kg", "mass with the water, along x")
    across: float = parameter(24.0, "kg", "mass with the water, along y and z")
    roll: float = parameter(0.3, "kg m^2", "inertia with the water, about x")
    turn: float = parameter(0.6, "kg m^2", "inertia with the water, about y and z")
    righting: float = parameter(2.0, "N m", "couple of weight and buoyancy when it lies on a side")
    drag: float = parameter(12.0, "N s/m", "of the water")
    turn_drag: float = parameter(0.8, "N m s", "of the water, against turns")
    thrust_limit: float = parameter(40.0, "N", "of a pair of thrusters")
    yaw_limit: float = parameter(8.0, "N m", "of the thrusters that turn it")


def underwater_vehicle(parameters: UnderwaterVehicleParameters) -> System:
    """q = pose, v = (angular velocity, velocity), both in the body's axes.

    Weight and buoyancy keep it upright, so three thrusts and a turn about z are enough.
    """

    def lagrangian(q, v, p):
        inertias = ca.vertcat(p.roll, p.turn, p.turn, p.ahead, p.across, p.across)
        up = quaternion.rotate(q[:4], ca.vertcat(0, 0, 1))
        return ca.dot(inertias, v**2) / 2 + p.righting * up[2]

    def force(q, v, u, p):
        return ca.vertcat(-p.turn_drag * v[:3] + ca.vertcat(0, 0, u[3]), u[:3] - p.drag * v[3:])

    return System(
        name="underwater_vehicle",
        space=SE3(),
        lagrangian=lagrangian,
        inputs=("surge", "sway", "heave", "yaw"),
        input_units=("N", "N", "N", "N m"),
        input_limits=lambda p: np.outer([*[p.thrust_limit] * 3, p.yaw_limit], [-1.0, 1.0]),
        force=force,
        parameters=parameters,
    )


def helix(model):
    """From rest ahead, round and down for 20 s, as constant thrusts make it."""
    return model.simulate(rest(model), np.tile([8.0, 0.0, -2.0, 0.3], (steps(model), 1)))


def station(model):
    """The same place for 20 s."""
    return model.simulate(rest(model), np.zeros((steps(model), 4)))


def rest(model):
    """The state at rest with the axes of the world."""
    return model.state(model.system.space.origin, np.zeros(6))


def steps(model):
    """Steps in 20 s."""
    return round(20.0 / model.h)


@dataclass(frozen=True)
class UnderwaterVehiclePerturbation(SeededPerturbation):
    """How the start differs from the reference's: options `--perturb-position`, and so on."""

    position: float = initial_error("m", "distance, along y or in a direction that is drawn")
    heading: float = initial_error("rad", "turn about z")
    seed: int = error_seed()


def perturbed(model, x, error: UnderwaterVehiclePerturbation):
    """The state x moved and turned."""
    direction = np.array([0.0, 1.0, 0.0])
    if error.seed >= 0:
        direction = np.random.default_rng(error.seed).normal(size=3)
        direction /= np.linalg.norm(direction)
    shifted = model.retract(x, [0.0, 0.0, 0.0, *(error.position * direction), *np.zeros(6)])
    return model.retract(shifted, [0.0, 0.0, error.heading, *np.zeros(9)])


def to_bodies(_, q: np.ndarray, v: np.ndarray) -> tuple[BodyState, ...]:
    """The vehicle as ROS shows it: its position and velocity in the world's axes."""
    return (BodyState("vehicle", WORLD, q[4:], q[:4], quat2mat(q[:4]) @ v[3:], v[:3]),)


def from_bodies(bodies: Sequence[BodyState]) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity of the vehicle."""
    (body,) = bodies
    attitude = np.divide(body.quaternion_wxyz, np.linalg.norm(body.quaternion_wxyz))
    speed = quat2mat(attitude).T @ body.linear_velocity
    return np.r_[attitude, body.position], np.r_[body.angular_velocity_body, speed]


def visual(_) -> VisualModel:
    """A hull with a lamp in front, two floats and two thrusters."""
    shapes = [
        Shape("box", (0.8, 0.4, 0.25), STEEL, "vehicle"),
        Shape("sphere", (0.15, 0.15, 0.15), ORANGE, "vehicle", (0.45, 0.0, 0.0)),
    ]
    for side in (0.15, -0.15):
        shapes.append(Shape("box", (0.6, 0.15, 0.12), BLUE, "vehicle", (0.0, side, 0.2)))
        shapes.append(Shape("box", (0.1, 0.1, 0.1), ORANGE, "vehicle", (-0.45, side, 0.0)))
    position, attitude = ("x", "y", "z"), ("qw", "qx", "qy", "qz")
    frames = FrameTree(
        (*attitude, *position),
        [floating("vehicle", WORLD, (*position, *attitude))],
        no_bodies="the mass of the water that moves along depends on the direction",
    )
    return VisualModel(WORLD, frames, tuple(shapes), trail="vehicle")


# the cost of errors of attitude (rad) and place (m), and of both momenta
Q = np.diag([20.0] * 3 + [50.0] * 3 + [1.0] * 3 + [0.1] * 3)

UNDERWATER_VEHICLE = Scenario(
    name="underwater_vehicle",
    title="An underwater vehicle with thrusters",
    parameters=UnderwaterVehicleParameters(),
    make_system=underwater_vehicle,
    integrators={"midpoint": midpoint},
    references={"helix": helix, "station": station},
    weights=(Q, np.diag([0.1, 0.1, 0.1, 1.0]), 10 * Q),
    perturbation=UnderwaterVehiclePerturbation(position=0.3, heading=0.3),
    perturb=perturbed,
    to_bodies=to_bodies,
    from_bodies=from_bodies,
    external=lambda system: (
        on_body(
            system.space,
            "vehicle",
            lambda q, p: (q[4:], quaternion.matrix(q[:4])),
            "force of a current or a cable at its center, and torque, in the axes of the world",
        ),
    ),
    visual=visual,
    step_s=0.02,
)
