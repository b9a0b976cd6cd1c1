"""An arm that a DC motor with a gear holds against gravity; its input is the motor's voltage.

The current is a first-order coordinate of the state, beside angle and momentum:

    nh_control simulate motor_arm.py --reference upright
    nh_control simulate motor_arm.py --plant-parameter mass=1.1
    nh_control run motor_arm.py
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.mechanics.actuators import DcMotor, with_dc_motors
from nh_control.scenarios import Joint, Scenario

GRAVITY = 9.81
MOTOR = DcMotor(
    resistance=0.6,
    inductance=2e-3,
    torque_constant=0.05,
    gear=50.0,
    rotor_inertia=1e-5,
    friction=1e-6,
    voltage_limit=24.0,
)


@dataclass(frozen=True)
class ArmParameters(nh.Parameters):
    """A mass at the end of a light arm."""

    mass: float = nh.parameter(1.0, "kg", "at the end of the arm")
    length: float = nh.parameter(0.5, "m", "of the arm")


def arm(parameters: ArmParameters) -> nh.System:
    """The arm by the torque at its joint; the angle is 0 when it hangs down."""
    return nh.System(
        name="arm",
        space=nh.Rn("angle"),
        lagrangian=lambda q, v, p: (
            p.mass * p.length**2 * v[0] ** 2 / 2 + p.mass * GRAVITY * p.length * ca.cos(q[0])
        ),
        inputs=("torque",),
        input_units=("N m",),
        force=lambda q, v, u, p: u,
        parameters=parameters,
    )


def motor_arm(parameters: ArmParameters) -> nh.System:
    """The same arm by the voltage of its motor."""
    return with_dc_motors(arm(parameters), {"torque": MOTOR})


def raised(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Held horizontally for 5 s."""
    return rest_at(model, np.pi / 2)


def upright(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Balanced upright for 5 s."""
    return rest_at(model, np.pi)


def rest_at(model: nh.DiscreteSystem, angle: float) -> nh.Trajectory:
    """At rest at an angle for 5 s, with the current and the voltage that balance gravity."""
    p = model.system.parameters
    torque = p.mass * GRAVITY * p.length * np.sin(angle)
    current = torque / (MOTOR.gear * MOTOR.torque_constant)
    state = model.state([angle, current], [0.0, 0.0])
    steps, voltage = round(5.0 / model.h), MOTOR.resistance * current
    return nh.Trajectory(model.h, np.tile(state, (steps + 1, 1)), np.full((steps, 1), voltage))


MOTOR_ARM = Scenario(
    name="motor_arm",
    title="An arm with a DC motor",
    parameters=ArmParameters(),
    make_system=motor_arm,
    integrators={"midpoint": nh.midpoint},
    references={"raised": raised, "upright": upright},
    # costs of errors of angle (rad), current (A) and momentum, and of the voltage (V)
    weights=(np.diag([100.0, 0.0, 1.0]), np.array([[0.1]]), None),
    joints=(Joint("shoulder", "angle"), Joint("motor_current", "torque_current", unit="A")),
    step_s=0.005,
    hold=True,
)
