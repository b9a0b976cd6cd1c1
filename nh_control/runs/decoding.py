"""Decodes the messages in recordings into numbers, without ROS."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from nh_control.control.input_history import NANOSECONDS
from nh_control.geometry.spaces import Space
from nh_control.loop.wire_format import JointStateCodec, state_codecs
from nh_control.scenarios import Scenario


class RecordingError(RuntimeError):
    """A recording does not contain a run; the message says what is missing."""


def chosen(connections: Iterable[Any], requested: Collection[str]) -> dict[str, str]:
    """Return the requested topics by their full names in a recording. If topics have the same
    name, the one in the namespace nearest to the root is taken, because `reference/joint_states`
    is not a state. Raises RecordingError if two robots have a topic of that name.
    """
    topics: dict[str, list[str]] = {}
    for connection in connections:
        name = connection.topic.rsplit("/", 1)[-1]
        if name in requested:
            topics.setdefault(name, []).append(connection.topic)
    out = {}
    for name, full in topics.items():
        nearest = min(topic.count("/") for topic in full)
        several = sorted({topic for topic in full if topic.count("/") == nearest})
        if len(several) > 1:
            raise RecordingError(f"the recording contains several robots: {', '.join(several)}")
        out[several[0]] = name
    return out


def nanoseconds(stamp: Any) -> int:
    """Return a stamp in integer nanoseconds."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def command(message: Any, inputs: Collection[str]) -> list[float] | None:
    """Return a command's efforts in the order of the inputs, or None if the command is for other
    inputs.
    """
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
        """Number of parts of a state."""

    def parts(self, topic: str, message: Any) -> list[str]:
        """Return the parts of the state in a message: joints by name, bodies by topic."""
        codec = self._codecs[topic]
        if not isinstance(codec, JointStateCodec):
            return [topic]
        return [name for name in message.name if name in codec.names]

    def read(self, topic: str, message: Any, q: np.ndarray, v: np.ndarray) -> bool:
        """Read a message into the configuration q (nq) and the velocity v (nw). Initially, q must
        be close to the configuration in the message. Unknown velocities become NaN. Returns
        whether all velocities are known. Raises RecordingError for missing bodies.
        """
        codec = self._codecs[topic]
        fields = codec.message_fields(message)
        missing = [name for name in codec.names if name not in fields]
        if missing and not isinstance(codec, JointStateCodec):
            raise RecordingError(f"a state contains the bodies {list(fields)}, without {missing}")
        return codec.read(fields, q, v)
