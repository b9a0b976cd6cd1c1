"""Measurements of a plant's sensors, read from their topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nh_control.loop.clocks import StepClock
from nh_control.loop.reports import Refusal
from nh_control.loop.sensing import Measurement
from nh_control.mechanics.system import System
from nh_control.ros.messages import conversions
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.sensor_messages import SensorCodec, sensor_codec
from nh_control.ros.runtime.inbox import Inbox
from nh_control.scenarios import Sensor

QUEUE = 100


@dataclass
class _Channel:
    """A sensor's codec, the step of its last measurement, and the measurements that have not been
    taken.
    """

    codec: SensorCodec
    last: int = -1
    come: list[Measurement] = field(default_factory=list)


class SensorReader:
    """Subscribes to sensors of a plant in steps of h s; `arrived()` is called after every
    measurement, `refused(kind, reason)` for messages that cannot be used.
    """

    def __init__(
        self,
        inbox: Inbox,
        sensors: Sequence[Sensor],
        system: System,
        h: float,
        arrived: Callable[[], None],
        refused: Callable[[Refusal, str], None],
    ):
        self._h, self._clock, self._arrived, self._refused = h, StepClock(h), arrived, refused
        self._channels = [_Channel(sensor_codec(sensor, system)) for sensor in sensors]
        for channel in self._channels:
            codec, on = channel.codec, partial(self._on_message, channel)
            inbox.subscribe(type(codec.message), codec.topic, on, QUEUE)

    def complete(self, k: int) -> bool:
        """Whether all measurements until step k that are not late have arrived."""
        return all(c.last >= self._due(c.codec.sensor, k) for c in self._channels)

    def take(self, k: int) -> list[Measurement]:
        """The measurements that have arrived at steps up to k, once."""
        taken = []
        for channel in self._channels:
            taken += [one for one in channel.come if one.step <= k]
            channel.come = [one for one in channel.come if one.step > k]
        return taken

    def restart(self, k: int) -> None:
        """Start the run again at step k, without measurements of later steps."""
        for channel in self._channels:
            channel.come = [one for one in channel.come if one.step <= k]
            channel.last = min(channel.last, k) if channel.come else -1

    def _due(self, sensor: Sensor, k: int) -> int:
        """The last step whose measurement has arrived at step k, negative if there is none."""
        latest, every = k - sensor.delay(self._h), sensor.every(self._h)
        return latest - latest % every if latest >= 0 else -1

    def _on_message(self, channel: _Channel, message: Any) -> None:
        sensor, stamp = channel.codec.sensor, conversions.nanoseconds(message.header.stamp)
        step = self._clock.step(stamp)
        if step is None:
            text = f"sensor {sensor.name}: stamp {stamp * 1e-9:.9f} s is that of no step"
            self._refused(Refusal.STAMP, text)
            return
        try:
            values = channel.codec.read(message)
        except ConversionError as reason:
            self._refused(reason.kind, str(reason))
            return
        if step == channel.last:  # published again, for somebody else
            return
        if step < channel.last:  # another run
            channel.come.clear()
        channel.last = step
        channel.come.append(Measurement(sensor, step, values))
        self._arrived()
