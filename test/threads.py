"""Whether native calls let other threads run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


def gives_way(work: Callable[[], object]) -> bool:
    """Whether another thread goes on while `work`, which takes its time, runs in its own.

    With an interval of ten seconds Python takes no thread's turn away: one that waits goes on only
    when the running one gives it up.
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
