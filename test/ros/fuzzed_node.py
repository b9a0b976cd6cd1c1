"""A node of this package in the test's process, at whose callbacks messages are thrown."""

from __future__ import annotations

import importlib
import math
import threading
import time
from collections import Counter

import rclpy
from fuzzing import Fuzzer, numbers
from rclpy.context import Context
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message

from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.process import Exit

HANGS_S = 10.0


class Watched(Node):
    """A node whose published messages must be finite: `wrong` are those that are not."""

    def __init__(self, *arguments, **options):
        self.wrong: list[tuple[str, object]] = []
        self.sent: Counter[str] = Counter()
        super().__init__(*arguments, **options)

    @property
    def published(self) -> int:
        """Messages that it has sent."""
        return self.sent.total()

    def create_publisher(self, *arguments, **options):
        """A publisher that looks at what it sends."""
        publisher, kind = super().create_publisher(*arguments, **options), arguments[0]
        send = publisher.publish

        def publish(message):
            self.sent[publisher.topic_name] += 1
            seen = deserialize_message(message, kind) if isinstance(message, bytes) else message
            if not all(map(math.isfinite, numbers(seen))):
                self.wrong.append((publisher.topic_name, message))
            send(message)

        publisher.publish = publish
        return publisher


class FuzzedNode:
    """The node `name` with parameters, and its working thread."""

    def __init__(self, name: str, parameters: dict, domain: int):
        self.context = Context()
        given = [part for key, value in parameters.items() for part in ("-p", f"{key}:={value}")]
        rclpy.init(args=["test", "--ros-args", *given], context=self.context, domain_id=domain)
        self.node = Watched(
            name, context=self.context, automatically_declare_parameters_from_overrides=True
        )
        self.inbox, self.died = Inbox(self.node), None
        module = importlib.import_module(f"nh_control.ros.nodes.{name}")
        self.component = getattr(module, name.capitalize())(self.node, self.inbox, Exit())
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self.component.work()
        except BaseException as error:
            self.died = error

    @property
    def topics(self) -> list[str]:
        """Topics that it hears."""
        return [topic.removeprefix("/") for topic in self.inbox._qualities]

    def receive(self, topic: str, message) -> None:
        """Have it handle a message; fails where it dies of it, or does not come back."""
        subscription = self.inbox._subscriptions[self.topics.index(topic)]
        raw, callback = subscription.raw, subscription.callback
        if raw and not isinstance(message, bytes):
            message = serialize_message(message)
        handled = threading.Event()

        def handle():
            callback(message)
            handled.set()

        self.inbox.post(handle)
        deadline = time.monotonic() + HANGS_S
        while not handled.wait(0.05):
            failed = self.died is not None or self.inbox.errors.counts["callback_errors"]
            if failed or time.monotonic() > deadline:
                raise AssertionError(
                    f"died or hangs at {topic}: {str(message)[:2000]}"
                ) from self.died

    def call(self, service: str, data: bool | None = None) -> None:
        """Call one of its services."""
        found = next(s for s in self.node.services if s.srv_name.endswith(f"/{service}"))
        request = found.srv_type.Request()
        if data is not None:
            request.data = data
        found.callback(request, found.srv_type.Response())

    def report(self) -> dict:
        """Values of its diagnostics."""
        return self.inbox.call(self.component.diagnostics.report).values

    def end(self) -> None:
        """End it; fails if it has died."""
        self.inbox.close()
        self._thread.join(HANGS_S)
        if self.died is None:
            self.component.close()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


def throw(node: FuzzedNode, fuzzer: Fuzzer, rounds: int, right, share: float = 0.7) -> int:
    """Throw messages at the node, in every round those of `right(round)` by topic, a `share` of
    them made wrong; returns how many.
    """
    count = 0
    for k in range(rounds):
        for topic, message in right(k).items():
            if topic in node.topics:
                node.receive(topic, fuzzer.wrong(message) if fuzzer.chance(share) else message)
                count += 1
    assert node.died is None and not node.node.wrong, node.node.wrong[:3]
    assert not node.inbox.errors.counts["callback_errors"], node.inbox.errors.counts
    return count
