"""Physical parameters as arguments: the numbers in a dataclass as a vector and as symbols."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from numbers import Real
from typing import Any

import casadi as ca
import numpy as np

STRUCTURAL = (int, bool, str, "int", "bool", "str")
"""Field types that determine the structure of a system. Such fields do not become symbols."""


def names(parameters: Any) -> tuple[str, ...]:
    """The names of all numbers in a dataclass, in order, such as `lengths[0], lengths[1]` for a
    tuple.
    """
    return tuple(name for name, _ in _numbers(parameters))


def values(parameters: Any) -> np.ndarray:
    """All numbers (n) in a dataclass, in the order of `names`."""
    return np.array([value for _, value in _numbers(parameters)], dtype=float)


def by_field(parameters: Any, numbers: np.ndarray) -> dict[str, Any]:
    """The values of a dataclass's fields, by name, from numbers (n) in the order of `names`."""
    by_name, start = {}, 0
    for name, value in _fields(parameters):
        size = len(value) if isinstance(value, tuple) else 1
        part = tuple(numbers[start : start + size].tolist())
        by_name[name] = part if isinstance(value, tuple) else part[0]
        start += size
    return by_name


def symbolic(parameters: Any) -> tuple[ca.SX, Any]:
    """A symbol for every number (n), and a copy of the dataclass with symbols instead of
    numbers.
    """
    symbols = ca.vertcat(ca.SX(0, 1), *(ca.SX.sym(name) for name in names(parameters)))
    if parameters is None:
        return symbols, None
    copied, start = copy.copy(parameters), 0
    for name, value in _fields(parameters):
        size = len(value) if isinstance(value, tuple) else 1
        part = symbols[start : start + size]
        replacement = tuple(part[i] for i in range(size)) if isinstance(value, tuple) else part
        # the dataclass's checks are for numbers, so set the field without them
        object.__setattr__(copied, name, replacement)
        start += size
    return symbols, copied


def changed(owner: str, parameters: Any, changes: dict[str, Any]) -> Any:
    """The dataclass with different numbers and the same structure.

    Raises ValueError for unknown names, and for values that require a new system: tuples of a
    different length, different integers and different strings.
    """
    before = dict(_fields(parameters))
    for name in changes:
        if name not in before:
            what = f"choose from {list(before)}" if before else "it declares none"
            raise ValueError(f"{owner}: no parameter {name!r} to change, {what}")
    if not changes:
        return parameters
    new = replace(parameters, **changes)
    # the same fields with the same lengths mean the same structure
    if _sizes(dict(_fields(new))) != _sizes(before):
        raise ValueError(
            f"{owner}: {changes} has a different structure from {names(parameters)}; build a new "
            "system with it"
        )
    return new


def _sizes(numbers: dict[str, Any]) -> dict[str, int]:
    return {name: len(v) if type(v) is tuple else 1 for name, v in numbers.items()}


def _numbers(parameters: Any) -> Iterator[tuple[str, float]]:
    for name, value in _fields(parameters):
        if isinstance(value, tuple):
            yield from ((f"{name}[{i}]", entry) for i, entry in enumerate(value))
        else:
            yield name, value


def _fields(parameters: Any) -> Iterator[tuple[str, Any]]:
    """The fields that are numbers or tuples of numbers, with their values."""
    for f in fields(parameters) if parameters is not None else ():
        value = getattr(parameters, f.name)
        entries: Iterable[Any] = value if isinstance(value, tuple) else (value,)
        if f.type not in STRUCTURAL and all(isinstance(entry, Real) for entry in entries):
            yield f.name, value
