"""The declaration of every parameter of the nodes and launch files: its type, default, range and
description.
"""

from __future__ import annotations

from dataclasses import replace

from nh_control.loop.command_validator import Fallback
from nh_control.mechanics.parameters import Declaration
from nh_control.ros.runtime.declared_tracker import DEADLINE, ERROR_BOUNDS, VELOCITY_COMMANDS
from nh_control.ros.runtime.declared_tracker import HARDWARE as HARDWARE
from nh_control.runs.node_process import STEP_FAILED
from nh_control.runs.settings import ORIGIN, SETTINGS

PLANT_PARAMETERS = "plant.parameters."
"""Prefix of the plant's physical parameters, `plant.parameters.<field>`."""

EFFORT = "effort"
"""Command interface for forces and torques."""

PERTURBATION = "perturb."
"""Prefix of the scenario's initial errors, `perturb.<field>`."""

MODEL_PARAMETERS, WEIGHT_FACTORS = "model_parameters.", "weight_factors."
"""Prefixes of the model's physical parameters, and of factors on the scenario's weights."""

WEIGHTS = "weights."
"""Prefix of the tracker's weights, `weights.<coordinate or input>`."""


def _of_run(*names: str) -> tuple[Declaration, ...]:
    """The run settings with these names, as parameters."""
    return tuple(SETTINGS[name] for name in names)


# run settings are declared once, in runs/settings.py, and nodes only refer to them
SCENARIO = _of_run(*ORIGIN)

AUTOSTART = Declaration(
    "autostart",
    True,
    description="Whether the node configures and activates itself; otherwise this is done through "
    "its lifecycle services",
)

# nodes that follow a reference
RUNNING = (
    *SCENARIO,
    AUTOSTART,
    *_of_run("reference", "integrator", "step_s"),
    Declaration(
        "frame_prefix",
        "auto",
        description="Prefix of the names of all frames; auto means the namespace and a slash",
    ),
)

SHARED = tuple(replace(entry, changeable=False) for entry in RUNNING)
"""Parameters of nodes whose reference cannot change."""

# pacing and integrator, initial state, end of the run, disturbances, commands
PLANT = (
    *RUNNING,
    *_of_run("plant.integrator", "plant.substeps", "speed_factor", "lockstep"),
    *_of_run("answer_timeout_s"),
    Declaration(
        "wait_for_tracker",
        True,
        description="Whether the run starts only after a command has answered the first state",
    ),
    Declaration(
        "wait_for",
        [],
        description="Names of nodes, e.g. a recorder, that must have subscribed to all state "
        "messages before the run starts",
    ),
    *_of_run("duration_s"),
    Declaration(
        "on_finish",
        "stay",
        description="What the plant does at the end of the run: it stays there, it exits, or it "
        "continues without end, e.g. for goals. Then the tracker holds the reference's last "
        "state, or damps the motion if the scenario holds no state. A failed step ends the node "
        f"with exit code {STEP_FAILED}, unless the value is stay",
        choices=("stay", "exit", "continue"),
    ),
    *_of_run("disturb", "fault"),
    Declaration(
        "wrench.targets",
        [],
        description="Targets to which the topic `wrench` applies external forces, such as a body "
        "that is pulled in the page of the view; `nh_control list SCENARIO` shows the targets",
    ),
    Declaration(
        "wrench.acceleration",
        10.0,
        description="Bound of a wrench: the acceleration, m/s^2 and rad/s^2, that its largest "
        "force and torque may cause at a target in the initial state",
        at_least=0.0,
    ),
    Declaration(
        "step_count",
        1,
        description="Number of steps that the service ~/step takes",
        at_least=1,
        changeable=True,
    ),
    Declaration(
        "state_file",
        "",
        description="JSON file to which ~/save_state writes and from which ~/load_state reads; "
        "if it is empty, the state is stored in memory",
        changeable=True,
    ),
    Declaration(
        "clock",
        "namespace",
        description="Topic of the simulation time: namespace, clock in the node's namespace; "
        "global, /clock, for at most one plant; or none",
        choices=("namespace", "global", "none"),
    ),
    Declaration(
        "fallback",
        Fallback.ZERO.value,
        description="Input that is applied when no command is fresh: hold, the last command; "
        "zero, no forces; damp, which brings the motion to rest; tracker, a copy of the tracker "
        "in the plant, which follows the reference without goals; or wait, which stops simulated "
        "time until the next command and is the default of launch files with a tracker",
        choices=tuple(f.value for f in Fallback),
        changeable=True,
    ),
    Declaration(
        "command_interface",
        EFFORT,
        description="Field of the messages on joint_commands that the plant uses: effort, as the "
        "tracker sends it; or position or velocity of the joints, which a servo loop in the "
        "plant follows; or position or velocity for each driven joint, "
        "JOINT:position,JOINT:velocity",
    ),
    Declaration(
        "servo.bandwidth",
        20.0,
        description="Bandwidth of the servo loop in rad/s; the loop is critically damped, and its "
        "gains follow from the model's mass matrix",
        at_least=1e-3,
        changeable=True,
    ),
    Declaration(
        "command_timeout_steps",
        5,
        description="Number of steps for which a command stays fresh; later commands are "
        "rejected. In lock-step it is 1",
        at_least=1,
    ),
    Declaration(
        "publish_velocities",
        True,
        description="Whether states contain velocities; without them, as with encoders, the "
        "tracker reconstructs the velocities",
    ),
)

