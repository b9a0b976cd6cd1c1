"""TF, where it is installed."""

from __future__ import annotations

from collections.abc import Callable

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node


def transform_broadcaster(node: Node) -> Callable[[Odometry], None]:
    """A function that broadcasts a body's odometry as a transform, or does nothing, logged once, without tf2_ros."""
    try:
        from tf2_ros import TransformBroadcaster
    except ImportError as missing:
        node.get_logger().info(f"no TF: {missing}; poses are in odometry and markers only, install tf2_ros to show the robot model in rviz")
        return lambda odometry: None
    broadcaster = TransformBroadcaster(node)
    transform = TransformStamped()

    def broadcast(odometry: Odometry) -> None:
        transform.header, transform.child_frame_id = odometry.header, odometry.child_frame_id
        position, translation = odometry.pose.pose.position, transform.transform.translation
        translation.x, translation.y, translation.z = position.x, position.y, position.z
        transform.transform.rotation = odometry.pose.pose.orientation
        broadcaster.sendTransform(transform)

    return broadcast
