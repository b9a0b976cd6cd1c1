"""Computes the plans of predictive trackers in a second thread while states are answered."""

from __future__ import annotations

import logging
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import Command
from nh_control.control.constraint_margins import ConstraintMargins
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.optimal.plan import Plan, Prepared
from nh_control.control.trackers import Tracker, is_late
from nh_control.discrete.results import StepFailed

log = logging.getLogger(__name__)

HALF_A_STEP = -1.0
"""The plan deadline that stands for half a step."""
PLANNED, FOLLOWED, LINEAR = "commands_by_plan", "commands_by_earlier_plan", "commands_by_lqr"
"""The source of a command."""


@dataclass(frozen=True)
class _Work:
    """The thread's work for step k of a tracker with the given memory: a preparation, or a
    preparation and a plan.
    """

    tracker: MpcTracker
    k: int
    memory: Plan | None
    outcome: Future[Any]

    def is_for(self, tracker: MpcTracker, k: int, memory: Plan | None) -> bool:
        """Whether the work belongs to the given request. Two memories are the same if they have
        the same plans and predictions.
        """
        if self.tracker is not tracker or self.k != k or memory is None or self.memory is None:
            return False
        mine = self.memory
        return mine.arrays is memory.arrays and mine.predicted is memory.predicted


class Planner:
    """Computes the commands of trackers. After a command is sent, `prepare` prepares the next step
    in a second thread. The feedback phase then answers the state at that step.

    A plan is late if it is not ready within `deadline_s` after its state. The state is then
    answered without the plan, and the plan is used for later states. With a deadline of None, for
    lock-step, the planner waits for every plan. A `patient` planner waits for the plan for the
    first state of a run. The planner computes the constraint `margins` at each command. Trackers
    without plans answer directly. Use each planner in one thread only.
    """

    def __init__(
        self,
        deadline_s: float | None,
        patient: bool = True,
        margins: ConstraintMargins | None = None,
    ):
        self._deadline_s, self._patient, self._margins = deadline_s, patient, margins
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="planner")
        self._prepared: _Work | None = None
        self._late: _Work | None = None
        self._last: tuple[MpcTracker, Plan] | None = None
        self._counts: Counter[str] = Counter()
        self.margin, self.solve_s = np.nan, np.nan
        """The smallest margin at the last command, and how long (s) the state waited for that
        command.
        """
        self.plan: Plan | None = None
        """The last command's plan."""
        self._clear()

    def _clear(self) -> None:
        self._times_s: dict[str, list[float]] = {"prepare": [], "answer": []}
        self._least: np.ndarray | None = None
        self._before = Counter(self._counts)

    def close(self) -> None:
        """Stop planning."""
        self._thread.shutdown(cancel_futures=True)

    def answer(self, tracker: Tracker, k: int, x: ArrayLike, memory: Any) -> Command:
        """Return the tracker's command for step k at state x (nx)."""
        if not isinstance(tracker, MpcTracker):
            return tracker.command(k, x, memory)
        start, x = time.perf_counter(), np.array(x, dtype=float)
        command = self._answer(tracker, k, x, memory)
        self.solve_s = time.perf_counter() - start
        self._times_s["answer"].append(self.solve_s)
        self.plan = plan = command.memory
        self._last = None if plan is None else (tracker, plan)
        self._count(x, command)
        return command

    def prepare(self) -> None:
        """Prepare the step after the last command, once that command has been sent."""
        if self._last is None:
            return
        (tracker, memory), self._last = self._last, None
        k = memory.k + 1
        if self._late is None and not is_late(tracker, k):
            outcome = self._thread.submit(self._prepare, tracker, memory)
            self._prepared = _Work(tracker, k, memory, outcome)

    def _prepare(self, tracker: MpcTracker, memory: Plan) -> Prepared:
        start = time.perf_counter()
        prepared = tracker.prepare(memory)
        self._times_s["prepare"].append(time.perf_counter() - start)
        return prepared

    def _answer(self, tracker: MpcTracker, k: int, x: np.ndarray, memory: Plan | None) -> Command:
        if memory is not None and is_late(tracker, k):
            return tracker.late(k, x, memory)
        within_s = np.inf if self._patient and memory is None else self._deadline_s
        # None means no time limit
        until = np.inf if within_s is None else time.perf_counter() + within_s
        if self._late is not None:
            # the thread is still computing an earlier plan and begins nothing new before it
            # finishes
            if not _wait(self._late.outcome, until):
                return self._without(tracker, k, x, memory)
            memory, self._late = _newer(memory, self._late, tracker), None
        begun, self._prepared = self._prepared, None
        # nothing was prepared, or it was for another step: prepare and plan in one go
        if begun is None or not begun.is_for(tracker, k, memory):
            begun = _Work(tracker, k, memory, self._thread.submit(tracker.command, k, x, memory))
        if _wait(begun.outcome, until):
            done = begun.outcome.result()
            return tracker.feedback(done, x) if isinstance(done, Prepared) else done
        # the plan is late: let the thread finish it for a later state
        self._late = replace(begun, outcome=self._thread.submit(_finish, begun, x))
        return self._without(tracker, k, x, memory)

    def _without(self, tracker: MpcTracker, k: int, x: np.ndarray, memory: Plan | None) -> Command:
        nothing = Plan(k - 1, np.zeros(tracker.dsys.system.nrho))
        return tracker.late(k, x, nothing if memory is None else memory)

    def _count(self, x: np.ndarray, command: Command) -> None:
        plan = command.memory
        if plan is not None:
            source = LINEAR if not plan.arrays else FOLLOWED if plan.age else PLANNED
            self._counts[source] += 1
        if self._margins is not None and self._margins.constraints:
            margins = self._margins(x, command.u)
            self.margin = float(margins.min())
            self._least = margins if self._least is None else np.minimum(self._least, margins)

    def values(self) -> dict[str, object]:
        """Return counts for the run, and times and smallest margins since the last call to
        `trouble`.
        """
        plan = self.plan
        sources = (PLANNED, FOLLOWED, LINEAR)
        report: dict[str, object] = {name: self._counts[name] for name in sources}
        if plan is not None:
            report |= {"plan_age_steps": plan.age if plan.arrays else -1, "plans_late": plan.late}
            report |= {"plans_failed": plan.failures, "plans_outdated": plan.outdated}
        for name, times_s in self._times_s.items():
            if times_s:
                report[f"{name}_mean_ms"] = 1e3 * float(np.mean(times_s))
                report[f"{name}_max_ms"] = 1e3 * float(np.max(times_s))
        if self._least is not None and self._margins is not None:
            named = zip(self._margins.names, self._least)
            report |= {f"margin: {name}": float(margin) for name, margin in named}
        return report

    def trouble(self) -> str:
        """Return a warning about the time since the last call, or "" without one."""
        # the difference of two Counters keeps only positive counts
        counts = self._counts - self._before
        self._clear()
        if not (counts[FOLLOWED] or counts[LINEAR]):
            return ""
        return (
            f"of {counts.total()} commands, {counts[FOLLOWED]} followed an earlier plan and "
            f"{counts[LINEAR]} came from LQR: plans are late or fail"
        )


def _wait(outcome: Future[Any], until: float) -> bool:
    """Wait for an outcome until a given time. Returns whether it is available."""
    remaining_s = until - time.perf_counter()
    wait([outcome], None if remaining_s == np.inf else max(0.0, remaining_s))
    return outcome.done()


def _finish(begun: _Work, x: np.ndarray) -> Command:
    """Return the command and its plan from work that began earlier in the same thread."""
    done = begun.outcome.result()
    return begun.tracker.feedback(done, x) if isinstance(done, Prepared) else done


def _newer(memory: Plan | None, late: _Work, tracker: MpcTracker) -> Plan | None:
    """Return the memory, with the late plan if that plan is newer and comes from the tracker."""
    try:
        newer = late.outcome.result().memory
    except (StepFailed, ValueError) as failure:
        log.warning("no plan for step %d: %s", late.k, failure)
        return memory
    if late.tracker is not tracker or newer is None or memory is None or not newer.arrays:
        return memory
    # steps from the late plan's start to the memory's start: the age that the plan would have
    since = memory.k - late.k
    if since < 0 or (memory.arrays and memory.age <= since):
        return memory
    return replace(memory, arrays=newer.arrays, gains=newer.gains, age=since)
