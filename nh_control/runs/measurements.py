"""Measurements and commands of hardware, read from a recording without ROS."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.typesys import Stores, get_typestore

from nh_control.control.input_history import NANOSECONDS
from nh_control.discrete.system import DiscreteSystem
from nh_control.runs.assembly import Assembly
from nh_control.runs.decoding import RecordingError, StateDecoder, chosen, command, nanoseconds
from nh_control.scenarios import Scenario

COMMANDS = "joint_commands"
START = "reference_start"


@dataclass(frozen=True)
class Measurements:
    """Measurements and commands of hardware.

    Configurations q (n, nq) and velocities v (n, nw) have the stamps `times_ns` (n) and were
    complete at `received_ns` (n). Values that were not measured are NaN. Inputs u (k, nu) were
    sent at `sent_ns` (k), in answer to the states with the stamps `answered_ns` (k). References
    started at the stamps `started_ns` (m), if the tracker reported them.

    The times `received_ns` and `sent_ns` are on the recorder's clock. The stamps must be on the
    same clock.
    """

    times_ns: np.ndarray
    received_ns: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    sent_ns: np.ndarray
    answered_ns: np.ndarray
    started_ns: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.times_ns)

    @property
    def moving(self) -> np.ndarray:
        """Whether all velocities were measured, for each row (n)."""
        return ~np.isnan(self.v).any(axis=1)

    @property
    def times_s(self) -> np.ndarray:
        """Times (n) since the first measurement."""
        return (self.times_ns - self.times_ns[0]) / NANOSECONDS


def read(
    folder: Path, scenario: Scenario, model: DiscreteSystem, partly: bool = False
) -> Measurements:
    """Read the messages recorded since the stamps last jumped back. With `partly`, some of the
    robot's joints or bodies may be missing from all messages; their coordinates are NaN. Raises
    RecordingError.
    """
    decoder, messages = StateDecoder(scenario, model.system.space), []
    try:
        with AnyReader([folder], default_typestore=get_typestore(Stores.LATEST)) as bag:
            names = chosen(bag.connections, (*decoder.topics, COMMANDS, START))
            for connection, received_ns, data in bag.messages():
                if connection.topic in names:
                    message = bag.deserialize(data, connection.msgtype)
                    # decode all messages first, because the spread depends on the rates of all
                    # parts
                    messages.append((names[connection.topic], message, received_ns))
    except (AnyReaderError, OSError) as error:
        raise RecordingError(f"{folder}: {error}") from error
    spread_s = _spread_s(decoder, messages, model.h)
    collected = _Collected(decoder, model, spread_s, _parts(decoder, messages) if partly else None)
    for topic, message, received_ns in messages:
        collected.add(topic, message, received_ns)
    if len(collected.states) < 2:
        raise RecordingError(
            f"{folder}: {len(collected.states)} states of {scenario.name}, on the topics "
            f"{', '.join(collected.decoder.topics)}; is it a recording of this scenario?"
        )
    return collected.measurements()


def _parts(decoder: StateDecoder, messages: list[tuple[str, Any, int]]) -> set[str]:
    """Return the parts of a state that are in the messages."""
    return {
        part
        for topic, message, _ in messages
        if topic in decoder.topics
        for part in decoder.parts(topic, message)
    }


def _spread_s(decoder: StateDecoder, messages: list[tuple[str, Any, int]], h: float) -> float:
    """Return the maximum time (s) between the stamps of a state's parts. It is one step of h s,
    but at most half of the longest message period of any part. After a loss, a part is therefore
    not combined with the next message of another part.
    """
    stamps: dict[str, list[int]] = {}
    for topic, message, _ in messages:
        for part in decoder.parts(topic, message) if topic in decoder.topics else ():
            stamps.setdefault(part, []).append(nanoseconds(message.header.stamp))
    # the median ignores lost messages
    periods = [float(np.median(np.diff(times))) for times in stamps.values() if len(times) > 1]
    return min(h, max(periods, default=np.inf) / 2 / NANOSECONDS)


class _Collected:
    """Combines messages with stamps up to `spread_s` apart into states. A state contains all
    parts, or only `parts` and NaN for the others.
    """

    def __init__(
        self,
        decoder: StateDecoder,
        model: DiscreteSystem,
        spread_s: float,
        parts: set[str] | None = None,
    ):
        space, complete = model.system.space, parts is None or len(parts) == decoder.n_parts
        self.decoder, self._inputs = decoder, model.inputs
        self._assembly = Assembly(decoder.n_parts if parts is None else len(parts), spread_s)
        # coordinates that no message contains stay NaN
        self._origin = space.origin if complete else np.full(space.nq, np.nan)
        self._q, self._v = self._origin.copy(), np.zeros(space.nw)
        self.states: list[tuple[int, int, np.ndarray, np.ndarray]] = []
        self._commands: list[tuple[int, int, list[float]]] = []
        self._started: list[int] = []

    def add(self, topic: str, message: Any, received_ns: int) -> None:
        if topic == START:
            stamp = nanoseconds(message)  # starts with later stamps belong to an earlier run
            self._started = [*(time for time in self._started if time < stamp), stamp]
            return
        stamp = nanoseconds(message.header.stamp)
        if topic == COMMANDS:
            if (u := command(message, self._inputs)) is not None:
                self._commands.append((received_ns, stamp, u))
            return
        parts = self.decoder.parts(topic, message)
        # the stamps have jumped back, and only the last run counts
        if self._assembly.add(parts, stamp):
            self.states.clear()
            self._commands.clear()
            self._started.clear()
            self._q = self._origin.copy()
        self.decoder.read(topic, message, self._q, self._v)
        if (time_ns := self._assembly.take()) is not None:
            self.states.append((time_ns, received_ns, self._q.copy(), self._v.copy()))

    def measurements(self) -> Measurements:
        times, received, q, v = (np.array(column) for column in zip(*self.states))
        sent, answered = (
            np.array([entry[j] for entry in self._commands], dtype=np.int64) for j in (0, 1)
        )
        u = np.array([entry[2] for entry in self._commands]).reshape(-1, len(self._inputs))
        started = np.array(self._started, dtype=np.int64)
        return Measurements(times, received, q, v, u, sent, answered, started)
