"""A thread beside the control loop that plans the next leg of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from nh_control.discrete.results import StepFailed
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence

LEAD_S = 1.0
"""Lead time of the first plan, before the duration of planning is known."""
ATTEMPTS = 5
"""Attempts to plan a leg that is not ready in time, each with a longer lead time."""


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
