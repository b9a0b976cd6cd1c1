"""Odometry of bytes: what rclpy would make of them."""

import struct

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402

from nh_control.ros.runtime.odometry import odometry  # noqa: E402

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False)


def message(frames=("odom", "base_link"), seconds=-3, values=range(13), covariance=0.5):
    """An Odometry whose numbers all differ, or are given."""
    made = Odometry(child_frame_id=frames[1])
    made.header.frame_id = frames[0]
    made.header.stamp.sec, made.header.stamp.nanosec = seconds, 2**32 - 1
    pose, twist = made.pose.pose, made.twist.twist
    vectors = pose.position, twist.linear, twist.angular
    parts = [(part, name) for part in vectors for name in "xyz"]
    parts[3:3] = [(pose.orientation, name) for name in "xyzw"]
    for (part, name), value in zip(parts, values, strict=True):
        setattr(part, name, float(value))
    made.pose.covariance[:] = covariance * np.arange(36)
    made.twist.covariance[:] = -covariance * np.arange(36)
    return made


@given(
    st.tuples(texts, texts),
    st.integers(-(2**31), 2**31 - 1),
    st.lists(numbers, min_size=13, max_size=13),
    st.floats(-1e300, 1e300),
)
def test_bytes_make_the_message_that_was_sent(frames, seconds, values, covariance):
    sent = message(frames, seconds, values, covariance)
    data = serialize_message(sent)
    assert odometry(data) == sent == deserialize_message(data, Odometry)


def test_numbers_that_are_none_come_through():
    data = serialize_message(message(values=[np.nan, np.inf, -np.inf, *range(10)]))
    found, right = odometry(data), deserialize_message(data, Odometry)
    assert serialize_message(found) == serialize_message(right) == data


def test_another_order_of_bytes_is_left_to_rclpy():
    data = b"\x00\x00\x00\x00" + struct.pack(">iI", -3, 2**32 - 1)
    data += struct.pack(">I5s3x", 5, b"odom") + struct.pack(">I10s2x", 10, b"base_link")
    data += b"\0" * (-(len(data) - 4) % 8)
    covariance = 0.5 * np.arange(36)
    data += struct.pack(">7d36d", *range(7), *covariance)
    data += struct.pack(">6d36d", *range(7, 13), *-covariance)
    assert odometry(data) == message()


def test_bytes_of_no_odometry_are_dropped_wherever_they_end():
    data = serialize_message(message())
    assert all(odometry(data[:n]) is None for n in range(0, len(data), 7))
    assert odometry(data[:4] + b"\xff" * 900) is None
