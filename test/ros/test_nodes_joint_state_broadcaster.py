"""A tracker of a robot whose joint_state_broadcaster publishes NaN for what it lacks."""

import time

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
    nan, sent, answers, due = float("nan"), 0, 0, 0.0

    def send():
        """Publish the next state where the last one has its answer, or none after 50 ms. States
        that come faster than they are read are lost, and time jumps for the tracker.
        """
        nonlocal sent, answers, due
        if len(probe.commands) == answers and time.monotonic() < due:
            return
        answers, due = len(probe.commands), time.monotonic() + 0.05
        message = JointState(name=["gripper", "shoulder"])
        seconds, centiseconds = divmod(sent, 100)
        message.header.stamp.sec, message.header.stamp.nanosec = seconds, centiseconds * 10**7
        message.position, message.velocity = [nan, np.pi / 2], [nan, nan]
        message.effort = [nan, nan]
        states.publish(message)
        sent += 1

    def sending(condition):
        def check():
            send()
            return condition()

        return check

    if source == "hardware":
        arm = probe.node.create_client(SetBool, "/tracker/arm")
        probe.wait(arm.service_is_ready, "tracker")
        probe.wait(sending(lambda: probe.values("tracker").get("state_age_ms")), "states")
        armed = arm.call_async(SetBool.Request(data=True))
        probe.wait(sending(armed.done), "answer")
        assert armed.result().success, armed.result().message
    torque = 9.81 * 0.5  # that holds the arm at 90 degrees, once the estimate has settled

    def holds():
        return probe.commands and abs(probe.commands[-1].effort[0] - torque) < 0.01

    probe.wait(sending(holds), "torque")
    refused = [line for line in tracker.log.splitlines() if "state refused" in line]
    assert all("implausible" in line for line in refused), tracker.log
