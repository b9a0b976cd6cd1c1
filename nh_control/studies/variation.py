"""How one setting varies in a study: over a range, by a distribution, or over listed values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

SYNTAX = "LOW:HIGH, LOW:HIGH:COUNT, log:LOW:HIGH[:COUNT], normal:MEAN:STD or VALUE,VALUE,..."
"""How a variation is written, see `parse`."""
UNIFORM, LOG, NORMAL, VALUES = "uniform", "log", "normal", "values"
SMALLEST = 2.0**-53
"""The least fraction that a normal distribution is asked for."""

Value = bool | int | float | str


@dataclass(frozen=True)
class Variation:
    """What a setting of that `name` runs through: `values`, or what lies between two `bounds`,
    evenly or in the logarithm, at `count` of them in a grid (0: at none), or what is normal with
    mean and standard deviation as `bounds`.
    """

    name: str
    kind: str
    bounds: tuple[float, float] = (0.0, 0.0)
    count: int = 0
    values: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        low, high = self.bounds
        problem = ""
        if not all(map(math.isfinite, self.bounds)):
            problem = "its numbers must be finite"
        elif self.kind == NORMAL and not high > 0:
            problem = "its standard deviation must be positive"
        elif self.kind in (UNIFORM, LOG) and not low < high:
            problem = "its lower bound must be less than its upper one"
        elif self.kind == LOG and not low > 0:
            problem = "bounds of a logarithmic range must be positive"
        elif self.count < 0 or self.count == 1:
            problem = "a range needs 2 values or more in a grid"
        elif self.kind == VALUES and not self.values:
            problem = "it lists no values"
        if problem:
            raise ValueError(f"variation {self.name}={self}: {problem}")

    def __str__(self) -> str:
        """As `parse` reads it."""
        if self.kind == VALUES:
            return ",".join(map(_text, self.values))
        prefix = [] if self.kind == UNIFORM else [self.kind]
        count = [str(self.count)] if self.count else []
        return ":".join([*prefix, *map(repr, self.bounds), *count])

    @property
    def is_numeric(self) -> bool:
        """Whether it goes over numbers, which have an order."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @property
    def levels(self) -> tuple[Value, ...]:
        """The values of a grid, none for a range without a count."""
        if self.kind == VALUES:
            return self.values
        spaced = np.geomspace if self.kind == LOG else np.linspace
        return tuple(spaced(*self.bounds, self.count).tolist()) if self.count else ()

    def quantile(self, fraction: float) -> Value:
        """The value below which `fraction`, in [0, 1), of all values lie."""
        a, b = self.bounds
        if self.kind == VALUES:
            return self.values[int(fraction * len(self.values))]
        if self.kind == NORMAL:
            return float(a + b * ndtri(max(fraction, SMALLEST)))
        if self.kind == LOG:
            return float(a * (b / a) ** fraction)
        return float(a + (b - a) * fraction)


def parse(name: str, text: str) -> Variation:
    """The variation written as `0.2:1.0` (a range), `0.2:1.0:5` (with 5 values in a grid),
    `log:0.1:10`, `normal:0:0.1` or `circle,parking` (values); raises ValueError.
    """
    kind, *rest = text.strip().split(":")
    if not rest:
        listed = [part.strip() for part in text.split(",")]
        if not all(listed):
            raise ValueError(f"variation {name}={text}: expected {SYNTAX}")
        return Variation(name, VALUES, values=tuple(map(value, listed)))
    if kind not in (LOG, NORMAL):
        kind, rest = UNIFORM, [kind, *rest]
    try:
        low, high = map(float, rest[:2])
        count = int(rest[2]) if len(rest) == 3 and kind != NORMAL else 0
    except (ValueError, IndexError):
        raise ValueError(f"variation {name}={text}: expected {SYNTAX}") from None
    if len(rest) > 3 or (kind == NORMAL and len(rest) > 2):
        raise ValueError(f"variation {name}={text}: expected {SYNTAX}")
    return Variation(name, kind, (low, high), count)


def value(text: str) -> Value:
    """The truth value, integer, number, or else the name that a text is."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _text(one: Any) -> str:
    return str(one).lower() if isinstance(one, bool) else str(one)
