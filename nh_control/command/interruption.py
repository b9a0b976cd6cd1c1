"""Ctrl-C reliably stops the construction of models, and ends a simulation in an orderly way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nh_control.numerics.interrupts import RepeatedInterrupt


class Interruption:
    """A context in which Ctrl-C raises KeyboardInterrupt repeatedly until the context ends. This
    is necessary because CasADi and IPOPT drop an exception that is raised while they call Python,
    or turn it into a different failure. `requested` says whether Ctrl-C was pressed.

    The context does nothing in threads other than the main thread, because only the main thread
    receives signals. It also does nothing if SIGINT is ignored, as in background jobs of a shell
    script.
    """

    def __init__(self) -> None:
        self.requested = False
        self._waiting = False
        self._again = RepeatedInterrupt()

    def __enter__(self) -> Interruption:
        # signal.signal works in the main thread only
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
        """In this context, the first Ctrl-C raises no exception; the running code reads
        `requested`.
        """
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        first, self.requested = not self.requested, True
        # the running code reads `requested` and stops in an orderly way; a second Ctrl-C
        # interrupts it
        if self._again.stopped or (first and self._waiting):
            return
        self._again.start()
        raise KeyboardInterrupt
