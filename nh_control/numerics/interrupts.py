"""What a signal's handler raises must not get lost: native code that calls Python, and everything
that Python calls by itself, drops it.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_S = 0.5
"""After what time a signal comes again whose exception has not arrived."""


class Again:
    """SIGINT comes again every AGAIN_S from `start` on, in the main thread, until `stop`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._repeating = threading.Thread(target=self._repeat, daemon=True)

    @property
    def repeating(self) -> bool:
        """Whether it does."""
        return self._repeating.is_alive()

    @property
    def stopped(self) -> bool:
        """Whether it was stopped, and will not start any more."""
        return self._stopped.is_set()

    def start(self) -> None:
        """Begin, unless it has begun or was stopped."""
        if self._repeating.ident is None and not self.stopped:
            self._repeating.start()

    def stop(self) -> None:
        """End; when this returns nothing comes any more."""
        self._stopped.set()
        if self.repeating:
            self._repeating.join()

    def _repeat(self) -> None:
        while not self._stopped.wait(AGAIN_S):
            _thread.interrupt_main()


@contextmanager
def signals_kept() -> Iterator[None]:
    """Raise at the end what a handler of SIGINT or SIGTERM has raised in the context, in the main
    thread: IPOPT turns it into a failure of its own.
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
