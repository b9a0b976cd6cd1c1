"""A publisher of measurements from a plant's sensors."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from rclpy.publisher import Publisher

from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.ros.messages import conversions
from nh_control.ros.messages.sensor_messages import sensor_codec
from nh_control.ros.messages.state_publisher import UNSENT
from nh_control.ros.runtime.subscribers import LateSubscribers
from nh_control.scenarios import Scenario


class SensorPublisher:
    """Publishes the measurements of a scenario's sensors, each at the sensor's rate and with the
    stamp of the measured state. `stamp(k)` is the stamp of step k in ns.
    """

    def __init__(
        self,
        node: Node,
        scenario: Scenario,
        plant: SimulatedPlant,
        stamp: Callable[[int], int],
        prefix: str = "",
    ):
        self._plant, self._stamp = plant, stamp
        self._codecs = {
            sensor.name: sensor_codec(sensor, plant.dsys.system, prefix)
            for sensor in scenario.sensors
        }
        self._publishers = {
            name: node.create_publisher(type(codec.message), codec.topic, UNSENT)
            for name, codec in self._codecs.items()
        }
        self._late_subscribers = LateSubscribers(self.publishers)

    @property
    def publishers(self) -> list[Publisher]:
        """The publishers for all sensors."""
        return list(self._publishers.values())

    def late_subscribers(self) -> bool:
        """Whether a sensor has gained subscribers since the last publication."""
        return self._late_subscribers.new()

    def publish(self) -> None:
        """Publish the measurements that arrive at the plant's step. Publish them again if the
        plant repeats the step for late subscribers.
        """
        self._late_subscribers.count()
        for measured in self._plant.measurements:
            codec = self._codecs[measured.sensor.name]
            codec.write(measured.values)
            conversions.set_time(codec.message.header.stamp, self._stamp(measured.step))
            self._publishers[measured.sensor.name].publish(codec.message)
