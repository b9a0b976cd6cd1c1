"""States of hardware, whose parts come in several messages with stamps of their own."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Desk  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.loop.reports import Refusal  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.ros.messages.state_reader import MeasurementReader, StateListener  # noqa: E402

BOARD = scenarios.get("snakeboard")
NAMES = ["rotor_joint", "front_truck_joint", "rear_truck_joint"]


class Hardware:
    """A reader and what it told: stamps of states in ms, refusals, jumps."""

    def __init__(self, spread_s=0.01):
        self.desk, self.received, self.refused, self.jumped = Desk(), [], [], []
        listener = StateListener(
            lambda stamp_ns: self.received.append(stamp_ns // 10**6),
            lambda *refusal: self.refused.append(refusal),
            self.jumped.append,
        )
        shown = codecs(BOARD, BOARD.model())
        self.reader = MeasurementReader(self.desk, shown, listener, 10, spread_s)

    def joints(self, ms, names=NAMES, velocity=0.25, position=0.5):
        many = lambda value: [value] * len(names) if isinstance(value, float) else value
        message = JointState(name=names, position=many(position), velocity=many(velocity))
        self.desk.give("joint_states", message, ms * 10**6)

    def body(self, ms):
        self.desk.give("odom", Odometry(), ms * 10**6)

    def read(self):
        """Whether there are velocities; angles and rates of the first two joints."""
        q, v = [0.0] * 5, [0.0] * 5
        return self.reader.read(q, v), q[:2], v[:2]


def test_a_state_is_there_when_all_parts_are_newer_than_the_last_one_and_has_the_newest_stamp():
    hardware = Hardware()
    hardware.joints(1000, NAMES[:2])
    hardware.body(1004)
    assert hardware.received == []
    hardware.joints(1002, NAMES[2:])
    assert hardware.received == [1004]
    hardware.joints(1010)
    assert hardware.received == [1004]  # the body is the last state's
    hardware.body(1011)
    assert hardware.received == [1004, 1011]
    hardware.body(1011)
    hardware.joints(1011)
    assert hardware.received == [1004, 1011]  # nothing is newer
    hardware.joints(1100)
    hardware.body(1111)  # too far apart
    assert hardware.received == [1004, 1011]
    hardware.joints(1101)
    assert hardware.received == [1004, 1011, 1111]


def test_joints_of_others_are_nothing_new_and_wrong_lengths_are_refused():
    hardware = Hardware()
    hardware.body(1000)
    hardware.joints(1000, [*NAMES[:2], "bell"])
    assert hardware.received == []
    hardware.joints(1000, NAMES[2:])
    hardware.joints(1005, ["bell"])
    assert hardware.received == [1000] and hardware.refused == []
    hardware.joints(1010, position=[0.0], velocity=[])
    ((kind, reason),) = hardware.refused
    assert kind is Refusal.LENGTH and "1 positions" in reason


def test_stamps_that_go_back_by_more_than_a_second_begin_anew():
    hardware = Hardware()
    hardware.joints(5000)
    hardware.body(5000)
    hardware.body(4000)
    hardware.joints(4000)
    assert hardware.received == [5000] and hardware.jumped == []  # late, by a second
    hardware.body(3999)
    hardware.joints(3999)
    assert hardware.jumped == [pytest.approx(1.001)]
    assert hardware.received == [5000, 3999]


@pytest.mark.parametrize("velocity", [0.25, []])
def test_velocities_are_there_if_all_joints_have_them(velocity):
    hardware = Hardware()
    hardware.joints(1000, NAMES[:1], position=0.1)
    hardware.joints(1000, NAMES[1:], velocity, position=0.3)
    hardware.body(1000)
    moves, q, v = hardware.read()
    assert moves is bool(velocity)
    assert q == [0.1, -0.3]  # the wheels turn against each other
    np.testing.assert_array_equal(v, [0.25, -0.25 if velocity else np.nan])
    quality = hardware.desk.subscribed["joint_states"].qos  # sensors may be best effort
    assert quality.reliability.name == "BEST_EFFORT" and quality.depth == 10
    assert quality.durability.name == "VOLATILE"


def test_a_velocity_nan_is_none_and_other_joints_may_be_anything():
    """As of joint_state_broadcaster, for joints without the interface."""
    hardware, nan = Hardware(), np.nan
    names, position = [*NAMES, "gripper"], [0.1, 0.3, -0.3, nan]
    hardware.joints(1000, names, [nan, -0.2, 0.2, np.inf], position)
    hardware.body(1000)
    assert hardware.received == [1000]
    moves, q, v = hardware.read()
    assert not moves and q == [0.1, -0.3]
    np.testing.assert_array_equal(v, [nan, 0.2])
