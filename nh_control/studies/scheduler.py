"""The scheduler of a study. It divides the missing runs into tasks, submits them to workers, and
repeats the tasks of lost workers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from nh_control.studies.metrics import metrics_of
from nh_control.studies.pools import CHECK_START, WorkerPool, WorkersLost
from nh_control.studies.store import Store
from nh_control.studies.study import Study
from nh_control.studies.worker import FAILED, StudyRun

TASK_S, LARGEST = 0.5, 2000
"""Target duration of a task in s, and the maximum number of runs in a task. Tasks are long enough
that submitting them takes little time, and short enough that a lost worker loses little work.
"""
AHEAD = 3
"""Number of tasks in progress per worker, so that no worker waits."""
WORKER_LOST = "its process ended without an error message, also when no other task was in progress"


def run_missing(
    store: Store,
    workers: WorkerPool,
    progress: Callable[[int], None] = lambda done: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Perform all runs that the store lacks, and write them as they arrive.

    `progress` receives the number of finished runs. If `stop()` is true, the study stops early,
    after the tasks in progress. Returns whether all runs are in the store. Raises an error that
    prevents all runs. The store then keeps the finished runs.
    """
    done = len(store)
    for runs in results(store.study, store.missing(), workers, stop):
        store.add(runs)
        for _ in runs:
            done += 1
            progress(done)
    return done == store.study.total


def results(
    study: Study, indices: Iterator[int], workers: WorkerPool, stop: Callable[[], bool]
) -> Iterator[list[StudyRun]]:
    """Yield the finished runs with the given indices, each run once. No new runs start once
    `stop()` is true.
    """
    tasks = _TaskQueue(indices)
    pending: dict[Any, list[int]] = {}
    while True:
        # Submit tasks while workers are free, but none once stop() is true.
        free = 0 if stop() else tasks.capacity(workers.count) - len(pending)
        while free > 0 and (chunk := tasks.next()):
            pending[workers.submit(study, chunk)] = chunk
            free = tasks.capacity(workers.count) - len(pending)
        if not pending:
            return
        # Collect the finished tasks. Tasks of lost workers go back to the queue.
        alone = len(pending) == 1
        for future in workers.wait_any(list(pending)):
            chunk = pending.pop(future)
            runs = workers.runs(future)
            if runs is not None:
                yield tasks.record(runs)
            elif failed := tasks.give_back(chunk, alone):
                yield [_failed_run(study, index) for index in failed]


class _TaskQueue:
    """Divides indices into tasks of about TASK_S, based on the measured time of the last runs.

    The indices in a lost task become suspects. Each suspect runs alone, while no other task is in
    progress, so the queue finds the run that kills its process.
    """

    def __init__(self, indices: Iterator[int]):
        self._indices, self._size = indices, 1
        self._runs = 0
        self._suspects: deque[int] = deque()
        self._suspected = False  # whether the last task was a suspect
        self._losses: Counter[int] = Counter()

    def capacity(self, workers: int) -> int:
        """The number of tasks that may be in progress."""
        return 1 if self._suspects or self._suspected else AHEAD * workers

    def next(self) -> list[int]:
        """Return the next task, or an empty list if no indices are left."""
        self._suspected = bool(self._suspects)
        if self._suspected:
            return [self._suspects.popleft()]
        return list(islice(self._indices, self._size))

    def record(self, runs: list[StudyRun]) -> list[StudyRun]:
        """Return the finished runs of a task. Their time determines the size of the next tasks."""
        self._runs += len(runs)
        # runs in TASK_S seconds = TASK_S / (mean time of a run)
        # Grow at most fourfold, so that one fast run does not cause a very long task.
        fitting = int(TASK_S * len(runs) / max(sum(run.wall_s for run in runs), 1e-9))
        self._size = max(1, min(LARGEST, 4 * self._size, fitting))
        return runs

    def give_back(self, indices: Sequence[int], alone: bool) -> list[int]:
        """Take back a lost task, and return the indices that have failed for good."""
        # A run that was lost twice while alone kills its process. All others get another attempt.
        if alone and len(indices) == 1:
            self._losses[indices[0]] += 1
            if self._losses[indices[0]] > 1:
                if not self._runs:
                    raise WorkersLost(
                        f"every process ends without an error message before run {indices[0]} is "
                        f"finished; {CHECK_START}"
                    )
                return list(indices)
        self._suspects.extend(indices)
        return []


def _failed_run(study: Study, index: int) -> StudyRun:
    metrics = (FAILED,) * len(metrics_of(study))
    return StudyRun(
        index, study.point(index), study.run_seed(index), metrics, False, 0, 0.0, WORKER_LOST
    )
