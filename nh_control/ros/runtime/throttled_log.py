"""Log lines that anybody can cause, and as often as they like."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

QUIET_S = 5.0
"""At most one line in this time."""


class ThrottledLog:
    """Logs a text with `log` unless it has done so within QUIET_S; the next one tells how many
    were left out. From any thread. For rclpy, `log` is a lambda around a logger's method: it wants
    one severity per line of code.
    """

    def __init__(self, log: Callable[[str], object], now: Callable[[], float] = time.monotonic):
        self._log, self._now, self._lock = log, now, threading.Lock()
        self._last, self._left_out = -QUIET_S, 0

    def __call__(self, text: str) -> None:
        """Log it, or leave it out."""
        with self._lock:
            now = self._now()
            if now < self._last + QUIET_S:
                self._left_out += 1
                return
            more = f"; {self._left_out} more were not logged" if self._left_out else ""
            self._last, self._left_out = now, 0
        self._log(text + more)
