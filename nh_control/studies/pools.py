"""Worker pools that perform the runs of a study: processes on this machine, or a Dask cluster."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Any

from nh_control.studies import dask_preload
from nh_control.studies.study import Study
from nh_control.studies.worker import StudyRun, run_indices

log = logging.getLogger(__name__)

POLL_S, REFRESH_S = 0.2, 2.0
"""Periods for checking whether to stop and for counting a cluster's workers, in s."""
CHECK_START = (
    "start the study inside `if __name__ == '__main__':` in your script, and check the free memory"
)
"""The remedy if processes die during startup."""
LOCAL = "local"
"""The address that stands for a new Dask cluster on this machine."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit linear algebra to one thread. Each process has one core, so
more threads would only slow down the other processes.
"""


class MissingExtra(ImportError):
    """An optional package is missing. The message names the extra to install."""

    def __init__(self, package: str, extra: str, need: str):
        super().__init__(
            f"{need} needs {package}, which is not installed; install the extra: "
            f"pip install 'nh_control[{extra}]'"
        )


class WorkersLost(RuntimeError):
    """No worker is left to perform runs."""


class WorkerPool(ABC):
    """Workers that perform runs, which are grouped into tasks. The pool is a context manager."""

    def __enter__(self) -> WorkerPool:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Release the workers."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of tasks that run at the same time, at least 1."""

    @abstractmethod
    def submit(self, study: Study, indices: Sequence[int]) -> Any:
        """Submit the runs with the given indices and return their future."""

    @abstractmethod
    def wait_any(self, futures: Sequence[Any]) -> Sequence[Any]:
        """Return the finished futures, as soon as the first one finishes or after POLL_S."""

    @abstractmethod
    def runs(self, future: Any) -> list[StudyRun] | None:
        """Return the runs of a finished task, or None if its worker was lost. In this case, the
        pool replaces the worker. Raises the runs' error, and WorkersLost if no worker is left.
        """


class ProcessPool(WorkerPool):
    """A pool of `count` processes on this machine."""

    def __init__(self, count: int = 0):
        self._count = count or os.cpu_count() or 1
        self._pool = self._started()

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._count, get_context("spawn"), _begin)

    @property
    def count(self) -> int:
        return self._count

    def submit(self, study: Study, indices: Sequence[int]) -> Future:
        try:
            with _one_thread_each():  # the first tasks start the processes
                return self._pool.submit(run_indices, study, indices)
        except BrokenProcessPool as error:
            failed: Future = Future()
            failed.set_exception(error)
            return failed

    def wait_any(self, futures: Sequence[Future]) -> Sequence[Future]:
        """As in WorkerPool. If a process is lost, all tasks in its pool fail, and a new pool is
        started.
        """
        # A broken pool finishes all its futures. Wait for them, and then replace the pool.
        done = wait(futures, POLL_S, FIRST_COMPLETED).done
        if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
            done = wait(futures).done
            self._pool.shutdown()
            self._pool = self._started()
        return [future for future in futures if future in done]

    def runs(self, future: Future) -> list[StudyRun] | None:
        try:
            return future.result()
        except BrokenProcessPool:
            return None


def _begin() -> None:
    """Set up a process: ignore Ctrl-C, which the parent handles, and exit when the parent
    exits.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        # This thread ends the process when the parent terminates for any reason.
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """In this context, processes start with single-threaded linear algebra, unless the user has
    set the number of threads.
    """
    unset = [name for name in ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]


class DaskCluster(WorkerPool):
    """The workers of the Dask scheduler at an address such as tcp://host:8786. The address `local`
    starts a scheduler on this machine with `count` workers.

    Dask replaces a worker that dies and repeats its tasks. Raises MissingExtra without Dask, and
    OSError if there is no scheduler at the address.
    """

    def __init__(self, address: str, count: int = 0):
        try:
            import distributed
        except ImportError:
            raise MissingExtra("dask.distributed", "dask", f"--scheduler {address}") from None
        self._distributed, self._address = distributed, address
        self._cluster = None
        if address == LOCAL:
            self._cluster = self._started(count or os.cpu_count() or 1)
        self._client = distributed.Client(self._cluster or address)
        # The number of workers is cached, because each request to the scheduler takes time.
        self._known, self._asked_s = 1, 0.0
        self._ended = threading.Event()

    def _started(self, count: int) -> Any:
        """Start a Dask cluster on this machine. If the first attempt fails, try once more, because
        Dask closes the cluster if one worker dies during startup. Raises WorkersLost.
        """
        for last in (False, True):
            try:
                return self._distributed.LocalCluster(
                    preload=dask_preload.__name__,  # the workers receive the terminal's Ctrl-C
                    n_workers=count,
                    threads_per_worker=1,
                    dashboard_address=":0",
                )
            except RuntimeError as error:
                if last:
                    raise WorkersLost(
                        f"Dask cannot start {count} workers ({error}); {CHECK_START}"
                    ) from error

    def __exit__(self, *_: object) -> None:
        """Close the connection and the study's cluster. A worker that does not stop in time
        (dask/distributed issue 8775) is logged and stops with this process. No run is lost.
        """
        for connection in (self._client, self._cluster):
            try:
                if connection is not None:
                    connection.close()
            except Exception as error:
                log.warning("Dask at %s did not close: %r", self._address, error)

    @property
    def count(self) -> int:
        """The total number of threads in all current workers. A cluster may grow and shrink."""
        if not self._asked_s or time.monotonic() > self._asked_s + REFRESH_S:
            self._known = max(1, sum(self._client.nthreads().values()))
            self._asked_s = time.monotonic()
        return self._known

    def submit(self, study: Study, indices: Sequence[int]) -> Any:
        future = self._client.submit(run_indices, study, indices, pure=False)
        future.add_done_callback(lambda _: self._ended.set())
        return future

    def wait_any(self, futures: Sequence[Any]) -> Sequence[Any]:
        # distributed.wait would leave a waiting coroutine behind for each future and call.
        self._ended.wait(POLL_S)
        self._ended.clear()
        return [future for future in futures if future.done()]

    def runs(self, future: Any) -> list[StudyRun] | None:
        # A single request, because a worker and its runs could be lost between exception() and
        # result().
        try:
            return future.result()
        except self._distributed.scheduler.KilledWorker:
            return None
        except (CancelledError, OSError) as error:
            if future.status == "error":  # the runs' error
                raise
            raise WorkersLost(
                f"the connection to the scheduler at {self._address} is lost; start it again and "
                f"continue the study"
            ) from error
