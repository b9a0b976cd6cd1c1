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
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
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

from nh_control.ros.runtime.callback_errors import CallbackErrors
from nh_control.ros.runtime.exit_request import Exit as Exit
from nh_control.ros.runtime.guards import GuardedExecutor, guard
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.local_topics import LocalTopics
from nh_control.ros.runtime.parameters import UsageError as UsageError
from nh_control.runs.node_process import WRONG_USE

LEAVE_S = 20.0
"""Time that a node has to leave the network. Fast DDS of the wheels on PyPI never returns if it
discovers another node in that moment, and keeps the interpreter's lock (its issue 6513).
"""


class Component(Protocol):
    """The work of a node; it is created with the node, its inbox and the process's Exit."""

    def work(self) -> None:
        """Run in the working thread until the inbox is closed; called again if it is reopened."""

    def close(self) -> None:
        """Close files and send the last messages; called after `work` has returned."""


Make = Callable[[Node, Inbox, Exit], Component]
"""Makes a component."""


class ManagedNode(LifecycleNode):
    """A managed node around a component. Its configuration makes the component, with parameters,
    topics and services; its activation starts the component's thread, and its deactivation ends
    the thread. Its cleanup removes the component and keeps the given parameters.
    """

    def __init__(
        self,
        name: str,
        make: Make,
        exit_: Exit,
        local: LocalTopics | None = None,
    ):
        self._inbox: Inbox | None = None
        self._local = local
        super().__init__(name, automatically_declare_parameters_from_overrides=True)
        self._make, self._exit = make, exit_
        self._component: Component | None = None
        self._thread: threading.Thread | None = None
        self._started = False
        self._before: set[int] = set()
        self._failure: Exception | None = None
        self.errors = CallbackErrors(self.get_logger())
        self._guard_services()

    def share(self, local: LocalTopics) -> None:
        """Exchange messages of these topics within the process; call it before the start."""
        self._local = local

    def create_publisher(self, *args: Any, **options: Any) -> Any:
        """A publisher whose quality of service parameters may override: history, depth and
        reliability, `qos_overrides.<topic>.publisher.<policy>`.
        """
        made = super().create_publisher(*args, **self._overridable(options))
        if self._local is None or made.topic_name not in self._local.names:
            return made
        return self._local.publisher(made)

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
        self._inbox = inbox = Inbox(self, self.errors, self._local)
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
        if self._local is not None:
            self._local.forget(self.get_name())
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


def run(name: str, make: Make, args: list[str] | None = None) -> int:
    """Run a component in a managed node of this name, see `run_all`."""
    return run_all({name: make}, (), args)


def run_all(
    makes: Mapping[str, Make], topics: Sequence[str], args: list[str] | None = None
) -> int:
    """Run components in managed nodes of these names until SIGINT, SIGTERM or `Exit.request`;
    messages on the `topics`, relative names, do not leave the process.

    Returns the exit code: 0, the code of the request, or WRONG_USE with a log line for a
    UsageError. Raises the errors of the threads. Errors of an interrupted start are ignored.
    """
    exit_ = Exit()
    exit_.install()
    rclpy.init(
        args=sys.argv if args is None else args, signal_handler_options=SignalHandlerOptions.NO
    )
    try:
        nodes = _create_nodes(makes, topics, exit_)
        for node in nodes:
            node.start()
        _serve(nodes, exit_)
    except Exception as error:
        if exit_.interrupted:
            return 0
        if not isinstance(error, UsageError):
            raise
        get_logger(next(iter(makes))).fatal(str(error))
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


def _create_nodes(
    makes: Mapping[str, Make], topics: Sequence[str], exit_: Exit
) -> list[ManagedNode]:
    local, nodes = None, list[ManagedNode]()
    try:
        for name, make in makes.items():
            nodes.append(ManagedNode(name, make, exit_, local))
            if topics and local is None:
                local = LocalTopics([nodes[0].resolve_topic_name(topic) for topic in topics])
                nodes[0].share(local)
        return nodes
    except ValueError as error:
        raise UsageError(
            f"{error}; leave parameters without a value (null, an empty list) out"
        ) from error


def _serve(nodes: Sequence[ManagedNode], exit_: Exit) -> None:
    """Serve every node in an executor's thread of its own, and end all in the reverse order."""
    with ExitStack() as ends:
        for node in nodes:
            executor, stop = GuardedExecutor(node.errors), Future[None]()
            executor.add_node(node)
            spin = partial(executor.spin_until_future_complete, stop)
            thread = _thread("executor", spin, exit_)
            ends.callback(executor.shutdown)
            ends.callback(node.end)
            ends.callback(thread.join)
            ends.callback(stop.set_result, None)
        exit_.wait()


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
