"""The plant's state and clock on their topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy
from rosgraph_msgs.msg import Clock

from nh_control.discrete import DiscreteSystem
from nh_control.ros import conversions
from nh_control.ros.state_codecs import codecs
from nh_control.ros.transforms import transform_broadcaster
from nh_control.scenarios import Scenario

UNSENT = 1000
"""Messages kept for subscribers that are slow to acknowledge them, as a recorder beside a fast lock-step run may be."""


class StatePublisher:
    """Publishes all that a scenario shows of the plant `dsys`, with equal stamps, the clock before it and TF after it."""

    def __init__(self, node: Node, scenario: Scenario, dsys: DiscreteSystem, velocities: bool):
        self._node, self._codecs, self._clock = node, codecs(scenario, dsys, velocities), Clock()
        outgoing = [("/clock", self._clock), *(pair for codec in self._codecs for pair in codec.outgoing)]
        self._publishers = [(node.create_publisher(type(message), topic, UNSENT), message) for topic, message in outgoing]
        self._stamps = [self._clock.clock, *(message.header.stamp for _, message in outgoing[1:])]
        self._topics = {node.resolve_topic_name(codec.topic) for codec in self._codecs}
        self._broadcast = transform_broadcaster(node, [message for codec in self._codecs for message in codec.odometry])

    def publish(self, q: Sequence[float], v: Sequence[float], stamp: int) -> None:
        """Publish configuration q (nq) and velocity v (nw) with a stamp in ns."""
        for message_stamp in self._stamps:
            conversions.set_time(message_stamp, stamp)
        for codec in self._codecs:
            codec.write(q, v)
        for publisher, message in self._publishers:
            publisher.publish(message)
        self._broadcast()

    def subscribed(self, names: Iterable[str]) -> bool:
        """Whether each of these nodes has subscribed to all messages that hold the state, and their publishers are matched with all known subscriptions that take volatile messages.

        The graph of nodes knows a subscription before its publisher is matched with it, and only from then on nothing is lost.
        """
        wanted = set(names)
        for publisher, _ in self._publishers if wanted else ():
            subscriptions = self._node.get_subscriptions_info_by_topic(publisher.topic_name)
            known = [s for s in subscriptions if s.qos_profile.durability is DurabilityPolicy.VOLATILE]
            if publisher.get_subscription_count() < len(known) or (publisher.topic_name in self._topics and not wanted <= {s.node_name for s in known}):
                return False
        return True
