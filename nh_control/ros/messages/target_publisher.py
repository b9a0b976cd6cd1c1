"""What the tracker steers to, in the messages in which the plant tells its state."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rclpy.node import Node
from rclpy.publisher import Publisher

from nh_control.control.reference_sequence import ReferenceSequence
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.runtime.subscribers import LateSubscribers

PREFIX = "reference/"
INTERVAL_S = 0.004
UNSENT = 10


class TargetPublisher:
    """Publishes the reference's states on `reference/<topic of the state>`, for those who listen,
    at intervals of INTERVAL_S or more of wall time, and the last one again for those who come
    late.
    """

    def __init__(self, node: Node, codecs: Sequence[Codec]):
        self._codecs, self._at = codecs, 0.0
        self._templates = [Template(codec.message) for codec in codecs]
        self._publishers: list[Publisher] = [
            node.create_publisher(codec.message_type, PREFIX + codec.topic, UNSENT)
            for codec in codecs
        ]
        self._late_subscribers = LateSubscribers(self._publishers)
        self._last: tuple[ReferenceSequence, int, int] | None = None
        self._skipped = False

    def repeat(self) -> None:
        """Publish the last target if somebody does not know it, because it was passed over or they
        have come late.
        """
        late = self._late_subscribers.new()
        due = self._skipped and time.monotonic() >= self._at
        if (late or due) and self._last is not None:
            self._skipped = False
            self._publish(*self._last)

    def publish(self, sequence: ReferenceSequence, k: int, stamp: int) -> None:
        """Publish what the sequence wants at step k, with a stamp in ns."""
        now, self._last = time.monotonic(), (sequence, k, stamp)
        self._skipped = now < self._at
        if self._skipped:
            return
        self._at = now + INTERVAL_S
        self._publish(sequence, k, stamp)

    def _publish(self, sequence: ReferenceSequence, k: int, stamp: int) -> None:
        if not any(publisher.get_subscription_count() for publisher in self._publishers):
            return
        target = sequence.target(k)
        q = sequence.dsys.configuration(target).tolist()
        v = sequence.dsys.velocity(target).tolist()
        for codec, template, publisher in zip(self._codecs, self._templates, self._publishers):
            codec.write(q, v)
            conversions.set_time(codec.message.header.stamp, stamp)
            publisher.publish(template.encode())
