"""An arm as nodes that follows the joint trajectory of another process."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.scenarios.urdf import DEFAULT


@pytest.mark.slow
def test_an_arm_follows_the_trajectory_of_another_process(nodes, probe, tmp_path):
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    way = tmp_path / "way.csv"
    way.write_text("time_s,shoulder,elbow\n0,0.2,-0.1\n0.5,0,0\n")
    run = {"scenario": "urdf", "urdf": str(DEFAULT), "reference": str(way)}
    nodes.start("tracker", run)
    plant = {"lockstep": True, "speed_factor": 4.0, "on_finish": "continue", "wait_for": "[probe]"}
    nodes.start("plant", {**run, **plant})
    publisher = probe.node.create_publisher(JointTrajectory, "joint_trajectory", 1)
    probe.wait(lambda: publisher.get_subscription_count() == 1, "the tracker")
    probe.wait(lambda: len(probe.joint_states) > 10, "states")
    np.testing.assert_allclose(probe.joint_states[0].position, [0.2, -0.1], atol=1e-9)
    message = JointTrajectory(joint_names=["elbow", "shoulder"])
    for second, positions in ((1, [0.5, 0.3]), (2, [-0.4, 0.6])):
        point = JointTrajectoryPoint(positions=positions)
        point.time_from_start.sec = second
        message.points.append(point)
    publisher.publish(message)

    def there():
        position = np.array(probe.joint_states[-1].position)
        return np.abs(position - [0.6, -0.4]).max() < 1e-6

    probe.wait(there, "end of the trajectory")
    passed = np.array([state.position for state in probe.joint_states])
    assert np.abs(passed - [0.3, 0.5]).max(axis=1).min() < 0.01
    message.joint_names = ["elbow", "wrist"]
    publisher.publish(message)
    probe.wait_value("goals_refused", "1", "tracker")
    h = scenarios.get("urdf").step_s
    assert np.abs(np.diff(passed, axis=0)).max() < 3.0 * h
