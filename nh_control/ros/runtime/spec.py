"""One parameter of a node: what it may be, and what ROS is told of it."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from nh_control.ros.runtime.process import UsageError

FIXED = "fixed at start: start the node anew to change it"

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
