"""Who hears a publisher.

The graph of nodes knows a subscription before its publisher is matched with it, and only from then on nothing is lost.
"""

from __future__ import annotations

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy


def listeners(node: Node, publisher: Publisher) -> set[str] | None:
    """Names of all nodes known to take volatile messages of the publisher, or None while it is not matched with every one of them."""
    matched = publisher.get_subscription_count()  # before the graph is asked: who comes in between is known, and not counted
    known = [s for s in node.get_subscriptions_info_by_topic(publisher.topic_name) if s.qos_profile.durability is DurabilityPolicy.VOLATILE]
    return {s.node_name for s in known} if matched >= len(known) else None
