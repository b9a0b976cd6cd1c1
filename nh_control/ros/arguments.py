"""Arguments of launch files: what to start, and the nodes' parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.actions import DeclareLaunchArgument

from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.ros.loop.command_validator import Fallback
from nh_control.ros.loop.disarmed_inputs import DisarmCommand
from nh_control.ros.loop.safe_range import SYNTAX
from nh_control.scenarios import Scenario, disturbance, fault

BOOL = ("true", "false", "True", "False")
"""Texts of yes and no, in YAML's and in Python's spelling."""


def is_true(text: str) -> bool:
    """Whether one of BOOL says yes."""
    return text.lower() == "true"


@dataclass(frozen=True)
class Argument:
    """A launch argument with its text's default and choices; if it becomes the node parameter
    `parameter`, that is of type `kind`.
    """

    name: str
    description: str
    default: str = ""
    choices: tuple[str, ...] | None = None
    parameter: str = ""
    kind: type = str

    def declare(self) -> DeclareLaunchArgument:
        """The action that declares it."""
        choices, description = self.choices, self.description
        if self.parameter:
            choices, description = (
                choices and ("", *choices),
                f"{description}; empty = as in params_file",
            )
        return DeclareLaunchArgument(
            self.name, default_value=self.default, choices=choices, description=description
        )

    def value(self, text: str) -> Any:
        """The parameter's value that the text stands for; raises ValueError that names the
        argument.
        """
        if self.kind is bool:
            return is_true(text)
        if self.kind is list:
            return text.split()
        try:
            return (
                [float(part) for part in text.strip("[]").split(",")]
                if self.kind is tuple
                else self.kind(text)
            )
        except ValueError:
            expected = {int: "an integer", float: "a number", tuple: "numbers like [1.0, 2.0]"}[
                self.kind
            ]
            raise ValueError(
                f"launch argument '{self.name}': expected {expected}, got '{text}'"
            ) from None


SCENARIO = Argument(
    "scenario", "a name that `nh_control list` shows, path/to/file.py:NAME, or module:NAME"
)


def options(config: Path, name: str, has_model: object) -> list[Argument]:
    """What to start; with a robot model where there is one."""
    model = (
        [
            Argument(
                "use_robot_state_publisher",
                "publish the URDF and its joint transforms",
                "true",
                BOOL,
            )
        ]
        if has_model
        else []
    )
    return [
        Argument(
            "params_file",
            "YAML file with the nodes' parameters"
            + ("" if name else "; empty = that of the scenario, if it has one"),
            str(config / f"{name}.yaml") if name else "",
        ),
        Argument("namespace", "namespace of the nodes and of their relative topics"),
        Argument(
            "plant",
            "simulate the plant; false = real hardware or another simulator answers the commands",
            "true",
            BOOL,
        ),
        Argument(
            "tracker",
            "run the LQR tracker; false = plug in a controller of your own",
            "true",
            BOOL,
        ),
        Argument(
            "shadow",
            "compare the plant, or the hardware, with the model: shadow/residual, /diagnostics",
            "false",
            BOOL,
        ),
        Argument(
            "headless",
            "plant and tracker only, ending with the reference unless on_finish says otherwise",
            "false",
            BOOL,
        ),
        Argument("rviz", "start rviz2", "true", BOOL),
        *model,
        Argument(
            "record",
            "record the run with `ros2 bag record` as MCAP; the plant starts when it listens",
            "false",
            BOOL,
        ),
        Argument(
            "bag",
            "folder of the recording, must not exist; empty = rosbag2_<date> in the current "
            "folder",
        ),
    ]


def parameters(scenario: Scenario) -> list[Argument]:
    """Arguments that become node parameters: all that make sense for the scenario."""
    own = robot() if scenario.origin["scenario"] == "urdf" else []
    return [*own, *of_scenario(scenario), *of_all()]


def robot() -> list[Argument]:
    """Arguments of the scenario urdf."""
    root = "whether the robot's root link is fixed or floating"
    return [
        _of("urdf", str, "URDF file of the robot"),
        _of("base", str, root, ("fixed", "floating")),
    ]


def of_scenario(scenario: Scenario) -> list[Argument]:
    """Arguments that follow from the scenario: its names, parameters and initial errors."""
    system = scenario.make_system(scenario.parameters)
    targets, integrators = scenario.targets(system), scenario.usable_integrators(system)
    return [
        _of("reference", str, "motion to track", scenario.references),
        _of(
            "integrator",
            str,
            "integrator of the tracker's model and of the reference",
            integrators,
        ),
        _of("plant.integrator", str, "integrator of the plant", integrators),
        *(_declared("plant.parameters.", d) for d in declarations(scenario.parameters)),
        *(_declared("perturb.", d) for d in declarations(scenario.no_perturbation)),
        _of(
            "disturb",
            list,
            f"forces from outside, {disturbance.SYNTAX}, several separated by spaces; kinds "
            f"{', '.join(disturbance.KINDS)}; targets {', '.join(targets)}",
        ),
    ]


def of_all() -> list[Argument]:
    """Arguments that become node parameters, whatever the scenario."""
    return [
        _of(
            "fault",
            list,
            f"faults of sensors and actuators, {fault.SYNTAX}, several separated by spaces; kinds "
            f"{', '.join(fault.KINDS)}",
        ),
        _of("step_s", float, "step of the model [s]"),
        _of("autostart", bool, "false = nodes wait for their lifecycle services"),
        _of("integral", bool, "integral action of the tracker"),
        _of("plant.substeps", int, "plant steps in a step of the model"),
        _of("speed_factor", float, "simulated over real time, 0 = as fast as possible"),
        _of("lockstep", bool, "wait in each step for the command that answers its state"),
        _of("duration_s", float, "length of the run [s], 0 = the reference's"),
        _of(
            "on_finish",
            str,
            "exit = the plant ends after the run, and the launch with it; continue = it does not "
            "end",
            ("stay", "exit", "continue"),
        ),
        _of("wait_for_tracker", bool, "start when the first state has been answered"),
        _of(
            "fallback",
            str,
            "what the plant applies while no command is fresh",
            [kind.value for kind in Fallback],
        ),
        _of("command_timeout_steps", int, "steps for which a command stays fresh"),
        _of(
            "publish_velocities",
            bool,
            "false = positions only; the tracker reconstructs the momentum",
        ),
        _of("step_count", int, "steps that the service ~/step makes"),
        _of("state_file", str, "file of ~/save_state and ~/load_state"),
        _of(
            "clock",
            str,
            "where the simulation time goes: to clock in the namespace, to /clock, or nowhere",
            ("namespace", "global", "none"),
        ),
        _of("frame_prefix", str, "what names of frames begin with, auto = the namespace and /"),
        _of("rate_hz", float, "highest rate of the markers [Hz]"),
    ]


def of_hardware() -> list[Argument]:
    """Arguments that become parameters of a tracker that has hardware before it."""
    return [
        _of(
            "hardware.start",
            str,
            "what starts the reference, once armed",
            ("first_state", "service"),
        ),
        _of("hardware.armed", bool, "armed from the start"),
        _of("hardware.estimator", str, "how states are made of measurements", ("kalman", "none")),
        _of("hardware.noise", float, "standard deviation of measured configurations [m, rad]"),
        _of("hardware.acceleration", float, "unknown accelerations [m/s^2, rad/s^2]"),
        _of("hardware.outlier", float, "deviations beyond which states are refused, 0 = never"),
        _of("hardware.compensate_delay", bool, "commands are for the state when they act"),
        _of("hardware.actuation_s", float, "time from a command's sending to its effect [s]"),
        _of("hardware.max_age_s", float, "oldest state that is used [s], 0 = any"),
        _of("disarm.silence_s", float, "time without states that disarms [s], 0 = never"),
        _of("disarm.error", float, "error that disarms, 0 = never, -1 = scenario's"),
        _of("disarm.range", list, f"ranges that disarm, {SYNTAX}, with spaces; auto = scenario's"),
        _of(
            "disarm.saturation_s", float, "saturation that disarms [s], 0 = never, -1 = scenario's"
        ),
        _of(
            "disarm.command",
            str,
            "what is commanded after a disarming",
            tuple(k.value for k in DisarmCommand),
        ),
    ]


def _of(parameter: str, kind: type, text: str, choices: Iterable[str] | None = None) -> Argument:
    name = parameter.replace("plant.parameters", "plant").replace(".", "_")
    chosen = BOOL if kind is bool else None if choices is None else tuple(choices)
    return Argument(name, text, choices=chosen, parameter=parameter, kind=kind)


def _declared(prefix: str, entry: Declaration) -> Argument:
    kind = int if entry.is_integer else tuple if isinstance(entry.value, tuple) else float
    unit = f" [{entry.unit}]" if entry.unit else ""
    return _of(prefix + entry.name, kind, (entry.description or entry.name) + unit)
