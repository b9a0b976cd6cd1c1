"""A publisher of flight controllers' motor commands."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from sensor_msgs.msg import JointState

from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.ros.messages import conversions
from nh_control.ros.messages.state_publisher import UNSENT
from nh_control.runs.topics import MOTORS


class MotorPublisher:
    """Publishes the motor commands (in [0, 1]) of a plant that flight controllers fly. The message
    contains the commands as joint positions, and the thrusts (N) as joint efforts. Other plants
    have no such topic. `stamp(k)` is the stamp of step k in ns.
    """

    def __init__(self, node: Node, plant: SimulatedPlant, stamp: Callable[[int], int]):
        self._plant, self._stamp = plant, stamp
        self._message = JointState(name=list(plant.actuator_names))
        self.publishers = (
            [node.create_publisher(JointState, MOTORS, UNSENT)] if plant.actuator_names else []
        )

    def publish(self) -> None:
        """Publish the commands and thrusts at the end of the last step."""
        for publisher in self.publishers:
            conversions.set_time(self._message.header.stamp, self._stamp(self._plant.step))
            self._message.position = self._plant.actuators.tolist()
            self._message.effort = self._plant.rotor_thrusts.tolist()
            publisher.publish(self._message)
