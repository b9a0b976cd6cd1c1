"""The plant's measured and true state, clock and transforms on their topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64

from nh_control.loop.command_validator import CommandValidator
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.runtime.subscribers import LateSubscribers, matched_subscribers

CLOCKS = {"namespace": "clock", "global": "/clock", "none": ""}
"""Topic of the time for each value of the parameter `clock`."""
SETTLED_S = 0.1
"""Time for which all subscribers must have been matched before a run: the other end of a
connection may notice it a little later, and loses earlier messages.
"""
UNSENT = 1000
"""Messages kept for subscribers that acknowledge slowly, such as a recorder beside a fast run in
lock-step.
"""


class StatePublisher:
    """Publishes the plant's state in all messages of the codecs, with equal stamps; before it the
    time on the topic `clock`, unless it is empty, and after it TF.
    """

    def __init__(self, node: Node, codecs: Sequence[Codec], clock: str = "/clock"):
        self._node, self._clock, self._codecs = node, Clock(), codecs
        times = [(clock, self._clock)] if clock else []
        states = [pair for codec in self._codecs for pair in codec.outgoing]
        outgoing = [*times, *states]
        self._publishers = [
            (node.create_publisher(type(message), topic, UNSENT), Template(message))
            for topic, message in outgoing
        ]
        self._times = self._publishers[: len(times)]
        self._stamps = [message.header.stamp for _, message in states]
        self._topics = {node.resolve_topic_name(codec.topic) for codec in self._codecs}
        self._complete_at: float | None = None
        self._broadcast, tf = transform_broadcaster(
            node, [message for codec in self._codecs for message in codec.odometry]
        )
        own = [publisher for publisher, _ in self._publishers]
        self._late_subscribers = LateSubscribers([*own, *tf])

    def publish_time(self, stamp: int) -> None:
        """Publish the clock alone, in ns."""
        conversions.set_time(self._clock.clock, stamp)
        for publisher, template in self._times:
            publisher.publish(template.encode())

    def publish(self, q: Sequence[float], v: Sequence[float], stamp: int, now: int) -> None:
        """Publish configuration q (nq) and velocity v (nw) with a stamp, at the time `now` of the
        clock, both in ns, if there are subscribers.
        """
        conversions.set_time(self._clock.clock, now)
        for message_stamp in self._stamps:
            conversions.set_time(message_stamp, stamp)
        for codec in self._codecs:
            codec.write(q, v)
        heard = self._late_subscribers.count()
        for (publisher, template), subscribers in zip(self._publishers, heard):
            if subscribers:
                publisher.publish(template.encode())
        if any(heard[len(self._publishers) :]):
            self._broadcast()

    def missing(self, names: Iterable[str], others: Iterable[Publisher] = ()) -> str:
        """The reasons why these nodes do not receive all messages of the state, or why known nodes
        do not receive their subscriptions here or of `others`; empty if there was none for
        SETTLED_S.
        """
        wanted = set(names)
        if not wanted:
            return ""
        complete_at, self._complete_at = self._complete_at, None
        for publisher in (*others, *(publisher for publisher, _ in self._publishers)):
            heard_by = matched_subscribers(self._node, publisher)
            if heard_by is None:
                return (
                    f"a subscription of {publisher.topic_name} to be matched; is its quality "
                    f"of service incompatible?"
                )
            if publisher.topic_name in self._topics and not wanted <= heard_by:
                return (
                    f"{', '.join(sorted(wanted - heard_by))} to subscribe to "
                    f"{publisher.topic_name} (parameter 'wait_for')"
                )
        now = time.monotonic()
        self._complete_at = now if complete_at is None else complete_at
        return "new subscriptions to settle" if now < self._complete_at + SETTLED_S else ""

    def late_subscribers(self) -> bool:
        """Whether a message has new subscribers since it was last published, or since the last
        call.
        """
        return self._late_subscribers.new()


class CommandLatency:
    """Wall time (s) from the publication of a state to the acceptance of its command, on
    `command_latency` if there are subscribers, and in the report.
    """

    def __init__(self, node: Node):
        self._publisher = node.create_publisher(Float64, "command_latency", UNSENT)
        self._step, self._since = -1, 0.0
        self._recent: list[float] = []

    def published(self, step: int) -> None:
        """Note that the state of a step has been published, for the first time or again."""
        if step != self._step:
            self._step, self._since = step, time.perf_counter()

    def accepted(self, validator: CommandValidator) -> None:
        """Note that a command has been offered, which may be the first answer to the state."""
        if self._since and validator.answers(self._step):
            elapsed, self._since = time.perf_counter() - self._since, 0.0
            self._recent.append(elapsed)
            if self._publisher.get_subscription_count():
                self._publisher.publish(Float64(data=elapsed))

    def report(self) -> tuple[dict[str, float], str]:
        """Median and 99th percentile in us since the last report."""
        recent, self._recent = sorted(self._recent), []
        if not recent:
            return {}, ""
        parts = {"latency_p50_us": 0.5, "latency_p99_us": 0.99}
        chosen = {name: recent[int(part * (len(recent) - 1))] for name, part in parts.items()}
        return {name: 1e6 * value for name, value in chosen.items()}, ""


def transform_broadcaster(
    node: Node, bodies: Sequence[Odometry]
) -> tuple[Callable[[], None], Sequence[Publisher]]:
    """A function that broadcasts the present poses of bodies as transforms, and its publisher.
    Without bodies, or (logged once) without tf2_ros, it does nothing.
    """
    if not bodies:
        return lambda: None, ()
    broadcaster = make_broadcaster(node, "TransformBroadcaster")
    if broadcaster is None:
        return lambda: None, ()
    transforms = [
        TransformStamped(header=body.header, child_frame_id=body.child_frame_id) for body in bodies
    ]

    def broadcast() -> None:
        for body, transform in zip(bodies, transforms):
            position, translation = body.pose.pose.position, transform.transform.translation
            translation.x, translation.y, translation.z = position.x, position.y, position.z
            transform.transform.rotation = body.pose.pose.orientation
        broadcaster.sendTransform(transforms)

    return broadcast, (broadcaster.pub_tf,)


def make_broadcaster(node: Node, kind: str) -> Any:
    """The broadcaster of tf2_ros with this name; None, with a log line, if it is not installed."""
    try:
        return getattr(import_module("tf2_ros"), kind)(node)
    except ImportError as missing:
        node.get_logger().info(
            f"no TF: {missing}; poses are in odometry and markers only, install tf2_ros to show "
            f"robot models in rviz"
        )
        return None


def second_clock(node: Node, topic: str) -> list[str]:
    """A warning of other publishers of the time on a topic to which this node publishes its own,
    "" without any; "" as topic stands for none.
    """
    if not topic:
        return []
    topic, own = node.resolve_topic_name(topic), node.get_fully_qualified_name()
    names = [
        f"{one.node_namespace.rstrip('/')}/{one.node_name}"
        for one in node.get_publishers_info_by_topic(topic)
    ]
    if own in names:
        names.remove(own)
    if not names:
        return []
    return [
        f"{topic} comes from {', '.join(sorted(names))} as well, and jumps for all who take it: "
        "give each robot its namespace, or this plant clock:=none"
    ]
