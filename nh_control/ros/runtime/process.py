"""The process of a node. It works until a signal arrives or the node requests the exit, closes
everything, and exits with code 0.

Ctrl-C reaches the whole process group, and then `ros2 launch` sends SIGINT again. The second
signal must not interrupt the cleanup. Therefore this module replaces rclpy's signal handlers with
handlers that write to a pipe, on which the main thread waits. One thread runs rclpy's executor
(services, timers, parameters, lifecycle transitions), and another thread runs the component.
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
"""Maximum time for a node to leave the network. Fast DDS in the PyPI wheels never returns if it
discovers another node at that moment, and it then holds the interpreter's lock (Fast DDS issue
6513).
"""
SWITCH_S = 2e-4
"""Maximum time for which another thread, such as the executor's or a planner's, withholds the
interpreter's lock from the working thread.
"""


class Component(Protocol):
    """The work of a node. A component is created from the node, its inbox and the process's
    Exit.
    """

    def work(self) -> None:
        """Run in the working thread until the inbox is closed. Called again after the inbox is
        reopened.
        """

    def close(self) -> None:
        """Close files and send the last messages. Called after `work` has returned."""


Make = Callable[[Node, Inbox, Exit], Component]
"""Creates a component."""


class ManagedNode(LifecycleNode):
    """A managed node around a component. Configuring the node creates the component with
    parameters, topics and services. Activating it starts the component's thread, and deactivating
    it ends the thread. Cleaning it up removes the component and keeps the parameter overrides.
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
        # entities of the node itself, which a cleanup must keep
        self._before: set[int] = set()
        self._failure: Exception | None = None
        self.errors = CallbackErrors(self.get_logger())
        self._guard_services()

    def share(self, local: LocalTopics) -> None:
        """Exchange the contents of these topics within the process. Call this method before
        `start`.
        """
        self._local = local

    def create_publisher(self, *args: Any, **options: Any) -> Any:
        """A publisher whose quality of service (history, depth and reliability) can be overridden
        by the parameters `qos_overrides.<topic>.publisher.<policy>`.
        """
        publisher = super().create_publisher(*args, **self._overridable(options))
        if self._local is None or publisher.topic_name not in self._local.names:
            return publisher
        return self._local.publisher(publisher)

    def create_subscription(self, *args: Any, **options: Any) -> Any:
        """A subscription whose quality of service can be overridden in the same way."""
        return super().create_subscription(*args, **self._overridable(options))

    def _overridable(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, which permit overrides for a component's topics."""
        if self._inbox is None:  # a topic that belongs to rclpy itself
            return options
        return {"qos_overriding_options": QoSOverridingOptions.with_default_policies()} | options

    def start(self) -> None:
        """Configure and activate the node, unless the parameter `autostart` is false. Raises the
        error if the component cannot be created. After activation, signals interrupt nothing,
        because the component must be stopped before the process ends.
        """
        # the parameters of the component are not declared yet
        autostart = self.get_parameter_or("autostart", Parameter("autostart", value=True)).value
        if autostart:
            self.trigger_configure()
            if self._failure is not None:
                raise self._failure
        # from now on, a signal only ends `_serve`
        self._exit.started()
        self._started = True
        if autostart:
            self.trigger_activate()

    def interrupt(self) -> None:
        """Let the component return from `work`, and from waits for other nodes."""
        # another thread may remove the inbox
        if (inbox := self._inbox) is not None:
            inbox.close()

    def end(self) -> None:
        """Stop and close the component, and destroy the node."""
        self._stop()
        self._close()
        with _time_to_leave():
            self.destroy_node()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Create the component. If this fails during startup, `start` raises the error. Later, the
        error is logged.
        """
        self._before = {id(entity) for entities, _ in self._entities() for entity in entities}
        self._failure, overrides = None, self.get_parameters_by_prefix("")
        # topics, services and timers that are created from here on belong to the component
        self._inbox = inbox = Inbox(self, self.errors, self._local)
        try:
            self._component = self._make(self, inbox, self._exit)
        except Exception as error:
            self._failure = error
            self._clear()
            # overrides stay declared, for the next configuration
            for name, parameter in overrides.items():
                if not self.has_parameter(name):
                    self.declare_parameter(name, parameter.value)
            if self._started:
                self._tell(error)
            return TransitionCallbackReturn.FAILURE
        self._guard_services()
        inbox.close()
        # objects created so far are permanent, so garbage collection skips them from now on
        gc.freeze()
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the component's thread."""
        if self._inbox is None or self._component is None:
            return TransitionCallbackReturn.ERROR
        # requests that arrived while the node was inactive are dropped
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
        """Make the component's services answer even if their callbacks raise errors."""
        for service in self.services:
            if id(service) not in self._before:
                guard(self, service, self.errors)

    def _tell(self, error: Exception) -> None:
        # a user's error is logged, but any other error ends the process
        if isinstance(error, UsageError):
            self.get_logger().error(f"cannot be configured: {error}")
        else:
            self._exit.request(error)

    def _stop(self) -> None:
        if self._inbox is not None and self._thread is not None:
            self._inbox.close()
            self._thread.join()
            self._thread = None
            # wait until no other thread handles anything (see `Inbox.lend`)
            with self._inbox.handling:
                pass

    def _close(self) -> None:
        if self._component is not None:
            self._component.close()
            self._component = None

    def _clear(self) -> None:
        """Destroy all entities that were created since the configuration began."""
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
    """Run a component in a managed node with the given name (see `run_all`)."""
    return run_all({name: make}, (), args)


def run_all(
    makes: Mapping[str, Make], topics: Sequence[str], args: list[str] | None = None
) -> int:
    """Run components in managed nodes with these names until SIGINT, SIGTERM or `Exit.request`.
    The nodes exchange the contents of `topics` (relative names) within the process.

    Returns the exit code: 0, the code of the request, or WRONG_USE after a UsageError, which is
    logged. Raises the errors of the threads. Errors during an interrupted startup are ignored.
    """
    sys.setswitchinterval(SWITCH_S)
    exit_ = Exit()
    exit_.install()
    # rclpy's signal handlers would interrupt the cleanup
    rclpy.init(
        args=sys.argv if args is None else args, signal_handler_options=SignalHandlerOptions.NO
    )
    try:
        nodes = _create_nodes(makes, topics, exit_)
        for node in nodes:
            node.start()
        gc.enable()
        _serve(nodes, exit_)
    except Exception as error:
        if exit_.interrupted:
            return 0
        if not isinstance(error, UsageError):
            raise
        # the user's mistake needs no traceback
        get_logger(next(iter(makes))).fatal(str(error))
        return WRONG_USE
    finally:
        exit_.ignore()
        # rclpy.try_shutdown would install its own signal handlers; the context destroys a node
        # whose startup failed
        with _time_to_leave():
            rclpy.utilities.get_default_context(shutting_down=True).try_shutdown()
    if exit_.error is not None:
        raise exit_.error
    return exit_.code


@contextmanager
def _time_to_leave() -> Iterator[None]:
    """If the block takes longer than LEAVE_S, end the process with exit code 1 and print its
    stack. faulthandler works without the interpreter's lock.
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
            # the first node resolves the names, because all nodes share one namespace
            if topics and local is None:
                local = LocalTopics([nodes[0].resolve_topic_name(topic) for topic in topics])
                nodes[0].share(local)
        return nodes
    except ValueError as error:
        raise UsageError(
            f"{error}; omit parameters without a value (null, an empty list)"
        ) from error


def _serve(nodes: Sequence[ManagedNode], exit_: Exit) -> None:
    """Run an executor in a thread for each node until the exit is requested, and end the nodes in
    reverse order.
    """
    with ExitStack() as ends:
        for node in nodes:
            executor, stop = GuardedExecutor(node.errors), Future[None]()
            executor.add_node(node)
            spin = partial(executor.spin_until_future_complete, stop)
            thread = _thread("executor", spin, exit_)
            # called from last to first: stop spinning, join the thread, end the node
            ends.callback(executor.shutdown)
            ends.callback(node.end)
            ends.callback(thread.join)
            ends.callback(stop.set_result, None)
        exit_.wait()
        # a node's thread may work for a node that ends later (see `Inbox.lend`)
        for node in reversed(nodes):
            node.interrupt()


def _thread(name: str, target: Callable[[], None], exit_: Exit) -> threading.Thread:
    """Start a thread and return it. An error in its target ends the process."""

    def guarded() -> None:
        try:
            target()
        except BaseException as error:
            exit_.request(error)

    thread = threading.Thread(target=guarded, name=name)
    thread.start()
    return thread
