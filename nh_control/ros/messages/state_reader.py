"""States of a plant, put together from the messages of one stamp."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from typing import Any

from nh_control.ros.messages import conversions
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.runtime.inbox import Inbox


class StateReader:
    """Subscribes to the messages that hold the state; calls `received(stamp)` (ns) with every one
    after which all have the same stamp.

    Topics are those of the codecs after `prefix`.
    """

    def __init__(
        self,
        inbox: Inbox,
        codecs: Sequence[Codec],
        received: Callable[[int], None],
        queue: int,
        prefix: str = "",
    ):
        self._codecs, self._received = codecs, received
        self._messages: list[Any] = [None] * len(codecs)
        for i, codec in enumerate(codecs):
            inbox.subscribe(
                codec.message_type, prefix + codec.topic, partial(self._on_message, i), queue
            )

    def _on_message(self, i: int, message: Any) -> None:
        self._messages[i] = message
        stamp = message.header.stamp
        if all(
            other is message or (other is not None and other.header.stamp == stamp)
            for other in self._messages
        ):
            self._received(conversions.nanoseconds(stamp))

    def read(self, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """Read the present messages into q (nq), which on entry is close to the configuration, and
        v (nw); returns whether there are velocities.

        Raises ConversionError.
        """
        moving = [
            codec.read(message, q, v) for codec, message in zip(self._codecs, self._messages)
        ]
        return all(moving)
