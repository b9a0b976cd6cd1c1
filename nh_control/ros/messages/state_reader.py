"""States of a plant, put together from the messages of one stamp."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableSequence, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from nh_control.loop.reports import Refusal
from nh_control.loop.wire_format import JointFields
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template, deserialized, header_stamp
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.state_codecs import Codec, JointCodec
from nh_control.ros.runtime.inbox import Inbox
from nh_control.runs.assembly import Assembly

STATES_BEGUN = 100
"""Number of incomplete states that are kept: topics are out of step if a process is behind."""


@dataclass(frozen=True)
class StateListener:
    """Callbacks of a reader: `received(stamp)` (ns) for a complete state, `refused(kind, reason)`
    for unusable messages, `jumped(seconds)` if stamps go back by more than a second.
    """

    received: Callable[[int], None]
    refused: Callable[[Refusal, str], None]
    jumped: Callable[[float], None] = lambda seconds: None


def quality(source: str, depth: int) -> QoSProfile:
    """Quality of service of subscriptions to states from the `source` of the nodes' parameter:
    best-effort for sensors, which receives from reliable publishers as well.
    """
    best_effort = source == "hardware"
    reliability = ReliabilityPolicy.BEST_EFFORT if best_effort else ReliabilityPolicy.RELIABLE
    return QoSProfile(depth=depth, reliability=reliability)


def reader(
    source: str,
    inbox: Inbox,
    codecs: Sequence[Codec],
    listener: StateListener,
    queue: int,
    spread_s: float,
    best_effort: bool = False,
) -> StateReader | MeasurementReader:
    """The reader of states from the parameter `source`, `simulation` or `hardware`; for hardware
    it is always `best_effort`.
    """
    if source == "simulation":
        return StateReader(inbox, codecs, listener, queue, best_effort=best_effort)
    return MeasurementReader(inbox, codecs, listener, queue, spread_s)


class StateReader:
    """Subscribes to the messages of the state on `prefix + <topic of the codec>`; a state is
    received when all messages of its stamp have come. Messages of other stamps may come in
    between.

    Messages of a plant of this package stay bytes until they are read, so that a state that is not
    read costs little. A `best_effort` reader may miss some, and its plant handles no
    acknowledgements.
    """

    def __init__(
        self,
        inbox: Inbox,
        codecs: Sequence[Codec],
        listener: StateListener,
        queue: int,
        prefix: str = "",
        best_effort: bool = False,
    ):
        self._codecs, self._listener = codecs, listener
        self._templates = [Template(deepcopy(codec.message)) for codec in codecs]
        self._messages: list[Any] = [None] * len(codecs)
        self._begun: dict[int, list[Any]] = {}
        last, qos = len(codecs) - 1, quality("hardware" if best_effort else "simulation", queue)
        for i, codec in enumerate(codecs):
            inbox.subscribe(
                codec.message_type,
                prefix + codec.topic,
                partial(self._on_message, i),
                qos,
                raw=True,
                awaited=(lambda: True) if i == last else self._lacks,
            )

    def _lacks(self) -> bool:
        """Whether a state is incomplete. Of messages that come together usually the last one wakes
        the thread, which then takes all.
        """
        return bool(self._begun)

    def _on_message(self, i: int, data: bytes) -> None:
        if self._templates[i].fits(data):
            self._add(i, data, header_stamp(data))
            return
        try:
            message = deserialized(data, self._codecs[i].message_type)
        except ConversionError as reason:
            self._listener.refused(reason.kind, str(reason))
            return
        self._add(i, message, conversions.nanoseconds(message.header.stamp))

    def _add(self, i: int, part: Any, stamp: int) -> None:
        """Note a message of the state of this stamp, or its bytes if they fit."""
        parts = self._begun.setdefault(stamp, [None] * len(self._codecs))
        parts[i] = part
        if all(part is not None for part in parts):
            self._messages = parts
            self._forget(stamp)
            self._listener.received(stamp)
        elif len(self._begun) > STATES_BEGUN:
            del self._begun[next(iter(self._begun))]

    def _forget(self, stamp: int) -> None:
        """Drop a state and all earlier ones, whose missing parts will not come."""
        for begun in list(self._begun):
            del self._begun[begun]
            if begun == stamp:
                return

    def read(self, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """Read the last complete state into q (nq), which on entry is close to the configuration,
        and v (nw), NaN where there is no velocity; returns whether all are there. Raises
        ConversionError.
        """
        moving = [
            codec.read(template.decode(part) if isinstance(part, bytes) else part, q, v)
            for codec, template, part in zip(self._codecs, self._templates, self._messages)
        ]
        return all(moving)


class MeasurementReader:
    """A `StateReader` of hardware: the messages of a state may have stamps up to `spread_s` apart,
    and its joints may come in several messages (see `Assembly`); publishers may be best-effort.
    After a jump of the stamps, states are assembled from new messages only.
    """

    def __init__(
        self,
        inbox: Inbox,
        codecs: Sequence[Codec],
        listener: StateListener,
        queue: int,
        spread_s: float,
    ):
        self._codecs, self._listener = codecs, listener
        parts = sum(len(c.names) if isinstance(c, JointCodec) else 1 for c in codecs)
        self._assembly = Assembly(parts, spread_s)
        self._joints: dict[str, JointFields] = {}
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
            fields = codec.fields(message)
        except ConversionError as reason:
            self._listener.refused(reason.kind, str(reason))
            return
        known = {name: joint for name, joint in fields.items() if name in codec.names}
        self._joints |= known
        if known:
            self._offer(known, message)

    def _on_body(self, i: int, message: Any) -> None:
        self._bodies[i] = message
        self._offer([i], message)

    def _offer(self, parts: Iterable[Hashable], message: Any) -> None:
        back_s = self._assembly.add(parts, conversions.nanoseconds(message.header.stamp))
        if back_s:
            self._listener.jumped(back_s)
        if (stamp := self._assembly.take()) is not None:
            self._listener.received(stamp)

    def read(self, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """Read the state as `StateReader.read` does."""
        moving = [
            codec.read_fields(self._joints, q, v)
            if isinstance(codec, JointCodec)
            else codec.read(self._bodies[i], q, v)
            for i, codec in enumerate(self._codecs)
        ]
        return all(moving)
