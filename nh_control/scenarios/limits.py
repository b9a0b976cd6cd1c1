"""The safety limits of a scenario. Beyond these limits, a robot is considered out of control."""

from __future__ import annotations

import math
from dataclasses import dataclass

SYNTAX = "NAME:LOW:HIGH"
"""The syntax of a range, in m and rad."""


@dataclass(frozen=True)
class Range:
    """`low <= name <= high` in m or rad."""

    name: str
    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> Range:
        """Return the range written as NAME:LOW:HIGH. Raises ValueError."""
        name, *bounds = (part.strip() for part in text.split(":"))
        try:
            low, high = map(float, bounds)
        except ValueError:
            raise ValueError(
                f"a range is written {SYNTAX}, e.g. cart_joint:-1:1, got {text!r}"
            ) from None
        if not low < high:
            raise ValueError(f"the range {text!r} is empty: expected two numbers, LOW < HIGH")
        return cls(name, low, high)


@dataclass(frozen=True)
class SafetyLimits:
    """Limits at which hardware trackers disarm, unless their parameters set other limits.

    - `error`: the limit (m, rad) of each component of the configuration error that has a weight.
      If this is 0, the limit is derived from the perturbation (see `error_limit`).
    - `saturation_s`: the maximum time (s) for which inputs may be saturated without interruption.
    - `ranges`: the ranges of joints and bodies, NAME:LOW:HIGH (m, rad).
    """

    error: float = 0.0
    saturation_s: float = 1.0
    ranges: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.error >= 0 and math.isfinite(self.error)):
            raise ValueError(f"SafetyLimits.error must be >= 0 and finite, got {self.error}")
        if not (self.saturation_s > 0 and math.isfinite(self.saturation_s)):
            raise ValueError(
                f"SafetyLimits.saturation_s must be > 0 and finite, got {self.saturation_s}"
            )
