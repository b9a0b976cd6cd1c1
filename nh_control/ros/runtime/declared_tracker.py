"""Parameters of the tracker: of prediction, velocity commands and hardware."""

from __future__ import annotations

from nh_control.loop.arming import AUTO, DisarmCommand
from nh_control.loop.planner import HALF_A_STEP
from nh_control.mechanics.parameters import Declaration

OF_SCENARIO = -1.0
"""Value that stands for the scenario's declaration."""

DEADLINE = Declaration(
    "mpc.deadline_s",
    HALF_A_STEP,
    description="How long after a state its plan may come in s; then an earlier plan's gains "
    "answer, or LQR, where that plan is older than half the horizon. -1 is half a step, 0 waits "
    "for every plan, as lock-step does",
    at_least=HALF_A_STEP,
)

HARDWARE = (
    Declaration(
        "source",
        "simulation",
        description="Where states come from. simulation: stamped k * step_s, all are answered. "
        "hardware: stamps of any clock, states may be late, lost, noisy or split; nothing is "
        "commanded until ~/arm",
        choices=("simulation", "hardware"),
    ),
    Declaration(
        "hardware.start",
        "first_state",
        description="Whether the reference starts with the first state after arming, or after "
        "~/start",
        choices=("first_state", "service"),
    ),
    Declaration(
        "hardware.armed", False, description="Whether the tracker is armed from the start"
    ),
    Declaration(
        "hardware.estimator",
        "kalman",
        description="Estimator of the state: kalman, an extended Kalman filter on the model; or "
        "none, the last measurement alone",
        choices=("kalman", "none"),
    ),
    Declaration(
        "hardware.noise",
        1e-3,
        description="Standard deviation of measured configurations, m and rad",
        at_least=1e-9,
    ),
    Declaration(
        "hardware.acceleration",
        1.0,
        description="Accelerations by forces that are not in the model, m/s^2 and rad/s^2",
        at_least=1e-9,
    ),
    Declaration(
        "hardware.outlier",
        300.0,
        description="States that differ more from the filter's prediction, in standard "
        "deviations, are refused, and ten in sequence disarm; 0 is never",
        at_least=0.0,
    ),
    Declaration(
        "hardware.compensate_delay",
        True,
        description="Whether commands are for the state that the model predicts for the time "
        "when they act. The delay is measured: states must be stamped by the clock of the "
        "tracker's host",
    ),
    Declaration(
        "hardware.actuation_s",
        0.0,
        description="Time from the sending of a command to its effect in s",
        at_least=0.0,
    ),
    Declaration(
        "hardware.max_age_s",
        0.0,
        description="Oldest state that is used, by the tracker's clock, in s; 0 is any",
        at_least=0.0,
    ),
    Declaration(
        "hardware.command_array",
        "",
        description="Topic of std_msgs/Float64MultiArray to which the efforts of the joints are "
        "sent as well, in the order of the inputs, as forward_command_controller takes them; "
        "empty is none",
    ),
    Declaration(
        "disarm.silence_s",
        0.5,
        description="Disarm after so many seconds without a state that can be used; 0 is never",
        at_least=0.0,
    ),
    Declaration(
        "disarm.error",
        OF_SCENARIO,
        description="Disarm where a tracked number of the configuration's error is larger, m or "
        "rad; -1 is the scenario's limit, ten times its initial error if it has none; 0 is never",
        at_least=OF_SCENARIO,
    ),
    Declaration(
        "disarm.range",
        [AUTO],
        description="Disarm where a joint or body leaves its range in m or rad, NAME:LOW:HIGH, "
        "e.g. cart_joint:-1:1, base_link.x:-2:2 or quad1.tilt:0:0.8; auto are the scenario's "
        "ranges, empty is none",
    ),
    Declaration(
        "disarm.saturation_s",
        OF_SCENARIO,
        description="Disarm where an input is saturated for longer, in s; -1 is the scenario's "
        "limit, 1 s if it has none; 0 is never",
        at_least=OF_SCENARIO,
    ),
    Declaration(
        "disarm.command",
        "none",
        description="Command after a disarming, at every state, or 20 times a second without "
        "one: none; zero forces; hold, the last command; damp, which brings the motion to rest",
        choices=tuple(kind.value for kind in DisarmCommand),
    ),
)

VELOCITY_COMMANDS = (
    Declaration(
        "cmd_vel.stamped",
        True,
        description="Type of the velocity commands of vehicles on cmd_vel: true is TwistStamped, "
        "false Twist",
    ),
    Declaration(
        "cmd_vel.timeout_s",
        0.5,
        description="How long a velocity command counts in s; without a newer one the vehicle "
        "comes to rest. 0 is until the next one",
        at_least=0.0,
    ),
    Declaration(
        "cmd_vel.acceleration",
        0.0,
        description="Largest acceleration along velocity commands and to goals, m/s^2; 0 is the "
        "scenario's",
        at_least=0.0,
    ),
    Declaration(
        "cmd_vel.turn_acceleration",
        0.0,
        description="The same of the yaw rate, or of a car's steering rate, rad/s^2; 0 is the "
        "scenario's",
        at_least=0.0,
    ),
)
