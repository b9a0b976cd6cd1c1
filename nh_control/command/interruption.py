"""Ctrl-C: never lost while models are built, and an orderly end while they are simulated."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nh_control.numerics.interrupts import Again


class Interruption:
    """A context in which Ctrl-C raises KeyboardInterrupt again and again until the context is
    left: CasADi and IPOPT drop, or turn into failures of their own, what is raised while they call
    Python. `requested` says whether Ctrl-C was pressed.

    In another thread than the main one, which gets no signals, and where SIGINT is ignored, as in
    the background of a shell script, it does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._waiting = False
        self._again = Again()

    def __enter__(self) -> Interruption:
        main = threading.current_thread() is threading.main_thread()
        self._before = signal.getsignal(signal.SIGINT) if main else signal.SIG_IGN
        if self._before != signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        self._again.stop()
        if self._before != signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """In this context the first Ctrl-C raises nothing: whoever works looks at `requested`."""
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        first, self.requested = not self.requested, True
        if self._again.stopped or (first and self._waiting):
            return
        self._again.start()
        raise KeyboardInterrupt
