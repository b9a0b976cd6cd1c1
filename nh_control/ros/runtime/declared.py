"""Every parameter of every node and launch file, declared once: type, default, range,
description.
"""

from __future__ import annotations

from dataclasses import replace

from nh_control.control.joint_servo import POSITION, VELOCITY
from nh_control.ros.loop.command_validator import Fallback
from nh_control.ros.runtime.declared_tracker import HARDWARE as HARDWARE
from nh_control.ros.runtime.declared_tracker import MPC, VELOCITY_COMMANDS
from nh_control.ros.runtime.spec import AUTO as AUTO
from nh_control.ros.runtime.spec import OF_SCENARIO as OF_SCENARIO
from nh_control.ros.runtime.spec import Spec
from nh_control.runs.node_process import STEP_FAILED
from nh_control.scenarios import disturbance, fault
from nh_control.scenarios.sensor import ESTIMATES

PLANT_PARAMETERS = "plant.parameters."
"""Prefix of the plant's physical parameters, `plant.parameters.<field>`."""

EFFORT = "effort"
"""Interface of commands that are forces and torques."""

PERTURBATION = "perturb."
"""Prefix of the scenario's initial errors, `perturb.<field>`."""

WEIGHTS = "weights."
"""Prefix of the tracker's weights, `weights.<coordinate or input>`."""

SCENARIO = (
    Spec(
        "scenario",
        "snakeboard",
        "Scenario: a name that `nh_control list` shows, path/to/file.py:NAME, or module:NAME.",
    ),
    Spec("urdf", "", "URDF file of the robot of the scenario urdf; empty is its default."),
    Spec(
        "base",
        "fixed",
        "Whether that robot's root link is fixed or floating.",
        choices=("fixed", "floating"),
    ),
    Spec(
        "accept_any_inertia",
        False,
        "Whether inertias of that robot that no body can have are accepted.",
    ),
)

AUTOSTART = Spec(
    "autostart",
    True,
    "Whether the node configures and activates itself; otherwise its lifecycle services do.",
)

REFERENCE = Spec(
    "reference",
    "",
    "Motion to track: one of the scenario's references, a joint trajectory, FILE.csv or "
    "FILE.yaml, or free[:NAME=VALUE,...]; empty is the scenario's default.",
)

SHARED = SCENARIO + (
    AUTOSTART,
    REFERENCE,
    Spec(
        "integrator",
        "",
        "Integrator of the tracker's model and of the reference; empty is the scenario's default.",
    ),
    Spec(
        "step_s",
        0.0,
        "Step of model, reference and commands in s; 0 is the scenario's default.",
        minimum=0.0,
    ),
    Spec(
        "frame_prefix",
        "auto",
        "Prefix of the names of all frames; auto is the namespace and a slash.",
    ),
)

LOCKSTEP = Spec(
    "lockstep",
    False,
    "Wait, at every step, for the command that answers its state; the tracker, for every plan.",
)

RUNNING = tuple(replace(spec, read_only=False) if spec is REFERENCE else spec for spec in SHARED)
"""Parameters of nodes whose reference may change."""

