"""A study from its first missing run to its last: what is handed out, in what portions, and what
happens to runs whose worker is lost.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from nh_control.studies.pools import WorkerPool, WorkersLost
from nh_control.studies.store import Store
from nh_control.studies.study import Study
from nh_control.studies.worker import FAILED, Run, metrics_of

TASK_S, LARGEST = 0.5, 2000
"""How long the runs of one task should take, and how many they are at most: so long that handing
them out costs nothing beside, so short that little is lost with a worker.
"""
AHEAD = 3
"""Tasks in hand for every worker, so that none waits."""
WORKER_LOST = "its process ended without a word, twice with nothing else in hand"


def run_missing(
    store: Store,
    workers: WorkerPool,
    progress: Callable[[int], None] = lambda done: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Make all runs that the store misses, and write them as they come; `progress` is told how
    many there are. Returns whether all are there; not, if it ended early because of `stop()`,
    after the tasks that were in hand.

    Raises what keeps workers from making any run; what is there then stays.
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
    """The runs of these indices as they come, each one once; no new ones after `stop()`."""
    tasks = _TaskQueue(indices)
    pending: dict[Any, list[int]] = {}
    while True:
        room = 0 if stop() else tasks.room(workers.count) - len(pending)
        while room > 0 and (chunk := tasks.next()):
            pending[workers.submit(study, chunk)] = chunk
            room = tasks.room(workers.count) - len(pending)
        if not pending:
            return
        alone = len(pending) == 1
        for future in workers.wait_any(list(pending)):
            chunk = pending.pop(future)
            if workers.is_worker_lost(error := future.exception()):
                if failed := tasks.give_back(chunk, alone):
                    yield [_failed_run(study, index) for index in failed]
            elif error is not None:
                raise error
            else:
                yield tasks.record(future.result())


class _TaskQueue:
    """Indices in tasks that take TASK_S by what runs took in the last one. Those of a lost worker
    are given out one by one with nothing else in hand, so that a run that ends its process is
    found.
    """

    def __init__(self, indices: Iterator[int]):
        self._indices, self._size = indices, 1
        self._runs = 0
        self._suspects: deque[int] = deque()
        self._suspected = False  # whether the last task was one of these
        self._losses: Counter[int] = Counter()

    def room(self, workers: int) -> int:
        """How many tasks may be in hand."""
        return 1 if self._suspects or self._suspected else AHEAD * workers

    def next(self) -> list[int]:
        """The next task, empty at the end."""
        self._suspected = bool(self._suspects)
        if self._suspected:
            return [self._suspects.popleft()]
        return list(islice(self._indices, self._size))

    def record(self, runs: list[Run]) -> list[Run]:
        """The runs of a task, whose time is taken into account."""
        self._runs += len(runs)
        fitting = int(TASK_S * len(runs) / max(sum(run.wall_s for run in runs), 1e-9))
        self._size = max(1, min(LARGEST, 4 * self._size, fitting))
        return runs

    def give_back(self, indices: Sequence[int], alone: bool) -> list[int]:
        """Take back a lost task; returns those that are not to be made again."""
        if alone and len(indices) == 1:
            self._losses[indices[0]] += 1
            if self._losses[indices[0]] > 1:
                if not self._runs:
                    raise WorkersLost(
                        f"every process ends without a word before run {indices[0]} is made; "
                        f"does the script that begins the study guard it by `if __name__ == "
                        f"'__main__'`, and is there memory enough?"
                    )
                return list(indices)
        self._suspects.extend(indices)
        return []


def _failed_run(study: Study, index: int) -> Run:
    metrics = (FAILED,) * len(metrics_of(study))
    return Run(
        index, study.point(index), study.run_seed(index), metrics, False, 0, 0.0, WORKER_LOST
    )
