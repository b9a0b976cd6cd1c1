"""ros2_control controllers for a scenario's joints. Their parameters follow from the scenario's
declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from nh_control.control.joint_servo import POSITION, VELOCITY
from nh_control.scenarios.joint_limits import JointLimits
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.wheeled_base import (
    AckermannBase,
    DifferentialBase,
    SteeredBase,
    WheeledBase,
)

EFFORT, BOTH = "effort", "position+velocity"
INTERFACES = (POSITION, VELOCITY, EFFORT, BOTH)
PATH_PART, GOAL_PART = 0.05, 0.005
"""Tolerances along a trajectory and at the goal, as fractions of the joint's range."""
STOPPED, GOAL_S = 0.05, 1.0
"""Speed (rad/s, m/s) below which a joint counts as stopped at a goal, and time (s) that it has to
stop.
"""
BANDWIDTH = 10.0
"""Bandwidth (rad/s) of controllers that have feedback gains."""
TIMEOUT_S = 0.5
"""Time (s) after which a velocity command for a vehicle expires."""

Make: TypeAlias = Callable[[Scenario, str, Mapping[str, JointLimits]], dict[str, Any]]
Base = TypeVar("Base", DifferentialBase, SteeredBase, AckermannBase)


@dataclass(frozen=True)
class Controller:
    """A controller with the class `plugin`. It commands one of the `interfaces` of all driven
    joints, or the wheels of a vehicle with the given `base`. `make(scenario, interface, limits)`
    returns its parameters, where `limits` are the limits of the driven joints by name.
    """

    plugin: str
    make: Make
    interfaces: tuple[str, ...] = ()
    base: type[WheeledBase] | None = None


def base_of(scenario: Scenario, name: str, kind: type[Base]) -> Base:
    """The wheels of a vehicle for the controller `name`. Raises ValueError for wheels of a
    different kind and for scenarios without wheels.
    """
    base = None if scenario.base is None else scenario.base(scenario.parameters)
    if not isinstance(base, kind):
        # Suggest the controller for the vehicle's kind of wheels.
        fitting = [
            n for n, c in CONTROLLERS.items() if c.base is not None and c.base is type(base)
        ]
        remedy = f"use {fitting[0]}" if fitting else "it is for vehicles"
        raise ValueError(f"{name}: {scenario.name} has no wheels that it commands; {remedy}")
    return base


def base_commands(scenario: Scenario, name: str) -> dict[str, tuple[str, ...]]:
    """The command interfaces of a vehicle controller, by joint. Raises the same errors as
    `base_of`.
    """
    if CONTROLLERS[name].base is DifferentialBase:
        turned = base_of(scenario, name, DifferentialBase)
        return dict.fromkeys((turned.left, turned.right), (VELOCITY,))
    if CONTROLLERS[name].base is AckermannBase:
        four = base_of(scenario, name, AckermannBase)
        return {
            **dict.fromkeys(four.driven, (VELOCITY,)),
            **dict.fromkeys(four.steered, (POSITION,)),
        }
    steered = base_of(scenario, name, SteeredBase)
    return {steered.driven: (VELOCITY,), steered.steered: (POSITION,)}


def _short(value: float) -> float:
    # Three digits keep parameter files readable.
    return float(f"{value:.3g}")


def _gains(limits: JointLimits, interface: str) -> dict[str, float]:
    """Gains that place three poles at -BANDWIDTH for efforts, or one pole for velocities."""
    # For effort: M s^3 + d s^2 + p s + i = M (s + w)^3. For velocity: s + p = s + w.
    w, M = BANDWIDTH, limits.inertia
    gains = (
        {"p": w} if interface == VELOCITY else {"p": 3 * M * w**2, "i": M * w**3, "d": 3 * M * w}
    )
    return {name: _short(value) for name, value in gains.items()}


def _trajectories(
    _: Scenario, interface: str, limits: Mapping[str, JointLimits]
) -> dict[str, Any]:
    tolerances = {
        name: {
            "trajectory": _short(PATH_PART * joint.range),
            "goal": _short(GOAL_PART * joint.range),
        }
        for name, joint in limits.items()
    }
    rest = {"stopped_velocity_tolerance": STOPPED, "goal_time": GOAL_S}
    parameters: dict[str, Any] = {
        "joints": list(limits),
        "command_interfaces": interface.split("+"),
        "state_interfaces": [POSITION, VELOCITY],
        "constraints": rest | tolerances,
    }
    # Position interfaces do not need gains, because velocities are fed forward.
    if interface in (VELOCITY, EFFORT):
        forward = {"ff_velocity_scale": 1.0} if interface == VELOCITY else {}
        parameters["gains"] = {
            name: _gains(joint, interface) | forward for name, joint in limits.items()
        }
    return parameters


