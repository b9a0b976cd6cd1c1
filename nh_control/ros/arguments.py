"""Arguments of launch files: the nodes to start, and their parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.actions import DeclareLaunchArgument

from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.ros.runtime.declared import (
    ALL,
    DISPLAY,
    HARDWARE,
    PERTURBATION,
    PLANT,
    PLANT_PARAMETERS,
    TRACKER,
)
from nh_control.ros.runtime.declared import SCENARIO as SCENARIO_SPECS
from nh_control.scenarios import Scenario

NOT_OFFERED = ("reference", "integrator", "plant.integrator", "disturb", "wait_for", "heard_by")
"""Parameters whose arguments follow from the scenario, or from `record`."""
BOOL = ("true", "false", "True", "False")
"""Texts of true and false, as YAML and as Python spell them."""


def is_true(text: str) -> bool:
    """Whether one of the texts in BOOL means true."""
    return text.lower() == "true"


@dataclass(frozen=True)
class Argument:
    """A launch argument: the default and the choices of its text; if it becomes the node parameter
    `parameter`, the type `kind` of that.
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
    """Arguments that choose the nodes; a robot model only where the scenario has one."""
    file = "" if name else "; empty = that of the scenario, if it has one"
    model = "publish the URDF and its joint transforms"
    switches = (
        ("plant", "simulate the plant; false = hardware or another simulator takes commands"),
        ("tracker", "run the LQR tracker; false = plug in a controller of your own"),
        ("composed", "run plant and tracker in one process, without middleware between them"),
        ("shadow", "compare the plant, or the hardware, with the model: shadow/residual"),
        ("headless", "plant and tracker only; the run ends with the reference, see on_finish"),
        ("rviz", "start rviz2"),
        ("view", "serve a page with scene and plots for browsers; its address is printed"),
        *([("use_robot_state_publisher", model)] if has_model else []),
        ("record", "record with `ros2 bag record` as MCAP; the plant starts when it listens"),
    )
    on_by_default = ("plant", "tracker", "rviz", "use_robot_state_publisher")
    default = str(config / f"{name}.yaml") if name else ""
    folder = (
        "folder of the recording, must not exist; empty = rosbag2_<date> in the current folder"
    )
    return [
        Argument("params_file", f"YAML file with the nodes' parameters{file}", default),
        Argument("namespace", "namespace of the nodes and of their relative topics"),
        *(
            Argument(switch, text, "true" if switch in on_by_default else "false", BOOL)
            for switch, text in switches
        ),
        Argument("bag", folder),
    ]


def parameters(scenario: Scenario) -> list[Argument]:
    """Arguments that become node parameters: all that the scenario can use."""
    own = robot() if scenario.origin["scenario"] == "urdf" else []
    return [*own, *of_scenario(scenario), *of_all()]


def robot() -> list[Argument]:
    """Arguments of the scenario urdf."""
    return [_of(ALL[name]) for name in ("urdf", "base", "accept_any_inertia")]


def of_scenario(scenario: Scenario) -> list[Argument]:
    """Arguments that follow from the scenario: its names, parameters and initial errors."""
    system = scenario.make_system(scenario.parameters)
    targets, integrators = scenario.targets(system), scenario.usable_integrators(system)
    numbers = (
        (PLANT_PARAMETERS, scenario.parameters),
        (PERTURBATION, scenario.no_perturbation),
    )
    return [
        _of(ALL["reference"], text=f"; its references are {', '.join(scenario.references)}"),
        _of(ALL["integrator"], integrators),
        _of(ALL["plant.integrator"], integrators),
        *(
            _of(field.prefixed(prefix, type(defaults).__name__))
            for prefix, defaults in numbers
            for field in declarations(defaults)
        ),
        _of(ALL["disturb"], text=f"; targets {', '.join(targets)}"),
    ]


def of_all() -> list[Argument]:
    """Arguments that become node parameters, whatever the scenario."""
    specs = {spec.name: spec for spec in (*PLANT, *TRACKER, *DISPLAY)}
    others = {*NOT_OFFERED, *(spec.name for spec in (*SCENARIO_SPECS, *HARDWARE))}
    return [_of(spec) for name, spec in specs.items() if name not in others]


def of_hardware() -> list[Argument]:
    """Arguments that become parameters of a tracker of hardware."""
    return [_of(spec) for spec in HARDWARE if spec.name != "source"]


def _of(spec: Declaration, choices: Iterable[str] = (), text: str = "") -> Argument:
    """The argument of a parameter, with `text` after its description."""
    kind = type(spec.value)
    valid = BOOL if kind is bool else tuple(choices) or spec.choices or None
    several = "; several are separated by spaces" if kind is list else ""
    return Argument(
        spec.name.replace("plant.parameters", "plant").replace(".", "_"),
        spec.sentence.removesuffix(".") + text + several,
        choices=valid,
        parameter=spec.name,
        kind=kind,
    )
