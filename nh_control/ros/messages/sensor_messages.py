"""Sensor messages: sensor_msgs/Imu for an IMU, geometry_msgs/PoseWithCovarianceStamped for a
position with attitude, and otherwise sensor_msgs/JointState with a name and a position for each
number.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped
from sensor_msgs.msg import Imu as ImuMessage
from sensor_msgs.msg import JointState
from transforms3d.quaternions import quat2mat

from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn, Space
from nh_control.loop.reports import Refusal
from nh_control.loop.wire_format import UNKNOWN
from nh_control.mechanics.imu import Imu
from nh_control.mechanics.outputs import Output
from nh_control.mechanics.system import System
from nh_control.ros.messages import conversions
from nh_control.ros.messages.conversions import ConversionError
from nh_control.scenarios import Sensor

PREFIX = "sensors/"
"""Prefix of sensor topics."""


@dataclass(frozen=True)
class SensorCodec:
    """Converts between the values (ny) of a sensor and its message (see `sensor_codec`). `read`
    raises ConversionError for numbers that are missing or not finite.
    """

    sensor: Sensor
    message: Any
    write: Callable[[np.ndarray], None]
    read: Callable[[Any], np.ndarray]

    @property
    def topic(self) -> str:
        """The sensor's topic."""
        return PREFIX + self.sensor.name


def sensor_codec(sensor: Sensor, system: System, prefix: str = "") -> SensorCodec:
    """The codec for a sensor of the system. Frame names begin with `prefix`."""
    (output,) = system.chosen_outputs([sensor.output])
    if isinstance(output, Imu):
        codec = _imu(sensor, output)
    elif is_pose(output.values):
        codec = _pose(sensor, output)
    else:
        codec = _numbers(sensor, output)
    codec.message.header.frame_id = prefix + sensor.frame if sensor.frame else ""
    return codec


def is_pose(space: Space) -> bool:
    """Whether the values are a position (3) followed by an attitude."""
    if not isinstance(space, Product) or len(space.factors) != 2:
        return False
    position, attitude = space.factors
    return isinstance(position, Rn) and position.nq == 3 and isinstance(attitude, SO3)


def _imu(sensor: Sensor, output: Output) -> SensorCodec:
    """The codec for angular velocities and accelerations, with their variances. It marks the
    orientation in the message as unknown.
    """
    message = ImuMessage()
    variances = sensor.deviations(6) ** 2
    # -1 marks an orientation that is not measured
    message.orientation_covariance[0] = UNKNOWN
    message.angular_velocity_covariance = np.diag(variances[:3]).ravel()
    message.linear_acceleration_covariance = np.diag(variances[3:]).ravel()

    def write(values: np.ndarray) -> None:
        conversions.set_xyz(message.angular_velocity, values[:3].tolist())
        conversions.set_xyz(message.linear_acceleration, values[3:].tolist())

    def read(received: ImuMessage) -> np.ndarray:
        parts = received.angular_velocity, received.linear_acceleration
        return _finite(sensor, [c for part in parts for c in conversions.xyz(part)])

    return SensorCodec(sensor, message, write, read)


def _pose(sensor: Sensor, output: Output) -> SensorCodec:
    """The codec for a pose. The covariance in the message is about fixed axes: `R V R^T`, where V
    is the covariance of the rotation in the body's axes.
    """
    message = PoseWithCovarianceStamped()
    variances = sensor.deviations(6) ** 2

    def write(values: np.ndarray) -> None:
        pose, rotation = message.pose.pose, quat2mat(values[3:])
        conversions.set_xyz(pose.position, values[:3].tolist())
        conversions.set_wxyz(pose.orientation, values[3:].tolist())
        covariance = np.diag(variances)
        covariance[3:, 3:] = rotation @ covariance[3:, 3:] @ rotation.T  # R V R^T
        message.pose.covariance = covariance.ravel()

    def read(received: PoseWithCovarianceStamped) -> np.ndarray:
        position = conversions.xyz(received.pose.pose.position)
        attitude = conversions.unit_wxyz(received.pose.pose.orientation, sensor.name)
        return _finite(sensor, [*position, *attitude])

    return SensorCodec(sensor, message, write, read)


def _numbers(sensor: Sensor, output: Output) -> SensorCodec:
    names = list(output.names)
    message = JointState(name=names, position=array("d", bytes(8 * len(names))))

    def write(values: np.ndarray) -> None:
        message.position = array("d", values.tolist())

    def read(received: JointState) -> np.ndarray:
        # names may come in any order, among other names
        known = dict(zip(received.name, received.position))
        if missing := [name for name in names if name not in known]:
            raise ConversionError(
                Refusal.NAMES, f"sensor {sensor.name} without {missing}; expected {names}"
            )
        return _finite(sensor, [known[name] for name in names])

    return SensorCodec(sensor, message, write, read)


def _finite(sensor: Sensor, values: Sequence[float]) -> np.ndarray:
    if not all(map(math.isfinite, values)):
        raise ConversionError(
            Refusal.NOT_FINITE, f"sensor {sensor.name} with a value that is not finite"
        )
    return np.array(values, dtype=float)
