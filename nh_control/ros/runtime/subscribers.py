"""The subscribers of a publisher.

The graph of nodes contains a subscription before the publisher is matched with it; earlier
messages are lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSCompatibility, QoSProfile, qos_check_compatible

from nh_control.ros.runtime.local_topics import LocalPublisher

DELIVERY_S = 3.5
"""Time for which a node that ends waits until all subscribers have its last messages. It is longer
than the 3 s after which the middleware sends lost messages again.
"""


def matched_subscribers(node: Node, publisher: Publisher | LocalPublisher) -> set[str] | None:
    """Names of all nodes that are known to receive volatile messages of the publisher, or None
    while it is not matched with all of them.
    """
    local = publisher.local_subscribers if isinstance(publisher, LocalPublisher) else frozenset()
    # before the graph is asked: who comes in between is known, and not counted
    matched = publisher.get_subscription_count() - len(local)
    known = [
        s
        for s in node.get_subscriptions_info_by_topic(publisher.topic_name)
        if s.qos_profile.durability is DurabilityPolicy.VOLATILE
    ]
    return {s.node_name for s in known} | local if matched >= len(known) else None


def incompatible_publishers(node: Node, topic: str, quality: QoSProfile) -> list[str]:
    """Nodes that publish a topic (resolved name) with a quality of service that is incompatible
    with a subscription of `quality`, each with the reason.
    """
    publishers = []
    for publisher in node.get_publishers_info_by_topic(topic):
        fits, reason = qos_check_compatible(publisher.qos_profile, quality)
        if fits == QoSCompatibility.ERROR:
            publishers.append(f"{publisher.node_name} ({reason.strip().rstrip(';').lower()})")
    return publishers


def mistyped_publishers(node: Node, topic: str, message_type: type) -> dict[str, list[str]]:
    """Nodes that publish a topic (resolved name) with another type than a subscription's, by this
    type: the middleware does not match them.
    """
    found: dict[str, list[str]] = {}
    for publisher in node.get_publishers_info_by_topic(topic):
        if publisher.topic_type != type_name(message_type):
            found.setdefault(publisher.topic_type, []).append(publisher.node_name)
    return found


def type_name(message_type: type) -> str:
    """Name of a type of messages as the graph of nodes has it, such as std_msgs/msg/String."""
    package, kind = message_type.__module__.split(".")[:2]
    return f"{package}/{kind}/{message_type.__name__}"


def wait_delivered(publishers: Iterable[Publisher], seconds: float = DELIVERY_S) -> None:
    """Wait until the subscribers have the last messages of all publishers, for this time (s) in
    total: each publisher would wait again for a killed subscriber.
    """
    deadline = time.monotonic() + seconds
    for publisher in publishers:
        left_s = max(0.0, deadline - time.monotonic())
        publisher.wait_for_all_acked(Duration(seconds=left_s))


class LateSubscribers:
    """Counts the subscribers of publishers and finds new ones since the last count."""

    def __init__(self, publishers: Sequence[Publisher]):
        self._publishers, self._counts = publishers, [0] * len(publishers)

    def count(self) -> Sequence[int]:
        """The subscribers of every publisher."""
        self._counts = [publisher.get_subscription_count() for publisher in self._publishers]
        return self._counts

    def new(self) -> bool:
        """Whether any publisher has more subscribers than at the last count."""
        before = self._counts
        return any(now > then for now, then in zip(self.count(), before))
