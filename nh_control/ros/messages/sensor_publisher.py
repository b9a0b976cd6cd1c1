"""The measurements of a plant's sensors on their topics."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from rclpy.publisher import Publisher

from nh_control.loop.sensing import Measurement, Sensors
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.ros.messages import conversions
from nh_control.ros.messages.sensor_messages import sensor_codec
from nh_control.ros.messages.state_publisher import UNSENT
from nh_control.ros.runtime.subscribers import LateSubscribers
from nh_control.scenarios import Scenario


class SensorPublisher:
    """Publishes the measurements of a scenario's sensors on its plant, each at its rate, with the
    stamp of the measured state; `stamp(k)` is the stamp of step k in ns, h the step in s.
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
        self._state = plant.state
        self._sensors = self._made()
        self._codecs = {
            sensor.name: sensor_codec(sensor, plant.dsys.system, prefix)
            for sensor in scenario.sensors
        }
        self._publishers = {
            name: node.create_publisher(type(codec.message), codec.topic, UNSENT)
            for name, codec in self._codecs.items()
        }
        self._come: list[Measurement] = []
        self._late_subscribers = LateSubscribers(self.publishers)

    @property
    def publishers(self) -> list[Publisher]:
        """The publishers of all sensors."""
        return list(self._publishers.values())

    def late_subscribers(self) -> bool:
        """Whether a sensor has new subscribers since its last publication."""
        return self._late_subscribers.new()

    def publish(self) -> None:
        """Publish the measurements that arrive at the plant's step; if the plant repeats the step
        for late subscribers, publish them again.
        """
        plant = self._plant
        again = plant.step == self._step and plant.state is self._state
        if not again:
            if plant.step != self._step + 1 or plant.dsys is not self._dsys:
                self._sensors, self._dsys = self._made(), plant.dsys  # placed, pushed otherwise
            seen = plant.configuration, plant.velocity, plant.applied
            self._come = self._sensors.measure(plant.step, *seen)
            self._step, self._state = plant.step, plant.state
        self._late_subscribers.count()
        for measured in self._come:
            codec = self._codecs[measured.sensor.name]
            codec.write(measured.values)
            conversions.set_time(codec.message.header.stamp, self._stamp(measured.step))
            self._publishers[measured.sensor.name].publish(codec.message)

    def _made(self) -> Sensors:
        return Sensors(self._scenario.sensors, self._plant.dsys, self._h, self._seed)
