"""TF, where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher


def transform_broadcaster(
    node: Node, bodies: Sequence[Odometry]
) -> tuple[Callable[[], None], Sequence[Publisher]]:
    """A function that broadcasts the present poses of bodies as transforms, and its publisher; it
    does nothing, logged once, without tf2_ros; also without bodies.
    """
    if not bodies:
        return lambda: None, ()
    try:
        from tf2_ros import TransformBroadcaster
    except ImportError as missing:
        node.get_logger().info(
            f"no TF: {missing}; poses are in odometry and markers only, install tf2_ros to show "
            f"robot models in rviz"
        )
        return lambda: None, ()
    broadcaster = TransformBroadcaster(node)
    transforms = [
        TransformStamped(header=body.header, child_frame_id=body.child_frame_id) for body in bodies
    ]

    def broadcast() -> None:
        for body, transform in zip(bodies, transforms):
            position, translation = body.pose.pose.position, transform.transform.translation
            translation.x, translation.y, translation.z = position.x, position.y, position.z
            transform.transform.rotation = body.pose.pose.orientation
        broadcaster.sendTransform(transforms)

    return broadcast, (broadcaster.pub_tf,)
