"""Every parameter of every node, declared once: type, default, range, description; and the refusal
of anything else.

A parameter file may give all nodes' parameters in one `/**` section: a node accepts what belongs
to another node of this package, and refuses what belongs to none.
"""

from __future__ import annotations

import difflib
import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.ros.loop.command_validator import Fallback
from nh_control.ros.runtime.process import UsageError
from nh_control.scenarios import disturbance, fault

PLANT_PARAMETERS = "plant.parameters."
"""Prefix of the plant's physical parameters, `plant.parameters.<field>`."""

PERTURBATION = "perturb."
"""Prefix of the scenario's initial errors, `perturb.<field>`."""

FIXED = "fixed at start: start the node anew to change it"

WEIGHTS = "weights."
"""Prefix of the tracker's weights, `weights.<coordinate or input>`."""

_BY_SCENARIO = (PLANT_PARAMETERS, PERTURBATION, WEIGHTS)
"""Prefixes of parameters that follow from the scenario; plant and tracker check them."""

_ROS_OWN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
_HUGE = 1e9


@dataclass(frozen=True)
class Spec:
    """A parameter; numbers may have a minimum and strings a list of choices. Read-only ones are
    fixed at start.

    A list is one of strings, a tuple one of as many numbers.
    """

    name: str
    default: bool | int | float | str | list[str] | tuple[float, ...]
    description: str
    minimum: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = True

    def check(self, value: Any) -> Any:
        """The value in the type of the default (an int is accepted for a float); raises UsageError
        saying what is expected.
        """
        kind: Any = type(self.default)
        if kind is float and type(value) is int:
            value = float(value)
        if kind in (list, tuple) and isinstance(value, (list, tuple, array)):
            value = kind(value)
        valid = type(value) is kind and (
            kind is not list or all(isinstance(item, str) for item in value)
        )
        if valid and isinstance(self.default, tuple):
            valid = len(value) == len(self.default) and all(
                type(item) in (int, float) for item in value
            )
            value = tuple(map(float, value)) if valid else value
        if valid and kind in (float, tuple):
            valid = all(map(math.isfinite, value if isinstance(value, tuple) else (value,)))
        if valid and self.minimum is not None:
            valid = value >= self.minimum
        if valid and self.choices:
            valid = value in self.choices
        if not valid:
            raise UsageError(
                f"parameter '{self.name}' must be {self._expected(kind)}, got {value!r}"
            )
        return value

    def _expected(self, kind: type) -> str:
        if self.choices:
            return f"one of {', '.join(c or repr(c) for c in self.choices)}"
        nouns = {
            bool: "true or false",
            int: "an integer",
            float: "a finite number",
            str: "a string",
            list: "a list of strings",
        }
        if isinstance(self.default, tuple):
            noun = f"a list of {len(self.default)} finite numbers"
        else:
            noun = nouns[kind]
        return noun if self.minimum is None else f"{noun} >= {self.minimum:g}"

    def descriptor(self) -> ParameterDescriptor:
        """The ROS descriptor."""
        constraints = (
            f"one of: {', '.join(c or repr(c) for c in self.choices)}" if self.choices else ""
        )
        if self.read_only:
            constraints = f"{constraints}{'; ' if constraints else ''}{FIXED}"
        out = ParameterDescriptor(
            name=self.name,
            description=self.description,
            additional_constraints=constraints,
            read_only=self.read_only,
            # rclpy would refuse an integer for a number that can be set while the node runs
            dynamic_typing=isinstance(self.default, float) and not self.read_only,
        )
        if self.minimum is not None and isinstance(self.default, float):
            out.floating_point_range = [
                FloatingPointRange(from_value=float(self.minimum), to_value=_HUGE, step=0.0)
            ]
        elif self.minimum is not None:
            out.integer_range = [
                IntegerRange(from_value=int(self.minimum), to_value=2**31 - 1, step=1)
            ]
        return out


SCENARIO = (
    Spec(
        "scenario",
        "snakeboard",
        "What is simulated and controlled: a name that `nh_control list` shows, "
        "path/to/file.py:NAME, or module:NAME.",
    ),
    Spec("urdf", "", "URDF file of the robot of the scenario urdf; empty is its default."),
    Spec(
        "base",
        "fixed",
        "Whether that robot's root link is fixed or floating.",
        choices=("fixed", "floating"),
    ),
)

AUTOSTART = Spec(
    "autostart",
    True,
    "Whether the node configures and activates itself; otherwise that is left to its lifecycle "
    "services.",
)

SHARED = SCENARIO + (
    AUTOSTART,
    Spec(
        "reference", "", "Motion to track, one of the scenario's references; empty is its default."
    ),
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
        "What the names of all frames begin with; auto is the namespace and a slash.",
    ),
)

