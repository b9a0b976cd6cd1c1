"""The inbox of a node's working thread: messages, and requests of other threads.

rclpy's executor builds a wait set over everything in the node, a task and a coroutine for every
callback, and wakes itself twice for it: 100 to 200 us a message, and more with every service of
the node. The few topics on which a control loop runs go through an inbox instead: one kept wait
set over these subscriptions alone, messages taken and handed over directly, in the thread that
uses them. In lock-step this makes about three thousand steps per second of one and a half
thousand. Timers, services and parameters stay with rclpy's executor, in its own thread, and
`post` or `call` what they want done.

This file is the only one that uses undocumented parts of rclpy: its `WaitSet` and
`Subscription.handle`, as `rclpy.wait_for_message` does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as CallTimeout
from functools import partial
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
"""Longest single wait; the wait set cannot represent longer ones, as of a very slow plant."""
_TWIST, _STAMPED = "geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped"
REMEDIES = {
    (_TWIST, _STAMPED): "set the tracker's cmd_vel.stamped:=false",
    (_STAMPED, _TWIST): "set the tracker's cmd_vel.stamped:=true",
}
"""What to do about a publisher of the first type on a topic of the second."""
ANSWER_S = 5.0
"""Time for which `call` waits for the working thread."""


class Inbox:
    """Messages and requests for one working thread, which calls `serve` or `run`; other threads
    call `post`, `call` and `close`. Errors of their handling are reported to `errors`.
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
    ) -> None:
        """Call `callback` in the working thread with every message (bytes, if raw); subscribe
        before that thread starts. If the topic is not `awaited`, a message alone does not wake the
        thread; it is handled with the next message that does, before those of topics subscribed to
        later.
        """
        if self._local is not None and self._takes_locally(topic, callback, raw):
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
        self._wait_set = None

    def incompatible_publishers(self) -> dict[str, list[str]]:
        """Publishers with a quality of service that is incompatible with the subscriptions here,
        by topic.
        """
        publishers = {
            topic: incompatible_publishers(self._node, topic, quality)
            for topic, quality in self._qualities.items()
        }
        return {topic: nodes for topic, nodes in publishers.items() if nodes}

    def mistyped_publishers(self) -> list[str]:
        """Sentences about publishers whose types differ from those of the subscriptions here."""
        texts = []
        for one in self._subscriptions:
            own = type_name(one.message_type)
            others = mistyped_publishers(self._node, one.topic, one.message_type)
            for other, nodes in others.items():
                remedy = REMEDIES.get((other, own), f"publish {own}, or remap the topic")
                texts.append(
                    f"{one.topic} of {', '.join(nodes)} is not heard: it is {other}, this node "
                    f"takes {own}; {remedy}"
                )
        return texts

    def post(self, request: Callable[[], None]) -> None:
        """Call `request` in the working thread, if it is open; for any thread."""
        if not self.closed:
            self._requests.append(request)
            self._guard.trigger()

    def call(self, request: Callable[[], T]) -> T:
        """Call `request` in the working thread and return its result; raises its error, and
        TimeoutError without an answer.
        """
        if self.closed:
            raise CallTimeout(f"the {self.name} is not active")
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(request())
            except Exception as error:
                future.set_exception(error)

        self.post(run)
        return future.result(ANSWER_S)

    def close(self) -> None:
        """End `run`; for any thread."""
        self.closed = True
        self._guard.trigger()

    def open(self) -> None:
        """Take requests again, without earlier ones; call it while nothing runs."""
        self._requests.clear()
        self.closed = False

    def run(self) -> None:
        """Serve until `close`."""
        while not self.closed:
            self.serve(None)

    def serve(self, timeout_s: float | None) -> bool:
        """Wait up to timeout_s (None: forever) for a message or request, and handle at most one
        message per topic and all requests; returns whether there was one.
        """
        wait_set = self._wait_set
        if wait_set is None:
            context: Any = self._node.context.handle
            wait_set = self._wait_set = rclpy_implementation.WaitSet(
                len(self._subscriptions), 1, 0, 0, 0, 0, context
            )
        wait_set.clear_entities()
        waiting = [subscription.awaited() for subscription in self._subscriptions]
        for subscription, waits in zip(self._subscriptions, waiting):
            if waits:
                wait_set.add_subscription(subscription.handle)
        wait_set.add_guard_condition(self._guard.handle)
        wait_set.wait(-1 if timeout_s is None else int(min(timeout_s, LONGEST_S) * 1e9))
        ready = wait_set.get_ready_entities("subscription")
        if ready:
            for subscription, waits in zip(self._subscriptions, waiting):
                if not waits or subscription.handle.pointer in ready:
                    subscription.handle_one(self.errors)
        requests = len(self._requests)
        for _ in range(requests):
            self._carry_out(self._requests.popleft())
        return bool(ready or requests)

    def _takes_locally(self, topic: str, callback: Callable[[Any], None], raw: bool) -> bool:
        """Whether messages of a topic come from a node in this process; if so, they do from now
        on.
        """
        name = self._node.resolve_topic_name(topic)
        if self._local is None or name not in self._local.names:
            return False
        take = lambda data: self.post(partial(self._take, name, callback, data))  # noqa: E731
        self._local.subscribe(self.name, name, raw, take)
        return True

    def _take(self, topic: str, callback: Callable[[Any], None], message: Any) -> None:
        """Handle a message of a node in this process."""
        try:
            callback(message)
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
    """The response of a service whose request the working thread handles: `outcome()`, or the
    reason of a failure: one of the `refusals`, or no answer in time.
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

    def handle_one(self, errors: CallbackErrors) -> None:
        """Take a message, if there is one, and call the callback."""
        try:
            taken = self.handle.take_message(self.message_type, self.raw)
        except Exception as reason:
            errors.malformed(self.topic, reason)
            return
        if taken is None:
            return
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
