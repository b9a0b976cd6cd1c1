"""A node that knows nothing of the package: it sends positions of two joints, waits until they are
reached, and sends others.
"""

from __future__ import annotations

import sys

import rclpy
from sensor_msgs.msg import JointState

TARGETS = ([0.06, -0.04], [-0.02, 0.05])
NEAR = 5e-5


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("position_sender")
    publisher = node.create_publisher(JointState, "joint_commands", 1)
    seen: list[JointState] = []
    node.create_subscription(JointState, "joint_states", seen.append, 10)
    for target in TARGETS:
        message = JointState(name=["shoulder", "elbow"], position=target)
        far = True
        while far:
            if publisher.get_subscription_count():
                publisher.publish(message)
            seen.clear()
            rclpy.spin_once(node, timeout_sec=0.5)
            far = not seen or max(abs(a - b) for a, b in zip(seen[-1].position, target)) > NEAR
    print("done", flush=True)
    rclpy.shutdown()


if __name__ == "__main__":
    sys.exit(main())
