"""Whether commands may go to hardware, and what takes the permission away."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

AWAITS_START = "the reference's start is held until ~/start"
"""What is said of a tracker that is armed, and is to be told when to start."""


@dataclass(frozen=True)
class Limits:
    """What a run may not exceed: seconds without a state that can be used, size of the tracking
    error of the configuration (m, rad; any of its numbers), seconds of saturation without a pause.
    0 is no limit.
    """

    silence_s: float = 0.0
    error: float = 0.0
    saturation_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("silence_s", "error", "saturation_s"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"limit {name} must be >= 0 and finite, got {value}")


class Arming:
    """Armed on request only; disarmed on request, or by the first limit that is exceeded, which
    `reason` then names. Times are in s, of any one clock, 0 as long as it is not known; where it
    goes back, they count anew.
    """

    def __init__(self, limits: Limits, armed: bool = False):
        self.limits, self.armed = limits, armed
        self.reason = "" if armed else "not armed yet"
        self.disarmed = 0
        self._forget()

    def _forget(self) -> None:
        self._heard_at, self._free_at = 0.0, 0.0

    def arm(self) -> None:
        """Commands may go out from now on."""
        self.armed, self.reason = True, ""
        self._forget()

    def disarm(self, reason: str) -> None:
        """Commands may not go out any more."""
        if self.armed:
            self.armed, self.reason = False, reason
            self.disarmed += 1

    def obstacle(self, awaits_start: bool) -> str:
        """What keeps the reference from being followed, "" if nothing does."""
        if not self.armed:
            return f"disarmed: {self.reason}"
        return AWAITS_START if awaits_start else ""

    def check_silence(self, now_s: float) -> None:
        """Time has passed without a state that can be used."""
        if not 0.0 < self._heard_at <= now_s:
            self._heard_at = now_s
        silence_s = now_s - self._heard_at
        if self.limits.silence_s and silence_s > self.limits.silence_s:
            self.disarm(f"no state that can be used for {silence_s:.3g} s")

    def observe(
        self, now_s: float, error: np.ndarray, saturated: bool, violation: str = ""
    ) -> None:
        """A command was computed at a tracking error (n) of the tracked configuration, which has
        left its range if `violation` says so.
        """
        self._heard_at = now_s
        largest = float(np.abs(error).max(initial=0.0))
        if violation:
            self.disarm(violation)
        if self.limits.error and not largest <= self.limits.error:
            self.disarm(f"tracking error {largest:.3g} is beyond {self.limits.error:.3g}")
        if not saturated or not 0.0 < self._free_at <= now_s:
            self._free_at = now_s
        if self.limits.saturation_s and now_s - self._free_at > self.limits.saturation_s:
            self.disarm(f"an input was saturated for {now_s - self._free_at:.3g} s")
