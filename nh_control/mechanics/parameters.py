"""Declared values: parameters of systems, disturbances and faults, settings for runs, and
parameters of nodes. Each has a default, a unit, a meaning and a range. Values are checked against
the range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any

_KEY = "nh_control.parameter"
TRUE, FALSE = ("true", "True"), ("false", "False")
"""Spellings of true and false in YAML and in Python."""


@dataclass(frozen=True)
class Declaration:
    """The declaration of a parameter or setting: its name, value (the default), unit ("" for
    none), meaning and range. Valid values are larger than `above`, not smaller than `at_least`,
    and one of the `choices`.

    - The type is the type of the value: a bool, an integer, a number, a string, a list of strings,
      a tuple of `count` numbers (0 means one or more), or a mapping, which its owner checks.
    - `by_default`: the meaning of an empty string or of the number 0.
    - `changeable`: whether it may change while a node runs.
    - `only`: the kind of run that has the setting, PROCESS or NODES; "" means both.
    """

    name: str
    value: Any
    unit: str = ""
    description: str = ""
    above: float = -math.inf
    at_least: float = -math.inf
    choices: tuple[str, ...] = ()
    by_default: str = ""
    changeable: bool = False
    only: str = ""
    count: int = 0

    @property
    def bound(self) -> str:
        """The lower bound in symbols; "" if there is none."""
        if self.above > -math.inf:
            return f"> {self.above:g}"
        return f">= {self.at_least:g}" if self.at_least > -math.inf else ""

    @property
    def is_integer(self) -> bool:
        """Whether the value is an integer; a bool is not."""
        return isinstance(self.value, Integral) and not isinstance(self.value, bool)

    @property
    def is_list(self) -> bool:
        """Whether the value is a list of strings."""
        return isinstance(self.value, list) and all(isinstance(v, str) for v in self.value)

    @property
    def text(self) -> str:
        """The meaning with its unit."""
        text = self.description or self.name
        return f"{text} in {self.unit}" if self.unit else text

    @property
    def sentence(self) -> str:
        """A sentence that states the meaning, the unit and the meaning of the default."""
        empty = "empty" if isinstance(self.value, str) else "0"
        default = f"; {empty} is {self.by_default}" if self.by_default else ""
        return f"{self.text[0].upper()}{self.text[1:]}{default}."

    @property
    def expected(self) -> str:
        """A description of the accepted values."""
        if self.choices:
            return f"one of {', '.join(c or repr(c) for c in self.choices)}"
        noun = "an integer" if self.is_integer else "a finite number"
        if isinstance(self.value, bool):
            noun = "true or false"
        elif isinstance(self.value, str):
            noun = "a string"
        elif self.is_list:
            noun = "a list of strings"
        elif _is_several(self.value):
            noun = f"a list of {f'{self.count} ' if self.count else ''}finite numbers"
        return f"{noun} {self.bound}" if self.bound else noun

    def check(self, value: Any, owner: str = "") -> Any:
        """The value, converted to the declared type. An integer becomes a float if a number is
        declared, and several numbers become a tuple of floats.

        Raises ValueError for a value that has a different type or is out of range. The message
        contains the owner, the parameter, the value and the unit.
        """
        converted = self._converted(value)
        if self._is_valid(converted):
            return converted
        name = f"{owner}.{self.name}" if owner else f"parameter '{self.name}'"
        text = repr(value) if isinstance(value, str) else value
        unit = f" {self.unit}" if self.unit else ""
        raise ValueError(f"{name} must be {self.expected}, got {text}{unit}")

    def read(self, text: str, owner: str = "") -> Any:
        """The value in a string: true or false, a number, numbers separated by commas, a string,
        or strings separated by spaces. Raises ValueError as `check` does.
        """
        return self.check(self._parsed(text), owner)

    def prefixed(self, prefix: str, owner: str, changeable: bool = False) -> Declaration:
        """The same declaration for a field of the dataclass `owner`, with a prefix added to its
        name. A field with several numbers gets a fixed count.
        """
        several = isinstance(self.value, tuple)
        return replace(
            self,
            name=prefix + self.name,
            value=self.value if several or self.is_integer else float(self.value),
            description=self.description or f"{self.name} of {owner}",
            changeable=changeable,
            count=len(self.value) if several else 0,
        )

    def _parsed(self, text: str) -> Any:
        """The value in a string, or the string itself if it contains no value of the declared
        type.
        """
        if isinstance(self.value, str):
            return text
        if isinstance(self.value, bool):
            return text in TRUE if text in TRUE + FALSE else text
        if self.is_list:
            return text.split()
        try:
            if _is_several(self.value):
                return tuple(float(part) for part in text.strip("[]").split(","))
            return int(text) if self.is_integer else float(text)
        except ValueError:
            return text

    def _converted(self, value: Any) -> Any:
        """The value converted to the type of the default, or unchanged if that is not possible."""
        if self.is_list:
            return list(value) if isinstance(value, list | tuple) else value
        if _is_several(self.value) and _is_several(value):
            numbers = tuple(value)
            return tuple(map(float, numbers)) if all(map(_is_number, numbers)) else numbers
        return float(value) if isinstance(self.value, float) and type(value) is int else value

    def _is_valid(self, value: Any) -> bool:
        """Whether the declaration accepts a converted value."""
        if isinstance(self.value, Mapping):
            return isinstance(value, Mapping)
        if self.is_list:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        if isinstance(self.value, str | bool):
            chosen = not self.choices or value in self.choices
            return isinstance(value, type(self.value)) and chosen
        if not _is_several(self.value):
            return self._allows(value)
        # a fixed count, or any positive one
        several = _is_several(value) and len(value) > 0
        return several and self.count in (0, len(value)) and all(map(self._allows, value))

    def _allows(self, number: Any) -> bool:
        return (
            _is_number(number)
            and math.isfinite(number)
            and float(number) > self.above
            and float(number) >= self.at_least
            and (not self.is_integer or isinstance(number, Integral))
        )


PROCESS, NODES = "process", "nodes"
"""Values for `Declaration.only`: runs in one process, and runs as nodes."""


def setting(default: Any, description: str, **declared: Any) -> Any:
    """A field for a dataclass of settings, with the remaining entries of its Declaration."""
    metadata = {_KEY: {"description": description, **declared}}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def parameter(
    default: Any,
    unit: str = "",
    description: str = "",
    above: float = 0.0,
    at_least: float | None = None,
) -> Any:
    """A field for a dataclass of parameters: a number or a tuple of numbers, with its unit and
    meaning.

    Every number must be larger than `above` (`-math.inf` for no bound) or, if `at_least` is
    passed, not smaller than `at_least`.
    """
    bound = {"above": above} if at_least is None else {"at_least": at_least}
    return setting(default, description, unit=unit, **bound)


@dataclass(frozen=True)
class Parameters:
    """Base class for dataclasses of parameters. An instance checks its fields. Fields declared by
    `parameter` must satisfy their bounds, and other numbers must be finite. Subclasses check
    strings.

    All fields need defaults. The default determines whether a field is a number, an integer or
    several numbers, which become a tuple of floats. A subclass's `__post_init__` must call
    `super().__post_init__()` first. Raises ValueError with the class, field, value and unit in the
    message.
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            if isinstance(f.default, str):
                continue
            declared = Declaration(f.name, f.default, **f.metadata.get(_KEY, {}))
            checked = declared.check(getattr(self, f.name), type(self).__name__)
            object.__setattr__(self, f.name, checked)


