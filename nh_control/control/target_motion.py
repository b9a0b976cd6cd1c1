"""The motion of targets between commands. Rates are taken from the commands or from successive
targets.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

APART_S = 0.1
"""Maximum time (s) between successive targets of the same motion."""
OFFSETS = 50
"""Number of most recent commands. The fastest of them determines the offset between the clocks."""
DIFFERS = 0.4
"""Maximum relative difference between a rate and its prediction. A larger difference is a jump of
the target, or an error in the stamps, because a clock of simulated time advances in steps.
"""
SHORTEST = 0.4
"""Fraction of the last interval below which the next interval is too short for a rate. Clocks of
simulated time advance in steps, and a late controller catches up, so rates over such intervals
would have no bound.
"""
OUTLASTS = 2.0
"""Number of intervals after which a motion stops if there is no new target."""


class Target(NamedTuple):
    """Targets (n) of joints, with their first and second time derivatives."""

    value: np.ndarray
    rate: np.ndarray
    acceleration: np.ndarray

    @classmethod
    def at_rest(cls, value: np.ndarray) -> Target:
        """Targets that do not move."""
        return cls(value, np.zeros(len(value)), np.zeros(len(value)))

    def after(self, time: float) -> Target:
        """The targets after a given time (s) with constant accelerations."""
        rate = self.rate + time * self.acceleration
        return Target(self.value + time * (self.rate + rate) / 2, rate, self.acceleration)


class TargetMotion:
    """Targets (n) that are sampled by commands. `take` adds a command; `at` returns the targets at
    a given time.

    Rates are those of the commands, or differences between successive targets divided by
    differences between the commands' stamps. Accelerations are the median of three values: the
    last difference of successive rates, the previous one, and their extrapolation. A rate that
    differs by more than DIFFERS both from the prediction of the motion and from the previous rate
    is replaced by the prediction, so a target that jumps has no rate. Targets do not move if there
    is no stamp (0), or if the time between successive targets exceeds APART_S. If a target follows
    after less than the fraction SHORTEST of the last interval, it replaces the previous target.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Delete all commands."""
        self._stamp, self._stamped, self._interval = 0.0, 0.0, 0.0
        self._time, self._taken = 0.0, 0.0
        self._target: Target | None = None
        self._slopes: list[np.ndarray] = []
        self._changes: list[np.ndarray] = []
        self._offsets: deque[float] = deque(maxlen=OFFSETS)

    def take(
        self, value: np.ndarray, rate: np.ndarray, stamp: float, time: float, answered: bool
    ) -> None:
        """Add the targets (n) of a command and their rates (n), which are NaN if unknown.

        `stamp` (s) is the stamp of the command, and `time` (s) is the current time. If `answered`,
        the stamp is a time on the plant's clock. Otherwise, the fastest of the last commands
        determines the offset between the clocks. If different targets have the same stamp, the
        second target belongs to a time one interval later.
        """
        before = self._target
        again = before is not None and stamp == self._stamped and (value != before.value).any()
        self._stamped = original_stamp = stamp
        if again and stamp == self._stamp > 0:
            # the clock advances in steps: the second target with this stamp is one interval later
            stamp += self._interval
        interval = stamp - self._stamp
        if stamp <= 0 or before is None or not -self._interval <= interval <= APART_S:
            self._offsets.clear()
            target, self._slopes = Target.at_rest(value), []
        elif interval <= SHORTEST * self._interval:
            # the targets are too close in time for a rate: replace the last target
            target, stamp = before._replace(value=value), self._stamp
        else:
            target = self._moving(before, value, rate, interval)
            self._interval = interval
        known = np.isfinite(rate)
        self._target = target._replace(rate=np.where(known, rate, target.rate))
        # time = stamp + offset + delay of the command: the fastest command has the smallest delay
        self._offsets.append(time - original_stamp)
        self._taken, self._stamp = time, stamp
        self._time = stamp if answered else stamp + min(self._offsets)

    def _moving(
        self, before: Target, value: np.ndarray, rate: np.ndarray, interval: float
    ) -> Target:
        """The target `interval` s after the target `before`.

        `_slopes` contains the last rates at the midpoint of an interval: the rate of the motion,
        and the rate of the targets. `_changes` contains the last two rates of change of the
        motion's rate.
        """
        known = np.isfinite(rate)
        slope = np.where(known, rate, (value - before.value) / interval)
        if not self._slopes:
            self._slopes = [slope, slope]
            self._changes = []
            return Target.at_rest(value)
        last, raw = self._slopes
        expected = last + interval * before.acceleration
        # the rate agrees with the prediction, or begins a new motion, or is a jump
        follows = self._is_near(slope, expected)
        begins = ~follows & self._is_near(slope, raw)
        change = np.where(follows, (slope - last) / interval, before.acceleration)
        change = np.where(begins, (slope - raw) / interval, change)
        earlier = [np.where(begins, change, previous) for previous in self._changes]
        first, second = earlier or [change, change]
        self._changes = [second, change]
        # median of the last change, the previous one, and the extrapolation of the last two
        acceleration = np.median([change, second, 2 * second - first], axis=0)
        slope_of_motion = np.where(follows | begins, slope, expected)
        stands = (slope == 0) & (value == before.value)
        self._slopes = [np.where(stands, 0.0, slope_of_motion), slope]
        # differences are rates at the midpoint; extrapolate them to the end of the interval
        after = slope_of_motion + np.where(known, 0.0, acceleration * interval / 2)
        return _where(stands, Target.at_rest(value), Target(value, after, acceleration))

    @staticmethod
    def _is_near(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Whether the relative difference between rates (n) is at most DIFFERS."""
        larger = np.maximum(np.abs(a), np.abs(b))
        near: np.ndarray = np.abs(a - b) <= DIFFERS * larger
        return near

    def at(self, time: float, applied: np.ndarray) -> Target:
        """The targets at a given time (s). Values in `applied` (n) that differ from the last
        command do not move.
        """
        last = self._target
        if last is None or time - self._taken > OUTLASTS * self._interval:
            return Target.at_rest(applied)
        moving = last.after(time - self._time)
        return _where(applied == last.value, moving, Target.at_rest(applied))


def _where(mask: np.ndarray, first: Target, second: Target) -> Target:
    """The first targets for joints where the mask (n) is true, and the second targets for the
    others.
    """
    return Target(
        np.where(mask, first.value, second.value),
        np.where(mask, first.rate, second.rate),
        np.where(mask, first.acceleration, second.acceleration),
    )
