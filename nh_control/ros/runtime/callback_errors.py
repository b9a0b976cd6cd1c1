"""Errors in callbacks, and malformed messages. They are counted and logged, and do not end the
node.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.impl.rcutils_logger import RcutilsLogger

from nh_control.loop.reports import Report

MIDDLEWARE = (rclpy_implementation.RCLError, rclpy_implementation.RMWError)
"""Middleware errors, such as a publication that waits 100 ms for a lock. They are caused by a busy
machine, not by the callback.
"""
LONGEST = 2000
"""Maximum number of characters in a logged text, which may quote a message of any size."""


def of_rclpy(callback: object) -> bool:
    """Whether a callback belongs to rclpy. Such a callback handles a message or request before the
    node does. If the callback raises an error, its argument is malformed.
    """
    return str(getattr(callback, "__module__", "")).startswith("rclpy.")


class CallbackErrors:
    """Counts three kinds of failures, logs them at a limited rate, and reports them: malformed
    messages and requests, which do not reach the node; errors in the node's callbacks; and
    middleware errors in these callbacks. Thread-safe.
    """

    def __init__(self, logger: RcutilsLogger):
        self._lock = threading.Lock()
        self._malformed, self._raised = Counter[str](), Counter[str]()
        self._middleware = Counter[str]()
        self._trouble: tuple[str, str] | None = None
        self._warn = ThrottledLog(lambda text: logger.warning(text))
        self._error = ThrottledLog(lambda text: logger.error(text))

    def malformed(self, what: str, reason: object) -> None:
        """Record that the message or request `what` cannot be read."""
        self._count(self._malformed, "warn", what, f"{what} is malformed: {reason}", self._warn)

    def raised(self, what: str, error: Exception) -> None:
        """Record an error in a callback of `what`. It is a middleware error or an error that the
        callback did not handle.
        """
        # middleware errors are counted separately, because the node cannot avoid them
        counts = self._middleware if isinstance(error, MIDDLEWARE) else self._raised
        lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        text = f"error in {what}, the node continues: {type(error).__name__}: {error}"
        self._count(
            counts,
            "error",
            what,
            text,
            lambda line: self._error(f"{line}\n{lines[-LONGEST:]}"),
        )

    def _count(
        self, counts: Counter[str], level: str, what: str, text: str, log: Callable[[str], None]
    ) -> None:
        text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        with self._lock:
            counts[what] += 1
            # the next report shows the last error, or the first warning if there are no errors
            if self._trouble is None or level == "error":
                self._trouble = level, text
        log(text)

    @property
    def counts(self) -> dict[str, int]:
        """The error counts, in total and for each topic or service."""
        with self._lock:
            return {
                "malformed": self._malformed.total(),
                **{f"malformed: {what}": count for what, count in self._malformed.items()},
                "callback_errors": self._raised.total(),
                **{f"callback error: {what}": count for what, count in self._raised.items()},
                "middleware_errors": self._middleware.total(),
                **{f"middleware error: {what}": n for what, n in self._middleware.items()},
            }

    def with_counts(self, report: Report) -> Report:
        """A node's report, with the counts and the worst error since the last report added."""
        with self._lock:
            # each report shows only trouble since the last report
            trouble, self._trouble = self._trouble, None
        values = {**report.values, **self.counts}
        if trouble is None:
            return replace(report, values=values)
        level, text = trouble
        worst = "error" if "error" in (level, report.level) else level
        return replace(report, level=worst, message=f"{report.message}; {text}", values=values)


QUIET_S = 5.0
"""Minimum time between two lines of a throttled log."""


class ThrottledLog:
    """Logs a text with `log`, at most once per QUIET_S. The next line says how many texts were
    left out. Thread-safe. With rclpy, `log` is a lambda around a logger's method, because rclpy
    allows one severity per line of code.
    """

    def __init__(self, log: Callable[[str], object], now: Callable[[], float] = time.monotonic):
        self._log, self._now, self._lock = log, now, threading.Lock()
        self._last, self._left_out = -QUIET_S, 0

    def __call__(self, text: str) -> None:
        """Log the text, unless the last line is too recent."""
        with self._lock:
            now = self._now()
            if now < self._last + QUIET_S:
                self._left_out += 1
                return
            # the next line reports how many texts were suppressed
            more = f"; {self._left_out} more were not logged" if self._left_out else ""
            self._last, self._left_out = now, 0
        self._log(text + more)
