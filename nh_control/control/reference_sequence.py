"""Changes of the reference during a run: a sequence of legs, and a replanner that plans the next
leg in a thread beside the control loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.guidance import Guidance
from nh_control.control.trackers import Tracker, moved
from nh_control.control.tracking import Command
from nh_control.control.vehicle_guidance import VehicleGuidance
from nh_control.discrete.results import StepFailed
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics.expressions import all_finite

LEAD_S = 1.0
"""Lead time of the first plan, before the duration of planning is known."""
ATTEMPTS = 5
"""Attempts to plan a leg that is not ready in time, each with a longer lead time."""


@dataclass(frozen=True)
class ReferenceLeg:
    """A `tracker` whose reference begins at step `start` of the sequence, and the `guidance` that
    planned it, if any.
    """

    start: int
    tracker: Tracker
    guidance: Guidance | VehicleGuidance | None = None

    @property
    def end(self) -> int:
        """Step of the sequence at which the reference ends."""
        return self.start + len(self.tracker.reference)

    def next(self, start: int, goal: Callable[[Any, int], Trajectory]) -> ReferenceLeg:
        """The leg from step `start` of the sequence on, with the same tracker: a copy of this
        leg's guidance plans it for `goal(guidance, step of this leg)`. Raises their errors.
        """
        if self.guidance is None:
            raise ValueError("this leg has no guidance, which would plan the next one")
        guidance = copy(self.guidance)
        return ReferenceLeg(
            start, self.tracker.with_reference(goal(guidance, start - self.start)), guidance
        )


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
        guidance: Guidance | VehicleGuidance | None = None,
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

    def begin(
        self, tracker: Tracker, guidance: Guidance | VehicleGuidance | None = None
    ) -> ReferenceLeg:
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


class Replanner:
    """Plans legs of a sequence in a thread of its own; the newest goal replaces one that is still
    being planned.

    `plan(k)` of a goal makes the leg that starts at step k. Its outcome comes through `post`, in
    the thread that owns the sequence: `accepted(what, leg)` or
    `refused(what, reason)`. A leg that is ready too late is planned again, further ahead.
    """

    def __init__(
        self,
        sequence: ReferenceSequence,
        post: Callable[[Callable[[], None]], None],
        accepted: Callable[[str, ReferenceLeg], None],
        refused: Callable[[str, str], None],
        lead_s: float = LEAD_S,
    ):
        self._sequence, self._post = sequence, post
        self._accepted, self._refused = accepted, refused
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="replanner")
        self._lead = max(1, round(lead_s / sequence.dsys.h))
        self._goal = 0
        self._planned: Future[ReferenceLeg] | None = None

    def request(self, what: str, plan: Callable[[int], ReferenceLeg]) -> None:
        """Plan a leg; `what` names it for people."""
        self.forget()
        self._submit(what, plan, attempt=1)

    def forget(self) -> None:
        """Drop the leg that is being planned, and legs that wait."""
        self._goal += 1
        if self._planned is not None:
            self._planned.cancel()

    def close(self) -> None:
        """Wait until nothing is planned any more."""
        self.forget()
        self._executor.shutdown(cancel_futures=True)

    def _submit(self, what: str, plan: Callable[[int], ReferenceLeg], attempt: int) -> None:
        goal, asked = self._goal, self._sequence.step
        self._planned = planned = self._executor.submit(plan, asked + self._lead)
        planned.add_done_callback(
            lambda done: self._post(
                partial(self._on_planned, goal, what, plan, attempt, asked, done)
            )
        )

    def _on_planned(
        self,
        goal: int,
        what: str,
        plan: Callable[[int], ReferenceLeg],
        attempt: int,
        asked: int,
        planned: Future[ReferenceLeg],
    ) -> None:
        if goal != self._goal:
            return
        try:
            leg = planned.result()
        except (ValueError, StepFailed) as reason:
            self._refused(what, str(reason))
            return
        except Exception as error:  # who asked hears of it, and then the thread's owner
            self._refused(what, f"{type(error).__name__}: {error}")
            raise
        passed = self._sequence.step - asked
        if self._sequence.add(leg):
            self._lead = max(1, 2 * passed)
            self._accepted(what, leg)
        elif attempt < ATTEMPTS:
            self._lead = 2 * passed  # at least the lead, or it would not be late
            self._submit(what, plan, attempt + 1)
        else:
            self._refused(
                what,
                f"planning took {passed} steps, longer than the {self._lead} steps it was ahead",
            )
