"""Arguments of launch files: the nodes to start, and their parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from launch.actions import DeclareLaunchArgument

from nh_control.mechanics.parameters import FALSE, TRUE, Declaration, declarations
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
from nh_control.runs.settings import ROBOT, SETTINGS
from nh_control.scenarios import Scenario

NOT_OFFERED = ("reference", "integrator", "plant.integrator", "disturb", "wait_for", "heard_by")
"""Parameters that have no general argument, because their argument depends on the scenario or on
`record`.
"""
BOOL = (*TRUE, *FALSE)


def is_true(text: str) -> bool:
    """Whether a string in BOOL means true."""
    return text in TRUE


@dataclass(frozen=True)
class Argument:
    """A launch argument with a declared value. With `is_parameter`, the argument sets a node
    parameter and is empty by default.
    """

    entry: Declaration
    is_parameter: bool = False

    @property
    def name(self) -> str:
        """The name of the parameter, with underscores in place of dots."""
        return self.entry.name.replace("plant.parameters", "plant").replace(".", "_")

    @property
    def is_switch(self) -> bool:
        """Whether the argument is a boolean that does not set a parameter."""
        return isinstance(self.entry.value, bool) and not self.is_parameter

    def declare(self) -> DeclareLaunchArgument:
        """The action that declares the argument."""
        entry, description = self.entry, f"{self.entry.text[0].upper()}{self.entry.text[1:]}"
        # `launch` passes strings, so all spellings of a boolean are choices
        choices = BOOL if isinstance(entry.value, bool) else entry.choices
        # a launch argument is a single string
        if entry.is_list:
            description += "; several are separated by spaces"
        if self.is_parameter:
            choices = ("", *choices) if choices else ()
            unset = entry.by_default or _shown(entry.value)
            # an empty string means unset, because a launch argument always has a value
            description += f"; empty = as in params_file{unset and f', else {unset}'}"
        return DeclareLaunchArgument(
            self.name,
            default_value="" if self.is_parameter else _shown(entry.value),
            choices=choices or None,
            description=description,
        )

    def value(self, text: str) -> Any:
        """The parameter value that the text represents. Raises a ValueError that names the
        argument.
        """
        try:
            # errors name the launch argument, not the parameter that it sets
            value = self.entry.read(text)
        except ValueError:
            raise ValueError(
                f"launch argument '{self.name}': expected {self.entry.expected}, got '{text}'"
            ) from None
        return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    """A default value as text."""
    if isinstance(value, bool):
        return TRUE[0] if value else FALSE[0]
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def argument(
    name: str,
    description: str,
    default: str | bool | float = "",
    choices: tuple[str, ...] = (),
    unit: str = "",
) -> Argument:
    """A launch argument that does not set a parameter."""
    return Argument(
        Declaration(name, default, unit=unit, description=description, choices=choices)
    )


SCENARIO = Argument(replace(SETTINGS["scenario"], value=""))


def options(has_model: object) -> list[Argument]:
    """Arguments that choose the nodes. `use_robot_state_publisher` exists only if the scenario has
    a robot model.
    """
    model = "publish the URDF and its joint transforms"
    # switches start nodes and are not parameters
    switches = (
        ("plant", "simulate the plant; false = hardware or another simulator takes commands"),
        ("tracker", "run the LQR tracker; false = plug in your controller"),
        ("composed", "run plant and tracker in one process, without middleware between them"),
        ("shadow", "compare the plant, or the hardware, with the model: shadow/residual"),
        ("headless", "start no viewers; the run ends with the reference, see on_finish"),
        ("rviz", "start rviz2"),
        ("view", "serve a page with scene and plots for browsers; its address is printed"),
        *([("use_robot_state_publisher", model)] if has_model else []),
        (
            "record",
            "record with `ros2 bag record` as MCAP; the plant starts when the recorder listens",
        ),
    )
    on_by_default = ("plant", "tracker", "rviz", "use_robot_state_publisher")
    folder = (
        "folder of the recording; must not exist; empty = rosbag2_<date> in the current folder"
    )
    file = "YAML file with parameters of the nodes, as `nh_control list SCENARIO --yaml` prints it"
    return [
        argument("params_file", file),
        argument("namespace", "namespace of the nodes and of their relative topics"),
        *(argument(switch, text, switch in on_by_default) for switch, text in switches),
        argument("bag", folder),
    ]


def parameters(scenario: Scenario) -> list[Argument]:
    """The arguments that set node parameters and that the scenario can use."""
    specific = robot_arguments() if scenario.origin["scenario"] == "urdf" else []
    if scenario.flight is not None:
        specific = [_of(ALL["autopilot"])]
    return [*specific, *of_scenario(scenario), *of_all()]


def robot_arguments() -> list[Argument]:
    """The arguments of the `urdf` scenario."""
    return [_of(ALL[name]) for name in ROBOT]


def of_scenario(scenario: Scenario) -> list[Argument]:
    """The arguments that depend on the scenario: its references, integrators, parameters, initial
    errors and force targets.
    """
    system = scenario.system
    # names that depend on the system are listed as choices or in the description
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
    """The arguments that set node parameters in every scenario."""
    specs = {spec.name: spec for spec in (*PLANT, *TRACKER, *DISPLAY)}
    # parameters that the scenario or the hardware declares are offered separately
    others = {*NOT_OFFERED, *(spec.name for spec in (*SCENARIO_SPECS, *HARDWARE))}
    return [_of(spec) for name, spec in specs.items() if name not in others]


def of_hardware() -> list[Argument]:
    """The arguments that set the parameters of a hardware tracker."""
    return [_of(spec) for spec in HARDWARE if spec.name != "source"]


def _of(entry: Declaration, choices: Iterable[str] = (), text: str = "") -> Argument:
    """The argument for a parameter, with `text` appended to its description."""
    valid = tuple(choices) or entry.choices
    return Argument(replace(entry, choices=valid, description=entry.description + text), True)
