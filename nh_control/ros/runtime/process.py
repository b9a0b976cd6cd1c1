"""The life of a node's process: start, work until a signal or the node's own request, leave
everything closed, exit code 0.

Ctrl-C reaches a whole process group and `ros2 launch` then sends SIGINT again, so a second signal
must not interrupt the cleaning up: rclpy's handlers are off, ours write to a pipe on which the
main thread waits. One thread runs rclpy's executor (services, timers, parameters), one the
component's work.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import Protocol

import rclpy
import rclpy.utilities
from rclpy.executors import SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from nh_control.ros.runtime.inbox import Inbox
from nh_control.runs.node_process import WRONG_USE


class UsageError(ValueError):
    """A node cannot start with what it was given; the message names the remedy."""


class Exit:
    """The request to end the process, from a signal or from any thread; the first error that came
    with it is raised in the main thread, and the first `code` is the exit code.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._interrupts = True
        self.error: BaseException | None = None
        self.code = 0

    def install(self) -> None:
        """Take over SIGINT and SIGTERM: the first ends a start with SystemExit(0), all others only
        wake `wait`.
        """
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        if self._interrupts:
            self._interrupts = False
            raise SystemExit(0)

    def started(self) -> None:
        """From now on signals interrupt nothing."""
        self._interrupts = False

    def ignore(self) -> None:
        """From now on there are no signals: the interpreter gives up its handlers before it has
        ended, and a late signal would be an exit code.
        """
        self._interrupts = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def request(self, error: BaseException | None = None, code: int = 0) -> None:
        """End the process; from any thread."""
        self.error, self.code = self.error or error, self.code or code
        try:
            os.write(self._write, b"\0")
        except BlockingIOError:
            return  # the pipe is full of earlier requests

    def wait(self) -> None:
        """Block until a signal or request."""
        select.select([self._read], [], [])


class Component(Protocol):
    """What lives in a node: made with the node, its inbox and the process's Exit."""

    def work(self) -> None:
        """Run in the working thread until the inbox is closed."""

    def close(self) -> None:
        """Called at the end, when no thread runs any more: close files, send last messages."""


def run(
    name: str, make: Callable[[Node, Inbox, Exit], Component], args: list[str] | None = None
) -> int:
    """Run a component in a node of this name until SIGINT, SIGTERM or `Exit.request`.

    Returns the exit code: 0 or that of the request, or WRONG_USE with a log line for a UsageError.
    Raises what a thread raised.
    """
    exit_ = Exit()
    exit_.install()
    rclpy.init(
        args=sys.argv if args is None else args, signal_handler_options=SignalHandlerOptions.NO
    )
    try:
        node = _create_node(name)
        inbox = Inbox(node)
        component = make(node, inbox, exit_)
        # collections in the control loop need not look at what exists by now: imports, models,
        # gains
        gc.freeze()
        exit_.started()
        _work(node, inbox, component, exit_)
    except UsageError as error:
        get_logger(name).fatal(str(error))
        return WRONG_USE
    finally:
        exit_.ignore()
        # rclpy.try_shutdown would put signal handlers of its own
        rclpy.utilities.get_default_context().try_shutdown()
    if exit_.error is not None:
        raise exit_.error
    return exit_.code


def _create_node(name: str) -> Node:
    try:
        return rclpy.create_node(name, automatically_declare_parameters_from_overrides=True)
    except ValueError as error:
        raise UsageError(
            f"{error}; leave parameters without a value (null, an empty list) out"
        ) from error


def _work(node: Node, inbox: Inbox, component: Component, exit_: Exit) -> None:
    executor, stop = SingleThreadedExecutor(), Future[None]()
    executor.add_node(node)
    threads = [
        _thread("executor", lambda: executor.spin_until_future_complete(stop), exit_),
        _thread("work", component.work, exit_),
    ]
    try:
        exit_.wait()
    finally:
        stop.set_result(None)
        inbox.close()
        for thread in threads:
            thread.join()
        component.close()
        node.destroy_node()
        executor.shutdown()


def _thread(name: str, target: Callable[[], None], exit_: Exit) -> threading.Thread:
    """A started thread; what its target raises ends the process."""

    def guarded() -> None:
        try:
            target()
        except BaseException as error:
            exit_.request(error)

    thread = threading.Thread(target=guarded, name=name)
    thread.start()
    return thread
