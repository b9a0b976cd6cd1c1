"""The request to end a node's process, from a signal or from the node."""

from __future__ import annotations

import os
import select
import signal

from nh_control.numerics.interrupts import RepeatedInterrupt


class Exit:
    """The request to end the process, from a signal or from any thread. The main thread raises the
    first error of the requests; the first `code` is the exit code.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._interrupts, self.interrupted, self._again = True, False, RepeatedInterrupt()
        self.error: BaseException | None = None
        self.code = 0

    def install(self) -> None:
        """Handle SIGINT and SIGTERM. During the start they raise SystemExit(0), repeatedly if
        something drops it; later they only wake `wait`.
        """
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        if self._interrupts:
            self.interrupted = True
            self._again.start()
            raise SystemExit(0)

    def started(self) -> None:
        """Let signals interrupt nothing from now on."""
        self._interrupts = False
        self._again.stop()

    def ignore(self) -> None:
        """Ignore signals from now on: the interpreter removes its handlers before it ends, and
        then a late signal would change the exit code.
        """
        self.started()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def request(self, error: BaseException | None = None, code: int = 0) -> None:
        """End the process; for any thread."""
        self.error, self.code = self.error or error, self.code or code
        try:
            os.write(self._write, b"\0")
        except BlockingIOError:
            return  # the pipe is full of earlier requests

    def wait(self) -> None:
        """Block until a signal or request."""
        select.select([self._read], [], [])
