"""A robot on two driven wheels, which roll and do not slip.

nh_control simulate differential_drive.py --reference slalom
nh_control simulate differential_drive.py --disturb base_link:gust:0,2,0,start=2,duration=0.5
nh_control run differential_drive.py --plant-parameter mass=12
ros2 launch nh_control scenario.launch.py scenario:=$PWD/differential_drive.py
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.system import System
from nh_control.multibody import Body as Inertia
from nh_control.scenarios import (
    Joint,
    Parameters,
    PlanarBody,
    PlanarPerturbation,
    Scenario,
    parameter,
)
from nh_control.scenarios.declared_frames import FrameTree, planar, remainder, revolute
from nh_control.scenarios.visual_model import BLUE, RUBBER, STEEL, Pose, Shape, VisualModel


@dataclass(frozen=True)
class DriveParameters(Parameters):
    """A body between two wheels, its center of mass above the middle of their axle."""

    mass: float = parameter(10.0, "kg", "of everything")
    inertia: float = parameter(0.4, "kg m^2", "of everything about the vertical")
    wheel_inertia: float = parameter(0.01, "kg m^2", "of a wheel and its motor about the axle")
    radius: float = parameter(0.1, "m", "of a wheel")
    track: float = parameter(0.5, "m", "distance between the wheels")
    friction: float = parameter(0.02, "N m s", "of a wheel's bearing and motor", at_least=0.0)
    torque_limit: float = parameter(2.0, "N m", "of a motor")


def differential_drive(parameters: DriveParameters) -> System:
    """q = (left, right, theta, x, y), v = (left_dot, right_dot, omega, v_forward, v_side)."""

    def lagrangian(q, v, p):
        wheels = p.wheel_inertia * (v[0] ** 2 + v[1] ** 2)
        return (wheels + p.inertia * v[2] ** 2 + p.mass * (v[3] ** 2 + v[4] ** 2)) / 2

    def rolling(q, p):
        """A(q) v = 0: the left wheel rolls, the right wheel rolls, neither slips sideways."""
        b = p.track / 2
        return ca.vertcat(
            ca.horzcat(-p.radius, 0, -b, 1, 0),
            ca.horzcat(0, -p.radius, b, 1, 0),
            ca.horzcat(0, 0, 0, 0, 1),
        )

    return System(
        name="differential_drive",
        space=Product(Rn("left", "right"), SE2()),
        lagrangian=lagrangian,
        velocity_constraint=rolling,
        inputs=("left_torque", "right_torque"),
        input_units=("N m", "N m"),
        input_limits=lambda p: p.torque_limit * np.array([[-1.0, 1.0]] * 2),
        force=lambda q, v, u, p: ca.vertcat(u - p.friction * v[:2], 0, 0, 0),
        parameters=parameters,
    )


SPEED, RADIUS = 1.0, 2.0
"""Of the references: m/s, and m of the circle."""


def driven(model, turn_rate, extra):
    """The motion from SPEED and a turn rate (rad/s) under the torques that friction takes there,
    and `extra` (steps, 2).
    """
    p = model.system.parameters
    rates = (SPEED + turn_rate * p.track / 2 * np.array([-1.0, 1.0])) / p.radius
    start = model.state(np.zeros(5), [*rates, turn_rate, SPEED, 0.0])
    return model.simulate(start, p.friction * rates + extra)


def circle(model):
    """Once around a circle at a constant speed."""
    duration = 2 * np.pi * RADIUS / SPEED
    return driven(model, SPEED / RADIUS, np.zeros((round(duration / model.h), 2)))


def slalom(model):
    """Forward with turns to either side, by opposite torques of the wheels."""
    t = model.h * (np.arange(round(12.0 / model.h)) + 0.5)
    return driven(model, 0.0, 0.15 * np.outer(np.cos(2 * np.pi * t / 4.0), [-1.0, 1.0]))


def perturbed(model, x, error: PlanarPerturbation):
    """The state x with the robot moved and turned, and the momenta scaled."""
    direction, signs = error.draw_direction_and_signs(3)
    dx = np.zeros(model.ndx)
    dx[2:5] = signs[0] * error.heading, *(error.position * direction)
    momenta = model.local(model.state(x[:5], np.zeros(5)), x)[5:]
    dx[5:] = error.momentum * signs[1:] * momenta
    return model.retract(x, dx)


def frames(parameters: DriveParameters) -> FrameTree:
    """The robot and its wheels, whose y axes are their axles. The model has the mass of everything
    alone; a fiftieth of it is in each wheel here.
    """
    p, axle, J = parameters, (0.0, 1.0, 0.0), parameters.wheel_inertia
    sides = {"left": (0.0, p.track / 2, p.radius), "right": (0.0, -p.track / 2, p.radius)}
    wheels = [Inertia(side, p.mass / 50, inertia=(J / 2, J, J / 2)) for side in sides]
    whole = Inertia("body", p.mass, (0.0, 0.0, p.radius), (p.inertia,) * 3)
    body = remainder(whole, zip(wheels, map(Pose.at, sides.values())))
    return FrameTree(
        ("left", "right", "theta", "x", "y"),
        (
            planar("body", "odom"),
            *(revolute(side, "body", side, axle, place) for side, place in sides.items()),
        ),
        (body, *wheels) if body else (),
        "the inertia of everything is smaller than that of the wheels",
    )


def visual(parameters: DriveParameters) -> VisualModel:
    """A box with a nose between two wheels with a spoke each."""
    d, b = 2 * parameters.radius, parameters.track
    shapes = [
        Shape("box", (0.5, 0.8 * b, 0.15), BLUE, "body", (0.0, 0.0, 1.2 * d)),
        Shape("sphere", (0.1, 0.1, 0.1), STEEL, "body", (0.3, 0.0, 1.2 * d)),
    ]
    for side in ("left", "right"):
        shapes.append(Shape("cylinder", (d, d, 0.05), RUBBER, side, roll=np.pi / 2))
        shapes.append(Shape("box", (0.9 * d, 0.06, 0.02), STEEL, side))
    return VisualModel("odom", frames(parameters), tuple(shapes), trail="body")


# the wheels' angles cost nothing: where the robot is says all that matters
Q = {"theta": 10.0, "forward": 10.0, "side": 10.0, "v_forward": 0.1, "omega": 0.1}

DIFFERENTIAL_DRIVE = Scenario(
    name="differential_drive",
    title="A robot on two driven wheels",
    parameters=DriveParameters(),
    make_system=differential_drive,
    integrators={"midpoint": nonholonomic_midpoint},
    references={"circle": circle, "slalom": slalom},
    weights=(Q, np.eye(2), {name: 10 * weight for name, weight in Q.items()}),
    perturbation=PlanarPerturbation(position=0.2, heading=0.2, momentum=0.1),
    perturb=perturbed,
    joints=(Joint("left_wheel_joint", "left"), Joint("right_wheel_joint", "right")),
    body=PlanarBody("base_link", "odom"),
    visual=visual,
    step_s=0.02,
)
