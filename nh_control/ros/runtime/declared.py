"""Every parameter of every node and launch file, declared once: type, default, range,
description.
"""

from __future__ import annotations

from dataclasses import replace

from nh_control.control.joint_servo import POSITION, VELOCITY
from nh_control.loop.command_validator import Fallback
from nh_control.mechanics.parameters import Declaration
from nh_control.ros.runtime.declared_tracker import DEADLINE, VELOCITY_COMMANDS
from nh_control.ros.runtime.declared_tracker import HARDWARE as HARDWARE
from nh_control.runs.node_process import STEP_FAILED
from nh_control.runs.settings import ORIGIN, SETTINGS

PLANT_PARAMETERS = "plant.parameters."
"""Prefix of the plant's physical parameters, `plant.parameters.<field>`."""

EFFORT = "effort"
"""Interface of commands that are forces and torques."""

PERTURBATION = "perturb."
"""Prefix of the scenario's initial errors, `perturb.<field>`."""

MODEL_PARAMETERS, WEIGHT_FACTORS = "model_parameters.", "weight_factors."
"""Prefixes of physical parameters of the model, and of factors on the scenario's weights."""

WEIGHTS = "weights."
"""Prefix of the tracker's weights, `weights.<coordinate or input>`."""


def _of_run(*names: str) -> tuple[Declaration, ...]:
    """The settings of a run of these names, as parameters."""
    return tuple(SETTINGS[name] for name in names)


SCENARIO = _of_run(*ORIGIN)

AUTOSTART = Declaration(
    "autostart",
    True,
    description="Whether the node configures and activates itself; otherwise its lifecycle "
    "services do",
)

RUNNING = (
    *SCENARIO,
    AUTOSTART,
    *_of_run("reference", "integrator", "step_s"),
    Declaration(
        "frame_prefix",
        "auto",
        description="Prefix of the names of all frames; auto is the namespace and a slash",
    ),
)

SHARED = tuple(replace(entry, changeable=False) for entry in RUNNING)
"""Parameters of nodes whose reference cannot change."""

PLANT = (
    *RUNNING,
    *_of_run("plant.integrator", "plant.substeps", "speed_factor", "lockstep"),
    Declaration(
        "wait_for_tracker",
        True,
        description="Wait for the command that answers the first state before the run starts",
    ),
    Declaration(
        "wait_for",
        [],
        description="Names of nodes that must have subscribed to all state messages before the "
        "run starts, e.g. a recorder",
    ),
    *_of_run("duration_s"),
    Declaration(
        "on_finish",
        "stay",
        description="At the end of the run, stay there, exit, or continue without end, e.g. for "
        "goals: the tracker holds the reference's last state, or damps where the scenario holds "
        "none. A step that fails ends the node with exit code "
        f"{STEP_FAILED}, unless it is to stay",
        choices=("stay", "exit", "continue"),
    ),
    *_of_run("disturb", "fault"),
    Declaration(
        "wrench.targets",
        [],
        description="Targets of external forces on which the topic `wrench` acts, such as a body "
        "that a page pulls; `nh_control list SCENARIO` shows the targets",
    ),
    Declaration(
        "wrench.acceleration",
        10.0,
        description="Bounds a wrench: the acceleration, m/s^2 and rad/s^2, that its largest "
        "force and torque may give a target at the start",
        at_least=0.0,
    ),
    Declaration(
        "step_count",
        1,
        description="Steps that the service ~/step makes",
        at_least=1,
        changeable=True,
    ),
    Declaration(
        "state_file",
        "",
        description="JSON file to which ~/save_state writes and from which ~/load_state reads; "
        "empty is memory",
        changeable=True,
    ),
    Declaration(
        "clock",
        "namespace",
        description="Topic of the simulation time: clock in the node's namespace; global, "
        "/clock, for one plant at most; or none",
        choices=("namespace", "global", "none"),
    ),
    Declaration(
        "fallback",
        Fallback.ZERO.value,
        description="Applied when no command is fresh: hold, the last command; zero forces; "
        "damp, which brings the motion to rest; tracker, the plant's own copy of the tracker "
        "along the reference, without goals; or stop, the plant pauses",
        choices=tuple(f.value for f in Fallback),
        changeable=True,
    ),
    Declaration(
        "command_interface",
        EFFORT,
        description="Field of the messages on joint_commands that counts: effort, as the tracker "
        "sends it; or position or velocity of the joints, which a loop in every step of the "
        "plant follows",
        choices=(EFFORT, POSITION, VELOCITY),
    ),
    Declaration(
        "servo.bandwidth",
        10.0,
        description="Bandwidth of that loop in rad/s; it is critically damped, its gains are "
        "those of the model's mass matrix",
        at_least=1e-3,
    ),
    Declaration(
        "command_timeout_steps",
        5,
        description="Steps for which a command stays fresh; one that arrives later is rejected. "
        "Lock-step: 1",
        at_least=1,
    ),
    Declaration(
        "publish_velocities",
        True,
        description="Whether states carry velocities; without, as encoders, the tracker "
        "reconstructs them",
    ),
)

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
        description="Names of nodes that must have subscribed to the commands before the first "
        "one, within 10 s, e.g. a recorder; not of hardware, which is armed when they are there",
    ),
    *HARDWARE,
)

SOURCE = tuple(spec for spec in HARDWARE if spec.name == "source")
"""Parameters of every node that receives states."""

DISPLAY = (
    *SHARED,
    *SOURCE,
    Declaration(
        "rate_hz", 30.0, description="Highest rate of markers in wall time, Hz", at_least=0.1
    ),
    Declaration(
        "transforms",
        True,
        description="Whether robot_description and the transforms of all frames but the bodies' "
        "are published; false where robot_state_publisher does it",
    ),
)

VIEW = (
    *SHARED,
    *SOURCE,
    Declaration(
        "view.rate_hz", 30.0, description="Highest rate of states in the page, Hz", at_least=0.1
    ),
    Declaration(
        "view.host",
        "127.0.0.1",
        description="Address on which the page is served; 0.0.0.0 is every one of this machine: "
        "then all who know the token can look on from elsewhere, and nothing is encrypted",
    ),
    Declaration("view.port", 0, description="Port of the page; 0 is a free one", at_least=0),
)

RECORDER = (
    *SCENARIO,
    AUTOSTART,
    *SOURCE,
    Declaration("output", "recording", description="Folder of the recording; must not exist"),
    Declaration(
        "compression",
        "zstd",
        description="How the chunks of the recording are compressed",
        choices=("zstd", "none"),
    ),
    Declaration(
        "topics",
        [],
        description="Topics to record, name:package/msg/Type; empty is all topics of a run of "
        "the scenario",
    ),
)

_ESTIMATE = ("estimator", "noise", "acceleration", "actuation_s")
_OF_SHADOW = (
    "integrator",
    "step_s",
    "frame_prefix",
    "source",
    *(f"hardware.{name}" for name in _ESTIMATE),
)
SHADOW = (*SCENARIO, AUTOSTART) + tuple(spec for spec in TRACKER if spec.name in _OF_SHADOW)

ALL = {spec.name: spec for specs in (PLANT, TRACKER, DISPLAY, VIEW, RECORDER) for spec in specs}