def declarations(parameters: Any) -> tuple[Declaration, ...]:
    """The declarations for the parameters in a dataclass instance, in order, with their values.
    Fields that are not declared by `parameter` have no unit, meaning or bounds. Empty for None.

    Raises TypeError if `parameters` is not an instance of a dataclass.
    """
    if parameters is None:
        return ()
    if isinstance(parameters, type):
        raise TypeError(f"parameters: expected an instance, got the class {parameters.__name__}")
    return tuple(
        Declaration(f.name, getattr(parameters, f.name), **f.metadata.get(_KEY, {}))
        for f in fields(parameters)
    )


def declared(owner: type, prefix: str = "") -> tuple[Declaration, ...]:
    """The declarations for the fields of a dataclass that `setting` or `parameter` declares, in
    order, with their defaults. If a field's default is another such dataclass, the fields of that
    dataclass follow, with the field's name and a dot as prefix.
    """
    out: list[Declaration] = []
    for f in fields(owner):
        # nested dataclasses are declared by default factories
        default: Any = f.default if f.default_factory is MISSING else f.default_factory
        if _KEY in f.metadata:
            value = default if f.default_factory is MISSING else default()
            out.append(Declaration(prefix + f.name, value, **f.metadata[_KEY]))
        elif isinstance(default, type):
            out += declared(default, f"{prefix}{f.name}.")
    return tuple(out)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_several(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | Mapping)
