"""Messages and numbers: there and back, and what is refused."""

import math

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.ros import conversions  # noqa: E402

SCENARIO = scenarios.get("snakeboard")
SPACE = SCENARIO.model().system.space
JOINTS, BODY = conversions.JointCodec(SCENARIO.joints, SPACE), conversions.BodyCodec(SCENARIO.body, SPACE)
numbers = st.floats(-1e3, 1e3)
five = st.lists(numbers, min_size=5, max_size=5)


@given(five, five)
def test_states_survive_the_messages(q, v):
    joint_state, odometry = JOINTS.message(), BODY.message()
    JOINTS.write(joint_state, q, v)
    BODY.write(odometry, q, v)
    q1, v1 = [0.0] * 5, [0.0] * 5
    assert JOINTS.read(joint_state, q1, v1)
    BODY.read(odometry, q1, v1, near=q[2] + 1.0)
    assert v1 == v and q1[:2] == q[:2] and q1[3:] == q[3:]
    assert q1[2] == pytest.approx(q[2], abs=1e-11)


def test_without_velocities_they_are_left_alone():
    message = JOINTS.message(velocities=False)
    JOINTS.write(message, [1, 2, 3, 4, 5], [0] * 5)
    v = [7.0] * 5
    assert len(message.velocity) == 0 and not JOINTS.read(message, [0.0] * 5, v)
    assert v == [7.0] * 5


def test_joints_in_any_order_among_others():
    message = JointState(name=["front_truck_joint", "bell", "rotor_joint", "rear_truck_joint"], position=[-0.3, 9.0, 1.5, 0.3])
    q = [0.0] * 5
    JOINTS.read(message, q, [0.0] * 5)
    assert q == [1.5, 0.3, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (JointState(name=["rotor_joint"], position=[0.0]), "rear_truck_joint"),
        (JointState(name=JOINTS.names, position=[0.0, 0.0]), "2 positions"),
        (JointState(name=JOINTS.names, position=[0.0] * 3, velocity=[0.0]), "1 velocities"),
        (JointState(name=JOINTS.names, position=[0.0, math.nan, 0.0]), "not finite"),
        (JointState(name=JOINTS.names, position=[0.0] * 3, velocity=[0.0, math.inf, 0.0]), "not finite"),
        (JointState(), "rotor_joint"),
    ],
)
def test_unusable_joint_states_are_refused(message, text):
    with pytest.raises(conversions.ConversionError, match=text):
        JOINTS.read(message, [0.0] * 5, [0.0] * 5)


def test_unusable_odometry_is_refused():
    message = Odometry()
    message.pose.pose.position.x = math.nan
    with pytest.raises(conversions.ConversionError, match="not finite"):
        BODY.read(message, [0.0] * 5, [0.0] * 5, near=0.0)


@given(st.floats(-20, 20), st.floats(-200, 200))
def test_unwrap_is_the_nearest_equal_angle(angle, near):
    unwrapped = conversions.unwrap(angle, near)
    assert abs(unwrapped - near) <= math.pi + 1e-9
    assert math.remainder(unwrapped - angle, math.tau) == pytest.approx(0, abs=1e-9)


def test_quaternions_change_order_and_yaw_agrees_with_transforms3d():
    from transforms3d.euler import euler2quat

    for angle in np.linspace(-math.pi + 1e-6, math.pi, 7):
        q = euler2quat(angle, 0.0, 0.0, "rzyx")
        message = conversions.quaternion(q)
        assert (message.x, message.y, message.z, message.w) == (q[1], q[2], q[3], q[0])
        assert np.array_equal(conversions.wxyz(message), q)
        assert conversions.yaw(message) == pytest.approx(angle)
        conversions.set_yaw(message, angle)
        assert np.allclose(conversions.wxyz(message), q)


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


def test_odometry_becomes_a_transform_where_tf_is_installed(monkeypatch):
    import sys
    import types

    from nh_control.ros.transforms import transform_broadcaster

    sent = []
    broadcaster = type("TransformBroadcaster", (), {"__init__": lambda self, node: None, "sendTransform": lambda self, t: sent.append(t)})
    monkeypatch.setitem(sys.modules, "tf2_ros", types.SimpleNamespace(TransformBroadcaster=broadcaster))
    odometry = BODY.message()
    BODY.write(odometry, [0.0, 0.0, 0.6, 1.5, -2.5], [0.0] * 5)
    transform_broadcaster(None)(odometry)
    (transform,) = sent
    assert (transform.header.frame_id, transform.child_frame_id) == ("odom", "base_link")
    assert (transform.transform.translation.x, transform.transform.translation.y) == (1.5, -2.5)
    assert conversions.yaw(transform.transform.rotation) == pytest.approx(0.6)


def test_without_tf_one_line_says_so(monkeypatch):
    import sys
    import types

    from nh_control.ros.transforms import transform_broadcaster

    lines = []
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    node = types.SimpleNamespace(get_logger=lambda: types.SimpleNamespace(info=lines.append))
    broadcast = transform_broadcaster(node)
    broadcast(BODY.message())
    assert len(lines) == 1 and "install tf2_ros" in lines[0]