# controller and prediction, goals, limits, hardware
TRACKER = (
    *RUNNING,
    *_of_run("lockstep", "controller", "mpc.horizon_s", "mpc.iterations", "mpc.constraints"),
    DEADLINE,
    *_of_run("mpc.late", "mpc.seed"),
    *VELOCITY_COMMANDS,
    *_of_run("integral", "estimate"),
    Declaration(
        "heard_by",
        [],
        description="Names of nodes, e.g. a recorder, for whose subscription to the commands the "
        "tracker waits, at most 10 s, before the first command. Not used with hardware, which "
        "is armed when they are ready",
    ),
    *ERROR_BOUNDS,
    *HARDWARE,
)

SOURCE = tuple(spec for spec in HARDWARE if spec.name == "source")
"""Parameters of every node that receives states."""

# viewers and recorder
DISPLAY = (
    *SHARED,
    *SOURCE,
    Declaration(
        "rate_hz", 30.0, description="Highest rate of markers in wall time, Hz", at_least=0.1
    ),
    Declaration(
        "transforms",
        True,
        description="Whether robot_description and the transforms of all frames except those of "
        "the bodies are published; false if robot_state_publisher does this",
    ),
)

VIEW = (
    *SHARED,
    *SOURCE,
    Declaration(
        "view.rate_hz", 30.0, description="Highest rate of states on the page, Hz", at_least=0.1
    ),
    Declaration(
        "view.host",
        "127.0.0.1",
        description="Address on which the page is served; 0.0.0.0 means all addresses of this "
        "machine: then anyone with the token can watch from another machine, without encryption",
    ),
    Declaration("view.port", 0, description="Port of the page; 0 selects a free port", at_least=0),
)

RECORDER = (
    *SCENARIO,
    AUTOSTART,
    *SOURCE,
    Declaration("output", "recording", description="Folder of the recording; must not exist"),
    Declaration(
        "compression",
        "zstd",
        description="Compression of the recording's chunks",
        choices=("zstd", "none"),
    ),
    Declaration(
        "topics",
        [],
        description="Topics to record, name:package/msg/Type; an empty list selects all topics of "
        "a run of the scenario",
    ),
    Declaration(
        "await_commands_s",
        0.0,
        description="Longest time, s, for which the recorder waits for a publisher of "
        "joint_commands before it subscribes to the states. A plant that waits for the recorder "
        "then starts when all commands are recorded; with 0 the recorder does not wait",
        at_least=0.0,
    ),
)

# the shadow shares the tracker's parameters for hardware states
_ESTIMATE = ("estimator", "noise", "acceleration", "actuation_s")
_OF_SHADOW = (
    "integrator",
    "step_s",
    "frame_prefix",
    "source",
    *(f"hardware.{name}" for name in _ESTIMATE),
)
SHADOW = (*SCENARIO, AUTOSTART) + tuple(spec for spec in TRACKER if spec.name in _OF_SHADOW)

# every node knows the parameters of all nodes, so that one file can serve them all
ALL = {spec.name: spec for specs in (PLANT, TRACKER, DISPLAY, VIEW, RECORDER) for spec in specs}
