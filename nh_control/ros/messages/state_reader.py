"""States of a plant, put together from the messages of one stamp."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableSequence, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Protocol

from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from nh_control.ros.loop.refusal import Refusal
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template, deserialized, header_stamp
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.state_codecs import Codec, JointCodec, require_lengths
from nh_control.ros.runtime.inbox import Inbox
from nh_control.runs.assembly import Assembly

STATES_BEGUN = 100
"""How many states of which only a part has come are kept for the rest: topics are out of step with
one another where a process is behind.
"""


class Reader(Protocol):
    """Subscribes to states, and tells when one is complete."""

    def read(self, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """Read the last complete state into q (nq), which on entry is close to the configuration,
        and v (nw); returns whether there are velocities. Raises ConversionError.
        """


def quality(source: str, depth: int) -> QoSProfile:
    """How states are heard from the `source` of the nodes' parameter: sensors may be best-effort.
    A subscription that is best-effort hears those that are reliable, too.
    """
    best_effort = source == "hardware"
    reliability = ReliabilityPolicy.BEST_EFFORT if best_effort else ReliabilityPolicy.RELIABLE
    return QoSProfile(depth=depth, reliability=reliability)


def reader(
    source: str,
    inbox: Inbox,
    codecs: Sequence[Codec],
    received: Callable[[int], None],
    refused: Callable[[Refusal, str], None],
    jumped: Callable[[float], None],
    queue: int,
    spread_s: float,
) -> Reader:
    """The reader of states from the `source` of the nodes' parameter, `simulation` or `hardware`;
    see `StateReader` and `MeasurementReader`.
    """
    if source == "simulation":
        return StateReader(inbox, codecs, received, refused, queue)
    return MeasurementReader(inbox, codecs, received, refused, jumped, queue, spread_s)


class StateReader:
    """Subscribes to the messages that hold the state; calls `received(stamp)` (ns) once all those
    of a stamp have come, in whatever order with those of other stamps, and `refused(kind, reason)`
    for bytes that are no message.

    Topics are those of the codecs after `prefix`. Messages as a plant of the package sends them
    are kept as they came until they are read: a state that is passed over costs little.
    """

    def __init__(
        self,
        inbox: Inbox,
        codecs: Sequence[Codec],
        received: Callable[[int], None],
        refused: Callable[[Refusal, str], None],
        queue: int,
        prefix: str = "",
    ):
        self._codecs, self._received, self._refused = codecs, received, refused
        self._templates = [Template(deepcopy(codec.message)) for codec in codecs]
        self._messages: list[Any] = [None] * len(codecs)
        self._begun: dict[int, list[Any]] = {}
        last = len(codecs) - 1
        for i, codec in enumerate(codecs):
            inbox.subscribe(
                codec.message_type,
                prefix + codec.topic,
                partial(self._on_message, i),
                queue,
                raw=True,
                awaited=(lambda: True) if i == last else self._lacks,
            )

    def _lacks(self) -> bool:
        """Whether a part of a state has come without the rest: of those that come together the
        last one, as a rule, wakes the thread, which then takes all.
        """
        return bool(self._begun)

    def _on_message(self, i: int, data: bytes) -> None:
        if self._templates[i].fits(data):
            self._add(i, data, header_stamp(data))
            return
        try:
            message = deserialized(data, self._codecs[i].message_type)
        except ConversionError as reason:
            self._refused(reason.kind, str(reason))
            return
        self._add(i, message, conversions.nanoseconds(message.header.stamp))

    def _add(self, i: int, part: Any, stamp: int) -> None:
        """A message of the state of this stamp has come, or its bytes, which fit."""
        parts = self._begun.setdefault(stamp, [None] * len(self._codecs))
        parts[i] = part
        if all(part is not None for part in parts):
            self._messages = parts
            self._forget(stamp)
            self._received(stamp)
        elif len(self._begun) > STATES_BEGUN:
            del self._begun[next(iter(self._begun))]

    def _forget(self, stamp: int) -> None:
        """Forget a state and those that were begun before it: what they lack will not come."""
        for begun in list(self._begun):
            del self._begun[begun]
            if begun == stamp:
                return

    def read(self, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """As `Reader.read`."""
        moving = [
            codec.read(template.decode(part) if isinstance(part, bytes) else part, q, v)
            for codec, template, part in zip(self._codecs, self._templates, self._messages)
        ]
        return all(moving)


class MeasurementReader:
    """As `StateReader`, of hardware: messages of a state may have different stamps, up to
    `spread_s` apart, and its joints may come in several (see `Assembly`); publishers may be
    best-effort.

    `refused(kind, reason)` is called for messages that cannot be used, `jumped(seconds)` where
    stamps go back by more than a second, after which they count anew.
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
        parts = sum(len(c.names) if isinstance(c, JointCodec) else 1 for c in codecs)
        self._assembly = Assembly(parts, spread_s)
        self._joints: dict[str, tuple[float, float | None]] = {}
        self._bodies: dict[int, Any] = {}
        for i, codec in enumerate(codecs):
            take = partial(self._on_joints, codec) if isinstance(codec, JointCodec) else None
            inbox.subscribe(
                codec.message_type,
                codec.topic,
                take or partial(self._on_body, i),
                quality("hardware", queue),
            )

    def _on_joints(self, codec: JointCodec, message: JointState) -> None:
        try:
            require_lengths(message)
        except ConversionError as reason:
            self._refused(reason.kind, str(reason))
            return
        rates = message.velocity or [None] * len(message.name)
        known = {
            name: (position, rate)
            for name, position, rate in zip(message.name, message.position, rates)
            if name in codec.names
        }
        self._joints |= known
        if known:
            self._offer(known, message)

    def _on_body(self, i: int, message: Any) -> None:
        self._bodies[i] = message
        self._offer([i], message)

    def _offer(self, parts: Iterable[Hashable], message: Any) -> None:
        back_s = self._assembly.add(parts, conversions.nanoseconds(message.header.stamp))
        if back_s:
            self._jumped(back_s)
        if (stamp := self._assembly.take()) is not None:
            self._received(stamp)

    def read(self, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """As `Reader.read`."""
        moving = [
            codec.read(
                self._joined(codec) if isinstance(codec, JointCodec) else self._bodies[i], q, v
            )
            for i, codec in enumerate(self._codecs)
        ]
        return all(moving)

    def _joined(self, codec: JointCodec) -> JointState:
        """One message of all joints."""
        entries = [self._joints[name] for name in codec.names]
        rates = [rate for _, rate in entries if rate is not None]
        if len(rates) not in (0, len(entries)):
            rates = []
        return JointState(
            name=codec.names, position=[position for position, _ in entries], velocity=rates
        )
