"""The display node. It publishes markers of the scenario's visual model, of the reference at the
same step, and of the path so far. It also publishes the robot's description and the transforms of
its frames.
"""

from __future__ import annotations

import sys
import time
from functools import partial

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

from nh_control.loop.reports import Report
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.markers import Picture
from nh_control.ros.messages.motion_listener import MotionListener
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.transforms import RobotModel
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import DISPLAY
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.selected_model import Model, frame_prefix
from nh_control.ros.runtime.subscribers import LateSubscribers
from nh_control.runs import topics

LATECOMERS_S = 0.5
"""Time between checks for new subscribers while nothing moves."""


class Display:
    """Draws the newest state at most `rate_hz` times per second of wall time. The node does not
    read the simulated states in between.

    If the plant is paused or has finished, the node draws the last state again for late
    subscribers.
    """

    def __init__(self, node: Node, inbox: Inbox, _: process.Exit):
        parameters = Parameters(node, DISPLAY)
        self._inbox, model, prefix = inbox, Model.of(parameters), frame_prefix(node, parameters)
        scenario, dsys = model.scenario, model.dsys
        self._period_s, self._drawn = 1 / parameters["rate_hz"], 0
        self._picture = picture = Picture(model, prefix)
        self._publisher = node.create_publisher(MarkerArray, "markers", 1)
        self._late_subscribers = LateSubscribers([self._publisher])
        self._robot = RobotModel(node, scenario, prefix, parameters["transforms"])
        shown, source = codecs(scenario, dsys, prefix=prefix), parameters["source"]
        self._motion = MotionListener(node, inbox, model, shown, source, picture.restart)
        inbox.subscribe(Path, "plan", picture.plan.place, 1)
        for name, topic in topics.contacts(dsys.system).items():
            inbox.subscribe(WrenchStamped, topic, partial(picture.contacts.take, name), 1)
        self.diagnostics = Diagnostics(node, inbox, "drawing", scenario.name, self._make_report)

    def work(self) -> None:
        """Draw, and sleep until the next frame."""
        motion = self._motion
        while not self._inbox.closed:
            self._inbox.serve(LATECOMERS_S)
            for _ in range(motion.queue - 1):  # messages that arrived during the last frame
                if not self._inbox.serve(0.0):
                    break
            # draw new states, or the last state again for late subscribers
            late = self._late_subscribers.new()
            if motion.fresh or (late and motion.time_ns >= 0):
                motion.fresh = False
                self._draw()
                time.sleep(self._period_s)

    def close(self) -> None:
        """Do nothing, because there is nothing to close."""

    def _make_report(self) -> Report:
        return self._motion.report("drawing", self._drawn)

    def _draw(self) -> None:
        motion, poses = self._motion, self._picture.poses(self._motion.q)
        self._robot.publish(poses, motion.q, motion.time_ns)
        self._publisher.publish(MarkerArray(markers=self._picture.draw(motion, poses)))
        self._drawn += 1


main = partial(process.run, "display", Display)
"""`main(args)` runs the node and returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
