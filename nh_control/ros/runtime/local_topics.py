"""Topics between the nodes of one process, without the middleware."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message, serialize_message

Take = Callable[[Any], None]


class LocalTopics:
    """Hands messages of the topics with these resolved names from a publisher in this process to
    the subscribed nodes in this process. Nodes elsewhere receive them through the middleware;
    messages of publishers elsewhere are ignored.
    """

    def __init__(self, names: Collection[str]):
        self.names = frozenset(names)
        self._takers: dict[str, dict[str, tuple[bool, Take]]] = {name: {} for name in names}

    def subscribe(self, node: str, topic: str, raw: bool, take: Take) -> None:
        """Call `take`, in the publisher's thread, with every message (bytes, if raw), instead of
        any other subscription of the node.
        """
        self._takers[topic] = {**self._takers[topic], node: (raw, take)}

    def forget(self, node: str) -> None:
        """End the subscriptions of a node."""
        for topic, takers in self._takers.items():
            self._takers[topic] = {name: take for name, take in takers.items() if name != node}

    def publisher(self, publisher: Publisher) -> LocalPublisher:
        """A publisher that also reaches the subscribers in this process."""
        return LocalPublisher(publisher, self)

    def subscribers(self, topic: str) -> frozenset[str]:
        """Names of the subscribed nodes in this process."""
        return frozenset(self._takers[topic])

    def hand_over(self, topic: str, message: Any, kind: type) -> None:
        """Give a message, or its bytes, to all subscribers."""
        for raw, take in self._takers[topic].values():
            is_raw = isinstance(message, bytes)
            if raw and not is_raw:
                take(serialize_message(message))
            else:
                take(deserialize_message(message, kind) if is_raw and not raw else message)


class LocalPublisher:
    """A publisher with subscribers in its process; everything else is the middleware's."""

    def __init__(self, publisher: Publisher, topics: LocalTopics):
        self._publisher, self._topics = publisher, topics
        self._topic, self._kind = publisher.topic_name, publisher.msg_type

    def publish(self, message: Any) -> None:
        """Publish a message or its bytes; through the middleware only if it has
        subscribers there.
        """
        self._topics.hand_over(self._topic, message, self._kind)
        if self._publisher.get_subscription_count():
            self._publisher.publish(message)

    def get_subscription_count(self) -> int:
        """Number of all subscribers."""
        return self._publisher.get_subscription_count() + len(self.local_subscribers)

    @property
    def local_subscribers(self) -> frozenset[str]:
        """Names of the subscribed nodes in this process, which the graph of nodes lacks."""
        return self._topics.subscribers(self._topic)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._publisher, name)
