"""Publishers of the plant's state, clock, transforms and command latency."""

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
from nh_control.ros.runtime.local_topics import hand_over, local_count
from nh_control.ros.runtime.subscribers import LateSubscribers, matched_subscribers

CLOCKS = {"namespace": "clock", "global": "/clock", "none": ""}
"""Topic on which the time is published, for each value of the parameter `clock`."""
SETTLED_S = 0.1
"""Time for which all subscribers must have been matched before a run. A subscriber may notice the
match a little later, and it loses earlier messages.
"""
UNSENT = 1000
"""Number of messages kept for subscribers that acknowledge slowly, such as a recorder during a
fast run in lock-step.
"""


class StatePublisher:
    """Publishes the plant's state in all messages of the codecs, with equal stamps. Before the
    state, it publishes the time on the topic `clock` unless `clock` is empty, and after the state
    it publishes TF.
    """

    def __init__(self, node: Node, codecs: Sequence[Codec], clock: str = "/clock"):
        self._node, self._codecs = node, codecs
        # the clock comes first, so that subscribers know the time of the state
        self._times = [_Sender(node, clock, Template(Clock()))] if clock else []
        groups = [
            [_Sender(node, topic, template) for topic, template in codec.outgoing]
            for codec in codecs
        ]
        self._senders = [*self._times, *(sender for group in groups for sender in group)]
        # the message with the state itself comes first in each group, before its odometry
        self._groups = [
            (codec, state, odometry) for codec, (state, *odometry) in zip(codecs, groups)
        ]
        self._topics = {state.publisher.topic_name for _, state, _ in self._groups}
        self._complete_at: float | None = None
        self._broadcast, tf = transform_broadcaster(
            node, [message for codec in codecs for message in codec.odometry]
        )
        self._late_subscribers = LateSubscribers([*(s.publisher for s in self._senders), *tf])

    def publish_time(self, stamp: int) -> None:
        """Publish only the clock, in ns."""
        for time_ in self._times:
            time_.send(stamp)

    def publish(
        self,
        q: Sequence[float],
        v: Sequence[float],
        stamp: int,
        now: int,
        efforts: Callable[[], Sequence[float]] = tuple,
    ) -> None:
        """Publish configuration q (nq), velocity v (nw) and joint `efforts()` if there are
        subscribers. The stamp and the clock's time `now` are in ns. Subscribers in this process
        receive the stamp and the fields of each codec.
        """
        shown: list[Any] = [codec.shown(q, v) for codec in self._codecs]
        # the last counts are those of TF, and subscribers in this process need no messages
        counts = self._late_subscribers.recent()
        for sender, count in zip(self._senders, counts):
            sender.heard = count > local_count(sender.publisher)
        placed, rows = any(counts[len(self._senders) :]), list[list[float]]()
        for time_ in self._times:
            if time_.heard:
                time_.send(now)
        for (codec, state, odometry), fields in zip(self._groups, shown):
            if state.heard:
                state.send(stamp, codec.numbers(fields, efforts()))
            # the numbers of odometry are only needed by TF and by its own subscribers
            if placed or any(sender.heard for sender in odometry):
                numbers = codec.odometry_numbers(fields)
                for sender, row in zip(odometry, numbers):
                    if sender.heard:
                        sender.send(stamp, row)
                rows += numbers
        if placed:
            self._broadcast(stamp, rows)
        for (_, state, _), fields in zip(self._groups, shown):
            hand_over(state.publisher, (stamp, fields))

    def missing(self, names: Iterable[str], others: Iterable[Publisher] = ()) -> str:
        """The reason why the nodes `names` do not receive all state messages yet, or why a known
        subscription to these messages or to `others` is not matched. Returns "" if there has been
        no such reason for SETTLED_S.
        """
        required = set(names)
        if not required:
            return ""
        complete_at, self._complete_at = self._complete_at, None
        # all known subscriptions must be matched before the run
        for publisher in (*others, *(sender.publisher for sender in self._senders)):
            heard_by = matched_subscribers(self._node, publisher)
            if heard_by is None:
                return (
                    f"a subscription of {publisher.topic_name} to be matched; is its quality "
                    f"of service incompatible?"
                )
            if publisher.topic_name in self._topics and not required <= heard_by:
                return (
                    f"{', '.join(sorted(required - heard_by))} to subscribe to "
                    f"{publisher.topic_name} (parameter 'wait_for')"
                )
        now = time.monotonic()
        self._complete_at = now if complete_at is None else complete_at
        return "new subscriptions to settle" if now < self._complete_at + SETTLED_S else ""

    def late_subscribers(self) -> bool:
        """Whether a topic has gained subscribers since the last publication or the last call."""
        return self._late_subscribers.new()


