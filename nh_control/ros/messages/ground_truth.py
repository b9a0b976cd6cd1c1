"""The plant's true state, beside what its sensors measure."""

from __future__ import annotations

from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher

from nh_control.discrete.system import DiscreteSystem
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.state_codecs import codecs
from nh_control.runs.topics import TRUTH
from nh_control.scenarios import Scenario

UNSENT = 1000


class GroundTruth:
    """Publishes the state of a scenario's plant `dsys` with its physical `parameters`, without any
    fault and with velocities, on `ground_truth/<topic of the state>`, for those who listen; frames
    begin with `prefix`.
    """

    def __init__(
        self,
        node: Node,
        scenario: Scenario,
        dsys: DiscreteSystem,
        parameters: Any,
        prefix: str = "",
    ):
        self._codecs = codecs(scenario, dsys, True, parameters, prefix)
        self._templates = [Template(codec.message) for codec in self._codecs]
        self.publishers: list[Publisher] = [
            node.create_publisher(codec.message_type, TRUTH + codec.topic, UNSENT)
            for codec in self._codecs
        ]

    def publish(self, q: np.ndarray, v: np.ndarray, stamp: int) -> None:
        """Publish configuration q (nq) and velocity v (nw) with a stamp in ns."""
        if not any(publisher.get_subscription_count() for publisher in self.publishers):
            return
        numbers = q.tolist(), v.tolist()
        for codec, template, publisher in zip(self._codecs, self._templates, self.publishers):
            codec.write(*numbers)
            conversions.set_time(codec.message.header.stamp, stamp)
            publisher.publish(template.encode())