def _forward(_: Scenario, interface: str, limits: Mapping[str, JointLimits]) -> dict[str, Any]:
    return {"joints": list(limits), "interface_name": interface}


def _pid(_: Scenario, interface: str, limits: Mapping[str, JointLimits]) -> dict[str, Any]:
    gains = {}
    for name, joint in limits.items():
        # The output of the controller has the same limits as the command.
        most = _short(joint.effort if interface == EFFORT else joint.speed)
        gains[name] = _gains(joint, interface) | {"u_clamp_max": most, "u_clamp_min": -most}
    return {
        "dof_names": list(limits),
        "command_interface": interface,
        "reference_and_state_interfaces": [POSITION, VELOCITY][: 1 + (interface == EFFORT)],
        "gains": gains,
    }


def _odometry(scenario: Scenario) -> dict[str, Any]:
    """The odometry parameters. The odometry transform is disabled, because the plant publishes the
    transform of the body.
    """
    body = scenario.body
    frames = {} if body is None else {"odom_frame_id": body.parent, "base_frame_id": body.frame}
    return {**frames, "enable_odom_tf": False, "open_loop": False, "position_feedback": True}


def _differential(scenario: Scenario, _: str, limits: Mapping[str, JointLimits]) -> dict[str, Any]:
    base = base_of(scenario, "diff_drive_controller", DifferentialBase)
    parameters: dict[str, Any] = {
        "left_wheel_names": [base.left],
        "right_wheel_names": [base.right],
        "wheel_separation": base.separation,
        "wheel_radius": base.radius,
        "cmd_vel_timeout": TIMEOUT_S,
    }
    if (drive := scenario.drive) is not None:
        for (kind, axis), speed, a in zip(
            (("linear", "x"), ("angular", "z")), drive.speeds, drive.accelerations
        ):
            # Braking has the same limits as acceleration, in both directions.
            ahead = {"max_velocity": speed, "max_acceleration": a, "max_deceleration": -a}
            back = {"min_velocity": -speed, "max_acceleration_reverse": -a}
            parameters[kind] = {axis: ahead | back | {"max_deceleration_reverse": a}}
    return parameters | _odometry(scenario)


def _steered(scenario: Scenario, _: str, limits: Mapping[str, JointLimits]) -> dict[str, Any]:
    base = base_of(scenario, "bicycle_steering_controller", SteeredBase)
    return {
        "traction_joints_names": [base.driven],
        "steering_joints_names": [base.steered],
        "wheelbase": base.wheelbase,
        "traction_wheel_radius": base.radius,
        "reference_timeout": TIMEOUT_S,
        **_odometry(scenario),
    }


def _ackermann(scenario: Scenario, _: str, limits: Mapping[str, JointLimits]) -> dict[str, Any]:
    base = base_of(scenario, "ackermann_steering_controller", AckermannBase)
    return {
        # Ackermann controllers list the right wheel first, whereas the base lists the left wheel
        # first.
        "traction_joints_names": list(reversed(base.driven)),
        "steering_joints_names": list(reversed(base.steered)),
        "wheelbase": base.wheelbase,
        "traction_track_width": base.driven_width,
        "steering_track_width": base.steered_width,
        "traction_wheels_radius": base.radius,
        "reference_timeout": TIMEOUT_S,
        **_odometry(scenario),
    }


_FORWARD = "forward_command_controller/ForwardCommandController"
CONTROLLERS: Mapping[str, Controller] = {
    "joint_trajectory_controller": Controller(
        "joint_trajectory_controller/JointTrajectoryController", _trajectories, INTERFACES
    ),
    "forward_command_controller": Controller(_FORWARD, _forward, INTERFACES[:3]),
    "velocity_controller": Controller(_FORWARD, _forward, (VELOCITY,)),
    "effort_controller": Controller(_FORWARD, _forward, (EFFORT,)),
    "pid_controller": Controller("pid_controller/PidController", _pid, (EFFORT, VELOCITY)),
    "diff_drive_controller": Controller(
        "diff_drive_controller/DiffDriveController", _differential, base=DifferentialBase
    ),
    "bicycle_steering_controller": Controller(
        "bicycle_steering_controller/BicycleSteeringController", _steered, base=SteeredBase
    ),
    "ackermann_steering_controller": Controller(
        "ackermann_steering_controller/AckermannSteeringController",
        _ackermann,
        base=AckermannBase,
    ),
}
"""The controllers whose parameters follow from a scenario, by name."""
DEFAULTS = {
    POSITION: "joint_trajectory_controller",
    BOTH: "joint_trajectory_controller",
    VELOCITY: "velocity_controller",
    EFFORT: "effort_controller",
}
"""The default controller for each interface."""
