"""Time: step stamps in integer nanoseconds, and the pacing of steps by absolute deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nh_control.control.input_history import NANOSECONDS as NANOSECONDS

TOLERANCE_NS = 1_000
"""Maximum difference (ns) between a received stamp and the exact stamp of its step. Splitting
floating-point seconds into `sec` and `nanosec` can cause errors of a few nanoseconds.
"""
OTHER_CLOCK_NS = 10**6 * NANOSECONDS
"""A stamp that differs from the present time by more than this (ns) comes from another clock and
does not identify a state. For example, the stamp is in wall time, but states carry simulation
time.
"""


@dataclass(frozen=True)
class StepClock:
    """Simulation time `t_k = k h` in integer nanoseconds, with h in s. Each stamp is rounded
    separately, so rounding errors do not accumulate.
    """

    h: float

    def stamp(self, step: int) -> int:
        """Return a step's stamp in ns."""
        return round(step * self.h * NANOSECONDS)

    def step(self, stamp: int) -> int | None:
        """Return the step whose stamp is closest to `stamp` (ns), or None if the difference
        exceeds TOLERANCE_NS or a tenth of the time step, whichever is smaller.
        """
        step = round(stamp / (self.h * NANOSECONDS))
        allowed = min(TOLERANCE_NS, 0.1 * self.h * NANOSECONDS)
        return step if step >= 0 and abs(self.stamp(step) - stamp) <= allowed else None


_WINDOW = 10_000


@dataclass(frozen=True)
class PacingStatistics:
    """The number of paced steps, their mean rate (Hz) in wall time, the number of missed periods,
    and the delay (s) of steps relative to their deadlines: the largest, and those of the `recent`
    steps.

    The mean and the percentiles of the delay cover the last 10 000 steps. All other values cover
    the whole run, including pauses.
    """

    steps: int
    rate_hz: float
    missed: int
    jitter_max_s: float
    recent: np.ndarray

    @property
    def jitter_mean_s(self) -> float:
        """The mean delay (s)."""
        return float(self.recent.mean())

    @cached_property
    def jitter_percentiles_s(self) -> tuple[float, float, float]:
        """The 50th, 90th and 99th percentile (s) of the delay."""
        # sorting takes a quarter of the time of np.percentile
        parts = np.linspace(0, 1, len(self.recent))
        p50, p90, p99 = np.interp((0.5, 0.9, 0.99), parts, np.sort(self.recent)).tolist()
        return p50, p90, p99


class Pacer:
    """Deadlines `period_s / speed_factor` apart; speed_factor 0 means as fast as possible.

    Deadlines are absolute, so delays do not accumulate. If a step starts more than one period
    late, the missed whole periods are counted, and new deadlines start from the present time. The
    simulation then falls behind wall time instead of rushing through steps that no controller
    could answer.
    """

    def __init__(
        self,
        period_s: float,
        speed_factor: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.period_s, self._clock = period_s, clock
        # a ring buffer of delays: statistics are computed while the next step may become due
        self._lateness = np.zeros(_WINDOW)
        self._paced = 0
        self._steps, self._missed, self._max = 0, 0, 0.0
        self._first = self._last = 0.0
        self.set_speed(speed_factor)

    @property
    def speed_factor(self) -> float:
        """Simulated seconds per wall second; 0 means as fast as possible."""
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
        """Return the time (s) until the next step is due, or 0 if it is already due."""
        return max(0.0, self._deadline - self._clock()) if self._interval else 0.0

    def elapsed_s(self) -> float:
        """Return the simulated time (s) since the last step was due, or 0 without pacing."""
        return self.period_s - self.speed_factor * self.remaining_s() if self._interval else 0.0

    def tick(self) -> None:
        """Note that the step that is due starts now, and set the next deadline."""
        self._last = now = self._clock()
        if self._steps == 0:
            self._first = now
        self._steps += 1
        if not self._interval:
            return
        late = max(0.0, now - self._deadline)
        self._lateness[self._paced % _WINDOW] = late
        self._paced += 1
        self._max = max(self._max, late)
        # a step on time moves the deadline by exactly one interval; a step late by a period or
        # more starts new deadlines
        missed = int(late / self._interval)
        self._missed += missed
        self._deadline = now + self._interval if missed else self._deadline + self._interval

    def statistics(self) -> PacingStatistics:
        """Return statistics since construction."""
        recent = self._lateness[: max(1, min(self._paced, _WINDOW))].copy()
        elapsed = self._last - self._first
        # n steps span n - 1 intervals
        rate = (self._steps - 1) / elapsed if elapsed > 0 else 0.0
        return PacingStatistics(self._steps, rate, self._missed, self._max, recent)
