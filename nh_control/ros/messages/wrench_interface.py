"""The topic `wrench`: external forces and torques on a simulated plant."""

from __future__ import annotations

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node

from nh_control.ros.loop.reports import Unusable
from nh_control.ros.loop.simulation_loop import SimulationLoop
from nh_control.ros.loop.wrenches import Wrenches
from nh_control.ros.messages import conversions
from nh_control.ros.runtime.callback_errors import ThrottledLog
from nh_control.ros.runtime.inbox import Inbox

QUEUE = 10


class WrenchInterface:
    """Takes wrenches for the plant's `wrenches`, each on the target that its frame names, from the
    present step on. Refused ones are in the diagnostics, and, at a limited rate, in the log.
    """

    def __init__(self, node: Node, inbox: Inbox, loop: SimulationLoop, wrenches: Wrenches):
        log = node.get_logger()
        self._loop, self._wrenches = loop, wrenches
        self._warn = ThrottledLog(lambda text: log.warning(text))
        inbox.subscribe(WrenchStamped, "wrench", self._on_wrench, QUEUE)

    def _on_wrench(self, message: WrenchStamped) -> None:
        parts = (message.wrench.force, message.wrench.torque)
        values = [number for part in parts for number in conversions.xyz(part).tolist()]
        try:
            self._wrenches.offer(message.header.frame_id, values, self._loop.plant.step)
        except Unusable as reason:
            self._warn(f"wrench refused: {reason}")