class CommandLatency:
    """The wall time (s) between the publication of a state and the acceptance of its command. It
    is reported, and published on `command_latency` if there are subscribers.
    """

    def __init__(self, node: Node):
        self._publisher = node.create_publisher(Float64, "command_latency", UNSENT)
        self._subscribers = LateSubscribers([self._publisher])
        self._step, self._since = -1, 0.0
        self._recent: list[float] = []

    def published(self, step: int) -> None:
        """Record that the state of a step has been published. A repeated state is ignored."""
        if step != self._step:
            self._step, self._since = step, time.perf_counter()

    def accepted(self, validator: CommandValidator) -> None:
        """Measure the latency if an offered command was the first answer to the state."""
        # only the first answer counts, because `_since` is then 0
        if self._since and validator.answers(self._step):
            elapsed, self._since = time.perf_counter() - self._since, 0.0
            self._recent.append(elapsed)
            if any(self._subscribers.recent()):
                self._publisher.publish(Float64(data=elapsed))

    def report(self) -> tuple[dict[str, float], str]:
        """The median and the 99th percentile (us) since the last report."""
        # percentiles since the last report
        recent, self._recent = sorted(self._recent), []
        if not recent:
            return {}, ""
        parts = {"latency_p50_us": 0.5, "latency_p99_us": 0.99}
        chosen = {name: recent[int(part * (len(recent) - 1))] for name, part in parts.items()}
        return {name: 1e6 * value for name, value in chosen.items()}, ""


class _Sender:
    """A publisher of a template's messages, and whether they are `heard` in other processes."""

    def __init__(self, node: Node, topic: str, template: Template):
        self.publisher = node.create_publisher(type(template.message), topic, UNSENT)
        self._template, self.heard = template, False

    def send(self, stamp: int, numbers: Sequence[float] = ()) -> None:
        """Publish the message with a stamp (ns) and these numbers."""
        self.publisher.publish(self._template.stamped(stamp, numbers))


Broadcast = Callable[[int, Sequence[Sequence[float]]], None]
"""Broadcasts transforms with a stamp (ns), from the numbers in each body's odometry."""


def transform_broadcaster(
    node: Node, bodies: Sequence[Odometry]
) -> tuple[Broadcast, Sequence[Publisher]]:
    """Return a function that broadcasts the poses of bodies as transforms, and its publisher. The
    function does nothing if there are no bodies or if tf2_ros is missing, which is logged once.
    """
    nothing: tuple[Broadcast, Sequence[Publisher]] = (lambda stamp, rows: None), ()
    if not bodies:
        return nothing
    tf = find_tf(node)
    if tf is None:
        return nothing
    broadcaster = tf.TransformBroadcaster(node)
    transforms = [
        TransformStamped(header=body.header, child_frame_id=body.child_frame_id) for body in bodies
    ]

    def broadcast(stamp: int, rows: Sequence[Sequence[float]]) -> None:
        for row, message in zip(rows, transforms):
            x, y, z, *orientation = row[:7]
            to, turn = message.transform.translation, message.transform.rotation
            to.x, to.y, to.z = x, y, z
            turn.x, turn.y, turn.z, turn.w = orientation
            conversions.set_time(message.header.stamp, stamp)
        broadcaster.sendTransform(transforms)

    return broadcast, (broadcaster.pub_tf,)


def find_tf(node: Node) -> Any:
    """The module tf2_ros. If it is not installed, logs a line and returns None."""
    try:
        return import_module("tf2_ros")
    except ImportError as missing:
        node.get_logger().info(
            f"no TF: {missing}; poses are only in odometry and markers; install tf2_ros to show "
            f"robot models in rviz"
        )
        return None


def second_clock(node: Node, topic: str) -> list[str]:
    """A warning, in a list, if other nodes publish the time on the same topic as this node. The
    list is empty if there are no other publishers, or if the topic is "".
    """
    if not topic:
        return []
    topic, node_name = node.resolve_topic_name(topic), node.get_fully_qualified_name()
    names = [
        f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}"
        for publisher in node.get_publishers_info_by_topic(topic)
    ]
    if node_name in names:
        names.remove(node_name)
    if not names:
        return []
    return [
        f"{topic} is also published by {', '.join(sorted(names))}, so the time jumps for its "
        "subscribers: put each robot into a namespace, or set clock:=none for this plant"
    ]
