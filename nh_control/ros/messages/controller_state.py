"""What the controller wants, by how much it misses it, and its gains, as messages that plot: for
those who listen.
"""

from __future__ import annotations

import time
from array import array

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from nh_control.control import Command
from nh_control.control.reference_sequence import ReferenceSequence
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template

UNSENT = 1000
"""Messages kept for subscribers that are slow to acknowledge them."""
LOOK_S = 0.05
"""How often to look for subscribers."""


class ControllerState:
    """Publishes, with the stamp of the state that is answered, on `controller_state/...`:

    reference   JointState, `name` and `position` are the numbers of the reference's state (nx)
    error       JointState, the tracking error in local coordinates (ndx)
    gains       Float64MultiArray, K (nu, ndx) of the step: `u = u_d - K error`, zero past the end

    The command itself is on joint_commands.
    """

    def __init__(self, node: Node, sequence: ReferenceSequence):
        self._sequence, dsys = sequence, sequence.dsys
        self._look_at = 0.0
        self._wanted: list[bool] = [False, False, False]
        reference, error = (
            JointState(name=list(names), position=_zeros(len(names)))
            for names in (dsys.state_names, dsys.state_space.tangent_names)
        )
        gains = Float64MultiArray(data=_zeros(dsys.nu * dsys.ndx))
        gains.layout.dim = [
            MultiArrayDimension(
                label=",".join(dsys.inputs), size=dsys.nu, stride=dsys.nu * dsys.ndx
            ),
            MultiArrayDimension(label=",".join(error.name), size=dsys.ndx, stride=dsys.ndx),
        ]
        self._reference, self._error, self._gains = map(Template, (reference, error, gains))
        self._publishers = [
            node.create_publisher(kind, f"controller_state/{name}", UNSENT)
            for name, kind in (
                ("reference", JointState),
                ("error", JointState),
                ("gains", Float64MultiArray),
            )
        ]

    def publish(self, target: np.ndarray, command: Command, k: int, stamp: int) -> None:
        """Publish what there is of a command for step k, with a stamp in ns."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._wanted = [p.get_subscription_count() > 0 for p in self._publishers]
        reference, error, gains = self._wanted
        if reference:
            self._send_row(0, self._reference, target, stamp)
        if error:
            self._send_row(1, self._error, command.error, stamp)
        if gains:
            self._gains.message.data = array("d", self._gains_at(k).ravel().tolist())
            self._publishers[2].publish(self._gains.encode())

    def _send_row(self, i: int, template: Template, row: np.ndarray, stamp: int) -> None:
        conversions.set_time(template.message.header.stamp, stamp)
        template.message.position = array("d", row.tolist())
        self._publishers[i].publish(template.encode())

    def _gains_at(self, k: int) -> np.ndarray:
        leg = self._sequence.leg(k)
        K, at = leg.tracker.gains.K, k - leg.start
        if at >= len(K) and not leg.tracker.hold:
            return np.zeros_like(K[0])
        return K[min(at, len(K) - 1)]


def _zeros(n: int) -> array[float]:
    return array("d", bytes(8 * n))
