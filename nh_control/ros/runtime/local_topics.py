"""Topics between nodes in the same process, without the middleware and without messages."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from rclpy.publisher import Publisher

Take = Callable[[Any], None]


class LocalTopics:
    """Passes the contents of the topics `names` (resolved names) directly from a publisher to the
    subscribed nodes in the same process. Nodes in other processes receive messages through the
    middleware. Messages from publishers in other processes are ignored.
    """

    def __init__(self, names: Collection[str]):
        self.names = frozenset(names)
        self._takers: dict[str, dict[str, Take]] = {name: {} for name in names}

    def subscribe(self, node: str, topic: str, take: Take) -> None:
        """Call `take` in the publisher's thread with the content of every message. This call
        replaces an earlier subscription by the node.
        """
        # a new dictionary, so that a publisher in another thread can iterate over the old one
        self._takers[topic] = {**self._takers[topic], node: take}

    def forget(self, node: str) -> None:
        """End the subscriptions of a node."""
        for topic, takers in self._takers.items():
            self._takers[topic] = {name: take for name, take in takers.items() if name != node}

    def publisher(self, publisher: Publisher) -> LocalPublisher:
        """A publisher that also reaches the subscribers in this process."""
        return LocalPublisher(publisher, self)

    def takers(self, topic: str) -> dict[str, Take]:
        """The callbacks of the subscribed nodes in this process, by node name."""
        return self._takers[topic]


class LocalPublisher:
    """A publisher with subscribers in the same process. Other attributes are those of the
    middleware's publisher.
    """

    def __init__(self, publisher: Publisher, topics: LocalTopics):
        self._publisher, self._topics, self._topic = publisher, topics, publisher.topic_name

    def publish(self, message: Any) -> None:
        """Publish a message or its bytes to the subscribers in other processes."""
        self._publisher.publish(message)

    def hand_over(self, content: Any) -> None:
        """Pass the content of a message to the subscribers in this process."""
        for take in self._topics.takers(self._topic).values():
            take(content)

    def get_subscription_count(self) -> int:
        """Number of all subscribers."""
        # the ROS graph knows only the subscribers in other processes
        return self._publisher.get_subscription_count() + len(self.local_subscribers)

    @property
    def local_subscribers(self) -> frozenset[str]:
        """Names of the subscribed nodes in this process, which the ROS graph does not contain."""
        return frozenset(self._topics.takers(self._topic))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._publisher, name)


def local_count(publisher: Publisher | LocalPublisher) -> int:
    """Number of a publisher's subscribers in this process, for which no message is created."""
    return len(publisher.local_subscribers) if isinstance(publisher, LocalPublisher) else 0


def hand_over(publisher: Publisher | LocalPublisher, content: Any) -> None:
    """Pass the content of a message to the publisher's subscribers in this process, if there can
    be any.
    """
    if isinstance(publisher, LocalPublisher):
        publisher.hand_over(content)
