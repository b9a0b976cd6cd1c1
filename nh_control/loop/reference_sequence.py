"""The reference of a run, which may change: a sequence of legs, each with a tracker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.trackers import Tracker, moved
from nh_control.control.tracking import Command
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
        """The leg from step `start` of the sequence on, with the same tracker, along
        `plan(guidance, step of this leg)`. Raises their errors.
        """
        if self.guidance is None:
            raise ValueError("this leg has no guidance, which would plan the next one")
        guidance = plan(self.guidance, start - self.start)
        return ReferenceLeg(start, self.tracker.with_reference(guidance.reference), guidance)


def _answer(tracker: Tracker, k: int, x: ArrayLike, memory: Any) -> Command:
    return tracker.command(k, x, memory)


class ReferenceSequence:
    """A controller for a sequence of legs: at step k the tracker of the last leg that has started
    gives the command, or `answer(tracker, step of its leg, x, memory)` does. Finished legs are
    dropped. Plans of a tracker continue in the next leg.

    Not thread-safe: one thread owns a sequence; others may call `leg`.
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
        """Back to the first leg alone."""
        self._legs, self.step = [self._first], 0

    @property
    def trackers(self) -> list[Tracker]:
        """The trackers of all legs, and of the first leg, to which `reset` returns."""
        return [leg.tracker for leg in (self._first, *self._legs)]

    def exchange(self, trackers: Sequence[tuple[Tracker, Tracker]]) -> None:
        """Use other trackers, (old, new), from the next step on."""
        new = {id(old): tracker for old, tracker in trackers}

        def other(leg: ReferenceLeg) -> ReferenceLeg:
            return replace(leg, tracker=new.get(id(leg.tracker), leg.tracker))

        self._first, self._legs = other(self._first), [other(leg) for leg in self._legs]

    @property
    def first(self) -> int:
        """The first known step: the start of the present leg."""
        return self._legs[0].start

    def leg(self, k: int) -> ReferenceLeg:
        """The last leg that has started at step k; raises ValueError for a step before the present
        leg, because earlier legs are dropped.
        """
        for leg in reversed(self._legs):
            if leg.start <= k:
                return leg
        raise ValueError(
            f"the present leg begins at step {self._legs[0].start}, asked for step {k}"
        )

    def target(self, k: int) -> np.ndarray:
        """Reference state at step k."""
        leg = self.leg(k)
        return leg.tracker.target(k - leg.start)

    def is_following(self, k: int) -> bool:
        """Whether step k follows a reference, and no reference has ended in motion before."""
        leg = self.leg(k)
        return leg.tracker.is_following(k - leg.start)

    def command(self, k: int, x: ArrayLike, memory: Any = None) -> Command:
        """Command for step k at state x (nx); raises ValueError where it is not finite."""
        self.step = k
        leg = self.leg(k)
        command = self._answer(leg.tracker, k - leg.start, x, moved(memory, -leg.start))
        if not (all_finite(command.u) and all_finite(command.error)):
            raise ValueError(
                f"{self.dsys}: no finite command for step {k}: the state {np.asarray(x).tolist()} "
                f"is too far from the reference"
            )
        return replace(command, memory=moved(command.memory, leg.start))

    def begin(self, tracker: Tracker, guidance: Guidance | None = None) -> ReferenceLeg:
        """Follow another reference from its start, at the next step (at step 0 if that is the
        present step), instead of all others, also after a reset; returns the leg.
        """
        self._first = ReferenceLeg(0, tracker, guidance)
        if self.step == 0:
            self._legs = [self._first]
        else:
            self.add(ReferenceLeg(self.step + 1, tracker, guidance))
        return self._legs[-1]

    def add(self, leg: ReferenceLeg) -> bool:
        """Follow the leg from its start on, instead of all legs that start then or later. Returns
        False, without any change, if it should have started already.
        """
        if leg.start <= self.step:
            return False
        present = self.leg(self.step).start
        self._legs = [other for other in self._legs if present <= other.start < leg.start] + [leg]
        return True
