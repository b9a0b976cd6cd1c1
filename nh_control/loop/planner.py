"""Plans of predictive trackers, computed in a second thread beside the answers to states."""

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
"""Deadline of plans that means half a step."""
PLANNED, FOLLOWED, LINEAR = "commands_by_plan", "commands_by_earlier_plan", "commands_by_lqr"
"""The source of a command."""


@dataclass(frozen=True)
class _Work:
    """The work of the thread for step k of a tracker after a memory: preparation, or preparation
    and plan.
    """

    tracker: MpcTracker
    k: int
    memory: Plan | None
    outcome: Future[Any]

    def is_for(self, tracker: MpcTracker, k: int, memory: Plan | None) -> bool:
        """Whether the work is for this request; memories are the same if their plans and
        predictions are.
        """
        if self.tracker is not tracker or self.k != k or memory is None or self.memory is None:
            return False
        mine = self.memory
        return mine.arrays is memory.arrays and mine.predicted is memory.predicted


class Planner:
    """Answers of trackers. After a command is sent, `prepare` prepares the next step in a thread,
    whose state is then answered by the feedback phase.

    A plan that is not ready within `deadline_s` after the state is late: the state is answered
    without it, and the plan is used for later states. With a deadline None, in lock-step, every
    plan is awaited; if the planner is `patient`, the plan of a run's first state is awaited as
    well. `margins` of constraints are computed for commands. Trackers without plans answer
    directly. One thread owns a planner.
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
        """The last command's least margin, and how long its state waited for it."""
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
        """The tracker's command for step k at state x (nx)."""
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
        """Prepare the step after the last command, which has been sent."""
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
        until = np.inf if within_s is None else time.perf_counter() + within_s
        if self._late is not None:
            if not _wait(self._late.outcome, until):
                return self._without(tracker, k, x, memory)
            memory, self._late = _newer(memory, self._late, tracker), None
        begun, self._prepared = self._prepared, None
        if begun is None or not begun.is_for(tracker, k, memory):
            begun = _Work(tracker, k, memory, self._thread.submit(tracker.command, k, x, memory))
        if _wait(begun.outcome, until):
            done = begun.outcome.result()
            return tracker.feedback(done, x) if isinstance(done, Prepared) else done
        self._late = replace(begun, outcome=self._thread.submit(_finish, begun, x))
        return self._without(tracker, k, x, memory)

    def _without(self, tracker: MpcTracker, k: int, x: np.ndarray, memory: Plan | None) -> Command:
        nothing = Plan(k - 1, np.zeros(tracker.dsys.system.nrho))
        return tracker.late(k, x, nothing if memory is None else memory)

    def _count(self, x: np.ndarray, command: Command) -> None:
        plan = command.memory
        if plan is not None:
            made = LINEAR if not plan.arrays else FOLLOWED if plan.age else PLANNED
            self._counts[made] += 1
        if self._margins is not None and self._margins.constraints:
            margins = self._margins(x, command.u)
            self.margin = float(margins.min())
            self._least = margins if self._least is None else np.minimum(self._least, margins)

    def values(self) -> dict[str, object]:
        """Counts of the run, and times and least margins since the last call of `trouble`."""
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
        """The warning since the last call, "" without one."""
        counts = self._counts - self._before
        self._clear()
        if not (counts[FOLLOWED] or counts[LINEAR]):
            return ""
        return (
            f"of {counts.total()} commands {counts[FOLLOWED]} by an earlier plan and "
            f"{counts[LINEAR]} by LQR: plans are late or fail"
        )


def _wait(outcome: Future[Any], until: float) -> bool:
    """Whether there is an outcome before a time."""
    remaining_s = until - time.perf_counter()
    wait([outcome], None if remaining_s == np.inf else max(0.0, remaining_s))
    return outcome.done()


def _finish(begun: _Work, x: np.ndarray) -> Command:
    """The command and its plan, from work that began earlier in the same thread."""
    done = begun.outcome.result()
    return begun.tracker.feedback(done, x) if isinstance(done, Prepared) else done


def _newer(memory: Plan | None, late: _Work, tracker: MpcTracker) -> Plan | None:
    """The memory with the late plan, if this plan is newer and of this tracker."""
    try:
        made = late.outcome.result().memory
    except (StepFailed, ValueError) as failure:
        log.warning("no plan for step %d: %s", late.k, failure)
        return memory
    if late.tracker is not tracker or made is None or memory is None or not made.arrays:
        return memory
    since = memory.k - late.k
    if since < 0 or (memory.arrays and memory.age <= since):
        return memory
    return replace(memory, arrays=made.arrays, gains=made.gains, age=since)
