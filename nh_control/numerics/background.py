"""Work in the background: threads of this process that compile while others already step."""

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
"""Largest number of threads, which leaves one processor to the others."""

_Job = tuple[Callable[[], None], Future[None]]


class Background:
    """A queue of jobs, and the threads that run them, which start with the first jobs.

    At the end of the process, jobs that have not begun are dropped and subprocesses of `run` are
    killed.
    """

    def __init__(self) -> None:
        self._jobs = Queue[_Job]()
        self._threads = list[threading.Thread]()
        self._processes = set[subprocess.Popen[str]]()
        self._lock, self._is_closed = threading.Lock(), False

    def submit(self, job: Callable[[], None]) -> Future[None]:
        """Run a job soon. An exception that it raises is logged."""
        future = Future[None]()
        self._jobs.put((job, future))
        with self._lock:
            if len(self._threads) < THREADS:
                self._threads.append(threading.Thread(target=self._work, daemon=True))
                self._threads[-1].start()
        return future

    def wait(self) -> None:
        """Wait until all jobs are done."""
        self._jobs.join()

    def run(self, command: Sequence[str]) -> None:
        """Run a program. Raises CalledProcessError, with its output, if it fails."""
        with self._lock:
            if self._is_closed:
                raise subprocess.CalledProcessError(-signal.SIGKILL, command, stderr="at the end")
            process = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is for this process
            )
            self._processes.add(process)
        _, errors = process.communicate()
        with self._lock:
            self._processes.discard(process)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, stderr=errors)

    @property
    def is_closed(self) -> bool:
        """Whether the process ends."""
        return self._is_closed

    def close(self) -> None:
        """Drop the jobs that have not begun, kill subprocesses and wait for the threads."""
        with self._lock:
            self._is_closed = True
            for process in self._processes:
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
                log.exception("a job in the background failed")
            future.set_result(None)
            self._jobs.task_done()


def _end() -> None:
    """The job that wakes a thread at the end of the process."""


background = Background()
"""The queue of this process."""


def _renew() -> None:
    """A forked process has none of the threads, and therefore a queue of its own."""
    global background
    background = Background()


atexit.register(lambda: background.close())
os.register_at_fork(after_in_child=_renew)
