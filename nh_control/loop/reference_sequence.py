"""The reference of a run as a sequence of legs, each with a tracker. The sequence may change
during the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.reference_tracker import Command
from nh_control.control.trackers import Tracker, moved
from nh_control.numerics.expressions import all_finite
from nh_control.scenarios.guidance import Guidance


@dataclass(frozen=True)
class ReferenceLeg:
    """A `tracker` whose reference begins at step `start` of the sequence, and the `guidance` that
    planned it, if any.
    """

    start: int
    tracker: Tracker
    guidance: Guidance | None = None

    @property
    def end(self) -> int:
        """Step of the sequence at which the reference ends."""
        return self.start + len(self.tracker.reference)

    def next(self, start: int, plan: Callable[[Guidance, int], Guidance]) -> ReferenceLeg:
        """Return the leg that begins at step `start` of the sequence, with the same tracker, along
        `plan(guidance, step of this leg)`. Raises the same errors as the plan and the tracker.
        """
        if self.guidance is None:
            raise ValueError("this leg has no guidance that could plan the next leg")
        guidance = plan(self.guidance, start - self.start)
        return ReferenceLeg(start, self.tracker.with_reference(guidance.reference), guidance)


def _answer(tracker: Tracker, k: int, x: ArrayLike, memory: Any) -> Command:
    return tracker.command(k, x, memory)


class ReferenceSequence:
    """A controller for a sequence of legs. At step k, the tracker of the last leg that has started
    computes the command, directly or through `answer(tracker, step of its leg, x, memory)`.
    Finished legs are dropped. A tracker's plans continue in the next leg.

    Not thread-safe: use each sequence in one thread; other threads may call `leg`.
    """

    def __init__(
        self,
        tracker: Tracker,
        guidance: Guidance | None = None,
        answer: Callable[[Tracker, int, ArrayLike, Any], Command] = _answer,
    ):
        self.dsys, self._first = tracker.dsys, ReferenceLeg(0, tracker, guidance)
        self._answer = answer
        self.reset()

    def reset(self) -> None:
        """Return to the first leg and drop all other legs."""
        self._legs, self.step = [self._first], 0

    @property
    def trackers(self) -> list[Tracker]:
        """The trackers of all legs, including the first leg, to which `reset` returns."""
        return [leg.tracker for leg in (self._first, *self._legs)]

    def exchange(self, trackers: Sequence[tuple[Tracker, Tracker]]) -> None:
        """Replace trackers, given as (old, new) pairs. This takes effect at the next step."""
        new = {id(old): tracker for old, tracker in trackers}

        def other(leg: ReferenceLeg) -> ReferenceLeg:
            return replace(leg, tracker=new.get(id(leg.tracker), leg.tracker))

        self._first, self._legs = other(self._first), [other(leg) for leg in self._legs]

    @property
    def first(self) -> int:
        """The first known step, which is the start of the present leg."""
        return self._legs[0].start

    def leg(self, k: int) -> ReferenceLeg:
        """Return the last leg that has started at step k. Raises ValueError for a step before the
        present leg, because earlier legs are dropped.
        """
        for leg in reversed(self._legs):
            if leg.start <= k:
                return leg
        raise ValueError(
            f"the present leg begins at step {self._legs[0].start}, but step {k} was requested"
        )

    def target(self, k: int) -> np.ndarray:
        """Return the reference state at step k."""
        leg = self.leg(k)
        return leg.tracker.target(k - leg.start)

    def is_following(self, k: int) -> bool:
        """Whether a reference is followed at step k. This is false after a reference has ended in
        motion.
        """
        leg = self.leg(k)
        return leg.tracker.is_following(k - leg.start)

    def command(self, k: int, x: ArrayLike, memory: Any = None) -> Command:
        """Return the command for step k at state x (nx). Raises ValueError if the command is not
        finite.
        """
        self.step = k
        leg = self.leg(k)
        # trackers and memories count steps from the start of their leg
        command = self._answer(leg.tracker, k - leg.start, x, moved(memory, -leg.start))
        if not (all_finite(command.u) and all_finite(command.error)):
            raise ValueError(
                f"{self.dsys}: found no finite command for step {k}: the state "
                f"{np.asarray(x).tolist()} is too far from the reference"
            )
        if command.memory is None:
            return command
        return replace(command, memory=moved(command.memory, leg.start))

    def begin(self, tracker: Tracker, guidance: Guidance | None = None) -> ReferenceLeg:
        """Follow only a new reference. It starts at the next step, or at step 0 if that is the
        present step. A reset returns to this reference. Returns the new leg.
        """
        self._first = ReferenceLeg(0, tracker, guidance)
        if self.step == 0:
            self._legs = [self._first]
        else:
            self.add(ReferenceLeg(self.step + 1, tracker, guidance))
        return self._legs[-1]

    def replace(self, leg: ReferenceLeg) -> None:
        """Follow only this leg, which may already have begun, until a reset."""
        self._legs = [leg]

    def add(self, leg: ReferenceLeg) -> bool:
        """Follow the leg once it starts. It replaces all legs that start at the same step or
        later. Returns False, and changes nothing, if the leg should already have started.
        """
        if leg.start <= self.step:
            return False
        # drop finished legs, and those that would start with this one or after it
        present = self.leg(self.step).start
        self._legs = [other for other in self._legs if present <= other.start < leg.start] + [leg]
        return True
