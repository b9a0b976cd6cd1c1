"""Messages and numbers: there and back."""

import math

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from geometry_msgs.msg import Quaternion  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from nh_control.ros.messages import conversions  # noqa: E402


def test_quaternions_change_order():
    from transforms3d.euler import euler2quat

    for angle in np.linspace(-math.pi + 1e-6, math.pi, 7):
        q = euler2quat(angle, 0.0, 0.0, "rzyx")
        message = Quaternion()
        conversions.set_wxyz(message, q)
        assert (message.x, message.y, message.z, message.w) == (q[1], q[2], q[3], q[0])
        assert np.array_equal(conversions.wxyz(message), q)


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
