"""Time: stamps of steps in integer nanoseconds, and the pacing of steps on absolute deadlines."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nh_control.control.input_history import NANOSECONDS as NANOSECONDS

TOLERANCE_NS = 1_000
"""Largest difference of a stamp from the stamp of its step: floating-point seconds, split into
`sec` and `nanosec`, differ by some nanoseconds.
"""
OTHER_CLOCK_NS = 10**6 * NANOSECONDS
"""A stamp that differs more from the present is of another clock (for example wall time, while
states carry simulation time), and does not identify a state.
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


_WINDOW = 10_000


@dataclass(frozen=True)
class PacingStatistics:
    """Steps paced, their mean rate in Hz of wall time, whole periods missed, and the lateness of
    steps after their deadlines in s.

    Mean and percentiles of the lateness are over the last 10 000 steps, everything else is over
    the whole run, pauses included.
    """

    steps: int
    rate_hz: float
    missed: int
    jitter_mean_s: float
    jitter_p50_s: float
    jitter_p90_s: float
    jitter_p99_s: float
    jitter_max_s: float


class Pacer:
    """Deadlines `period_s / speed_factor` apart; speed_factor 0 means as fast as possible.

    Deadlines are absolute, so lateness does not accumulate. A step that starts more than one
    period late counts the missed whole periods and starts a new grid: the simulation falls behind
    wall time instead of hurrying through steps that no controller could answer.
    """

    def __init__(
        self,
        period_s: float,
        speed_factor: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.period_s, self._clock = period_s, clock
        self._lateness: deque[float] = deque(maxlen=_WINDOW)
        self._steps, self._missed, self._max = 0, 0, 0.0
        self._first = self._last = 0.0
        self.set_speed(speed_factor)

    @property
    def speed_factor(self) -> float:
        """Simulated seconds per wall second; 0 is as fast as possible."""
        return self._speed_factor

    def set_speed(self, speed_factor: float) -> None:
        """Change the speed and restart."""
        self._speed_factor = speed_factor
        self._interval = self.period_s / speed_factor if speed_factor > 0 else 0.0
        self.restart()

    def restart(self) -> None:
        """Set the first deadline one interval from now (after a start or pause)."""
        self._deadline = self._clock() + self._interval

    def remaining_s(self) -> float:
        """Seconds until the next step is due, 0 if it is."""
        return max(0.0, self._deadline - self._clock()) if self._interval else 0.0

    def tick(self) -> None:
        """Note that the due step starts now and set the next deadline."""
        self._last = now = self._clock()
        if self._steps == 0:
            self._first = now
        self._steps += 1
        if not self._interval:
            return
        late = max(0.0, now - self._deadline)
        self._lateness.append(late)
        self._max = max(self._max, late)
        missed = int(late / self._interval)
        self._missed += missed
        self._deadline = now + self._interval if missed else self._deadline + self._interval

    def statistics(self) -> PacingStatistics:
        """Statistics since construction."""
        late = np.fromiter(self._lateness, dtype=float) if self._lateness else np.zeros(1)
        elapsed = self._last - self._first
        rate = (self._steps - 1) / elapsed if elapsed > 0 else 0.0
        p50, p90, p99 = np.percentile(late, (50, 90, 99)).tolist()
        mean, largest = float(late.mean()), self._max
        return PacingStatistics(self._steps, rate, self._missed, mean, p50, p90, p99, largest)
