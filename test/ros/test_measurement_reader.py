"""States of hardware, whose parts come in several messages with stamps of their own."""

import types

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from nav_msgs.msg import Odometry  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.loop.reports import Refusal  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.ros.messages.state_reader import MeasurementReader, StateListener  # noqa: E402

BOARD = scenarios.get("snakeboard")
NAMES = ["rotor_joint", "front_truck_joint", "rear_truck_joint"]


class Hardware:
    """A reader and what it told: stamps of states, refusals, jumps."""

    def __init__(self, spread_s=0.01):
        self.callbacks, self.received, self.refused, self.jumped = {}, [], [], []
        inbox = types.SimpleNamespace(subscribe=self._subscribe)
        self.reader = MeasurementReader(
            inbox,
            codecs(BOARD, BOARD.model()),
            StateListener(
                self.received.append,
                lambda *refusal: self.refused.append(refusal),
                self.jumped.append,
            ),
            10,
            spread_s,
        )

    def _subscribe(self, message_type, topic, callback, quality):
        self.callbacks[topic], self.quality = callback, quality

    def joints(self, ms, names=NAMES, velocity=True, position=0.5):
        self._send("joint_states", ms, joints_message(names, velocity, position))

    def body(self, ms):
        self._send("odom", ms, Odometry())

    def _send(self, topic, ms, message):
        message.header.stamp.sec, rest = divmod(ms, 1000)
        message.header.stamp.nanosec = rest * 10**6
        self.callbacks[topic](message)


def joints_message(names, velocity, position):
    velocities = [0.25] * len(names) if velocity else []
    return JointState(name=names, position=[position] * len(names), velocity=velocities)


def ms(*stamps):
    return [stamp * 10**6 for stamp in stamps]


def test_a_state_is_there_when_all_parts_are_newer_than_the_last_one_and_has_the_newest_stamp():
    hardware = Hardware()
    hardware.joints(1000, NAMES[:2])
    hardware.body(1004)
    assert hardware.received == []
    hardware.joints(1002, NAMES[2:])
    assert hardware.received == ms(1004)
    hardware.joints(1010)
    assert hardware.received == ms(1004)  # the body is the last state's
    hardware.body(1011)
    assert hardware.received == ms(1004, 1011)
    hardware.body(1011)
    hardware.joints(1011)
    assert hardware.received == ms(1004, 1011)  # nothing is newer


def test_parts_that_are_too_far_apart_are_no_state():
    hardware = Hardware(spread_s=0.01)
    hardware.joints(1000)
    hardware.body(1011)
    assert hardware.received == []
    hardware.joints(1001)
    assert hardware.received == ms(1011)


def test_joints_of_others_are_nothing_new_and_wrong_lengths_are_refused():
    hardware = Hardware()
    hardware.body(1000)
    hardware.joints(1000, [*NAMES[:2], "bell"])
    assert hardware.received == []
    hardware.joints(1000, NAMES[2:])
    hardware.joints(1005, ["bell"])
    assert hardware.received == ms(1000) and hardware.refused == []
    hardware.callbacks["joint_states"](JointState(name=NAMES, position=[0.0]))
    ((kind, reason),) = hardware.refused
    assert kind is Refusal.LENGTH and "1 positions" in reason


def test_stamps_that_go_back_by_more_than_a_second_begin_anew():
    hardware = Hardware()
    hardware.joints(5000)
    hardware.body(5000)
    hardware.body(4000)
    hardware.joints(4000)
    assert hardware.received == ms(5000) and hardware.jumped == []  # late, by a second
    hardware.body(3999)
    hardware.joints(3999)
    assert hardware.jumped == [pytest.approx(1.001)]
    assert hardware.received == ms(5000, 3999)


@pytest.mark.parametrize("velocity", [True, False])
def test_velocities_are_there_if_all_joints_have_them(velocity):
    hardware = Hardware()
    hardware.joints(1000, NAMES[:1], velocity=True, position=0.1)
    hardware.joints(1000, NAMES[1:], velocity=velocity, position=0.3)
    hardware.body(1000)
    q, v = [0.0] * 5, [0.0] * 5
    assert hardware.reader.read(q, v) is velocity
    assert q[:2] == [0.1, -0.3]  # the wheels turn against each other
    np.testing.assert_array_equal(v[:2], [0.25, -0.25 if velocity else np.nan])


def test_a_velocity_nan_is_none_and_other_joints_may_be_anything():
    """As of joint_state_broadcaster, for joints without the interface."""
    hardware = Hardware()
    message = JointState(
        name=[*NAMES, "gripper"],
        position=[0.1, 0.3, -0.3, np.nan],
        velocity=[np.nan, -0.2, 0.2, np.inf],
        effort=[np.nan] * 4,
    )
    hardware._send("joint_states", 1000, message)
    hardware.body(1000)
    q, v = [0.0] * 5, [0.0] * 5
    assert hardware.received == ms(1000) and not hardware.reader.read(q, v)
    assert q[:2] == [0.1, -0.3]
    np.testing.assert_array_equal(v[:2], [np.nan, 0.2])


def test_sensors_may_be_best_effort():
    quality = Hardware().quality
    assert quality.reliability.name == "BEST_EFFORT" and quality.depth == 10
    assert quality.durability.name == "VOLATILE"
