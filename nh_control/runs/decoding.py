"""Messages of recordings as numbers, read without ROS."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from nh_control.control.input_history import NANOSECONDS
from nh_control.geometry.spaces import Space
from nh_control.loop.wire_format import JointStateCodec, state_codecs
from nh_control.scenarios import Scenario


class RecordingError(RuntimeError):
    """A recording does not hold a run; the message says what is missing."""


def chosen(connections: Iterable[Any], wanted: Collection[str]) -> dict[str, str]:
    """The wanted topics by their full names in a recording. A topic is taken in the namespace
    nearest to the root, because `reference/joint_states` is no state; raises RecordingError if two
    robots have one.
    """
    topics: dict[str, list[str]] = {}
    for connection in connections:
        name = connection.topic.rsplit("/", 1)[-1]
        if name in wanted:
            topics.setdefault(name, []).append(connection.topic)
    out = {}
    for name, full in topics.items():
        nearest = min(topic.count("/") for topic in full)
        several = sorted({topic for topic in full if topic.count("/") == nearest})
        if len(several) > 1:
            raise RecordingError(f"the recording is of several robots: {', '.join(several)}")
        out[several[0]] = name
    return out


def nanoseconds(stamp: Any) -> int:
    """A stamp in integer nanoseconds."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def command(message: Any, inputs: Collection[str]) -> list[float] | None:
    """Efforts of a command in the order of the inputs, None if it is of other inputs."""
    values = dict(zip(message.name, message.effort))
    return [float(values[name]) for name in inputs] if set(values) == set(inputs) else None


class StateDecoder:
    """Reads the messages on `topics`, which together contain a state of the scenario."""

    def __init__(self, scenario: Scenario, space: Space):
        self._codecs = {codec.topic: codec for codec in state_codecs(scenario, space)}
        self.topics = tuple(self._codecs)
        self.n_parts = sum(
            len(codec.names) if isinstance(codec, JointStateCodec) else 1
            for codec in self._codecs.values()
        )
        """Number of the parts that make a state."""

    def parts(self, topic: str, message: Any) -> list[str]:
        """The part of the state in a message: joints by their names, bodies by the topic."""
        codec = self._codecs[topic]
        if not isinstance(codec, JointStateCodec):
            return [topic]
        return [name for name in message.name if name in codec.names]

    def read(self, topic: str, message: Any, q: np.ndarray, v: np.ndarray) -> bool:
        """Read into configuration q (nq), which on entry is close to it, and velocity v (nw), NaN
        where there is none; returns whether all are there. Raises RecordingError for bodies that
        are missing.
        """
        codec = self._codecs[topic]
        fields = codec.message_fields(message)
        missing = [name for name in codec.names if name not in fields]
        if missing and not isinstance(codec, JointStateCodec):
            raise RecordingError(f"a state has the bodies {list(fields)}, without {missing}")
        return codec.read(fields, q, v)
