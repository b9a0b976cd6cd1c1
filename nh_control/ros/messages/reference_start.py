"""When the reference starts: the plant says so, before the first state of a run and wherever its
state is put elsewhere, so that a tracker starts with it; of hardware the tracker says so, and
recordings know it even if they began later.
"""

from __future__ import annotations

from collections.abc import Callable

from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from nh_control.ros.loop.clocks import NANOSECONDS
from nh_control.ros.runtime.inbox import Inbox

TOPIC = "reference_start"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
DELIVERY_S = 0.2
"""How long the state that follows waits until all that listen have it."""


class ReferenceStartPublisher:
    """Publishes the time, latched."""

    def __init__(self, node: Node):
        self._publisher = node.create_publisher(Time, TOPIC, LATCHED)

    def publish(self, stamp: int) -> None:
        """The reference starts at this time in ns."""
        seconds, nanoseconds = divmod(stamp, NANOSECONDS)
        self._publisher.publish(Time(sec=seconds, nanosec=nanoseconds))

    def deliver(self, stamp: int) -> None:
        """Publish it; returns when all subscribers have it."""
        self.publish(stamp)
        self._publisher.wait_for_all_acked(Duration(seconds=DELIVERY_S))


def has_start_publisher(node: Node) -> bool:
    """Whether somebody says when the reference starts."""
    return node.count_publishers(TOPIC) > 0


def subscribe_start(inbox: Inbox, received: Callable[[int], None]) -> None:
    """Have `received(stamp)` (ns) called with the starts that the plant publishes."""
    inbox.subscribe(
        Time, TOPIC, lambda time: received(time.sec * NANOSECONDS + time.nanosec), LATCHED
    )
