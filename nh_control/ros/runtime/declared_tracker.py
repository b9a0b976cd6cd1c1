"""Parameters of the tracker for predictive control, velocity commands and hardware."""

from __future__ import annotations

from nh_control.loop.arming import AUTO, DisarmCommand
from nh_control.loop.planner import HALF_A_STEP
from nh_control.mechanics.parameters import Declaration

OF_SCENARIO = -1.0
"""Value that selects the scenario's declaration."""

DEADLINE = Declaration(
    "mpc.deadline_s",
    HALF_A_STEP,
    description="Latest time after a state, in s, at which its plan may arrive; after it, the "
    "gains of an earlier plan determine the command, or LQR if that plan is older than half the "
    "horizon. -1 means half a step, 0 waits for every plan, as lock-step does",
    at_least=HALF_A_STEP,
)

# bounds on the tracking error in the diagnostics
ERROR_BOUNDS = (
    Declaration(
        "error_bounds.warning",
        OF_SCENARIO,
        description="Diagnostics are WARN if a tracked component of the configuration error was "
        "larger than this, m or rad; -1 means 0.3 times error_bounds.error, 0 means never",
        at_least=OF_SCENARIO,
    ),
    Declaration(
        "error_bounds.error",
        OF_SCENARIO,
        description="The same for ERROR; a tracker that starts late joins a run if the error can "
        "get below this bound. -1 means the scenario's limit, or ten times its initial error if "
        "it has no limit; 0 means never",
        at_least=OF_SCENARIO,
    ),
)

# robot states: their source, estimator and delay; arming and disarming
HARDWARE = (
    Declaration(
        "source",
        "simulation",
        description="Source of the states. simulation: stamps are k * step_s, and every state is "
        "answered. hardware: stamps come from any clock, states may be late, lost, noisy or "
        "split, and no command is sent before ~/arm",
        choices=("simulation", "hardware"),
    ),
    Declaration(
        "hardware.start",
        "first_state",
        description="Start of the reference: with the first state after arming (first_state), or "
        "with the first state after the service ~/start (service)",
        choices=("first_state", "service"),
    ),
    Declaration(
        "hardware.armed", False, description="Whether the tracker is armed from the start"
    ),
    Declaration(
        "hardware.estimator",
        "kalman",
        description="Estimator of the state: kalman, an extended Kalman filter with the model; or "
        "none, which uses only the last measurement",
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
        description="Standard deviation of accelerations by unmodeled forces, m/s^2 and rad/s^2",
        at_least=1e-9,
    ),
    Declaration(
        "hardware.outlier",
        300.0,
        description="Bound, in standard deviations, of the difference between a state and the "
        "filter's prediction: states beyond it are refused, and ten in sequence disarm the "
        "tracker; 0 means no bound",
        at_least=0.0,
    ),
    Declaration(
        "hardware.compensate_delay",
        True,
        description="Whether a command is computed for the state that the model predicts for the "
        "time when the command takes effect. The delay is measured; therefore the clock of the "
        "tracker's host must stamp the states",
    ),
    Declaration(
        "hardware.actuation_s",
        0.0,
        description="Time between sending a command and its effect, in s",
        at_least=0.0,
    ),
    Declaration(
        "hardware.max_age_s",
        0.0,
        description="Largest age of a state that is used, by the tracker's clock, in s; 0 means "
        "any age",
        at_least=0.0,
    ),
    Declaration(
        "hardware.command_array",
        "",
        description="Additional topic, of type std_msgs/Float64MultiArray, for the efforts of the "
        "joints in the order of the inputs, as forward_command_controller expects them; empty "
        "means no topic",
    ),
    Declaration(
        "disarm.silence_s",
        0.5,
        description="Disarm after this time, in s, without a usable state; 0 means never",
        at_least=0.0,
    ),
    Declaration(
        "disarm.error",
        OF_SCENARIO,
        description="Disarm if a tracked component of the configuration error is larger than "
        "this, m or rad; -1 means the scenario's limit, or ten times its initial error if it has "
        "no limit; 0 means never",
        at_least=OF_SCENARIO,
    ),
    Declaration(
        "disarm.range",
        [AUTO],
        description="Disarm if a joint or body leaves its range in m or rad, NAME:LOW:HIGH, "
        "e.g. cart_joint:-1:1, base_link.x:-2:2 or quad1.tilt:0:0.8; auto means the scenario's "
        "ranges, an empty list no ranges",
    ),
    Declaration(
        "disarm.saturation_s",
        OF_SCENARIO,
        description="Disarm if an input is saturated for longer than this time, in s; -1 means "
        "the scenario's limit, or 1 s if it has no limit; 0 means never",
        at_least=OF_SCENARIO,
    ),
    Declaration(
        "disarm.command",
        "none",
        description="Command after the tracker was disarmed, sent for every state, or 20 times "
        "per second without states: none; zero, no forces; hold, the last command; damp, which "
        "brings the motion to rest",
        choices=tuple(kind.value for kind in DisarmCommand),
    ),
)

# velocity commands for vehicles
VELOCITY_COMMANDS = (
    Declaration(
        "cmd_vel.stamped",
        True,
        description="Type of the velocity commands of vehicles on cmd_vel: TwistStamped if true, "
        "Twist if false",
    ),
    Declaration(
        "cmd_vel.timeout_s",
        0.5,
        description="Time for which a velocity command is valid, in s; then, without a newer "
        "command, the vehicle comes to rest. With 0 it is valid until the next command",
        at_least=0.0,
    ),
    Declaration(
        "cmd_vel.acceleration",
        0.0,
        description="Largest acceleration for velocity commands and goals, m/s^2; 0 means the "
        "scenario's value",
        at_least=0.0,
    ),
    Declaration(
        "cmd_vel.turn_acceleration",
        0.0,
        description="The same for the yaw rate, or for a car's steering rate, rad/s^2; 0 means "
        "the scenario's value",
        at_least=0.0,
    ),
)