PLANT = RUNNING + (
    Spec("plant.integrator", "", "Integrator of the plant; empty is the model's."),
    Spec(
        "plant.substeps", 1, "Steps of the plant's integrator in one step of the model.", minimum=1
    ),
    Spec(
        "speed_factor",
        1.0,
        "Simulated seconds per wall second; 1 is real time, 0 as fast as possible.",
        minimum=0.0,
        read_only=False,
    ),
    LOCKSTEP,
    Spec(
        "wait_for_tracker",
        True,
        "Wait for the command that answers the first state before the run starts.",
    ),
    Spec(
        "wait_for",
        [],
        "Names of nodes that must have subscribed to all state messages before the run starts, "
        "e.g. a recorder.",
    ),
    Spec(
        "duration_s",
        0.0,
        "Simulated time after which the run is finished in s; 0 is the length of the reference.",
        minimum=0.0,
    ),
    Spec(
        "on_finish",
        "stay",
        "At the end of the run, stay there, exit, or continue without end, e.g. for goals: the "
        "tracker holds the reference's last state, or damps where the scenario holds none. A step "
        f"that fails ends the node with exit code {STEP_FAILED}, unless it is to stay.",
        choices=("stay", "exit", "continue"),
    ),
    Spec(
        "disturb",
        [],
        f"External forces, {disturbance.SYNTAX}, kinds {', '.join(disturbance.KINDS)}; "
        "`nh_control list SCENARIO` shows the targets.",
        read_only=False,
    ),
    Spec(
        "wrench.targets",
        [],
        "Targets of external forces on which the topic `wrench` acts, such as a body that a page "
        "pulls; `nh_control list SCENARIO` shows the targets.",
    ),
    Spec(
        "wrench.acceleration",
        10.0,
        "Bounds a wrench: the acceleration, m/s^2 and rad/s^2, that its largest force and torque "
        "may give a target at the start.",
        minimum=0.0,
    ),
    Spec(
        "step_count",
        1,
        "Steps that the service ~/step makes.",
        minimum=1,
        read_only=False,
    ),
    Spec(
        "state_file",
        "",
        "JSON file to which ~/save_state writes and from which ~/load_state reads; empty is "
        "memory.",
        read_only=False,
    ),
    Spec(
        "clock",
        "namespace",
        "Topic of the simulation time: clock in the node's namespace; global, /clock, for one "
        "plant at most; or none.",
        choices=("namespace", "global", "none"),
    ),
    Spec(
        "fault",
        [],
        f"Faults of sensors and actuators, {fault.SYNTAX}, kinds {', '.join(fault.KINDS)}; "
        "`nh_control list SCENARIO` explains them.",
        read_only=False,
    ),
    Spec(
        "fallback",
        Fallback.ZERO.value,
        "Applied when no command is fresh: hold, the last command; zero forces; damp, which "
        "brings the motion to rest; tracker, the plant's own copy of the tracker along the "
        "reference, without goals; or stop, the plant pauses.",
        choices=tuple(f.value for f in Fallback),
        read_only=False,
    ),
    Spec(
        "command_interface",
        EFFORT,
        "Field of the messages on joint_commands that counts: effort, as the tracker sends it; or "
        "position or velocity of the joints, which a loop in every step of the plant follows.",
        choices=(EFFORT, POSITION, VELOCITY),
    ),
    Spec(
        "servo.bandwidth",
        10.0,
        "Bandwidth of that loop in rad/s; it is critically damped, its gains are those of the "
        "model's mass matrix.",
        minimum=1e-3,
    ),
    Spec(
        "command_timeout_steps",
        5,
        "Steps for which a command stays fresh; one that arrives later is rejected. Lock-step: 1.",
        minimum=1,
    ),
    Spec(
        "publish_velocities",
        True,
        "Whether states carry velocities; without, as encoders, the tracker reconstructs them.",
    ),
)

TRACKER = (
    RUNNING
    + (LOCKSTEP, *MPC, *VELOCITY_COMMANDS)
    + (
        Spec(
            "integral", False, "Estimate a constant disturbance of the momenta and compensate it."
        ),
        Spec(
            "estimate",
            ESTIMATES[0],
            "State of a simulation: the plant's, by its messages; or sensors, what a filter makes "
            "of the measurements of the scenario's sensors alone.",
            choices=ESTIMATES,
        ),
        Spec(
            "heard_by",
            [],
            "Names of nodes that must have subscribed to the commands before the first one, "
            "within 10 s, e.g. a recorder; not of hardware, which is armed when they are there.",
        ),
    )
    + HARDWARE
)

SOURCE = tuple(spec for spec in HARDWARE if spec.name == "source")
"""Parameters of every node that receives states."""

DISPLAY = SHARED + (
    *SOURCE,
    Spec("rate_hz", 30.0, "Highest rate of markers in wall time, Hz.", minimum=0.1),
    Spec(
        "transforms",
        True,
        "Whether robot_description and the transforms of all frames but the bodies' are "
        "published; false where robot_state_publisher does it.",
    ),
)

VIEW = SHARED + (
    *SOURCE,
    Spec("view.rate_hz", 30.0, "Highest rate of states in the page, Hz.", minimum=0.1),
    Spec(
        "view.host",
        "127.0.0.1",
        "Address on which the page is served; 0.0.0.0 is every one of this machine: then all who "
        "know the token can look on from elsewhere, and nothing is encrypted.",
    ),
    Spec("view.port", 0, "Port of the page; 0 is a free one.", minimum=0),
)

RECORDER = SCENARIO + (
    AUTOSTART,
    *SOURCE,
    Spec("output", "recording", "Folder of the recording; must not exist."),
    Spec(
        "compression",
        "zstd",
        "How the chunks of the recording are compressed.",
        choices=("zstd", "none"),
    ),
    Spec(
        "topics",
        [],
        "Topics to record, name:package/msg/Type; empty is all topics of a run of the scenario.",
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
