"""Parameters of the tracker: of prediction, velocity commands and hardware."""

from __future__ import annotations

from nh_control.ros.loop.arming import DisarmCommand
from nh_control.ros.runtime.spec import AUTO, OF_SCENARIO, Spec

HALF_A_STEP = -1.0
"""Value of the deadline of plans that means half a step."""

MPC = (
    Spec(
        "controller",
        "lqr",
        "Tracker: lqr, linear feedback; or mpc, which plans ahead within the limits of inputs and "
        "the scenario's constraints in every step.",
        choices=("lqr", "mpc"),
    ),
    Spec(
        "mpc.horizon_s",
        0.0,
        "How far it plans in s; 0 is the scenario's horizon.",
        minimum=0.0,
    ),
    Spec("mpc.iterations", 3, "Interior-point iterations in a step.", minimum=1),
    Spec(
        "mpc.constraints",
        [AUTO],
        "Names of the scenario's constraints that it keeps; auto are those of the reference, "
        "empty is none.",
    ),
    Spec(
        "mpc.deadline_s",
        HALF_A_STEP,
        "How long after a state its plan may come in s; then an earlier plan's gains answer, or "
        "LQR, where that plan is older than half the horizon. -1 is half a step, 0 waits for "
        "every plan, as lock-step does.",
        minimum=HALF_A_STEP,
    ),
    Spec(
        "mpc.late",
        0.0,
        "Share of plans that count as late, to see what becomes of the motion.",
        minimum=0.0,
    ),
    Spec("mpc.seed", 0, "Seed with which these are drawn.", minimum=0),
)

HARDWARE = (
    Spec(
        "source",
        "simulation",
        "simulation: states are stamped k * step_s, all are answered. hardware: stamps of any "
        "clock, states may be late, lost, noisy or split; nothing is commanded until ~/arm.",
        choices=("simulation", "hardware"),
    ),
    Spec(
        "hardware.start",
        "first_state",
        "Whether the reference starts with the first state after arming, or after ~/start.",
        choices=("first_state", "service"),
    ),
    Spec("hardware.armed", False, "Whether the tracker is armed from the start."),
    Spec(
        "hardware.estimator",
        "kalman",
        "Estimator of the state: kalman, an extended Kalman filter on the model; or none, the "
        "last measurement alone.",
        choices=("kalman", "none"),
    ),
    Spec(
        "hardware.noise",
        1e-3,
        "Standard deviation of measured configurations, m and rad.",
        minimum=1e-9,
    ),
    Spec(
        "hardware.acceleration",
        1.0,
        "Accelerations by forces that are not in the model, m/s^2 and rad/s^2.",
        minimum=1e-9,
    ),
    Spec(
        "hardware.outlier",
        300.0,
        "States that differ more from the filter's prediction, in standard deviations, are "
        "refused, and ten in sequence disarm; 0 is never.",
        minimum=0.0,
    ),
    Spec(
        "hardware.compensate_delay",
        True,
        "Whether commands are for the state that the model predicts for the time when they act. "
        "The delay is measured: states must be stamped by the clock of the tracker's host.",
    ),
    Spec(
        "hardware.actuation_s",
        0.0,
        "Time from the sending of a command to its effect in s.",
        minimum=0.0,
    ),
    Spec(
        "hardware.max_age_s",
        0.0,
        "Oldest state that is used, by the tracker's clock, in s; 0 is any.",
        minimum=0.0,
    ),
    Spec(
        "hardware.command_array",
        "",
        "Topic of std_msgs/Float64MultiArray to which the efforts of the joints are sent as well, "
        "in the order of the inputs, as forward_command_controller takes them; empty is none.",
    ),
    Spec(
        "disarm.silence_s",
        0.5,
        "Disarm after so many seconds without a state that can be used; 0 is never.",
        minimum=0.0,
    ),
    Spec(
        "disarm.error",
        OF_SCENARIO,
        "Disarm where a tracked number of the configuration's error is larger, m or rad; -1 is "
        "the scenario's limit, ten times its initial error if it has none; 0 is never.",
        minimum=OF_SCENARIO,
    ),
    Spec(
        "disarm.range",
        [AUTO],
        "Disarm where a joint or body leaves its range in m or rad, NAME:LOW:HIGH, e.g. "
        "cart_joint:-1:1, base_link.x:-2:2 or quad1.tilt:0:0.8; auto are the scenario's ranges, "
        "empty is none.",
    ),
    Spec(
        "disarm.saturation_s",
        OF_SCENARIO,
        "Disarm where an input is saturated for longer, in s; -1 is the scenario's limit, 1 s if "
        "it has none; 0 is never.",
        minimum=OF_SCENARIO,
    ),
    Spec(
        "disarm.command",
        "none",
        "Command after a disarming, at every state, or 20 times a second without one: none; zero "
        "forces; hold, the last command; damp, which brings the motion to rest.",
        choices=tuple(kind.value for kind in DisarmCommand),
    ),
)

VELOCITY_COMMANDS = (
    Spec(
        "cmd_vel.stamped",
        True,
        "Type of the velocity commands of vehicles on cmd_vel: true is TwistStamped, false Twist.",
    ),
    Spec(
        "cmd_vel.timeout_s",
        0.5,
        "How long a velocity command counts in s; without a newer one the vehicle comes to rest. "
        "0 is until the next one.",
        minimum=0.0,
    ),
    Spec(
        "cmd_vel.acceleration",
        0.0,
        "Largest acceleration along velocity commands and to goals, m/s^2; 0 is the scenario's.",
        minimum=0.0,
    ),
    Spec(
        "cmd_vel.turn_acceleration",
        0.0,
        "The same of the yaw rate, or of a car's steering rate, rad/s^2; 0 is the scenario's.",
        minimum=0.0,
    ),
)
