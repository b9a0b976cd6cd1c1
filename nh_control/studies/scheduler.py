"""The scheduler of a study: it divides the missing runs into tasks, gives them to workers, and
repeats the tasks of lost workers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from nh_control.studies.pools import CHECK_START, WorkerPool, WorkersLost
from nh_control.studies.store import Store
from nh_control.studies.study import Study
from nh_control.studies.worker import FAILED, Run, metrics_of

TASK_S, LARGEST = 0.5, 2000
"""Target duration of a task in s, and the largest number of runs in a task. Tasks are long enough
that submitting them costs little, and short enough that little work is lost with a worker.
"""
AHEAD = 3
"""Tasks in progress for every worker, so that no worker waits."""
WORKER_LOST = "its process ended without an error message, also when no other task was in progress"


def run_missing(
    store: Store,
    workers: WorkerPool,
    progress: Callable[[int], None] = lambda done: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Make all runs that the store lacks and write them as they arrive.

    `progress` receives the number of finished runs. `stop()` ends the study early, after the tasks
    in progress. Returns whether all runs are in the store. Raises an error that prevents all runs;
    the store keeps the finished runs.
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
) -> Iterator[list[Run]]:
    """Yield finished runs of these indices, each run once; no new runs start after `stop()`."""
    tasks = _TaskQueue(indices)
    pending: dict[Any, list[int]] = {}
    while True:
        # Submit tasks while there is room; none after stop().
        room = 0 if stop() else tasks.room(workers.count) - len(pending)
        while room > 0 and (chunk := tasks.next()):
            pending[workers.submit(study, chunk)] = chunk
            room = tasks.room(workers.count) - len(pending)
        if not pending:
            return
        # Collect the tasks that have ended; tasks of lost workers go back to the queue.
        alone = len(pending) == 1
        for future in workers.wait_any(list(pending)):
            chunk = pending.pop(future)
            runs = workers.runs(future)
            if runs is not None:
                yield tasks.record(runs)
            elif failed := tasks.give_back(chunk, alone):
                yield [_failed_run(study, index) for index in failed]


class _TaskQueue:
    """Divides indices into tasks of about TASK_S by the measured time of the last runs.

    The indices of a lost task become suspects: each of them runs in a task of its own while no
    other task is in progress. So the queue finds the run that ends its process.
    """

    def __init__(self, indices: Iterator[int]):
        self._indices, self._size = indices, 1
        self._runs = 0
        self._suspects: deque[int] = deque()
        self._suspected = False  # whether the last task was a suspect
        self._losses: Counter[int] = Counter()

    def room(self, workers: int) -> int:
        """The number of tasks that may be in progress."""
        return 1 if self._suspects or self._suspected else AHEAD * workers

    def next(self) -> list[int]:
        """Return the next task, or an empty list at the end."""
        self._suspected = bool(self._suspects)
        if self._suspected:
            return [self._suspects.popleft()]
        return list(islice(self._indices, self._size))

    def record(self, runs: list[Run]) -> list[Run]:
        """Return the finished runs of a task; their time sets the size of the next tasks."""
        self._runs += len(runs)
        # Grow at most fourfold, so that one fast run does not cause a very long task.
        fitting = int(TASK_S * len(runs) / max(sum(run.wall_s for run in runs), 1e-9))
        self._size = max(1, min(LARGEST, 4 * self._size, fitting))
        return runs

    def give_back(self, indices: Sequence[int], alone: bool) -> list[int]:
        """Take back a lost task; returns the indices that have failed for good."""
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


def _failed_run(study: Study, index: int) -> Run:
    metrics = (FAILED,) * len(metrics_of(study))
    return Run(
        index, study.point(index), study.run_seed(index), metrics, False, 0, 0.0, WORKER_LOST
    )
