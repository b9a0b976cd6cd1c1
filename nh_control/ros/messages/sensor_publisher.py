"""The measurements of a plant's sensors on their topics."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node

from nh_control.ros.loop.simulated_plant import SimulatedPlant
from nh_control.ros.messages import conversions
from nh_control.ros.messages.sensor_messages import sensor_codec
from nh_control.ros.messages.state_publisher import UNSENT
from nh_control.runs.sensing import Sensors
from nh_control.scenarios import Scenario


class SensorPublisher:
    """Publishes what the sensors of a scenario measure of its plant, each at its rate, with the
    stamp of the measured state; `stamp(k)` is that of step k in ns, h the time of a step in s.
    """

    def __init__(
        self,
        node: Node,
        scenario: Scenario,
        plant: SimulatedPlant,
        h: float,
        stamp: Callable[[int], int],
        prefix: str = "",
        seed: int = 0,
    ):
        self._plant, self._stamp, self._h, self._seed = plant, stamp, h, seed
        self._scenario, self._dsys, self._step = scenario, plant.dsys, -1
        self._sensors = self._made()
        self._codecs = {
            sensor.name: sensor_codec(sensor, plant.dsys.system, prefix)
            for sensor in scenario.sensors
        }
        self._publishers = {
            name: node.create_publisher(type(codec.message), codec.topic, UNSENT)
            for name, codec in self._codecs.items()
        }

    def publish(self) -> None:
        """Publish what comes at the plant's step, once."""
        plant = self._plant
        if not self._codecs or plant.step == self._step:
            return
        if plant.step < self._step or plant.dsys is not self._dsys:  # placed, or pushed otherwise
            self._sensors, self._dsys = self._made(), plant.dsys
        self._step = plant.step
        seen = plant.configuration, plant.velocity, plant.applied
        for measured in self._sensors.measure(plant.step, *seen):
            codec = self._codecs[measured.sensor.name]
            codec.write(measured.values)
            conversions.set_time(codec.message.header.stamp, self._stamp(measured.step))
            self._publishers[measured.sensor.name].publish(codec.message)

    def _made(self) -> Sensors:
        return Sensors(self._scenario.sensors, self._plant.dsys, self._h, self._seed)
