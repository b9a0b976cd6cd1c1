"""my_robot: an arm whose motor holds it against gravity.

The Scenario at the end contains everything that `nh_control` shows, checks and runs:

    nh_control list my_robot.py            references, parameters and limits, with units
    nh_control simulate my_robot.py        figures, a table and numbers, in one process
    nh_control run my_robot.py             the same as ROS 2 nodes
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.scenarios import Joint, Scenario


@dataclass(frozen=True)
class MyRobotParameters(nh.Parameters):
    """Physical parameters, positive by default; `--plant-parameter mass=1.1` changes one."""

    mass: float = nh.parameter(1.0, "kg", "at the end of the arm")
    length: float = nh.parameter(0.5, "m", "of the arm")
    friction: float = nh.parameter(0.02, "N m s", "of the joint", at_least=0.0)
    torque_limit: float = nh.parameter(8.0, "N m", "of the motor")


def my_robot(parameters: MyRobotParameters) -> nh.System:
    """The angle is 0 when the arm hangs down; L = kinetic energy - potential energy.

    q, v, u and p are symbols: configuration, velocity, inputs, parameters.
    """
    return nh.System(
        name="my_robot",
        space=nh.Rn("angle"),  # other spaces: SO3, S2, SE2, SE3, and Product of several
        lagrangian=lambda q, v, p: (
            p.mass * p.length**2 * v[0] ** 2 / 2 + p.mass * 9.81 * p.length * ca.cos(q[0])
        ),
        inputs=("torque",),
        input_units=("N m",),
        input_limits=lambda p: np.array([[-p.torque_limit, p.torque_limit]]),
        force=lambda q, v, u, p: u - p.friction * v,
        parameters=parameters,
    )


def raised(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Held horizontally for 5 s."""
    return rest_at(model, np.pi / 2)


def upright(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Balanced upright for 5 s."""
    return rest_at(model, np.pi)


def rest_at(model: nh.DiscreteSystem, angle: float) -> nh.Trajectory:
    # torque = dV/dangle for V = -mass g length cos(angle)
    """At rest at an angle for 5 s, with the torque that balances gravity."""
    p = model.system.parameters
    state, torque = model.state([angle], [0.0]), p.mass * 9.81 * p.length * np.sin(angle)
    steps = round(5.0 / model.h)
    return nh.Trajectory(model.h, np.tile(state, (steps + 1, 1)), np.full((steps, 1), torque))


MY_ROBOT = Scenario(
    name="my_robot",
    title="An arm with a motor",
    parameters=MyRobotParameters(),
    make_system=my_robot,
    integrators={"midpoint": nh.midpoint},
    references={"raised": raised, "upright": upright},
    # costs of the errors of angle (rad) and momentum, and of the torque (N m)
    weights=(np.diag([100.0, 1.0]), np.array([[1.0]]), None),
    joints=(Joint("shoulder", "angle"),),
    step_s=0.01,
    hold=True,  # references end at rest, and the tracker then holds their last state
)
