"""The tracker node: answers every state with the command of the discrete LQR tracker."""

from __future__ import annotations

import sys
import time

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry, Path
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState

from nh_control.control import DisturbanceEstimate
from nh_control.ros import conversions, process
from nh_control.ros.diagnostics import Diagnostics
from nh_control.ros.inbox import Inbox
from nh_control.ros.model import Model
from nh_control.ros.parameters import TRACKER, Parameters
from nh_control.ros.state_estimate import StateEstimate
from nh_control.ros.tracker_report import TrackerReport

QUEUE = 10
UNSENT = 1000
"""Commands kept for subscribers that are slow to acknowledge them, such as a recorder."""


class Tracker:
    """Waits for joint states and odometry of equal stamp and publishes the command with this stamp.

    The step of the reference is that of the stamp, so the tracker may start at any time, and a plant that starts again is followed
    from its start. A state that is published again gets the same answer again.
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        self._inbox = inbox
        parameters = Parameters(node, TRACKER)
        self._model = model = Model.of(parameters)
        self._tracker = model.scenario.tracker(model.dsys, model.reference, parameters["integral"])
        self._estimate = StateEstimate(model.dsys, model.reference)
        space = model.dsys.system.space
        self._joints = conversions.JointCodec(model.scenario.joints, space)
        self._body = conversions.BodyCodec(model.scenario.body, space)
        self._joint_state: JointState | None = None
        self._odometry: Odometry | None = None
        self._q, self._v = [0.0] * space.nq, [0.0] * space.nw
        self._forget()
        self._report = TrackerReport(model.dsys.state_space.tangent_names)
        self._message = conversions.command_message(model.dsys.inputs)
        self._publisher = node.create_publisher(JointState, "joint_commands", UNSENT)
        self._path_publisher = node.create_publisher(Path, "reference", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
        self._path_publisher.publish(self._reference_path())
        inbox.subscribe(JointState, "joint_states", self._on_joint_state, QUEUE)
        inbox.subscribe(Odometry, "odom", self._on_odometry, QUEUE)
        self._diagnostics = Diagnostics(node, "tracking", model.scenario.name, lambda: inbox.post(self._publish_report))
        node.get_logger().info(
            f"model: {model.dsys}; reference {model.reference.name!r}, {len(model.reference)} steps"
            f"{'; with disturbance estimate' if parameters['integral'] else ''}"
        )

    def work(self) -> None:
        """Answer states."""
        self._inbox.run()

    def close(self) -> None:
        """Nothing is open."""

    def _on_joint_state(self, message: JointState) -> None:
        self._joint_state = message
        self._on_message()

    def _on_odometry(self, message: Odometry) -> None:
        self._odometry = message
        self._on_message()

    def _on_message(self) -> None:
        """Answer, once both messages of a state are there."""
        if self._joint_state is None or self._odometry is None or self._joint_state.header.stamp != self._odometry.header.stamp:
            return
        arrived = time.perf_counter()
        stamp = conversions.nanoseconds(self._joint_state.header.stamp)
        k = self._model.clock.step(stamp)
        if k is None:
            self._report.refuse(f"stamp {stamp * 1e-9:.9f} s is no multiple of the step {self._model.dsys.h:g} s: give both nodes the same step_s")
            return
        try:
            measurement = self._measure(k)
        except conversions.ConversionError as error:
            self._report.refuse(str(error))
            return
        if (k, measurement) != self._answered:
            conversions.write_command(self._message, self._respond(k, has_velocity=len(measurement) > len(self._q)), stamp)
            self._answered = k, measurement
        self._publisher.publish(self._message)
        self._report.answered(time.perf_counter() - arrived)

    def _measure(self, k: int) -> list[float]:
        """Read the present messages into configuration and velocity; returns their numbers, without velocities if there are none."""
        i = self._body.index
        heading = self._tracker.target(k)[i] if self._answered is None else self._q[i]
        has_velocities = self._joints.read(self._joint_state, self._q, self._v)
        self._body.read(self._odometry, self._q, self._v, near=heading)
        return self._q + self._v if has_velocities else self._q[:]

    def _respond(self, k: int, has_velocity: bool) -> np.ndarray:
        """Input (nu) for the measured state at step k."""
        last = -1 if self._answered is None else self._answered[0]
        if k <= last:
            self._forget()
        elif k > last + 1 and self._memory is not None:
            self._memory = DisturbanceEstimate(self._memory.disturbance)
        x = self._estimate.state(k, self._q, self._v if has_velocity else None, self._u)
        command = self._tracker.command(k, x, self._memory)
        self._memory, self._u = command.memory, command.u
        self._report.computed(k, command, self._estimate.approximated)
        return command.u

    def _forget(self) -> None:
        """Start anew: nothing is known of earlier steps."""
        self._answered, self._memory, self._u = None, None, np.zeros(self._model.dsys.nu)
        self._estimate.reset()

    def _reference_path(self) -> Path:
        path, i = Path(), self._body.index
        path.header.frame_id = self._body.parent
        for k, x in enumerate(self._model.reference.states.tolist()):
            pose = PoseStamped()
            pose.header.frame_id = self._body.parent
            conversions.set_time(pose.header.stamp, self._model.clock.stamp(k))
            conversions.set_yaw(pose.pose.orientation, x[i])
            pose.pose.position.x, pose.pose.position.y = x[i + 1], x[i + 2]
            path.poses.append(pose)
        return path

    def _publish_report(self) -> None:
        self._diagnostics.publish(self._report.make())


def main(args: list[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return process.run("tracker", Tracker, args)


if __name__ == "__main__":
    sys.exit(main())
