"""Who makes a study's runs: processes on this machine, or the workers of a Dask cluster."""

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
"""How often it is asked whether to stop, and how many workers a cluster has."""
LOCAL = "local"
"""The scheduler that starts a Dask cluster on this machine."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Every process has a core; linear algebra with threads of its own would take those of others."""


class MissingExtra(ImportError):
    """A package that only some studies need."""

    def __init__(self, package: str, extra: str, need: str):
        super().__init__(
            f"{need} needs {package}, which is not installed; install the extra: "
            f"pip install 'nh_control[{extra}]'"
        )


class WorkersLost(RuntimeError):
    """There is nobody left to make runs."""


class WorkerPool(ABC):
    """What makes runs, in tasks; a context."""

    def __enter__(self) -> WorkerPool:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Let go of the workers."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many tasks are worked on at the same time, at least 1."""

    @abstractmethod
    def submit(self, study: Study, indices: Sequence[int]) -> Any:
        """The future of these runs, with `result()` and `exception()`."""

    @abstractmethod
    def wait_any(self, futures: Sequence[Any]) -> Sequence[Any]:
        """Those that have ended, as soon as there is one or POLL_S have passed; raises WorkersLost
        where none can end any more.
        """

    @abstractmethod
    def is_worker_lost(self, error: BaseException | None) -> bool:
        """Whether that is how a task ends with its worker; others have its place then."""


class ProcessPool(WorkerPool):
    """`count` processes of this machine."""

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
            with _one_thread_each():  # processes start with tasks
                return self._pool.submit(run_indices, study, indices)
        except BrokenProcessPool as error:
            failed: Future = Future()
            failed.set_exception(error)
            return failed

    def wait_any(self, futures: Sequence[Future]) -> Sequence[Future]:
        """As promised; a lost process takes all tasks with it, and a new pool its place."""
        done = wait(futures, POLL_S, FIRST_COMPLETED).done
        if any(self.is_worker_lost(future.exception()) for future in done):
            done = wait(futures).done
            self._pool.shutdown()
            self._pool = self._started()
        return [future for future in futures if future in done]

    def is_worker_lost(self, error: BaseException | None) -> bool:
        return isinstance(error, BrokenProcessPool)


def _begin() -> None:
    """What a process does first: leave Ctrl-C to its parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """In this context processes start with linear algebra in one thread, unless told."""
    own = [name for name in ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(own, "1"))
    try:
        yield
    finally:
        for name in own:
            del os.environ[name]


class DaskCluster(WorkerPool):
    """The workers of the Dask scheduler at an address such as tcp://host:8786, or of one that is
    started on this machine with `count` of them.

    A worker that ends is replaced and its tasks are made again by Dask; raises MissingExtra, and
    OSError where there is no scheduler.
    """

    def __init__(self, address: str, count: int = 0):
        try:
            import distributed
        except ImportError:
            raise MissingExtra("dask.distributed", "dask", f"--scheduler {address}") from None
        self._distributed, self._address = distributed, address
        self._own = None
        if address == LOCAL:  # whose workers are in the terminal's reach
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
        """Threads of all workers there are now; a cluster may grow and shrink."""
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
            raise WorkersLost(f"the scheduler at {self._address} is gone") from error
        return [future for future in futures if future.done()]

    def is_worker_lost(self, error: BaseException | None) -> bool:
        return isinstance(error, self._distributed.scheduler.KilledWorker)
