"""Measurements from a plant's sensors, received on their topics."""

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
    """A sensor's codec, the step of its last measurement, and the `pending` measurements, which
    have not been used yet.
    """

    codec: SensorCodec
    last: int = -1
    pending: list[Measurement] = field(default_factory=list)


class SensorReader:
    """Subscribes to the sensors of a plant whose time step is h (s). `arrived()` is called after
    every measurement, and `refused(kind, reason)` for unusable messages.
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
        """Whether all measurements that are due at step k have arrived."""
        return all(c.last >= self._due(c.codec.sensor, k) for c in self._channels)

    def take(self, k: int) -> list[Measurement]:
        """Remove and return the pending measurements for steps up to k."""
        taken = []
        for channel in self._channels:
            taken += [item for item in channel.pending if item.step <= k]
            channel.pending = [item for item in channel.pending if item.step > k]
        return taken

    def restart(self, k: int) -> None:
        """Restart the run at step k, without the measurements of later steps."""
        for channel in self._channels:
            channel.pending = [item for item in channel.pending if item.step <= k]
            channel.last = min(channel.last, k) if channel.pending else -1

    def _due(self, sensor: Sensor, k: int) -> int:
        """The last step whose measurement is due at step k, or a negative number if there is
        none.
        """
        # measurements are taken at multiples of `every` and arrive after the sensor's delay
        latest, every = k - sensor.delay(self._h), sensor.every(self._h)
        return latest - latest % every if latest >= 0 else -1

    def _on_message(self, channel: _Channel, message: Any) -> None:
        sensor, stamp = channel.codec.sensor, conversions.nanoseconds(message.header.stamp)
        step = self._clock.step(stamp)
        if step is None:
            text = f"sensor {sensor.name}: stamp {stamp * 1e-9:.9f} s belongs to no step"
            self._refused(Refusal.STAMP, text)
            return
        try:
            values = channel.codec.read(message)
        except ConversionError as reason:
            self._refused(reason.kind, str(reason))
            return
        if step == channel.last:  # published again for late subscribers
            return
        if step < channel.last:  # a new run
            channel.pending.clear()
        channel.last = step
        channel.pending.append(Measurement(sensor, step, values))
        self._arrived()
