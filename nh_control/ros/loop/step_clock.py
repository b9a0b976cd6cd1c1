"""Integer time: the stamp of step k and the step of a stamp."""

from __future__ import annotations

from dataclasses import dataclass

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class StepClock:
    """Simulation time `t_k = k h` in integer nanoseconds, rounded per step so that rounding never
    accumulates; h in s.
    """

    h: float

    def stamp(self, step: int) -> int:
        """Stamp of a step in ns."""
        return round(step * self.h * NANOSECONDS)

    def step(self, stamp: int) -> int | None:
        """Step whose stamp is `stamp` (ns), or None if no step has it."""
        step = round(stamp / (self.h * NANOSECONDS))
        return step if step >= 0 and self.stamp(step) == stamp else None
