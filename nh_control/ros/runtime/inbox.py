"""The inbox of a node's working thread: messages, and requests from other threads.

For each message, rclpy's executor builds a wait set over all entities of the node, creates a task
and a coroutine, and wakes itself twice. This takes 100 to 200 us, and longer with every additional
service. Therefore the few topics in a control loop use an inbox instead. The inbox waits only if
no message has arrived, is woken by the middleware without a wait set (see `Wakeup`), and takes and
handles messages directly in the thread that uses them (`test/benchmark/node_rates.py` measures
both ways). rclpy's executor handles timers, services and parameters in another thread, and their
callbacks pass work to the inbox with `post` or `call`.

Only this file uses rclpy's undocumented `Subscription.handle`, as `rclpy.wait_for_message` does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as CallTimeout
from dataclasses import dataclass
from functools import partial
from threading import Lock, get_ident
from typing import Any, NamedTuple, TypeVar

from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
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
from nh_control.ros.runtime.wakeup import Wakeup

T = TypeVar("T")
Response = TypeVar("Response", SetBool.Response, Trigger.Response)

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
        self._wakeup, self._thread, self._received_ns = Wakeup(), 0, 0
        self.handling = Lock()
        """Held while messages and requests are handled."""
        self.lent: Callable[[], object] = lambda: None
        """Called after every request that is passed to `lend`."""
        # a deque is thread-safe: other threads append to it, and the working thread takes from it
        self._requests: deque[Callable[[], None]] = deque()
        self._subscriptions: list[_Subscription] = []
        self._qualities: dict[str, QoSProfile] = {}
        self.closed = False

    @property
    def name(self) -> str:
        """Name of the node."""
        return self._node.get_name()

    @property
    def age_s(self) -> float:
        """Time (s) since the middleware received the message that is being handled, or 0 if this
        is unknown or another node in this process sent the contents.
        """
        return max(0.0, (time.time_ns() - self._received_ns) * 1e-9) if self._received_ns else 0.0

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
        method before that thread starts. If the topic is not `awaited` when the thread begins to
        wait, its message does not wake the thread and is handled when the thread is awake. If the
        topic stays in this process, `local` receives its contents.
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
            self._wakeup.post()

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
        self._wakeup.post()

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
        # messages and requests that arrive from now on end the wait
        self._wakeup.clear()
        # those that have arrived need no wait, which is the usual case in a fast loop
        if self._handle():
            return True
        if timeout_s == 0.0 or self.closed:
            return False
        for subscription in self._subscriptions:
            subscription.listen(self._wakeup)
        self._wakeup.wait(timeout_s)
        return self._handle()

    def lend(self, request: Callable[[], None]) -> None:
        """Call `request` in the caller's thread, if the inbox is open. Messages that have arrived
        are handled first, and the working thread handles nothing meanwhile.
        """
        with self.handling:
            if not self.closed:
                self._handle_messages()
                self._carry_out(request)
                self.lent()

    def _handle(self) -> bool:
        """Handle the messages and requests that have arrived. Returns whether there were any."""
        with self.handling:
            # requests posted meanwhile must wait, so that each call handles a finite number
            handled, requests = self._handle_messages(), len(self._requests)
            for _ in range(requests):
                self._carry_out(self._requests.popleft())
        return bool(handled or requests)

    def _handle_messages(self) -> bool:
        """Handle a message on each topic that has one. Returns whether there were any."""
        taken = [self._taken(subscription) for subscription in self._subscriptions]
        if not any(taken):
            return False
        # a message that was sent before a taken one may have arrived while this thread looked
        for subscription, message in zip(self._subscriptions, taken):
            if message := message or self._taken(subscription):
                self._received_ns = message[1]["received_timestamp"]
                subscription.handle_taken(message, self.errors)
        self._received_ns = 0
        return True

    def _taken(self, subscription: _Subscription) -> tuple[Any, Any] | None:
        """A message and its information, or None if there is no readable message."""
        try:
            return subscription.take()
        except Exception as reason:
            self.errors.malformed(subscription.topic, reason)
            # the thread must not wait, because another message may have arrived after this one
            self._wakeup.post()
            return None

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


@dataclass
class _Subscription:
    """A subscription's handle, its message type, whether it is awaited, and its callback."""

    handle: Any
    topic: str
    message_type: type
    raw: bool
    awaited: Callable[[], bool]
    callback: Callable[[Any], None]
    _listens: bool = False

    def listen(self, wakeup: Wakeup) -> None:
        """Let messages wake the thread if the topic is awaited."""
        if self.awaited() is not self._listens:
            self._listens = not self._listens
            wakeup.listen(self.handle, self._listens)

    def take(self) -> tuple[Any, Any] | None:
        """A message and its information, or None if there is no message."""
        taken: tuple[Any, Any] | None = self.handle.take_message(self.message_type, self.raw)
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
