"""A process that imports the modules of nodes once, and then forks the nodes. It imports them
while the process that started it prepares the run.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NoReturn

from nh_control.runs.node_process import PARENT

NODES = """
import sys
from nh_control.ros.nodes import start
sys.exit(start.forked())
"""
"""Python code of the server that forks nodes."""
POLL_S = 0.02
"""Period (s) at which `ForkedProcess.ended_by` looks for the end of a process."""


class ForkServerFailed(RuntimeError):
    """The server has exited."""


class ForkServer:
    """A context with a server, which runs the Python code `program`. The code must call `serve`
    and exit with its result. On leaving the context, the server ends all its processes and exits.

    The server is in a separate session, so Ctrl-C does not reach it.
    """

    def __init__(self, program: str):
        self._connection, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program, str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # stderr may be closed
                stderr=None if sys.stderr else subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        self._answers = self._connection.makefile("rb")

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._answers.close()
        self._connection.close()
        # after an error, the server may still import modules
        self._process.terminate()
        self._process.wait()

    def start(
        self, arguments: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> ForkedProcess:
        """Fork a process with these arguments and this environment. It has no stdin, and writes
        stdout and stderr to the file `log`. Waits until the server has imported its modules.
        Raises ForkServerFailed.
        """
        log.write_bytes(b"")
        # the server may exit before the new process reads the number of its parent
        environment = {**environment, PARENT: str(self._process.pid)}
        order = {"arguments": [*arguments], "log": str(log), "environment": environment}
        return ForkedProcess(self, self._ask(order))

    def exit_code(self, pid: int) -> int | None:
        """Return the exit code of a process that the server has forked, or None if it runs.
        Negative numbers are signals. Raises ForkServerFailed.
        """
        return self._ask({"exit_code_of": pid})

    def _ask(self, question: dict[str, Any]) -> Any:
        answer = b""
        with suppress(ConnectionError):
            self._connection.sendall(json.dumps(question).encode() + b"\n")
            answer = self._answers.readline()
        if not answer:
            code = self._process.wait()
            raise ForkServerFailed(f"the process that starts nodes ended with exit code {code}")
        return json.loads(answer)


class ForkedProcess:
    """A process that a `ForkServer` has forked."""

    def __init__(self, server: ForkServer, pid: int):
        self._server, self._pid = server, pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None if the process runs."""
        if self._code is None:
            self._code = self._server.exit_code(self._pid)
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has exited."""
        # the server collects the process only if it is asked, so its number is still valid
        if self.poll() is None:
            os.kill(self._pid, number)

    def ended_by(self, deadline: float) -> bool:
        """Wait until the process has ended or until `deadline` (monotonic time, s)."""
        while self.poll() is None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_S)
        return True


def node_server() -> ForkServer:
    """Start the server that forks the nodes of a run. Start it before anything else: it imports
    the modules of the nodes while this process prepares the run.
    """
    return ForkServer(NODES)


def serve(prepare: Callable[[], None], run: Callable[[], int]) -> int:
    """Call `prepare`, and then fork a process for each request on the socket whose file descriptor
    is the first argument of this program. Returns `run()` in forked processes, with their
    arguments in sys.argv. The server itself exits when the connection is closed or a signal
    arrives, and sends SIGTERM to its processes.
    """
    running, server = set[int](), os.getpid()

    def end(*_: object) -> NoReturn:
        # a forked process may receive a signal before `run` has installed its handlers
        for pid in running if os.getpid() == server else ():
            os.kill(pid, signal.SIGTERM)
        # nothing is open, and an exception within an import may be suppressed
        os._exit(0)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    # exit codes of processes are lost where this signal is ignored
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=int(sys.argv.pop(1))) as connection:
        gc.disable()  # it takes a fifth of the import time
        prepare()
        # collections in forked processes do not copy the pages of these objects
        gc.freeze()
        with connection.makefile("rb") as requests:
            order = _next_order(connection, requests, running)
    if order is None:
        return end()
    return _begin(order, run)


def _next_order(
    connection: socket.socket, requests: BinaryIO, running: set[int]
) -> dict[str, Any] | None:
    """Answer requests. Returns the order in a forked process, and None in the server after the
    last request. `running` contains the forked processes.
    """
    for line in requests:
        request = json.loads(line)
        answer: int | None
        if "exit_code_of" in request:
            answer = _exit_code(request["exit_code_of"])
            if answer is not None:
                running.discard(request["exit_code_of"])
        else:
            answer = os.fork()
            if not answer:
                return request
            running.add(answer)
        connection.sendall(json.dumps(answer).encode() + b"\n")
    return None


def _exit_code(pid: int) -> int | None:
    """Return the exit code of a forked process, or None if it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _begin(order: dict[str, Any], run: Callable[[], int]) -> int:
    """Become the process of an order, with its session, environment and files, and run."""
    os.setsid()
    os.environ.clear()
    os.environ.update(order["environment"])
    log = os.open(order["log"], os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())
    os.close(log)
    sys.argv[1:] = order["arguments"]
    return run()
