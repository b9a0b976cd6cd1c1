"""Checked values of the command's options; errors have the type that argparse expects."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, TypeVar

from nh_control.mechanics.parameters import Declaration

T = TypeVar("T")


def bounded_number(minimum: float = -math.inf, open_: bool = False) -> Callable[[str], float]:
    """Return a reader of finite numbers that are at least (or, if `open_`, above) a minimum."""

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value) or value < minimum or (open_ and value == minimum):
            bound = "" if minimum == -math.inf else f" {'>' if open_ else '>='} {minimum:g}"
            raise argparse.ArgumentTypeError(f"must be a finite number{bound}, got {text!r}")
        return value

    return number


def bounded_integer(minimum: int) -> Callable[[str], int]:
    """Return a reader of integers that are at least a minimum."""

    def integer(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be an integer >= {minimum}, got {text!r}")
        return value

    return integer


def _numbers(text: str) -> float | tuple[float, ...]:
    values = tuple(float(part) for part in text.split(","))
    return values if len(values) > 1 else values[0]


def declared(entry: Declaration, owner: str) -> Callable[[str], Any]:
    """Return a reader for a declared field of an owner."""

    def value(text: str) -> Any:
        try:
            return entry.read(text, owner)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return value


def assignment(text: str) -> tuple[str, float | tuple[float, ...]]:
    """Read NAME=VALUE with one number or several."""
    name, _, value = text.partition("=")
    try:
        return name, _numbers(value)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be NAME=VALUE with a number or several, e.g. m=1.1 or lengths=0.6,0.7, got "
            f"{text!r}"
        ) from None


def parsed(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a reader that calls `read` and raises its ValueError as argparse expects."""

    def value(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return value
