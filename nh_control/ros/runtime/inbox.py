"""The inbox of a node's working thread: messages, and requests from other threads.

For each message, rclpy's executor builds a wait set over all entities of the node, creates a task
and a coroutine, and wakes itself twice. This takes 100 to 200 us, and longer with every additional
service. Therefore the few topics in a control loop use an inbox instead. The inbox reuses one wait
set over its subscriptions, waits only if no message has arrived, and takes and handles messages
directly in the thread that uses them (`test/benchmark/node_rates.py` measures both ways). rclpy's
executor handles timers, services and parameters in another thread, and their callbacks pass work
to the inbox with `post` or `call`.

Only this file uses rclpy's undocumented `WaitSet` and `Subscription.handle`, as
`rclpy.wait_for_message` does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as CallTimeout
from functools import partial
from threading import Lock, get_ident
from typing import Any, NamedTuple, TypeVar

from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import SetBool, Trigger

from nh_control.ros.runtime.callback_errors import CallbackErrors
from nh_control.ros.runtime.local_topics import LocalTopics
from nh_control.ros.runtime.subscribers import (
    incompatible_publishers,
    mistyped_publishers,
    type_name,
)

T = TypeVar("T")
Response = TypeVar("Response", SetBool.Response, Trigger.Response)

LONGEST_S = 3600.0
"""Maximum duration of a single wait. The wait set cannot represent much longer waits, which a very
slow plant may request.
"""
_TWIST, _STAMPED = "geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped"
# this is the usual mismatch, because Nav2 and teleoperation publish either type
REMEDIES = {
    (_TWIST, _STAMPED): "set the tracker's cmd_vel.stamped:=false",
    (_STAMPED, _TWIST): "set the tracker's cmd_vel.stamped:=true",
}
"""Remedy for a publisher of the first type on a topic of the second type."""
ANSWER_S = 5.0
"""Time for which `call` waits for the working thread."""


class Local(NamedTuple):
    """The receiver of a topic's contents from nodes in this process. `callback` is called in the
    working thread, or, with `at_once`, in the publisher's thread (see `Inbox.lend`).
    """

    callback: Callable[[Any], None]
    at_once: bool = False


class Inbox:
    """Messages and requests for one working thread, which calls `serve` or `run`. Other threads
    call `post`, `call` and `close`. Errors in the callbacks are reported to `errors`.
    """

    def __init__(
        self,
        node: Node,
        errors: CallbackErrors | None = None,
        local: LocalTopics | None = None,
    ):
        self._node, self._group, self._local = node, _Reserved(), local
        self.errors = errors or CallbackErrors(node.get_logger())
        self._guard = node.create_guard_condition(lambda: None, callback_group=self._group)
        self._waits, self._thread = False, 0
        self.handling = Lock()
        """Held while messages and requests are handled."""
        self.lent: Callable[[], object] = lambda: None
        """Called after every request that is passed to `lend`."""
        # a deque is thread-safe: other threads append to it, and the working thread takes from it
        self._requests: deque[Callable[[], None]] = deque()
        self._subscriptions: list[_Subscription] = []
        self._qualities: dict[str, QoSProfile] = {}
        self._wait_set: Any = None
        self.closed = False

    @property
    def name(self) -> str:
        """Name of the node."""
        return self._node.get_name()

    def subscribe(
        self,
        message_type: type,
        topic: str,
        callback: Callable[[Any], None],
        qos: QoSProfile | int,
        raw: bool = False,
        awaited: Callable[[], bool] = lambda: True,
        local: Local | None = None,
    ) -> None:
        """Call `callback` in the working thread with every message (bytes, if `raw`). Call this
        method before that thread starts. If the topic is not `awaited`, its message does not wake
        the thread. The message is then handled with the next one that does, before the messages on
        topics that were subscribed to later. If the topic stays in this process, `local` receives
        its contents.
        """
        # contents from a node in this process replace the subscription
        if self._local is not None and local is not None and self._takes_locally(topic, local):
            return
        subscription = self._node.create_subscription(
            message_type,
            topic,
            callback,
            qos,
            callback_group=self._group,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            raw=raw,
        )
        self._subscriptions.append(
            _Subscription(
                subscription.handle, subscription.topic_name, message_type, raw, awaited, callback
            )
        )
        self._qualities[subscription.topic_name] = subscription.qos_profile
        # the wait set has a fixed number of subscriptions, so the next wait creates a new wait set
        self._wait_set = None

    def incompatible_publishers(self) -> dict[str, list[str]]:
        """Publishers whose quality of service is incompatible with this inbox's subscriptions, by
        topic.
        """
        publishers = {
            topic: incompatible_publishers(self._node, topic, quality)
            for topic, quality in self._qualities.items()
        }
        return {topic: nodes for topic, nodes in publishers.items() if nodes}

    def mistyped_publishers(self) -> list[str]:
        """Warnings about publishers whose types differ from those of this inbox's subscriptions,
        with remedies.
        """
        texts = []
        for subscription in self._subscriptions:
            expected = type_name(subscription.message_type)
            others = mistyped_publishers(self._node, subscription.topic, subscription.message_type)
            for other, nodes in others.items():
                remedy = REMEDIES.get((other, expected), f"publish {expected}, or remap the topic")
                texts.append(
                    f"{subscription.topic} of {', '.join(nodes)} is not received: its type is "
                    f"{other}, this node expects {expected}; {remedy}"
                )
        return texts

    def post(self, request: Callable[[], None]) -> None:
        """Call `request` in the working thread if the inbox is open. Thread-safe."""
        if not self.closed:
            self._requests.append(request)
            # a thread that is not waiting looks for requests before it waits
            if self._waits:
                self._guard.trigger()

    def call(self, request: Callable[[], T]) -> T:
        """Call `request` in the working thread and return its result. Raises the error of the
        request, or TimeoutError if there is no answer within ANSWER_S.
        """
        if self.closed:
            raise CallTimeout(f"the {self.name} is not active")
        # the working thread sets the result, and the calling thread waits for it
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(request())
            except Exception as error:
                future.set_exception(error)

        self.post(run)
        return future.result(ANSWER_S)

    def close(self) -> None:
        """End `run`. Thread-safe."""
        self.closed = True
        self._guard.trigger()

    def open(self) -> None:
        """Accept requests again and drop earlier ones. Call this method while no thread serves the
        inbox.
        """
        self._requests.clear()
        self.closed = False

    def run(self) -> None:
        """Serve until `close`."""
        while not self.closed:
            self.serve(None)

    def serve(self, timeout_s: float | None) -> bool:
        """Wait up to timeout_s (None: forever) for a message or request, and then handle at most
        one message per topic and all requests. Returns whether there was a message or request.
        """
        self._thread = get_ident()
        # messages that have arrived need no wait, which is the usual case in a fast loop
        if self._handle(self._awaited()):
            return True
        if timeout_s == 0.0:
            return False
        self._waits = True  # from now on, a request triggers the guard
        ready = self._awaited() if self._requests else self._wait(timeout_s)
        self._waits = False
        return self._handle(ready)

    def lend(self, request: Callable[[], None]) -> None:
        """Call `request` in the caller's thread, if the inbox is open. Messages that have arrived
        are handled first, and the working thread handles nothing meanwhile.
        """
        with self.handling:
            if not self.closed:
                self._handle_messages(self._awaited())
                self._carry_out(request)
                self.lent()

    def _awaited(self) -> list[_Subscription]:
        """The subscriptions whose messages wake the thread."""
        return [subscription for subscription in self._subscriptions if subscription.awaited()]

    def _handle(self, ready: list[_Subscription]) -> bool:
        """Handle the messages of the `ready` subscriptions and the requests that have arrived.
        Returns whether there were any.
        """
        with self.handling:
            # requests posted meanwhile must wait, so that each call handles a finite number
            handled, requests = self._handle_messages(ready), len(self._requests)
            for _ in range(requests):
                self._carry_out(self._requests.popleft())
        return bool(handled or requests)

    def _handle_messages(self, ready: list[_Subscription]) -> bool:
        """Handle a message on each topic if one of a `ready` subscription has arrived."""
        taken = {
            id(subscription): message
            for subscription in ready
            if (message := subscription.take(self.errors))
        }
        if not taken:
            return False
        # an awaited message also brings those that do not wake the thread, and those that were
        # sent before it, perhaps while this thread looked
        for subscription in self._subscriptions:
            if message := taken.get(id(subscription)) or subscription.take(self.errors):
                subscription.handle_taken(message, self.errors)
        return True

    def _wait(self, timeout_s: float | None) -> list[_Subscription]:
        """Wait for an awaited message or for the guard condition. Returns the subscriptions that
        have messages.
        """
        wait_set = self._wait_set
        if wait_set is None:
            context: Any = self._node.context.handle
            wait_set = self._wait_set = rclpy_implementation.WaitSet(
                len(self._subscriptions), 1, 0, 0, 0, 0, context
            )
        wait_set.clear_entities()
        awaited = self._awaited()
        for subscription in awaited:
            wait_set.add_subscription(subscription.handle)
        wait_set.add_guard_condition(self._guard.handle)
        wait_set.wait(-1 if timeout_s is None else int(min(timeout_s, LONGEST_S) * 1e9))
        ready = wait_set.get_ready_entities("subscription")
        return [subscription for subscription in awaited if subscription.handle.pointer in ready]

    def _takes_locally(self, topic: str, local: Local) -> bool:
        """Connect `local` to a topic that stays in this process. Returns False for other
        topics.
        """
        name = self._node.resolve_topic_name(topic)
        if self._local is None or name not in self._local.names:
            return False

        def take(content: Any) -> None:
            # in this thread if it is the working thread, else with `lend` or as a posted request
            request = partial(self._take, name, local.callback, content)
            if get_ident() == self._thread:
                request()
            elif local.at_once:
                self.lend(request)
            else:
                self.post(request)

        self._local.subscribe(self.name, name, take)
        return True

    def _take(self, topic: str, callback: Callable[[Any], None], content: Any) -> None:
        """Handle the content of a message from a node in this process."""
        try:
            callback(content)
        except Exception as error:
            self.errors.raised(topic, error)

    def _carry_out(self, request: Callable[[], None]) -> None:
        try:
            request()
        except Exception as error:
            self.errors.raised(getattr(request, "__qualname__", "a request"), error)


def answer(
    inbox: Inbox,
    response: Response,
    request: Callable[[], None],
    outcome: Callable[[], str],
    refusals: tuple[type[Exception], ...] = (),
) -> Response:
    """The response of a service whose request the working thread handles. Its message is
    `outcome()` or the reason for a failure: an error among the `refusals`, or no answer in time.
    """
    # Python 3.10 has two kinds of TimeoutError
    expected: tuple[type[Exception], ...] = (*refusals, TimeoutError, CallTimeout)
    try:
        inbox.call(request)
        response.success, response.message = True, outcome()
    except expected as reason:
        response.success = False
        response.message = str(reason) or f"the {inbox.name} did not answer in time"
    return response


class _Subscription(NamedTuple):
    """A subscription's handle, its message type, whether it is awaited, and its callback."""

    handle: Any
    topic: str
    message_type: type
    raw: bool
    awaited: Callable[[], bool]
    callback: Callable[[Any], None]

    def take(self, errors: CallbackErrors) -> tuple[Any, Any] | None:
        """A message and its information, or None if there is no readable message."""
        try:
            taken: tuple[Any, Any] | None = self.handle.take_message(self.message_type, self.raw)
        except Exception as reason:
            errors.malformed(self.topic, reason)
            return None
        return taken

    def handle_taken(self, taken: tuple[Any, Any], errors: CallbackErrors) -> None:
        """Call the callback with a message."""
        try:
            self.callback(taken[0])
        except Exception as error:
            errors.raised(self.topic, error)


class _Reserved(CallbackGroup):
    """A callback group whose members no executor touches."""

    def can_execute(self, entity: object) -> bool:
        return False

    def beginning_execution(self, entity: object) -> bool:
        return False

    def ending_execution(self, entity: object) -> None:
        pass
