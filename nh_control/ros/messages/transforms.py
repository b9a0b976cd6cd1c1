"""Publishers of a robot's description and of the transforms of its frames."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from transforms3d.quaternions import mat2quat

from nh_control.ros.messages import conversions
from nh_control.ros.messages.state_publisher import find_tf
from nh_control.scenarios import Scenario
from nh_control.scenarios.declared_frames import FIXED
from nh_control.scenarios.robot_description import NoUrdf, robot_description
from nh_control.scenarios.scenario_frames import Link, ScenarioFrames
from nh_control.scenarios.visual_model import Pose

ORIGIN = "_origin"
"""Suffix in the name of a frame that coincides with the root frame."""


class RobotModel:
    """Publishes a scenario's URDF, if there is one, on the latched topic `robot_description`,
    fixed frames on `/tf_static`, and moving frames on `/tf`, as robot_state_publisher does. The
    plant publishes the frames of bodies. All frame names begin with `prefix`.

    The frame <root>_origin, which is fixed to the root, makes the root known before anything
    moves. Without `whole`, only this frame is published, because another node publishes the rest.
    """

    def __init__(self, node: Node, scenario: Scenario, prefix: str, whole: bool = True):
        self._prefix = prefix
        self._frames = frames = ScenarioFrames(scenario)
        links = frames.links if whole else ()
        if whole:
            self._describe(node, scenario)
        # fixed frames are published once, because late subscribers receive latched messages
        fixed = [link for link in links if link.kind == FIXED]
        fixed.append(Link(frames.root + ORIGIN, frames.root, FIXED, Pose.at(np.zeros(3))))
        moving = [link for link in links if link.kind != FIXED and link.frame not in frames.bodies]
        self._moving = {link.frame: self._transform(link) for link in moving}
        self._broadcaster = None
        if (tf := find_tf(node)) is not None:
            tf.StaticTransformBroadcaster(node).sendTransform([*map(self._transform, fixed)])
            self._broadcaster = tf.TransformBroadcaster(node) if moving else None

    def publish(self, poses: Mapping[str, Pose], q: np.ndarray, time_ns: int) -> None:
        """Broadcast the moving frames with the state's time in ns. `poses` are the visual model's
        poses at configuration q (nq).
        """
        if self._broadcaster is None:
            return
        # each link's pose in its parent frame
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
