"""A plant's states, assembled from messages with the same stamp."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, MutableSequence, Sequence
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
from nh_control.ros.runtime.inbox import Inbox, Local
from nh_control.runs.assembly import Assembly

STATES_BEGUN = 100
"""Maximum number of incomplete states. Several states are incomplete if topics are out of step
because a process is late.
"""


@dataclass(frozen=True)
class StateListener:
    """A reader's callbacks: `received(stamp)` (ns) for a complete state, `refused(kind, reason)`
    for unusable messages, and `jumped(seconds)` if stamps jump backward by more than a second.
    """

    received: Callable[[int], None]
    refused: Callable[[Refusal, str], None]
    jumped: Callable[[float], None] = lambda seconds: None


def quality(source: str, depth: int) -> QoSProfile:
    """Quality of service for subscriptions to states. `source` is the value of the nodes'
    parameter. For hardware, reliability is best-effort, which also receives from reliable
    publishers.
    """
    # a reliable subscription would not match best-effort drivers
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
    """The reader of states for the parameter `source`, which is `simulation` or `hardware`. The
    reader for hardware is always `best_effort`.
    """
    if source == "simulation":
        return StateReader(inbox, codecs, listener, queue, best_effort=best_effort)
    return MeasurementReader(inbox, codecs, listener, queue, spread_s)


class StateReader:
    """Subscribes to the state's messages on `prefix + <the codec's topic>`. A state is received
    when all messages with its stamp have arrived. Messages with other stamps may arrive in
    between.

    Messages with the layout of this package's plant remain bytes until they are read, so that a
    state that is not read costs little. So do messages with the layout of the first message on
    their topic that has another one, such as joint states with efforts. A `best_effort` reader
    may miss messages, and its plant handles no acknowledgements. A plant in this process passes
    the fields of a state without messages. With `at_once` this happens in the plant's thread,
    otherwise in the inbox's thread.
    """

    def __init__(
        self,
        inbox: Inbox,
        codecs: Sequence[Codec],
        listener: StateListener,
        queue: int,
        prefix: str = "",
        best_effort: bool = False,
        at_once: bool = False,
    ):
        self._codecs, self._listener = codecs, listener
        # make a copy, because decoding changes the template's message
        self._templates = [Template(deepcopy(codec.message)) for codec in codecs]
        self._are_first = [True] * len(codecs)
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
                local=Local(partial(self._on_fields, i), at_once),
            )

    def _lacks(self) -> bool:
        """Whether a state is incomplete. Usually the messages of a state arrive together, and the
        last one wakes the thread, which then takes all of them.
        """
        return bool(self._begun)

    def _on_message(self, i: int, data: bytes) -> None:
        # only the stamp of bytes in a known layout is read now
        if self._templates[i].fits(data):
            self._add(i, data, header_stamp(data))
            return
        try:
            message = deserialized(data, self._codecs[i].message_type)
        except ConversionError as reason:
            self._listener.refused(reason.kind, str(reason))
            return
        # publishers rarely change their layout, and a template takes longer than a message
        if self._are_first[i]:
            self._are_first[i], self._templates[i] = False, Template(deepcopy(message))
        self._add(i, message, conversions.nanoseconds(message.header.stamp))

    def _on_fields(self, i: int, content: tuple[int, Mapping[str, Any]]) -> None:
        stamp, fields = content
        self._add(i, fields, stamp)

    def _add(self, i: int, part: Any, stamp: int) -> None:
        """Add a part of the state with the given stamp. The part is a message, its bytes, or its
        fields.
        """
        # topics arrive independently, so several states may be incomplete
        parts = self._begun.setdefault(stamp, [None] * len(self._codecs))
        parts[i] = part
        if all(part is not None for part in parts):
            self._messages = parts
            self._forget(stamp)
            self._listener.received(stamp)
        # drop the oldest incomplete state
        elif len(self._begun) > STATES_BEGUN:
            del self._begun[next(iter(self._begun))]

    def _forget(self, stamp: int) -> None:
        """Drop a state and all earlier states, because their missing parts will not arrive."""
        for begun in list(self._begun):
            del self._begun[begun]
            if begun == stamp:
                return

    def read(self, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """Read the last complete state into q (nq) and v (nw). Before the call, q must be close to
        the configuration. Missing velocities become NaN. Returns whether no velocity is missing.
        Raises ConversionError.
        """
        whole = True
        for codec, template, part in zip(self._codecs, self._templates, self._messages):
            # bytes that fit, fields from this process, or a message
            if isinstance(part, bytes):
                part = codec.numbered_fields(template.message, template.numbers(part))
            is_read = isinstance(part, dict)
            moving = codec.read_fields(part, q, v) if is_read else codec.read(part, q, v)
            whole = whole and moving
        return whole


class MeasurementReader:
    """A `StateReader` for hardware. The stamps of a state's messages may be up to `spread_s`
    apart, and the state's joints may arrive in several messages (see `Assembly`). Publishers may
    be best-effort. After a jump in the stamps, states are assembled only from new messages.
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
        # every joint is a part, because drivers may publish joints separately
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
        # other joints of the robot are ignored
        known = {name: joint for name, joint in fields.items() if name in codec.names}
        self._joints |= known
        if known:
            self._offer(known, message)

    def _on_body(self, i: int, message: Any) -> None:
        self._bodies[i] = message
        self._offer([i], message)

    def _offer(self, parts: Iterable[Hashable], message: Any) -> None:
        # seconds by which the stamp jumped backward, or 0 if it did not
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
