"""Messages and numbers: there and back."""

import math

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from geometry_msgs.msg import Quaternion  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.runs.decoding import unwrap, yaw  # noqa: E402


@given(st.floats(-20, 20), st.floats(-200, 200))
def test_unwrap_is_the_nearest_equal_angle(angle, near):
    unwrapped = unwrap(angle, near)
    assert abs(unwrapped - near) <= math.pi + 1e-9
    assert math.remainder(unwrapped - angle, math.tau) == pytest.approx(0, abs=1e-9)


def test_quaternions_change_order_and_yaw_agrees_with_transforms3d():
    from transforms3d.euler import euler2quat

    for angle in np.linspace(-math.pi + 1e-6, math.pi, 7):
        q = euler2quat(angle, 0.0, 0.0, "rzyx")
        message = Quaternion()
        conversions.set_wxyz(message, q)
        assert (message.x, message.y, message.z, message.w) == (q[1], q[2], q[3], q[0])
        assert np.array_equal(conversions.wxyz(message), q)
        assert yaw(message) == pytest.approx(angle)
        conversions.set_yaw(message, angle)
        assert np.allclose(conversions.wxyz(message), q)


def test_the_heading_of_what_is_tilted_is_that_of_its_x_axis_whatever_the_norm():
    from transforms3d.euler import euler2quat

    for heading in (-3.0, -1.0, 0.5, 3.1):
        for pitch, roll in ((0.3, 0.0), (0.0, 0.4), (-0.2, 0.3)):
            message = Quaternion()
            conversions.set_wxyz(message, -2.5 * euler2quat(heading, pitch, roll, "rzyx"))
            assert yaw(message) == pytest.approx(heading)


@given(st.integers(0, 2**31 * 10**9 - 1))
def test_time_is_exact(time_ns):
    from builtin_interfaces.msg import Time

    stamp = Time()
    conversions.set_time(stamp, time_ns)
    assert conversions.nanoseconds(stamp) == time_ns


def test_commands_there_and_back():
    message = conversions.command_message(("a", "b"))
    conversions.write_command(message, np.array([1.5, -2.0]), 1_230_000_001)
    assert conversions.read_command(message) == (["a", "b"], (1.5, -2.0), 1_230_000_001)


def test_unit_quaternions_are_normalized_and_others_refused():
    message = Quaternion(w=1.004)
    assert np.array_equal(conversions.unit_wxyz(message, "quad1"), [1.0, 0.0, 0.0, 0.0])
    for norm in (0.0, 0.9, 1.1, math.nan):
        with pytest.raises(
            conversions.ConversionError, match="orientation of quad1 is no unit quaternion"
        ):
            conversions.unit_wxyz(Quaternion(w=norm), "quad1")
