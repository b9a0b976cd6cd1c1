"""Declared values: the parameters of a system, of a disturbance or a fault, the settings of a run
and the parameters of nodes. Each has a default, a unit, a meaning and a range, and is checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any

_KEY = "nh_control.parameter"
TRUE, FALSE = ("true", "True"), ("false", "False")
"""Texts of true and false, as YAML and as Python spell them."""


@dataclass(frozen=True)
class Declaration:
    """The declaration of one parameter or setting: name, value (the default), unit ("" for none),
    meaning, and its range: larger than `above`, not smaller than `at_least`, one of the `choices`.

    - The kind is that of the value: a truth value, an integer, a number, a text, a list of texts,
      a tuple of `count` numbers (0: of one or more), or a mapping, which its owner checks.
    - `by_default`: what an empty text, or the number 0, stands for.
    - `changeable`: whether it may change while a node runs.
    - `only`: the place that alone has the setting: PROCESS or NODES; "" is both.
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
        """The lower bound in symbols, "" if there is none."""
        if self.above > -math.inf:
            return f"> {self.above:g}"
        return f">= {self.at_least:g}" if self.at_least > -math.inf else ""

    @property
    def is_integer(self) -> bool:
        """Whether the value is an integer; a bool is not."""
        return isinstance(self.value, Integral) and not isinstance(self.value, bool)

    @property
    def is_list(self) -> bool:
        """Whether the value is a list of texts."""
        return isinstance(self.value, list) and all(isinstance(v, str) for v in self.value)

    @property
    def text(self) -> str:
        """The meaning with its unit."""
        text = self.description or self.name
        return f"{text} in {self.unit}" if self.unit else text

    @property
    def sentence(self) -> str:
        """The meaning with its unit and what the default stands for, as a sentence."""
        empty = "empty" if isinstance(self.value, str) else "0"
        default = f"; {empty} is {self.by_default}" if self.by_default else ""
        return f"{self.text[0].upper()}{self.text[1:]}{default}."

    @property
    def expected(self) -> str:
        """The values that it takes, in words."""
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
        """The value in the declared kind: an integer for a number becomes a float, several numbers
        a tuple of floats.

        Raises ValueError, with owner, parameter, value and unit, for a value of another kind, and
        for one out of range.
        """
        converted = self._converted(value)
        if self._is_valid(converted):
            return converted
        name = f"{owner}.{self.name}" if owner else f"parameter '{self.name}'"
        text = repr(value) if isinstance(value, str) else value
        unit = f" {self.unit}" if self.unit else ""
        raise ValueError(f"{name} must be {self.expected}, got {text}{unit}")

    def read(self, text: str, owner: str = "") -> Any:
        """The value that a text stands for: true or false, a number, numbers with commas between
        them, a text, texts with spaces between them; raises ValueError as `check` does.
        """
        return self.check(self._parsed(text), owner)

    def prefixed(self, prefix: str, owner: str, changeable: bool = False) -> Declaration:
        """The same of a field of the dataclass `owner`, under a longer name; of several numbers
        the count is fixed.
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
        """The value of a text, or the text itself if it stands for no value of this kind."""
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
        """The value in the type of the default if it can be converted, else unchanged."""
        if self.is_list:
            return list(value) if isinstance(value, list | tuple) else value
        if _is_several(self.value) and _is_several(value):
            numbers = tuple(value)
            return tuple(map(float, numbers)) if all(map(_is_number, numbers)) else numbers
        return float(value) if isinstance(self.value, float) and type(value) is int else value

    def _is_valid(self, value: Any) -> bool:
        """Whether it accepts a converted value."""
        if isinstance(self.value, Mapping):
            return isinstance(value, Mapping)
        if self.is_list:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        if isinstance(self.value, str | bool):
            chosen = not self.choices or value in self.choices
            return isinstance(value, type(self.value)) and chosen
        if not _is_several(self.value):
            return self._allows(value)
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
"""Places of a setting, see `Declaration.only`: a run in one process, or as nodes."""


def setting(default: Any, description: str, **declared: Any) -> Any:
    """A field of a dataclass of settings, with the other entries of its Declaration."""
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
    """A field of a dataclass of parameters: a number, or a tuple of numbers, with its unit and
    meaning.

    Every number must be larger than `above` (`-math.inf`: no bound). With `at_least`, it must be
    at least this instead.
    """
    bound = {"above": above} if at_least is None else {"at_least": at_least}
    return setting(default, description, unit=unit, **bound)


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
            declared = Declaration(f.name, f.default, **f.metadata.get(_KEY, {}))
            kept = declared.check(getattr(self, f.name), type(self).__name__)
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
        Declaration(f.name, getattr(parameters, f.name), **f.metadata.get(_KEY, {}))
        for f in fields(parameters)
    )


def declared(owner: type, prefix: str = "") -> tuple[Declaration, ...]:
    """The fields by `setting` or `parameter` of a dataclass in order, with their defaults. A field
    whose default is another such dataclass has its fields, after its name and a dot.
    """
    out: list[Declaration] = []
    for f in fields(owner):
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
