"""Publishers and reports of a plant's contact forces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.publisher import Publisher

from nh_control.loop.plant_report import ContactMonitor
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.ros.messages import conversions
from nh_control.runs import topics
from nh_control.scenarios import Scenario

QUEUE = 10


class ContactPublisher(ContactMonitor):
    """Publishes the force (N) of every contact that has a position, and monitors all contacts. The
    force is that of the last substep before a state. It is published in the axes of the scenario's
    parent frame, with the state's stamp. `stamp(k)` is the stamp of step k in ns, and frame names
    begin with `prefix`.
    """

    def __init__(
        self,
        node: Node,
        scenario: Scenario,
        plant: SimulatedPlant,
        stamp: Callable[[int], int],
        prefix: str = "",
    ):
        super().__init__()
        self._plant, self._stamp, self._step = plant, stamp, 0
        self._message = WrenchStamped()
        self._message.header.frame_id = prefix + scenario.visual_model().parent
        self._publishers = {
            name: node.create_publisher(WrenchStamped, topic, QUEUE)
            for name, topic in topics.contacts(plant.dsys.system).items()
        }

    @property
    def publishers(self) -> list[Publisher]:
        """The publishers for all contacts."""
        return list(self._publishers.values())

    def publish(self) -> None:
        """Publish the forces from the plant's last step, once."""
        plant, message = self._plant, self._message
        # a repeated state has the same forces
        if plant.step == self._step or plant.dsys.method.contacts is None:
            return
        self._step, contacts = plant.step, plant.contacts
        self.observe(contacts)
        conversions.set_time(message.header.stamp, self._stamp(plant.step))
        for name, publisher in self._publishers.items():
            # subscribers would have to check forces that are not finite
            if name in contacts and np.isfinite(contacts[name].force).all():
                conversions.set_xyz(message.wrench.force, contacts[name].force.tolist())
                publisher.publish(message)