PLANT = SHARED + (
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
    Spec("lockstep", False, "Wait, at every step, for the command that answers its state."),
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
        "At the end of the run, stay there, exit, or continue without end, e.g. for goals.",
        choices=("stay", "exit", "continue"),
    ),
    Spec(
        "disturb",
        [],
        f"Forces from outside, {disturbance.SYNTAX}, kinds {', '.join(disturbance.KINDS)}; "
        "`nh_control list SCENARIO` shows the targets.",
        read_only=False,
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
        "Where the simulation time goes: to clock in the node's namespace; global, to /clock, of "
        "one plant at most; or none.",
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
        "Applied when no command is fresh.",
        choices=tuple(f.value for f in Fallback),
        read_only=False,
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
        "How states are made of measurements: kalman, an extended Kalman filter on the model; or "
        "none, the last measurement alone.",
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
        "Accelerations by forces that the model does not know, m/s^2 and rad/s^2.",
        minimum=1e-9,
    ),
    Spec(
        "hardware.compensate_delay",
        True,
        "Whether commands are for the state that the model expects when they act. The delay is "
        "measured: states must be stamped by the clock of the tracker's host.",
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
        "disarm.silence_s",
        0.5,
        "Disarm after so many seconds without a state that can be used; 0 is never.",
        minimum=0.0,
    ),
    Spec(
        "disarm.error",
        0.0,
        "Disarm where a number of the configuration's error is larger, m or rad; 0 is never.",
        minimum=0.0,
    ),
    Spec(
        "disarm.saturation_s",
        0.0,
        "Disarm where an input is saturated for longer, in s; 0 is never.",
        minimum=0.0,
    ),
    Spec(
        "disarm.command",
        "none",
        "What is commanded after a disarming: none, or zero at every state.",
        choices=("none", "zero"),
    ),
)

TRACKER = (
    SHARED
    + (
        Spec(
            "integral", False, "Estimate a constant disturbance of the momenta and compensate it."
        ),
    )
    + HARDWARE
)

DISPLAY = SHARED + (
    Spec("rate_hz", 30.0, "Highest rate of markers in wall time, Hz.", minimum=0.1),
)

RECORDER = SCENARIO + (
    AUTOSTART,
    *(spec for spec in HARDWARE if spec.name == "source"),
    Spec("output", "recording", "Folder of the recording; must not exist."),
    Spec(
        "topics",
        [],
        "Topics to record, name:package/msg/Type; empty is all that tells a run of the scenario.",
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

_ALL = {spec.name: spec for specs in (PLANT, TRACKER, DISPLAY, RECORDER) for spec in specs}


class Parameters:
    """The parameters of a node, declared from its specs; `node` must be made with
    `automatically_declare_parameters_from_overrides`.

    `p["name"]` is the present value. Raises UsageError for an override that no node of this
    package has, or with a value out of range.
    """

    def __init__(self, node: Node, specs: Iterable[Spec]):
        self._node = node
        overrides = {
            name: p.value
            for name, p in node.get_parameters_by_prefix("").items()
            if not name.startswith(_ROS_OWN)
        }
        for name in overrides:
            if not node.describe_parameter(name).read_only:
                node.undeclare_parameter(name)
        known = {*_ALL, *(spec.name for spec in specs)}
        for name in overrides:
            if name not in known and not name.startswith(_BY_SCENARIO):
                fields = [f"{prefix}<field>" for prefix in _BY_SCENARIO]
                raise UsageError(_unknown("parameter", name, sorted(known) + fields))
        self._overrides: Mapping[str, object] = overrides
        self._specs: dict[str, Spec] = {}
        for spec in specs:
            self.declare(spec)
        node.add_on_set_parameters_callback(self.checked)

    def declare(self, spec: Spec) -> None:
        """Declare one more parameter."""
        value = spec.check(self._overrides.get(spec.name, spec.default))
        self._specs[spec.name] = spec
        if self._node.has_parameter(spec.name):
            return  # of an earlier configuration, and fixed since then
        value = [""] if value == [] else value  # rclpy takes an empty list for bytes
        self._node.declare_parameter(spec.name, value, spec.descriptor(), ignore_override=True)

    def declare_fields(self, prefix: str, defaults: Any, read_only: bool = True) -> dict[str, Any]:
        """Declare the fields of a dataclass of numbers and tuples of numbers as parameters
        `prefix + field`; returns their values.

        Raises UsageError for other fields.
        """
        declared = declarations(defaults)
        valid = [prefix + field.name for field in declared]
        for name in self._overrides:
            if name.startswith(prefix) and name not in valid:
                raise UsageError(_unknown("parameter", name, valid))
        for field in declared:
            spec = _spec(prefix, field, type(defaults).__name__)
            self.declare(replace(spec, read_only=read_only))
        return {field.name: self[prefix + field.name] for field in declared}

    def checked(self, changes: list[Parameter]) -> SetParametersResult:
        """Whether the parameters may have these values."""
        try:
            for change in changes:
                if change.name in self._specs:
                    self._specs[change.name].check(change.value)
        except UsageError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def __getitem__(self, name: str) -> Any:
        return self.read(name, self._node.get_parameter(name).value)

    def read(self, name: str, value: Any) -> Any:
        """A value of a parameter as its default is."""
        default = self._specs[name].default
        if isinstance(default, (tuple, float)):
            return type(default)(value)
        return [item for item in value if item] if isinstance(default, list) else value


def _spec(prefix: str, field: Declaration, owner: str) -> Spec:
    """The parameter of a dataclass's field; bounds that it must not reach are the dataclass's to
    check.
    """
    exact = field.is_integer or isinstance(field.value, tuple)
    text = field.description or f"{field.name} of {owner}"
    unit = f" [{field.unit}]" if field.unit else ""
    return Spec(
        prefix + field.name,
        field.value if exact else float(field.value),
        f"{text[0].upper()}{text[1:]}{unit}.",
        minimum=field.at_least if field.at_least > -math.inf else None,
    )


def _unknown(what: str, name: str, valid: list[str]) -> str:
    close = difflib.get_close_matches(name, valid, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return f"unknown {what} '{name}'{hint}; valid: {', '.join(valid)}"
