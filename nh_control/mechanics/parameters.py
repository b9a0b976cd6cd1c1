"""Parameters as a user declares them: numbers with a unit, a meaning and a bound, checked when
they are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

_KEY = "nh_control.parameter"


@dataclass(frozen=True)
class Declaration:
    """The declaration of one parameter: name, value, unit ("" for none), meaning, and its bounds:
    larger than `above`, not smaller than `at_least`.
    """

    name: str
    value: Any
    unit: str = ""
    description: str = ""
    above: float = -math.inf
    at_least: float = -math.inf

    @property
    def bound(self) -> str:
        """The lower bound in symbols, "" if there is none."""
        if self.above > -math.inf:
            return f"> {self.above:g}"
        return f">= {self.at_least:g}" if self.at_least > -math.inf else ""

    @property
    def is_integer(self) -> bool:
        """Whether the value is an integer; a bool is not."""
        return isinstance(self.value, Integral) and not isinstance(self.value, bool)

    def check(self, owner: str, value: Any) -> Any:
        """The value as it is stored: a number as it is, several numbers as a tuple of floats.

        Raises ValueError, with owner, parameter, value and unit, for a value of another kind than
        declared (a number, an integer, one or more numbers), and for numbers that are not finite
        or out of bounds.
        """
        several = _is_several(self.value)
        numbers = tuple(value) if _is_several(value) else (value,)
        if _is_several(value) != several or not numbers or not all(map(self._allows, numbers)):
            unit = f" {self.unit}" if self.unit else ""
            raise ValueError(
                f"{owner}.{self.name} must be {self._expected(several)}, got {value}{unit}"
            )
        return tuple(map(float, numbers)) if several else value

    def _allows(self, number: Any) -> bool:
        return (
            isinstance(number, Real)
            and not isinstance(number, bool)
            and math.isfinite(number)
            and float(number) > self.above
            and float(number) >= self.at_least
            and (not self.is_integer or isinstance(number, Integral))
        )

    def _expected(self, several: bool) -> str:
        bound = "positive" if self.bound == "> 0" else self.bound
        kind = "an integer" if self.is_integer else "finite"
        wanted = " and ".join(part for part in (bound, kind) if part)
        return f"a list of numbers, all {wanted}" if several else wanted


def parameter(
    default: Any,
    unit: str = "",
    description: str = "",
    above: float = 0.0,
    at_least: float | None = None,
) -> Any:
    """A field of a dataclass of parameters: a number, or a tuple of numbers, with its unit and
    meaning.

    Every number must be larger than `above` (`-math.inf`: no bound). With `at_least`, it must be
    at least this instead.
    """
    bounds = (above, -math.inf) if at_least is None else (-math.inf, at_least)
    return field(default=default, metadata={_KEY: (unit, description, *bounds)})


@dataclass(frozen=True)
class Parameters:
    """Base of a dataclass of parameters. An instance checks all its fields: fields by `parameter`
    must keep their bounds, other numbers must be finite; a subclass checks texts.

    All fields need defaults. A default says whether the field is a number, an integer or several
    numbers, which are kept as a tuple of floats. A `__post_init__` of a subclass calls
    `super().__post_init__()` first. Raises ValueError with the class, field, value and unit.
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            if isinstance(f.default, str):
                continue
            declared = Declaration(f.name, f.default, *f.metadata.get(_KEY, ()))
            kept = declared.check(type(self).__name__, getattr(self, f.name))
            object.__setattr__(self, f.name, kept)


def declarations(parameters: Any) -> tuple[Declaration, ...]:
    """The parameters of an instance of a dataclass in order, with their values. Fields that are
    not made by `parameter` have no unit, meaning or bounds. Empty for None.

    Raises TypeError if `parameters` is not an instance of a dataclass.
    """
    if parameters is None:
        return ()
    if isinstance(parameters, type):
        raise TypeError(f"parameters: expected an instance, got the class {parameters.__name__}")
    return tuple(
        Declaration(f.name, getattr(parameters, f.name), *f.metadata.get(_KEY, ()))
        for f in fields(parameters)
    )


def _is_several(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)
