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

    A list is one of strings, a tuple one of as many numbers, none below the minimum.
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
        converted = self._converted(value)
        if not self._is_valid(converted):
            raise UsageError(
                f"parameter '{self.name}' must be {self._expected}, got {converted!r}"
            )
        return converted

    def _converted(self, value: Any) -> Any:
        """The value in the type of the default if it can stand for one, else as it is."""
        kind: Any = type(self.default)
        if kind is float and type(value) is int:
            return float(value)
        if kind is list and isinstance(value, (list, tuple, array)):
            return list(value)
        if kind is tuple and isinstance(value, (list, tuple, array)):
            return tuple(float(item) if type(item) is int else item for item in value)
        return value

    def _is_valid(self, value: Any) -> bool:
        """Whether a converted value is one of the parameter's."""
        kind: Any = type(self.default)
        if type(value) is not kind or (self.choices and value not in self.choices):
            return False
        if kind is list:
            return all(isinstance(item, str) for item in value)
        if kind in (bool, str):
            return True
        numbers: tuple[Any, ...] = value if isinstance(value, tuple) else (value,)
        count = len(self.default) if isinstance(self.default, tuple) else 1
        return len(numbers) == count and all(map(self._allows, numbers))

    def _allows(self, number: Any) -> bool:
        """Whether one number is finite and not below the minimum."""
        least = -math.inf if self.minimum is None else self.minimum
        finite = type(number) in (int, float) and -math.inf < number < math.inf
        return finite and number >= least

    @property
    def _expected(self) -> str:
        """What the parameter may be, in words."""
        if self.choices:
            return f"one of {', '.join(c or repr(c) for c in self.choices)}"
        nouns: dict[type, str] = {
            bool: "true or false",
            int: "an integer",
            float: "a finite number",
            str: "a string",
            list: "a list of strings",
        }
        if isinstance(self.default, tuple):
            noun = f"a list of {len(self.default)} finite numbers"
        else:
            noun = nouns[type(self.default)]
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
        elif self.minimum is not None and isinstance(self.default, int):
            out.integer_range = [
                IntegerRange(from_value=int(self.minimum), to_value=2**31 - 1, step=1)
            ]
        return out
