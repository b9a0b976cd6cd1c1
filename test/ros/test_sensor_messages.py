"""Messages of sensors: types, units, covariances and frames, and what is read of them."""

import numpy as np
import pytest
from bench import Desk
from geometry_msgs.msg import PoseWithCovarianceStamped
from sensing_arm import SENSING_ARM
from sensor_msgs.msg import Imu, JointState

from nh_control.loop.reports import Refusal
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.sensor_messages import sensor_codec
from nh_control.ros.messages.sensor_reader import SensorReader

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
