"""Safety limits of a scenario: beyond them a robot counts as out of control."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class SafetyLimits:
    """Limits at which trackers of hardware disarm, unless their parameters set others.

    - `error`: largest component of the configuration's tracking error, among those with a weight
      (m, rad); 0 derives it from the perturbation, see `error_limit`.
    - `saturation_s`: longest time (s) for which inputs may be saturated without interruption.
    - `ranges`: of joints and bodies, NAME:LOW:HIGH (m, rad).
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
