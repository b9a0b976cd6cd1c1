"""Signals during native code: exceptions of a signal handler must not get lost, although native
code that calls Python, and callbacks that Python ignores, drop them.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

REPEAT_S = 0.5
"""Time in s after which a signal is repeated if its exception has not arrived."""


class RepeatedInterrupt:
    """Repeats SIGINT in the main thread every REPEAT_S from `start` until `stop`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._repeating = threading.Thread(target=self._repeat, daemon=True)

    @property
    def repeating(self) -> bool:
        """Whether the repetition is active."""
        return self._repeating.is_alive()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called; a stopped repetition cannot start again."""
        return self._stopped.is_set()

    def start(self) -> None:
        """Start the repetition, unless it was started or stopped before."""
        if self._repeating.ident is None and not self.stopped:
            self._repeating.start()

    def stop(self) -> None:
        """Stop the repetition; no signal follows after this function returns."""
        self._stopped.set()
        if self.repeating:
            self._repeating.join()

    def _repeat(self) -> None:
        while not self._stopped.wait(REPEAT_S):
            _thread.interrupt_main()


@contextmanager
def reraise_signals() -> Iterator[None]:
    """Raise at the end of the context an exception that a handler of SIGINT or SIGTERM raised
    inside it in the main thread: IPOPT turns such an exception into its own failure.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raised: list[BaseException] = []
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}

    def keep(number: int, frame: FrameType | None) -> None:
        handler = handlers[signal.Signals(number)]
        try:
            if callable(handler):
                handler(number, frame)
        except BaseException as reason:
            raised.append(reason)
            raise

    ours = [number for number, handler in handlers.items() if callable(handler)]
    for number in ours:
        signal.signal(number, keep)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, handlers[number])
        if raised:
            raise raised[0]
