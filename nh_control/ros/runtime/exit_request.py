"""The request to end a node's process, by a signal or by the node."""

from __future__ import annotations

import os
import select
import signal

from nh_control.numerics.interrupts import RepeatedInterrupt


class Exit:
    """The request to end the process, by a signal or from any thread. The main thread raises the
    first error among the requests. The first nonzero `code` is the exit code.
    """

    def __init__(self) -> None:
        # use a pipe, because signal handlers and any thread can write to it
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._interrupts, self.interrupted, self._again = True, False, RepeatedInterrupt()
        self.error: BaseException | None = None
        self.code = 0

    def install(self) -> None:
        """Handle SIGINT and SIGTERM. During startup, signals raise SystemExit(0), repeatedly in
        case some code suppresses it. Later, they only wake `wait`.
        """
        # the interpreter writes to the pipe even while the main thread waits in C code
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        # only during startup, because later the component must be closed in order
        if self._interrupts:
            self.interrupted = True
            self._again.start()
            raise SystemExit(0)

    def started(self) -> None:
        """From now on, signals only wake `wait`."""
        self._interrupts = False
        self._again.stop()

    def ignore(self) -> None:
        """Ignore signals from now on. The interpreter removes its handlers before it exits, and a
        late signal would then change the exit code.
        """
        self.started()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def request(self, error: BaseException | None = None, code: int = 0) -> None:
        """End the process. Thread-safe."""
        self.error, self.code = self.error or error, self.code or code
        try:
            os.write(self._write, b"\0")
        except BlockingIOError:
            return  # the pipe is full of earlier requests, which wake `wait` as well

    def wait(self) -> None:
        """Block until a signal or request arrives."""
        select.select([self._read], [], [])
