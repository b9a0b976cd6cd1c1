"""The description of a robot and the transforms of its frames."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from transforms3d.quaternions import mat2quat

from nh_control.ros.messages import conversions
from nh_control.ros.messages.state_publisher import make_broadcaster
from nh_control.scenarios import Scenario
from nh_control.scenarios.declared_frames import FIXED
from nh_control.scenarios.robot_description import NoUrdf, robot_description
from nh_control.scenarios.scenario_frames import Link, ScenarioFrames
from nh_control.scenarios.visual_model import Pose


class RobotModel:
    """Publishes the URDF of a scenario, if it has one, on the latched topic `robot_description`,
    fixed frames on `/tf_static`, and moving ones on `/tf`, as robot_state_publisher does; the
    plant publishes the frames of bodies. All frames begin with `prefix`.
    """

    def __init__(self, node: Node, scenario: Scenario, prefix: str):
        self._prefix = prefix
        self._frames = frames = ScenarioFrames(scenario)
        self._describe(node, scenario)
        fixed = [link for link in frames.links if link.kind == FIXED]
        moving = [x for x in frames.links if x.kind != FIXED and x.frame not in frames.bodies]
        self._moving = {link.frame: self._transform(link) for link in moving}
        self._broadcaster = make_broadcaster(node, "TransformBroadcaster") if moving else None
        if fixed and (static := make_broadcaster(node, "StaticTransformBroadcaster")):
            static.sendTransform([self._transform(link) for link in fixed])

    def publish(self, poses: Mapping[str, Pose], q: np.ndarray, time_ns: int) -> None:
        """Broadcast the moving frames; `poses` are those of the visual model at configuration q
        (nq), at the time of the state in ns.
        """
        if self._broadcaster is None:
            return
        placed = self._frames.placed(self._frames.complete(poses, q))
        for frame, transform in self._moving.items():
            _place(transform, placed[frame])
            conversions.set_time(transform.header.stamp, time_ns)
        self._broadcaster.sendTransform(list(self._moving.values()))

    def _describe(self, node: Node, scenario: Scenario) -> None:
        try:
            text = robot_description(scenario)
        except NoUrdf as reason:
            node.get_logger().info(f"no robot_description: {reason}")
            return
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._description = node.create_publisher(String, "robot_description", latched)
        self._description.publish(String(data=text))

    def _transform(self, link: Link) -> TransformStamped:
        transform = TransformStamped(child_frame_id=self._prefix + link.frame)
        transform.header.frame_id = self._prefix + link.parent
        _place(transform, link.origin)
        return transform


def _place(transform: TransformStamped, pose: Pose) -> None:
    conversions.set_xyz(transform.transform.translation, pose.position.tolist())
    conversions.set_wxyz(transform.transform.rotation, mat2quat(pose.rotation).tolist())
