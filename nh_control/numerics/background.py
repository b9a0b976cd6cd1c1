"""Background work: some threads of this process compile while others take steps."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, Queue

log = logging.getLogger(__name__)

THREADS = min(4, max(1, (os.cpu_count() or 1) - 1))
"""Maximum number of threads. It leaves one processor for other threads."""

_Job = tuple[Callable[[], None], Future[None]]


class Background:
    """A queue of jobs, and the threads that run them. Threads are started for the first jobs.

    When the process exits, jobs that have not begun are dropped, and subprocesses started by `run`
    are killed.
    """

    def __init__(self) -> None:
        self._jobs = Queue[_Job]()
        self._threads = list[threading.Thread]()
        self._processes = set[subprocess.Popen[str]]()
        self._lock, self._is_closed = threading.Lock(), False

    def submit(self, job: Callable[[], None]) -> Future[None]:
        """Add a job to the queue. If the job raises an exception, the exception is logged."""
        future = Future[None]()
        self._jobs.put((job, future))
        with self._lock:
            # threads start on demand
            if len(self._threads) < THREADS:
                self._threads.append(threading.Thread(target=self._work, daemon=True))
                self._threads[-1].start()
        return future

    def wait(self) -> None:
        """Wait until all jobs are done."""
        self._jobs.join()

    def run(self, command: Sequence[str]) -> None:
        """Run a program; raises CalledProcessError, with the program's error output, if it
        fails.
        """
        with self._lock:
            if self._is_closed:
                raise subprocess.CalledProcessError(-signal.SIGKILL, command, stderr="at the end")
            process = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # so that Ctrl-C reaches only this process
            )
            self._processes.add(process)
        _, errors = process.communicate()
        with self._lock:
            self._processes.discard(process)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, stderr=errors)

    @property
    def is_closed(self) -> bool:
        """Whether the process is exiting."""
        return self._is_closed

    def close(self) -> None:
        """Drop the jobs that have not begun, kill subprocesses and wait for the threads."""
        with self._lock:
            self._is_closed = True
            for process in self._processes:
                # the compiler and its children
                os.killpg(process.pid, signal.SIGKILL)
        self._drop()
        for thread in self._threads:
            thread.join()

    def _drop(self) -> None:
        try:
            while True:
                self._jobs.get_nowait()
                self._jobs.task_done()
        except Empty:
            for _ in self._threads:
                self._jobs.put((_end, Future()))

    def _work(self) -> None:
        while not self._is_closed:
            job, future = self._jobs.get()
            try:
                job()
            except Exception:
                log.exception("a background job failed")
            future.set_result(None)
            self._jobs.task_done()


def _end() -> None:
    """The job that wakes up a thread when the process exits."""


background = Background()
"""This process's queue."""


def _renew() -> None:
    """Create a new queue in a forked process, because threads do not survive a fork."""
    global background
    background = Background()


atexit.register(lambda: background.close())
os.register_at_fork(after_in_child=_renew)
