"""Variations of a setting in a study: over a range, by a distribution, or over listed values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

SYNTAX = "LOW:HIGH, LOW:HIGH:COUNT, log:LOW:HIGH[:COUNT], normal:MEAN:STD or VALUE,VALUE,..."
"""The syntax of a variation (see `parse`)."""
UNIFORM, LOG, NORMAL, VALUES = "uniform", "log", "normal", "values"
SMALLEST = 2.0**-53
"""The smallest fraction at which the quantile of a normal distribution is evaluated. At 0, the
quantile is infinite.
"""
MOST_LEVELS = 1_000_000

Value = bool | int | float | str


@dataclass(frozen=True)
class Variation:
    """The values of the setting `name`: listed `values`, a range between two `bounds` (uniform or
    logarithmic, with `count` levels in a grid), or a normal distribution with mean and standard
    deviation in `bounds`.
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
            problem = "its lower bound must be less than its upper bound"
        elif self.kind == LOG and not low > 0:
            problem = "its bounds must be positive for a logarithmic range"
        elif self.count < 0 or self.count == 1:
            problem = "its number of levels must be 2 or more"
        elif self.count > MOST_LEVELS:
            problem = f"its number of levels must be at most {MOST_LEVELS:_}"
        elif self.kind == VALUES and not self.values:
            problem = "it lists no values"
        if problem:
            raise ValueError(f"variation {self.name}={self}: {problem}")

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        if self.kind == VALUES:
            return ",".join(map(_text, self.values))
        prefix = [] if self.kind == UNIFORM else [self.kind]
        count = [str(self.count)] if self.count else []
        return ":".join([*prefix, *map(repr, self.bounds), *count])

    @property
    def is_numeric(self) -> bool:
        """Whether all values are numbers, which have an order."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @property
    def levels(self) -> tuple[Value, ...]:
        """The values in a grid. There are none for a range without a count."""
        if self.kind == VALUES:
            return self.values
        low, high = self.bounds
        spaced = np.geomspace if self.kind == LOG else np.linspace
        return tuple(spaced(low, high, self.count).tolist()) if self.count else ()

    def quantile(self, fraction: float) -> Value:
        """Return the value below which the given fraction, in [0, 1), of all values lies."""
        a, b = self.bounds
        if self.kind == VALUES:
            return self.values[int(fraction * len(self.values))]
        if self.kind == NORMAL:
            return float(a + b * ndtri(max(fraction, SMALLEST)))
        if self.kind == LOG:
            # a^(1 - s) b^s, which is uniform in the logarithm
            return float(a * (b / a) ** fraction)
        return float(a + (b - a) * fraction)


NAMED = "controller"
"""The setting whose values, path/to/file.py:NAME, contain colons."""


def parse(name: str, text: str) -> Variation:
    """Return the variation written as `0.2:1.0` (a range), `0.2:1.0:5` (a range with 5 levels in a
    grid), `log:0.1:10`, `normal:0:0.1` or `circle,parking` (listed values). Raises ValueError.
    """
    kind, *rest = text.strip().split(":")
    if not rest or name == NAMED:
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
    """Convert a text to a truth value, an integer or a number. Other texts are names."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _text(level: Any) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)
