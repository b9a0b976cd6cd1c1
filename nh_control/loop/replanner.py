"""A thread that plans the next leg of a sequence while the control loop runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from nh_control.discrete.results import StepFailed
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence

LEAD_S = 1.0
"""Lead time (s) of the first plan, before the duration of planning is known."""
ATTEMPTS = 5
"""Maximum number of attempts to plan a leg that is not ready in time. Each attempt has a longer
lead time.
"""


class Replanner:
    """Plans legs of a sequence in a separate thread. A new goal replaces one that is still being
    planned.

    A goal's `plan(k)` returns the leg that starts at step k. `post` passes the outcome to the
    thread that uses the sequence, as a call to `accepted(what, leg)` or `refused(what, reason)`. A
    leg that is ready too late is planned again with a longer lead time.
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
        """Plan a leg; `what` describes it in messages."""
        self.forget()
        self._submit(what, plan, attempt=1)

    def forget(self) -> None:
        """Discard the leg that is being planned, and all legs that wait for it."""
        self._goal += 1
        if self._planned is not None:
            self._planned.cancel()

    def close(self) -> None:
        """Discard all plans and wait until the thread has ended."""
        self.forget()
        self._executor.shutdown(cancel_futures=True)

    def _submit(self, what: str, plan: Callable[[int], ReferenceLeg], attempt: int) -> None:
        goal, requested_at = self._goal, self._sequence.step
        self._planned = planned = self._executor.submit(plan, requested_at + self._lead)
        planned.add_done_callback(
            lambda done: self._post(
                partial(self._on_planned, goal, what, plan, attempt, requested_at, done)
            )
        )

    def _on_planned(
        self,
        goal: int,
        what: str,
        plan: Callable[[int], ReferenceLeg],
        attempt: int,
        requested_at: int,
        planned: Future[ReferenceLeg],
    ) -> None:
        # the outcome of an earlier goal
        if goal != self._goal:
            return
        try:
            leg = planned.result()
        except (ValueError, StepFailed) as reason:
            self._refused(what, str(reason))
            return
        except Exception as error:  # report it to the sender of the goal, then raise it here
            self._refused(what, f"{type(error).__name__}: {error}")
            raise
        # the lead of the next plan is twice the time that planning took
        passed = self._sequence.step - requested_at
        if self._sequence.add(leg):
            self._lead = max(1, 2 * passed)
            self._accepted(what, leg)
        elif attempt < ATTEMPTS:
            self._lead = 2 * passed  # passed >= lead, because the leg was late
            self._submit(what, plan, attempt + 1)
        else:
            self._refused(
                what,
                f"planning took {passed} steps, longer than its lead of {self._lead} steps",
            )
