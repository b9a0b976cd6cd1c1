"""Publishers of configurations and velocities in the messages of their codecs."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.node import Node
from rclpy.publisher import Publisher

from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.state_codecs import Codec


class CodecPublisher:
    """Publishes states on `prefix + <topic of the codec>` if there are subscribers; `unsent`
    messages are kept for subscribers that acknowledge slowly.
    """

    def __init__(self, node: Node, codecs: Sequence[Codec], prefix: str, unsent: int):
        self._codecs = codecs
        self._templates = [Template(codec.message) for codec in codecs]
        self.publishers: list[Publisher] = [
            node.create_publisher(codec.message_type, prefix + codec.topic, unsent)
            for codec in codecs
        ]

    @property
    def has_subscribers(self) -> bool:
        """Whether any of the topics has a subscriber."""
        return any(publisher.get_subscription_count() for publisher in self.publishers)

    def publish(self, q: Sequence[float], v: Sequence[float], stamp: int) -> None:
        """Publish configuration q (nq) and velocity v (nw) with a stamp in ns."""
        for codec, template, publisher in zip(self._codecs, self._templates, self.publishers):
            codec.write(q, v)
            conversions.set_time(codec.message.header.stamp, stamp)
            publisher.publish(template.encode())
