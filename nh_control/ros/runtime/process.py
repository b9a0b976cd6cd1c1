"""The life of a node's process: start, work until a signal or the node's own request, leave
everything closed, exit code 0.

Ctrl-C reaches a whole process group and `ros2 launch` then sends SIGINT again, so a second signal
must not interrupt the cleaning up: rclpy's handlers are off, ours write to a pipe on which the
main thread waits. One thread runs rclpy's executor (services, timers, parameters, changes of the
node's state), one the component's work.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import rclpy
import rclpy.utilities
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from nh_control.numerics.interrupts import RepeatedInterrupt
from nh_control.ros.runtime.callback_errors import CallbackErrors
from nh_control.ros.runtime.guards import GuardedExecutor, guard
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.spec import UsageError as UsageError
from nh_control.runs.node_process import WRONG_USE

LEAVE_S = 20.0
"""How long a node may take to leave the network. Fast DDS, as the wheels on PyPI have it, never
returns if another node is discovered in that moment, and keeps the interpreter (its issue 6513).
"""


class Exit:
    """The request to end the process, from a signal or from any thread; the first error that came
    with it is raised in the main thread, and the first `code` is the exit code.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._interrupts, self.interrupted, self._again = True, False, RepeatedInterrupt()
        self.error: BaseException | None = None
        self.code = 0

    def install(self) -> None:
        """Take over SIGINT and SIGTERM: they end a start with SystemExit(0), which is raised again
        and again where it gets lost, and later only wake `wait`.
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
        """From now on signals interrupt nothing."""
        self._interrupts = False
        self._again.stop()

    def ignore(self) -> None:
        """From now on there are no signals: the interpreter gives up its handlers before it has
        ended, and a late signal would be an exit code.
        """
        self.started()
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
        """Run in the working thread until the inbox is closed; again, when it is opened again."""

    def close(self) -> None:
        """Called at the end, when it does not work any more: close files, send last messages."""


class ManagedNode(LifecycleNode):
    """A managed node around a component: configured, it has parameters, topics and services;
    active, the component works, in a thread of its own; inactive, it is silent and can go on;
    cleaned up, it is as before, with the parameters that it had.
    """

    def __init__(self, name: str, make: Callable[[Node, Inbox, Exit], Component], exit_: Exit):
        super().__init__(name, automatically_declare_parameters_from_overrides=True)
        self._make, self._exit = make, exit_
        self._inbox: Inbox | None = None
        self._component: Component | None = None
        self._thread: threading.Thread | None = None
        self._started = False
        self._before: set[int] = set()
        self._failure: Exception | None = None
        self.errors = CallbackErrors(self.get_logger())
        self._guard_services()

    def start(self) -> None:
        """Configure and activate it, unless the parameter `autostart` is false; raises what making
        the component raised. From the activation on, a signal interrupts nothing: what works must
        be stopped before the process ends.
        """
        autostart = self.get_parameter_or("autostart", Parameter("autostart", value=True)).value
        if autostart:
            self.trigger_configure()
            if self._failure is not None:
                raise self._failure
        self._exit.started()
        self._started = True
        if autostart:
            self.trigger_activate()

    def end(self) -> None:
        """Stop working, close and destroy it; where that does not end in LEAVE_S, the process ends
        with exit code 1 and the stack in its log.
        """
        self._stop()
        self._close()
        faulthandler.dump_traceback_later(LEAVE_S, exit=True)
        self.destroy_node()
        faulthandler.cancel_dump_traceback_later()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Make the component; where it cannot be made, `start` raises why, and later it is told in
        the log.
        """
        self._before = {id(entity) for entities, _ in self._entities() for entity in entities}
        self._failure, given = None, self.get_parameters_by_prefix("")
        self._inbox = inbox = Inbox(self, self.errors)
        try:
            self._component = self._make(self, inbox, self._exit)
        except Exception as error:
            self._failure = error
            self._clear()
            for name, parameter in given.items():  # it was given, so it is refused again
                if not self.has_parameter(name):
                    self.declare_parameter(name, parameter.value)
            if self._started:
                self._tell(error)
            return TransitionCallbackReturn.FAILURE
        self._guard_services()
        inbox.close()
        # collections in the control loop need not look at what exists: imports, models, gains
        gc.freeze()
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Have the component work."""
        if self._inbox is None or self._component is None:
            return TransitionCallbackReturn.ERROR
        self._inbox.open()
        self._thread = _thread("work", self._component.work, self._exit)
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Have it stop."""
        self._stop()
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the component, and leave nothing of it."""
        self._close()
        self._clear()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the process."""
        self._exit.request()
        return TransitionCallbackReturn.SUCCESS

    def _guard_services(self) -> None:
        """Have those answer that were made since the configuration began."""
        for service in self.services:
            if id(service) not in self._before:
                guard(self, service, self.errors)

    def _tell(self, error: Exception) -> None:
        if isinstance(error, UsageError):
            self.get_logger().error(f"cannot be configured: {error}")
        else:
            self._exit.request(error)

    def _stop(self) -> None:
        if self._inbox is not None and self._thread is not None:
            self._inbox.close()
            self._thread.join()
            self._thread = None

    def _close(self) -> None:
        if self._component is not None:
            self._component.close()
            self._component = None

    def _clear(self) -> None:
        """Destroy what was made since the configuration began."""
        for entities, destroy in self._entities():
            for entity in list(entities):
                if id(entity) not in self._before:
                    destroy(entity)
        self._inbox = None

    def _entities(self) -> list[tuple[Iterable[Any], Callable[[Any], object]]]:
        """What a component makes, by kind, and what destroys it."""
        return [
            (self.publishers, self.destroy_publisher),
            (self.subscriptions, self.destroy_subscription),
            (self.services, self.destroy_service),
            (self.clients, self.destroy_client),
            (self.timers, self.destroy_timer),
            (self.guards, self.destroy_guard_condition),
        ]


def run(
    name: str, make: Callable[[Node, Inbox, Exit], Component], args: list[str] | None = None
) -> int:
    """Run a component in a managed node of this name until SIGINT, SIGTERM or `Exit.request`.

    Returns the exit code: 0 or that of the request, or WRONG_USE with a log line for a UsageError.
    Raises what a thread raised. What a start makes of its interruption is no error.
    """
    exit_ = Exit()
    exit_.install()
    rclpy.init(
        args=sys.argv if args is None else args, signal_handler_options=SignalHandlerOptions.NO
    )
    try:
        node = _create_node(name, make, exit_)
        node.start()
        _serve(node, exit_)
    except Exception as error:
        if exit_.interrupted:
            return 0
        if not isinstance(error, UsageError):
            raise
        get_logger(name).fatal(str(error))
        return WRONG_USE
    finally:
        exit_.ignore()
        # rclpy.try_shutdown would put signal handlers of its own
        rclpy.utilities.get_default_context().try_shutdown()
    if exit_.error is not None:
        raise exit_.error
    return exit_.code


def _create_node(
    name: str, make: Callable[[Node, Inbox, Exit], Component], exit_: Exit
) -> ManagedNode:
    try:
        return ManagedNode(name, make, exit_)
    except ValueError as error:
        raise UsageError(
            f"{error}; leave parameters without a value (null, an empty list) out"
        ) from error


def _serve(node: ManagedNode, exit_: Exit) -> None:
    executor, stop = GuardedExecutor(node.errors), Future[None]()
    executor.add_node(node)
    thread = _thread("executor", lambda: executor.spin_until_future_complete(stop), exit_)
    try:
        exit_.wait()
    finally:
        stop.set_result(None)
        thread.join()
        node.end()
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
