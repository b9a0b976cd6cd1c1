"""Controllers that are not ours: commands by joint name, with stamps of their clock or none."""

import time

import pytest

JOINTS = ("rotor_joint", "rear_truck_joint", "front_truck_joint")
"""What topic_based_ros2_control lists; the last one follows and has no effort."""


@pytest.mark.slow
def test_efforts_by_joint_name_with_wall_time_or_no_stamp_drive_a_plant_in_real_time(nodes, probe):
    from builtin_interfaces.msg import Time

    nodes.start("plant", {"on_finish": "continue", "speed_factor": 0.2})
    first = probe.next_state()

    def push(torque, stamp, moved):
        """Send a torque on the rotor until the plant has moved."""

        def again():
            probe.command(stamp(), (torque, 0.0), JOINTS)
            return moved(probe.joint_states[-1])

        probe.wait(again, "motion")

    def wall():
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        return Time(sec=seconds, nanosec=nanoseconds)

    rotor = first.velocity[0]
    push(2.0, wall, lambda state: state.velocity[0] > rotor + 0.1)
    rotor = probe.joint_states[-1].velocity[0]
    push(-2.0, Time, lambda state: state.velocity[0] < rotor - 0.1)
    probe.wait(lambda: int(probe.values().get("commands_accepted", 0)) > 1, "report")
    assert probe.values()["commands_rejected"] == "0"


@pytest.mark.slow
def test_lock_step_refuses_them_with_the_reason(nodes, probe):
    from builtin_interfaces.msg import Time

    nodes.start("plant", {"lockstep": True})
    state = probe.next_state()
    probe.command(state.header.stamp, (0.0, 0.0), JOINTS)
    probe.wait(lambda: probe.joint_states[-1].header.stamp != state.header.stamp, "step")
    probe.command(Time(sec=1_790_000_000), (0.0, 0.0), JOINTS)
    probe.command(Time(), (1.0, 0.0), JOINTS)
    probe.wait_value("commands_rejected", "2")
    assert probe.values()["rejected: answers a future state"] == "1"
    assert probe.values()["rejected: second, different answer to a state"] == "1"
    assert probe.values()["step"] == "1"
