"""Handling of signals during native code. Without it, exceptions from signal handlers would be
lost in native code that calls Python, and in callbacks whose exceptions Python ignores.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

REPEAT_S = 0.5
"""Period (s) at which a signal is repeated until its exception arrives."""


class RepeatedInterrupt:
    """Repeats SIGINT in the main thread every REPEAT_S from `start` until `stop`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._repeating = threading.Thread(target=self._repeat, daemon=True)

    @property
    def repeating(self) -> bool:
        """Whether the signal is being repeated."""
        return self._repeating.is_alive()

    @property
    def stopped(self) -> bool:
        """Whether `stop` has been called. A stopped repetition cannot be restarted."""
        return self._stopped.is_set()

    def start(self) -> None:
        """Start repeating the signal, unless this object was started or stopped before."""
        if self._repeating.ident is None and not self.stopped:
            self._repeating.start()

    def stop(self) -> None:
        """Stop repeating the signal. No signal is sent after this function returns."""
        self._stopped.set()
        if self.repeating:
            self._repeating.join()

    def _repeat(self) -> None:
        while not self._stopped.wait(REPEAT_S):
            _thread.interrupt_main()


@contextmanager
def reraise_signals() -> Iterator[None]:
    """On leaving the context, raise any exception that a SIGINT or SIGTERM handler raised inside
    the context in the main thread. This is necessary because IPOPT reports such an exception as a
    failure.
    """
    # only the main thread handles signals
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raised: list[BaseException] = []
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}

    # record the exception, then raise it as usual
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
