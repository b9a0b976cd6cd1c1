"""Specification of one parameter, without ROS, because launch arguments are made of it as well."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any

from nh_control.mechanics.parameters import Declaration

OF_SCENARIO, AUTO = -1.0, "auto"
"""Values that stand for the scenario's declaration."""


class UsageError(ValueError):
    """A node cannot start with its parameters; the message names the remedy."""


@dataclass(frozen=True)
class Spec:
    """A parameter: its name, default, description, the minimum of numbers and the choices of
    strings; a read-only one is fixed at start.

    A list has strings; a tuple has as many numbers as its default, none below the minimum.
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
        """The value in the type of the default if it can be converted, else unchanged."""
        kind: Any = type(self.default)
        if kind is float and type(value) is int:
            return float(value)
        if kind is list and isinstance(value, (list, tuple, array)):
            return list(value)
        if kind is tuple and isinstance(value, (list, tuple, array)):
            return tuple(float(item) if type(item) is int else item for item in value)
        return value

    def _is_valid(self, value: Any) -> bool:
        """Whether the parameter accepts a converted value."""
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
        """The values that the parameter takes, in words."""
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

    @staticmethod
    def of_field(prefix: str, field: Declaration, owner: str, read_only: bool = True) -> Spec:
        """The parameter `prefix + field` of a field of the dataclass `owner`, which itself checks
        excluded bounds.
        """
        exact = field.is_integer or isinstance(field.value, tuple)
        text = field.description or f"{field.name} of {owner}"
        unit = f" [{field.unit}]" if field.unit else ""
        return Spec(
            prefix + field.name,
            field.value if exact else float(field.value),
            f"{text[0].upper()}{text[1:]}{unit}.",
            minimum=field.at_least if field.at_least > -math.inf else None,
            read_only=read_only,
        )
