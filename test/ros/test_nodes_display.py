"""The display alone: it draws what best-effort publishers of hardware tell in parts."""

import pytest


def test_states_of_hardware_in_parts_from_best_effort_publishers_are_drawn(nodes, probe):
    from nav_msgs.msg import Odometry
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import MarkerArray

    nodes.start("display", {"source": "hardware"})
    markers = probe.listen(MarkerArray, "markers")
    joints = probe.heard_publisher(JointState, "joint_states", qos_profile_sensor_data)
    body = probe.heard_publisher(Odometry, "odom", qos_profile_sensor_data)

    def measured():
        """Every joint and the body in a message of its own, each with a stamp of its own."""
        for name in ("rotor_joint", "front_truck_joint", "rear_truck_joint"):
            message = JointState(name=[name], position=[0.1])
            message.header.stamp = probe.node.get_clock().now().to_msg()
            joints.publish(message)
        message = Odometry()
        message.pose.pose.position.x, message.pose.pose.orientation.w = 3.0, 1.0
        message.header.stamp = probe.node.get_clock().now().to_msg()
        body.publish(message)
        return markers

    probe.wait(measured, "markers")
    assert any(
        m.ns == "plant" and m.pose.position.x == pytest.approx(3.0, abs=0.5)
        for m in markers[-1].markers
    )
    assert "is not heard" not in probe.message("display")
