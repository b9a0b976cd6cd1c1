"""Checks whether native calls release the interpreter lock."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


def gives_way(work: Callable[[], object]) -> bool:
    """Return whether another thread continues while the long call `work` runs in its own thread.

    With a switch interval of ten seconds, Python does not interrupt a running thread: a waiting
    thread continues only if the running one releases the lock.
    """
    running, finished = threading.Event(), threading.Event()

    def run() -> None:
        running.set()
        work()
        finished.set()

    thread, interval = threading.Thread(target=run), sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    try:
        thread.start()
        running.wait()
        return not finished.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()
