"""Messages as bytes: what rclpy makes of them, and of which they are made, number by number."""

import copy
import struct

import numpy as np
import pytest
from bench import Desk
from geometry_msgs.msg import PoseWithCovarianceStamped
from hypothesis import given
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from sensing_arm import SENSING_ARM
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_msgs.msg import (
    Bool,
    Float64MultiArray,
    Int8MultiArray,
    MultiArrayDimension,
    MultiArrayLayout,
)

from nh_control import scenarios
from nh_control.loop.reports import Refusal
from nh_control.ros.messages import cdr, conversions
from nh_control.ros.messages.cdr import Template, header_stamp
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.sensor_messages import sensor_codec
from nh_control.ros.messages.sensor_reader import SensorReader
from nh_control.ros.messages.state_codecs import codecs

STAMPS = (0, 1, 123_456_789_012_345, (2**31 - 1) * 10**9 + 999_999_999)


def joints(n=3):
    names = ["rotor_joint", "a", "rear"][:n]
    return JointState(
        name=names, position=[0.5] * n, velocity=[1.5] * n, effort=[2.5] * n
    )  # fmt: skip


def same(one, other):
    """Whether two messages say the same, NaN and the sign of 0 included."""
    return repr(one) == repr(other)


@pytest.mark.parametrize("velocities", [True, False])
@pytest.mark.parametrize("name", scenarios.names())
def test_the_bytes_of_all_states_are_those_of_the_messages(name, velocities):
    scenario = scenarios.get(name)
    dsys, rng = scenario.model(), np.random.default_rng(0)
    space = dsys.system.space
    for codec in codecs(scenario, dsys, velocities, prefix="robot1/"):
        templates = [template for _, template in codec.outgoing]
        readers = [Template(copy.deepcopy(template.message)) for template in templates]
        for stamp in STAMPS:
            q = space.retract(space.origin, rng.normal(size=space.nv)).tolist()
            v = rng.normal(size=space.nw).tolist()
            codec.write(q, v)
            fields = codec.shown(q, v)
            rows = [codec.numbers(fields), *codec.odometry_numbers(fields)]
            for template, reader, numbers in zip(templates, readers, rows):
                message = template.message
                conversions.set_time(message.header.stamp, stamp)
                data = template.encode()
                assert template.stamped(stamp, numbers) == data
                assert deserialize_message(data, type(message)) == message
                assert template.fits(serialize_message(message))
                assert header_stamp(data) == stamp and reader.fits(data)
                assert reader.decode(data) is reader.message and reader.message == message


@given(st.binary(max_size=64), st.integers(0, 10**6), st.floats())
def test_any_bytes_are_read_as_rclpy_reads_them(noise, at, number):
    """Right ones with anything written over them, or cut off, or appended."""
    message = joints()
    message.position[1] = number
    template, right = Template(joints()), Template(message).encode()
    at %= len(right) + 1
    for data in (right[:at] + noise + right[at + len(noise) :], right[:at], right + noise):
        try:
            expected = deserialize_message(data, JointState)
        except Exception:
            with pytest.raises(ConversionError, match="bytes that are not a JointState"):
                template.decode(data)
        else:
            assert same(template.decode(data), expected)


def table():
    dim = [MultiArrayDimension(label="a,b", size=1, stride=2)]
    return Float64MultiArray(data=[1.0, 7.0], layout=MultiArrayLayout(dim=dim))


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (joints, lambda m: m.name.reverse()),
        (joints, lambda m: setattr(m, "name", ["rotor_joint", "b", "rear"])),
        (joints, lambda m: setattr(m, "velocity", [])),
        (joints, lambda m: setattr(m.header, "frame_id", "map")),
        (joints, lambda m: m.effort.append(1.0)),
        (joints, lambda m: m.effort.pop()),
        (Odometry, lambda m: setattr(m, "child_frame_id", "bass")),
        (Odometry, lambda m: m.pose.covariance.__setitem__(35, 1.0)),
        (Odometry, lambda m: m.twist.covariance.__setitem__(0, -1.0)),
        (table, lambda m: setattr(m.layout.dim[0], "label", "b,a")),
    ],
)
def test_messages_that_differ_in_more_than_numbers_do_not_fit_and_are_read_in_full(make, change):
    template, message = Template(make()), make()
    if make is Odometry:
        message.pose.pose.position.x = 3.0
    elif make is table:
        message.data[1] = 9.0
    assert template.fits(serialize_message(message)) and template.fits(Template(message).encode())
    change(message)
    data = serialize_message(message)
    assert not template.fits(data)
    assert template.decode(data) == message and template.decode(data) is not template.message


def test_what_has_no_template_is_refused(monkeypatch):
    for message in (Bool(), Int8MultiArray(data=[1])):
        with pytest.raises(TypeError, match="expected fields of double"):
            Template(message)
    template = Template(joints())
    with pytest.raises(struct.error, match="expected 9 numbers, got 8"):
        template.stamped(0, [0.0] * 8)
    template.message.effort.append(1.0)
    with pytest.raises(struct.error):  # a length that changes
        template.encode()
    monkeypatch.setattr(cdr, "serialize_message", lambda message: b"\0\7\0\0" + bytes(400))
    with pytest.raises(ValueError, match="got 0007; use RMW_IMPLEMENTATION"):
        Template(MultiDOFJointState())


