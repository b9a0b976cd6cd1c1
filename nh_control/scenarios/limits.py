"""Where a run is out of control, by what a scenario declares."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class SafetyLimits:
    """What no run of a robot should exceed, by which trackers of hardware disarm unless they are
    told others.

    error         largest number of the configuration's tracking error, of those that have a weight
                  (m, rad); 0 follows from the perturbation, see `error_limit`
    saturation_s  how long inputs may be saturated without a pause (s)
    ranges        of joints and bodies, NAME:LOW:HIGH (m, rad)
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
