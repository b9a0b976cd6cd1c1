"""Worker pools that make a study's runs: processes on this machine, or a Dask cluster."""

from __future__ import annotations

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
from nh_control.studies.worker import run_indices

POLL_S, REFRESH_S = 0.2, 2.0
"""Period for asking whether to stop, and period for counting a cluster's workers, in s."""
LOCAL = "local"
"""The address that stands for a new Dask cluster on this machine."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit linear algebra to one thread. Every process has one core, so
more threads would only take time from other processes.
"""


class MissingExtra(ImportError):
    """An optional package is missing; the message names the extra to install."""

    def __init__(self, package: str, extra: str, need: str):
        super().__init__(
            f"{need} needs {package}, which is not installed; install the extra: "
            f"pip install 'nh_control[{extra}]'"
        )


class WorkersLost(RuntimeError):
    """No worker is left to make runs."""


class WorkerPool(ABC):
    """Workers that make runs in tasks; a context manager."""

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
        """Submit these runs; returns a future with `result()` and `exception()`."""

    @abstractmethod
    def wait_any(self, futures: Sequence[Any]) -> Sequence[Any]:
        """Return the futures that have ended, after the first one ends or after POLL_S; raises
        WorkersLost if none can end any more.
        """

    @abstractmethod
    def is_worker_lost(self, error: BaseException | None) -> bool:
        """Return whether a task failed with this error because its worker ended; the pool then
        replaces the worker.
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
        """As in WorkerPool; after the loss of a process, which breaks all tasks of its pool, start
        a new pool.
        """
        done = wait(futures, POLL_S, FIRST_COMPLETED).done
        if any(self.is_worker_lost(future.exception()) for future in done):
            done = wait(futures).done
            self._pool.shutdown()
            self._pool = self._started()
        return [future for future in futures if future in done]

    def is_worker_lost(self, error: BaseException | None) -> bool:
        return isinstance(error, BrokenProcessPool)


def _begin() -> None:
    """Set up a process: ignore Ctrl-C, which the parent handles, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Start processes in this context with single-threaded linear algebra, unless the user set the
    number of threads.
    """
    own = [name for name in ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(own, "1"))
    try:
        yield
    finally:
        for name in own:
            del os.environ[name]


class DaskCluster(WorkerPool):
    """The workers of the Dask scheduler at an address such as tcp://host:8786; the address `local`
    starts a scheduler on this machine with `count` workers.

    Dask replaces a worker that ends and repeats its tasks. Raises MissingExtra without Dask, and
    OSError if there is no scheduler at the address.
    """

    def __init__(self, address: str, count: int = 0):
        try:
            import distributed
        except ImportError:
            raise MissingExtra("dask.distributed", "dask", f"--scheduler {address}") from None
        self._distributed, self._address = distributed, address
        self._own = None
        if address == LOCAL:  # its workers receive the terminal's Ctrl-C
            self._own = distributed.LocalCluster(
                preload=dask_preload.__name__,
                n_workers=count or os.cpu_count() or 1,
                threads_per_worker=1,
                dashboard_address=":0",
            )
        self._client = distributed.Client(self._own or address)
        self._known, self._asked_s = 1, 0.0

    def __exit__(self, *_: object) -> None:
        self._client.close()
        if self._own is not None:
            self._own.close()

    @property
    def count(self) -> int:
        """The threads of all current workers; a cluster may grow and shrink."""
        if not self._asked_s or time.monotonic() > self._asked_s + REFRESH_S:
            self._known = max(1, sum(self._client.nthreads().values()))
            self._asked_s = time.monotonic()
        return self._known

    def submit(self, study: Study, indices: Sequence[int]) -> Any:
        return self._client.submit(run_indices, study, indices, pure=False)

    def wait_any(self, futures: Sequence[Any]) -> Sequence[Any]:
        try:
            self._distributed.wait(futures, POLL_S, "FIRST_COMPLETED")
        except TimeoutError:
            return []
        except CancelledError as error:
            raise WorkersLost(
                f"the connection to the scheduler at {self._address} is lost; start it again and "
                f"continue the study"
            ) from error
        return [future for future in futures if future.done()]

    def is_worker_lost(self, error: BaseException | None) -> bool:
        return isinstance(error, self._distributed.scheduler.KilledWorker)
