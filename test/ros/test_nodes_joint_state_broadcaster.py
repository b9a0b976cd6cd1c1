"""A tracker of a robot whose joint_state_broadcaster publishes NaN for what it lacks."""

import numpy as np
import pytest

from nh_control.command import new_scenario


@pytest.mark.parametrize(
    "source", ["hardware", pytest.param("simulation", marks=pytest.mark.slow)]
)
def test_a_robot_with_positions_alone_is_answered(nodes, probe, tmp_path, source):
    """The arm without velocity and effort, a gripper without anything. Before it is armed, an arm
    that does not fall may be implausible to the tracker; of every kind of refusal the first is
    logged.
    """
    from sensor_msgs.msg import JointState
    from std_srvs.srv import SetBool

    file = new_scenario.write("arm", tmp_path)
    given = {"scenario": str(file), "source": source, "hardware.compensate_delay": False}
    tracker = nodes.start("tracker", given)
    states = probe.node.create_publisher(JointState, "joint_states", 10)
    nan, sent = float("nan"), [0]

    def answered(count):
        stamp, message = sent[0] * 10_000_000, JointState(name=["gripper", "shoulder"])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        message.position, message.velocity = [nan, np.pi / 2], [nan, nan]
        message.effort = [nan, nan]
        states.publish(message)
        sent[0] += 1
        return len(probe.commands) >= count

    if source == "hardware":
        arm = probe.node.create_client(SetBool, "/tracker/arm")
        probe.wait(arm.service_is_ready, "tracker")
        probe.wait(lambda: answered(0) and probe.values("tracker").get("state_age_ms"), "states")
        armed = arm.call_async(SetBool.Request(data=True))
        probe.wait(lambda: answered(0) and armed.done(), "answer")
        assert armed.result().success, armed.result().message
    torque = 9.81 * 0.5  # that holds the arm at 90 degrees, once the estimate has settled
    probe.wait(
        lambda: answered(5) and abs(probe.commands[-1].effort[0] - torque) < 0.01, "torque"
    )
    refused = [line for line in tracker.log.splitlines() if "state refused" in line]
    assert all("implausible" in line for line in refused), tracker.log
