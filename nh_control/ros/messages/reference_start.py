"""The start time of the reference. The plant publishes it before the first state of a run and
whenever the plant's state is changed, so that a tracker starts at the same time. For hardware, the
tracker publishes it. The topic is latched, so that recordings that begin later also contain the
start time.
"""

from __future__ import annotations

from collections.abc import Callable

from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from nh_control.loop.clocks import NANOSECONDS
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.subscribers import wait_delivered

TOPIC = "reference_start"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ReferenceStartPublisher:
    """Publishes the start time on a latched topic."""

    def __init__(self, node: Node):
        self._publisher = node.create_publisher(Time, TOPIC, LATCHED)

    def publish(self, stamp: int) -> None:
        """Publish the reference's start time, in ns."""
        seconds, nanoseconds = divmod(stamp, NANOSECONDS)
        self._publisher.publish(Time(sec=seconds, nanosec=nanoseconds))

    def deliver(self, stamp: int) -> None:
        """Publish the start time, and wait until all subscribers have received it. A tracker needs
        it before the next state.
        """
        self.publish(stamp)
        wait_delivered([self._publisher])


def has_start_publisher(node: Node) -> bool:
    """Whether any node publishes the reference's start time."""
    return node.count_publishers(TOPIC) > 0


def subscribe_start(inbox: Inbox, received: Callable[[int], None]) -> None:
    """Call `received(stamp)` (ns) with each start time that the plant publishes."""
    inbox.subscribe(
        Time, TOPIC, lambda time: received(time.sec * NANOSECONDS + time.nanosec), LATCHED
    )
