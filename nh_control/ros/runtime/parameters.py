"""The parameters of a running node. They are declared from their specifications, checked and read.

A parameter file may contain the parameters of all nodes in one `/**` section. Therefore a node
accepts the parameters of other nodes of this package, but refuses unknown ones.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
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
from nh_control.ros.runtime.declared import (
    ALL,
    MODEL_PARAMETERS,
    PERTURBATION,
    PLANT_PARAMETERS,
    WEIGHT_FACTORS,
    WEIGHTS,
)

FIXED = "fixed at start: restart the node to change it"
_HUGE = 1e9

_BY_SCENARIO = (PLANT_PARAMETERS, PERTURBATION, MODEL_PARAMETERS, WEIGHT_FACTORS, WEIGHTS)
"""Prefixes of parameters that depend on the scenario. The plant and the tracker check these
parameters.
"""

_ROS_OWN = ("use_sim_time", "start_type_description_service", "qos_overrides.")


class UsageError(ValueError):
    """The node cannot start with its parameters. The message names the remedy."""


class Parameters:
    """The parameters of a node, declared from its specs. `node` must be created with
    `automatically_declare_parameters_from_overrides`.

    `parameters["name"]` is the current value. Raises UsageError if an override names a parameter
    that no node of this package has, or if its value is out of range.
    """

    def __init__(self, node: Node, specs: Iterable[Declaration]):
        self._node = node
        overrides = {
            name: parameter.value
            for name, parameter in node.get_parameters_by_prefix("").items()
            if not name.startswith(_ROS_OWN)
        }
        for name in overrides:
            # parameters that an earlier configuration declared as read-only cannot be undeclared
            if not node.describe_parameter(name).read_only:
                node.undeclare_parameter(name)
        # a file may serve all nodes, so only names that no node has are errors
        known = {*ALL, *(spec.name for spec in specs)}
        for name in overrides:
            if name not in known and not name.startswith(_BY_SCENARIO):
                fields = [f"{prefix}<field>" for prefix in _BY_SCENARIO]
                raise UsageError(_unknown("parameter", name, sorted(known) + fields))
        self._overrides: Mapping[str, Any] = overrides
        self._specs: dict[str, Declaration] = {}
        for spec in specs:
            self.declare(spec)
        node.add_on_set_parameters_callback(self.checked)

    def declare(self, spec: Declaration) -> None:
        """Declare another parameter."""
        try:
            value = spec.check(self._overrides.get(spec.name, spec.value))
        except ValueError as error:
            raise UsageError(str(error)) from error
        self._specs[spec.name] = spec
        if self._node.has_parameter(spec.name):
            return  # an earlier configuration declared it as read-only
        value = [""] if value == [] else value  # rclpy mistakes an empty list for bytes
        self._node.declare_parameter(spec.name, value, descriptor(spec), ignore_override=True)

    def declare_fields(self, prefix: str, defaults: Any, read_only: bool = True) -> dict[str, Any]:
        """Declare the fields of a dataclass, which are numbers and tuples of numbers, as
        parameters `prefix + field`, and return their values.

        Raises UsageError for overrides of fields that do not exist.
        """
        declared = declarations(defaults)
        valid = [prefix + field.name for field in declared]
        # an override of a field that does not exist is probably a misspelling
        for name in self._overrides:
            if name.startswith(prefix) and name not in valid:
                raise UsageError(_unknown("parameter", name, valid))
        for field in declared:
            self.declare(field.prefixed(prefix, type(defaults).__name__, not read_only))
        return {field.name: self[prefix + field.name] for field in declared}

    def declare_changed(self, prefix: str, defaults: Any) -> dict[str, Any]:
        """Declare the fields as `declare_fields` does, and return only the values that differ from
        the defaults.
        """
        values = self.declare_fields(prefix, defaults)
        return {name: value for name, value in values.items() if value != getattr(defaults, name)}

    def declare_overrides(self, prefix: str, description: str) -> dict[str, Any]:
        """Declare the overridden parameters with this prefix, and return their values by name,
        without the prefix. The caller must check these names.
        """
        overrides = {name: v for name, v in self._overrides.items() if name.startswith(prefix)}
        for name, value in overrides.items():
            kind = value if isinstance(value, bool | int | float | str) else tuple(value)
            self.declare(Declaration(name, kind, description=description))
        return {name.removeprefix(prefix): self[name] for name in overrides}

    def checked(self, changes: list[Parameter]) -> SetParametersResult:
        """Check whether the parameters may have these values."""
        try:
            for change in changes:
                if change.name in self._specs:
                    self._specs[change.name].check(change.value)
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def __getitem__(self, name: str) -> Any:
        return self.read(name, self._node.get_parameter(name).value)

    def read(self, name: str, value: Any) -> Any:
        """A parameter value, converted to the type of the parameter's default."""
        default = self._specs[name].value
        # ROS may pass an integer for a float, and arrays for tuples
        if isinstance(default, (tuple, float)):
            return type(default)(value)
        # an empty list is written as [""], because [] would have no type
        return [item for item in value if item] if isinstance(default, list) else value


def descriptor(spec: Declaration) -> ParameterDescriptor:
    """The ROS descriptor of a parameter."""
    notes = [f"one of: {', '.join(c or repr(c) for c in spec.choices)}"] if spec.choices else []
    is_float = isinstance(spec.value, float)
    out = ParameterDescriptor(
        name=spec.name,
        description=spec.sentence,
        additional_constraints="; ".join(notes + [FIXED] * (not spec.changeable)),
        read_only=not spec.changeable,
        # rclpy would refuse an integer for a number that can be set while the node runs
        dynamic_typing=is_float and spec.changeable,
    )
    # ROS ranges are closed, so an open bound is only approximated
    least = max(spec.at_least, spec.above)
    if least > -math.inf and is_float:
        out.floating_point_range = [FloatingPointRange(from_value=float(least), to_value=_HUGE)]
    elif least > -math.inf and spec.is_integer:
        out.integer_range = [IntegerRange(from_value=int(least), to_value=2**31 - 1, step=1)]
    return out


def _unknown(what: str, name: str, valid: list[str]) -> str:
    close = difflib.get_close_matches(name, valid, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return f"unknown {what} '{name}'{hint}; valid: {', '.join(valid)}"
