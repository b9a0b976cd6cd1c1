"""The process of a node: it starts, works until a signal or a request of the node, closes
everything, and ends with exit code 0.

Ctrl-C reaches a whole process group, and then `ros2 launch` sends SIGINT again. The second signal
must not interrupt the cleanup. Therefore rclpy's handlers are off; the handlers here write to a
pipe, on which the main thread waits. One thread runs rclpy's executor (services, timers,
parameters, changes of the node's state), another thread runs the component.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import rclpy
import rclpy.utilities
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from nh_control.numerics.interrupts import RepeatedInterrupt
from nh_control.ros.runtime.callback_errors import CallbackErrors
from nh_control.ros.runtime.guards import GuardedExecutor, guard
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.spec import UsageError as UsageError
from nh_control.runs.node_process import WRONG_USE

LEAVE_S = 20.0
"""How long a node may take to leave the network. Fast DDS of the wheels on PyPI never returns if
it discovers another node in that moment, and keeps the interpreter's lock (its issue 6513).
"""


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
        """Take over SIGINT and SIGTERM. During the start they raise SystemExit(0), again and again
        if something swallows it; later they only wake `wait`.
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
        """Have signals interrupt nothing from now on."""
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
        """Have the process end; any thread may call this."""
        self.error, self.code = self.error or error, self.code or code
        try:
            os.write(self._write, b"\0")
        except BlockingIOError:
            return  # the pipe is full of earlier requests

    def wait(self) -> None:
        """Block until a signal or request."""
        select.select([self._read], [], [])


class Component(Protocol):
    """The work of a node; it is made with the node, its inbox and the process's Exit."""

    def work(self) -> None:
        """Run in the working thread until the inbox is closed; called again if it is reopened."""

    def close(self) -> None:
        """Close files and send the last messages; called after `work` has returned."""


class ManagedNode(LifecycleNode):
    """A managed node around a component. Its configuration makes the component, with parameters,
    topics and services; its activation starts the component's thread, and its deactivation ends
    the thread. Its cleanup removes the component and keeps the given parameters.
    """

    def __init__(self, name: str, make: Callable[[Node, Inbox, Exit], Component], exit_: Exit):
        self._inbox: Inbox | None = None
        super().__init__(name, automatically_declare_parameters_from_overrides=True)
        self._make, self._exit = make, exit_
        self._component: Component | None = None
        self._thread: threading.Thread | None = None
        self._started = False
        self._before: set[int] = set()
        self._failure: Exception | None = None
        self.errors = CallbackErrors(self.get_logger())
        self._guard_services()

    def create_publisher(self, *args: Any, **options: Any) -> Any:
        """A publisher whose quality of service parameters may override: history, depth and
        reliability, `qos_overrides.<topic>.publisher.<policy>`.
        """
        return super().create_publisher(*args, **self._overridable(options))

    def create_subscription(self, *args: Any, **options: Any) -> Any:
        """A subscription whose quality of service parameters may override likewise."""
        return super().create_subscription(*args, **self._overridable(options))

    def _overridable(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, with overrides for what a component creates."""
        if self._inbox is None:  # the node itself, which has its own
            return options
        return {"qos_overriding_options": QoSOverridingOptions.with_default_policies()} | options

    def start(self) -> None:
        """Configure and activate the node, unless the parameter `autostart` is false; raises the
        error of a component that cannot be made. From the activation on, signals interrupt
        nothing, because the component must be stopped before the process ends.
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
        """Stop and close the component, and destroy the node."""
        self._stop()
        self._close()
        with _time_to_leave():
            self.destroy_node()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Make the component. If this fails, `start` raises the error; after the start the log
        reports it.
        """
        self._before = {id(entity) for entities, _ in self._entities() for entity in entities}
        self._failure, given = None, self.get_parameters_by_prefix("")
        self._inbox = inbox = Inbox(self, self.errors)
        try:
            self._component = self._make(self, inbox, self._exit)
        except Exception as error:
            self._failure = error
            self._clear()
            # parameters that were given stay declared, for the next configuration
            for name, parameter in given.items():
                if not self.has_parameter(name):
                    self.declare_parameter(name, parameter.value)
            if self._started:
                self._tell(error)
            return TransitionCallbackReturn.FAILURE
        self._guard_services()
        inbox.close()
        # objects of the start are permanent: garbage collection in the control loop skips them
        gc.freeze()
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the component's thread."""
        if self._inbox is None or self._component is None:
            return TransitionCallbackReturn.ERROR
        self._inbox.open()
        self._thread = _thread("work", self._component.work, self._exit)
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop the component's thread."""
        self._stop()
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the component, and destroy its topics, services and timers."""
        self._close()
        self._clear()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the process."""
        self._exit.request()
        return TransitionCallbackReturn.SUCCESS

    def _guard_services(self) -> None:
        """Have the services of the component answer also when their callbacks raise."""
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
        """Destroy all entities that were made since the configuration began."""
        for entities, destroy in self._entities():
            for entity in list(entities):
                if id(entity) not in self._before:
                    destroy(entity)
        self._inbox = None

    def _entities(self) -> list[tuple[Iterable[Any], Callable[[Any], object]]]:
        """Return the entities of the node by kind, each with the function that destroys them."""
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

    Returns the exit code: 0, the code of the request, or WRONG_USE with a log line for a
    UsageError. Raises the errors of the threads. Errors of an interrupted start are ignored.
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
        # rclpy.try_shutdown would install its own signal handlers; the context destroys a node
        # whose start failed
        with _time_to_leave():
            rclpy.utilities.get_default_context(shutting_down=True).try_shutdown()
    if exit_.error is not None:
        raise exit_.error
    return exit_.code


@contextmanager
def _time_to_leave() -> Iterator[None]:
    """End the process with exit code 1 and its stack in the log if the block takes longer than
    LEAVE_S. faulthandler needs no lock of the interpreter.
    """
    faulthandler.dump_traceback_later(LEAVE_S, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


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
    """Start a thread and return it; an error of its target ends the process."""

    def guarded() -> None:
        try:
            target()
        except BaseException as error:
            exit_.request(error)

    thread = threading.Thread(target=guarded, name=name)
    thread.start()
    return thread
