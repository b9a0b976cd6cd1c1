"""The display alone: what it draws of a state and of a target, in whatever order they come, and of
hardware.
"""

import pytest


@pytest.mark.slow
def test_a_target_that_comes_after_the_last_state_moves_the_ghost(nodes, probe):
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import MarkerArray

    nodes.start("display", {"scenario": "cart_pole"})
    markers = probe.listen(MarkerArray, "markers")
    state, target = (
        probe.node.create_publisher(JointState, prefix + "joint_states", 10)
        for prefix in ("", "reference/")
    )
    for publisher in (state, target):
        probe.wait(publisher.get_subscription_count, "the display's subscriptions")

    def places(name):
        """Where the parts of a drawing are along the track, by number, drawn last."""
        return {m.id: m.pose.position.x for m in markers[-1].markers if m.ns == name}

    message = JointState(name=["cart_joint", "pole_joint"], velocity=[0.0, 0.0])
    message.position = [0.0, 0.0]
    probe.wait(lambda: state.publish(message) or markers, "markers")
    plant, ghost = places("plant"), places("reference")
    message.position = [0.5, 0.0]
    moved = {part: pytest.approx(x + 0.5) for part, x in ghost.items() if x < 1}
    assert moved

    def seen():
        target.publish(message)
        return any(places("reference")[part] == x for part, x in moved.items())

    probe.wait(seen, "the ghost at the target")
    assert places("plant") == plant


def test_states_of_hardware_in_parts_from_best_effort_publishers_are_drawn(nodes, probe):
    from nav_msgs.msg import Odometry
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import MarkerArray

    nodes.start("display", {"source": "hardware"})
    markers = probe.listen(MarkerArray, "markers")
    joints, body = (
        probe.node.create_publisher(kind, topic, qos_profile_sensor_data)
        for kind, topic in ((JointState, "joint_states"), (Odometry, "odom"))
    )
    for publisher in (joints, body):
        probe.wait(publisher.get_subscription_count, "the display's subscriptions")

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
