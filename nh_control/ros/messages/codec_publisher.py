"""Publishers of configurations and velocities, in the codecs' messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher

from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.runtime.subscribers import LateSubscribers


class CodecPublisher:
    """Publishes states on `prefix + <the codec's topic>` if there are subscribers. The queue keeps
    up to `unsent` messages for subscribers that acknowledge slowly.
    """

    def __init__(self, node: Node, codecs: Sequence[Codec], prefix: str, unsent: int):
        self._codecs = codecs
        self.publishers: list[Publisher] = [
            node.create_publisher(codec.message_type, prefix + codec.topic, unsent)
            for codec in codecs
        ]
        self._subscribers = LateSubscribers(self.publishers)

    @property
    def has_subscribers(self) -> bool:
        """Whether any of the topics has a subscriber."""
        return any(self._subscribers.recent())

    def publish(
        self,
        q: Sequence[float],
        v: Sequence[float],
        stamp: int,
        efforts: Sequence[float] = (),
    ) -> None:
        """Publish configuration q (nq), velocity v (nw) and joint efforts with a stamp in ns."""
        for codec, publisher in zip(self._codecs, self.publishers):
            fields: Any = codec.shown(q, v)
            publisher.publish(codec.template.stamped(stamp, codec.numbers(fields, efforts)))
