"""Readers for command options. Their errors have the type that argparse expects."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nh_control.mechanics.parameters import Declaration


def reader(entry: Declaration) -> Callable[[str], Any]:
    """Return a reader for a declared value. If 0 stands for a number's default, the reader refuses
    0, because the option can be omitted instead.
    """
    if entry.by_default and isinstance(entry.value, float):
        entry = replace(entry, above=0.0, at_least=-math.inf)

    def value(text: str) -> Any:
        try:
            return entry.read(text)
        except ValueError:  # argparse adds the name of the option
            message = f"must be {entry.expected}, got {text!r}"
            raise argparse.ArgumentTypeError(message) from None

    return value


def bounded_number(minimum: float = -math.inf, open_: bool = False) -> Callable[[str], float]:
    """Return a reader for finite numbers that are at least a minimum, or above it if `open_`."""
    # exactly one of the bounds is active
    above, at_least = (minimum, -math.inf) if open_ else (-math.inf, minimum)
    return reader(Declaration("", 0.0, above=above, at_least=at_least))


def bounded_integer(minimum: int) -> Callable[[str], int]:
    """Return a reader for integers that are at least a minimum."""
    return reader(Declaration("", 0, at_least=minimum))


def _numbers(text: str) -> float | tuple[float, ...]:
    values = tuple(float(part) for part in text.split(","))
    return values if len(values) > 1 else values[0]


def assignment(text: str) -> tuple[str, float | tuple[float, ...]]:
    """Read NAME=VALUE with one or more numbers."""
    name, _, value = text.partition("=")
    try:
        return name, _numbers(value)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be NAME=VALUE with one or several numbers, e.g. m=1.1 or lengths=0.6,0.7, got "
            f"{text!r}"
        ) from None


def text_of(read: Callable[[str], Any]) -> Callable[[str], str]:
    """Return a reader that returns `str(read(text))` for the texts that `read` accepts."""

    def value(text: str) -> str:
        try:
            return str(read(text))
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return value