def test_bytes_of_the_other_order_and_of_other_versions_do_not_fit():
    template = Template(joints())
    data = template.encode()
    for header in (b"\0\0", b"\1\1", b"\0\7"):
        assert not template.fits(header + data[2:])
    assert template.fits(data[:2] + b"\0\3" + data[4:])  # options
    with pytest.raises(ConversionError):
        template.decode(b"\0\0" + data[2:])


# Sensors -----------------------------------------------------------------------------------------


MODEL = SENSING_ARM.model()
CODECS = {s.name: sensor_codec(s, MODEL.system, "robot1/") for s in SENSING_ARM.sensors}
X, U = MODEL.state([0.5], [0.8]), [1.0]


def written(name):
    codec = CODECS[name]
    values = MODEL.outputs(codec.sensor.output)(X, U)
    codec.write(values)
    return codec, values


def test_an_imu_has_rates_accelerations_and_no_orientation():
    codec, values = written("imu")
    message = codec.message
    assert isinstance(message, Imu) and codec.topic == "sensors/imu"
    assert message.header.frame_id == "robot1/arm_end"
    assert [message.angular_velocity.y, message.linear_acceleration.z] == [values[1], values[5]]
    assert message.angular_velocity.y == pytest.approx(-0.8)
    assert message.orientation_covariance[0] == -1.0
    assert not message.angular_velocity_covariance.any()
    assert codec.read(message).tolist() == values.tolist()


def test_a_pose_has_its_covariance_about_fixed_axes():
    codec, values = written("tracking")
    message = codec.message
    assert isinstance(message, PoseWithCovarianceStamped)
    assert message.header.frame_id == "robot1/odom"
    covariance = message.pose.covariance.reshape(6, 6)
    assert np.diag(covariance)[:3] == pytest.approx([1e-4] * 3)
    assert np.diag(covariance)[3:] == pytest.approx([4e-4] * 3)
    assert message.pose.pose.orientation.w == values[3]
    assert codec.read(message) == pytest.approx(values, abs=1e-15)


def test_numbers_have_names():
    codec, values = written("encoder")
    assert isinstance(codec.message, JointState) and codec.message.header.frame_id == ""
    assert list(codec.message.name) == ["angle"]
    assert codec.read(JointState(name=["other", "angle"], position=[9.0, 0.5])) == [0.5]


def test_what_cannot_be_used_is_refused():
    with pytest.raises(ConversionError, match=r"without \['angle'\]") as refused:
        CODECS["encoder"].read(JointState(name=["angel"], position=[0.5]))
    assert refused.value.kind is Refusal.NAMES
    message = Imu()
    message.linear_acceleration.x = float("nan")
    with pytest.raises(ConversionError, match="sensor imu with a value that is not finite"):
        CODECS["imu"].read(message)
    with pytest.raises(ConversionError, match="tracking"):
        stretched = PoseWithCovarianceStamped()
        stretched.pose.pose.orientation.w = 2.0
        CODECS["tracking"].read(stretched)


class Hearing:
    """A reader of two sensors: what arrived, and was refused."""

    def __init__(self):
        self.desk, self.arrivals, self.refused = Desk(), [], []
        sensors = [s for s in SENSING_ARM.sensors if s.name != "tracking"]
        arrived, refuse = lambda: self.arrivals.append(True), lambda *why: self.refused.append(why)
        self.reader = SensorReader(self.desk, sensors, MODEL.system, MODEL.h, arrived, refuse)

    def send(self, name, step, nanoseconds=0):
        message = Imu() if name == "imu" else JointState(name=["angle"], position=[float(step)])
        stamp = round(step * MODEL.h * 1e9) + nanoseconds
        self.desk.give(f"sensors/{name}", message, stamp)


def test_a_step_is_complete_when_all_that_is_due_has_come():
    """The encoder measures every second step and is 4 steps late, the IMU in every step."""
    heard = Hearing()
    reader = heard.reader
    assert not reader.complete(0)
    for k in range(6):
        heard.send("imu", k)
        assert reader.complete(k) == (k < 4)
    heard.send("encoder", 0)
    assert reader.complete(5) and not reader.complete(6)
    assert len(heard.arrivals) == 7
    assert [m.step for m in reader.take(4)] == [0, 0, 1, 2, 3, 4]
    assert [m.step for m in reader.take(9)] == [5] and reader.take(9) == []


def test_measurements_that_are_published_again_count_once():
    heard = Hearing()
    heard.send("encoder", 2)
    heard.send("encoder", 2)
    assert len(heard.reader.take(9)) == 1


def test_another_run_forgets_the_last_one():
    heard = Hearing()
    for k in (7, 8):
        heard.send("imu", k)
    heard.send("imu", 0)  # before the state of the new run tells it
    heard.reader.restart(0)
    assert heard.reader.complete(0) and not heard.reader.complete(1)
    assert [m.step for m in heard.reader.take(9)] == [0]
    heard.send("imu", 5)
    heard.reader.restart(0)
    assert not heard.reader.complete(0) and heard.reader.take(9) == []


def test_a_stamp_between_two_steps_is_refused():
    heard = Hearing()
    heard.send("imu", 3, nanoseconds=10**6)
    ((kind, reason),) = heard.refused
    assert kind is Refusal.STAMP and "sensor imu: stamp 0.016" in reason
