"""States of a plant, put together from the messages of one stamp."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from nh_control.ros.loop.refusal import Refusal
from nh_control.ros.loop.step_clock import NANOSECONDS
from nh_control.ros.messages import conversions
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.state_codecs import Codec, JointCodec, require_lengths
from nh_control.ros.runtime.inbox import Inbox

JUMP_S = 1.0
"""How far stamps of hardware may come out of order before they count as a new beginning."""


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


class MeasurementReader:
    """As `StateReader`, of hardware: messages of a state may have different stamps, up to
    `spread_s` apart, and its joints may come in several; publishers may be best-effort. A state
    is there once all its parts are newer than the last one; its stamp is that of the newest.

    `refused(kind, reason)` is called for messages that cannot be used, `jumped(seconds)` where
    stamps go back by more than JUMP_S, after which they count anew.
    """

    def __init__(
        self,
        inbox: Inbox,
        codecs: Sequence[Codec],
        received: Callable[[int], None],
        refused: Callable[[Refusal, str], None],
        jumped: Callable[[float], None],
        queue: int,
        spread_s: float,
    ):
        self._codecs, self._received = codecs, received
        self._refused, self._jumped = refused, jumped
        self._spread, self._last = round(spread_s * NANOSECONDS), -1
        self._parts = sum(len(c.names) if isinstance(c, JointCodec) else 1 for c in codecs)
        self._joints: dict[str, tuple[int, float, float | None]] = {}
        self._bodies: dict[int, tuple[int, Any]] = {}
        quality = QoSProfile(depth=queue, reliability=ReliabilityPolicy.BEST_EFFORT)
        for i, codec in enumerate(codecs):
            take = partial(self._on_joints, codec) if isinstance(codec, JointCodec) else None
            inbox.subscribe(
                codec.message_type, codec.topic, take or partial(self._on_body, i), quality
            )

    def _on_joints(self, codec: JointCodec, message: JointState) -> None:
        try:
            require_lengths(message)
        except ConversionError as reason:
            self._refused(reason.kind, str(reason))
            return
        stamp = conversions.nanoseconds(message.header.stamp)
        rates = message.velocity or [None] * len(message.name)
        known = {
            name: (stamp, position, rate)
            for name, position, rate in zip(message.name, message.position, rates)
            if name in codec.names
        }
        self._joints |= known
        if known:
            self._offer()

    def _on_body(self, i: int, message: Any) -> None:
        self._bodies[i] = conversions.nanoseconds(message.header.stamp), message
        self._offer()

    def _offer(self) -> None:
        stamps = [joint[0] for joint in self._joints.values()]
        stamps += [body[0] for body in self._bodies.values()]
        newest = max(stamps)
        if newest < self._last - JUMP_S * NANOSECONDS:
            self._jumped((self._last - newest) / NANOSECONDS)
            self._last = -1
        if (
            len(stamps) == self._parts
            and min(stamps) > self._last
            and newest - min(stamps) <= self._spread
        ):
            self._last = newest
            self._received(newest)

    def read(self, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """As `StateReader.read`."""
        moving = [
            codec.read(
                self._joined(codec) if isinstance(codec, JointCodec) else self._bodies[i][1], q, v
            )
            for i, codec in enumerate(self._codecs)
        ]
        return all(moving)

    def _joined(self, codec: JointCodec) -> JointState:
        """One message of all joints."""
        entries = [self._joints[name] for name in codec.names]
        rates = [rate for *_, rate in entries if rate is not None]
        if len(rates) not in (0, len(entries)):
            rates = []
        return JointState(
            name=codec.names, position=[position for _, position, _ in entries], velocity=rates
        )
