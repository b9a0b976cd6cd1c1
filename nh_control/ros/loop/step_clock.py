"""Integer time: the stamp of step k and the step of a stamp."""

from __future__ import annotations

from dataclasses import dataclass

from nh_control.control.input_history import NANOSECONDS as NANOSECONDS

TOLERANCE_NS = 1_000
"""How far a stamp may be from that of a step: floating-point seconds, split into `sec` and
`nanosec`, are off by some nanoseconds.
"""
OTHER_CLOCK_NS = 10**6 * NANOSECONDS
"""A stamp further from the present than that is of another clock, such as wall time where states
carry simulation time, and says nothing about the state.
"""


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
        """Step whose stamp is closest to `stamp` (ns), or None if it is further than TOLERANCE_NS,
        or than a tenth of a shorter step.
        """
        step = round(stamp / (self.h * NANOSECONDS))
        allowed = min(TOLERANCE_NS, 0.1 * self.h * NANOSECONDS)
        return step if step >= 0 and abs(self.stamp(step) - stamp) <= allowed else None
