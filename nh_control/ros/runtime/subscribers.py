"""The subscribers of a publisher.

The ROS graph contains a subscription before the publisher is matched with it. Messages published
before the match are lost.
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
"""Maximum time for which an exiting node waits until all subscribers have its last messages. The
middleware resends lost messages after 3 s.
"""
LOOK_S = 0.02
"""Time between counts of the subscribers to messages that are published in every step."""


def matched_subscribers(node: Node, publisher: Publisher | LocalPublisher) -> set[str] | None:
    """Names of all nodes that are known to receive volatile messages from the publisher, or None
    while the publisher is not matched with all of them.
    """
    local = publisher.local_subscribers if isinstance(publisher, LocalPublisher) else frozenset()
    # count before querying the graph, so that a subscription in between counts as unmatched
    matched = publisher.get_subscription_count() - len(local)
    # latched subscriptions lose no messages, so they need not be awaited
    known = [
        s
        for s in node.get_subscriptions_info_by_topic(publisher.topic_name)
        if s.qos_profile.durability is DurabilityPolicy.VOLATILE
    ]
    return {s.node_name for s in known} | local if matched >= len(known) else None


def incompatible_publishers(node: Node, topic: str, quality: QoSProfile) -> list[str]:
    """Nodes that publish a topic (resolved name) with a quality of service that is incompatible
    with a subscription's `quality`, each with the reason.
    """
    publishers = []
    for publisher in node.get_publishers_info_by_topic(topic):
        fits, reason = qos_check_compatible(publisher.qos_profile, quality)
        if fits == QoSCompatibility.ERROR:
            publishers.append(f"{publisher.node_name} ({reason.strip().rstrip(';').lower()})")
    return publishers


def mistyped_publishers(node: Node, topic: str, message_type: type) -> dict[str, list[str]]:
    """Nodes that publish a topic (resolved name) with a type other than the subscription's,
    grouped by their type. The middleware does not match them with the subscription.
    """
    by_type: dict[str, list[str]] = {}
    for publisher in node.get_publishers_info_by_topic(topic):
        if publisher.topic_type != type_name(message_type):
            by_type.setdefault(publisher.topic_type, []).append(publisher.node_name)
    return by_type


def type_name(message_type: type) -> str:
    """Name of a message type in the ROS graph, such as std_msgs/msg/String."""
    # the module of a message type is <package>.msg._<name>
    package, kind = message_type.__module__.split(".")[:2]
    return f"{package}/{kind}/{message_type.__name__}"


def wait_delivered(publishers: Iterable[Publisher], seconds: float = DELIVERY_S) -> None:
    """Wait until the subscribers have the last messages of all publishers, for at most `seconds`
    in total. With a time limit for each publisher, the waits for a killed subscriber would add up.
    """
    deadline = time.monotonic() + seconds
    for publisher in publishers:
        left_s = max(0.0, deadline - time.monotonic())
        publisher.wait_for_all_acked(Duration(seconds=left_s))


class LateSubscribers:
    """Counts the subscribers of publishers, and detects new subscribers since the last count."""

    def __init__(self, publishers: Sequence[Publisher]):
        self._publishers, self._counts = publishers, [0] * len(publishers)
        self._look_at = 0.0

    def recent(self) -> Sequence[int]:
        """Number of subscribers of every publisher, at most LOOK_S old."""
        now = time.monotonic()
        # counting subscribers queries the middleware, which takes time in every step
        if now < self._look_at:
            return self._counts
        self._look_at = now + LOOK_S
        return self.count()

    def count(self) -> Sequence[int]:
        """Number of subscribers of every publisher."""
        self._counts = [publisher.get_subscription_count() for publisher in self._publishers]
        return self._counts

    def new(self) -> bool:
        """Whether a publisher has more subscribers than at the last count."""
        before = self._counts
        return any(now > then for now, then in zip(self.count(), before))
