"""The start time of the reference. The plant publishes it before the first state of a run and
whenever its state is changed, so that a tracker starts with it. For hardware the tracker publishes
it; recordings that begin later contain it as well.
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
    """Publishes the time, latched."""

    def __init__(self, node: Node):
        self._publisher = node.create_publisher(Time, TOPIC, LATCHED)

    def publish(self, stamp: int) -> None:
        """Publish the start of the reference, in ns."""
        seconds, nanoseconds = divmod(stamp, NANOSECONDS)
        self._publisher.publish(Time(sec=seconds, nanosec=nanoseconds))

    def deliver(self, stamp: int) -> None:
        """Publish the start; returns when all subscribers have it, which also a tracker on a busy
        machine needs before the next state.
        """
        self.publish(stamp)
        wait_delivered([self._publisher])


def has_start_publisher(node: Node) -> bool:
    """Whether there is a publisher of the reference's start."""
    return node.count_publishers(TOPIC) > 0


def subscribe_start(inbox: Inbox, received: Callable[[int], None]) -> None:
    """Call `received(stamp)` (ns) with the starts that the plant publishes."""
    inbox.subscribe(
        Time, TOPIC, lambda time: received(time.sec * NANOSECONDS + time.nanosec), LATCHED
    )
