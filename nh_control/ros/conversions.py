"""Messages from and to plain numbers: states, commands, planar poses, quaternions, time.

The core and transforms3d order quaternions wxyz, ROS orders them xyzw; nothing outside this file knows. The codecs write into messages
made once by `message()`, because a step's messages are rebuilt thousands of times per second.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import MutableSequence, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Quaternion
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState

from nh_control.ros.step_clock import NANOSECONDS
from nh_control.scenarios import Body, Joint
from nh_control.spaces import Space


class ConversionError(ValueError):
    """A message does not hold what its reader needs."""


def nanoseconds(stamp: Time) -> int:
    """A stamp in integer nanoseconds."""
    return stamp.sec * NANOSECONDS + stamp.nanosec


def set_time(stamp: Time, time_ns: int) -> None:
    """Write integer nanoseconds into a stamp."""
    stamp.sec, stamp.nanosec = divmod(time_ns, NANOSECONDS)


def quaternion(wxyz: Sequence[float]) -> Quaternion:
    """Message of a unit quaternion (4), ordered wxyz."""
    w, x, y, z = (float(c) for c in wxyz)
    return Quaternion(x=x, y=y, z=z, w=w)


def wxyz(message: Quaternion) -> np.ndarray:
    """Unit quaternion (4), ordered wxyz, of a message."""
    return np.array([message.w, message.x, message.y, message.z])


def set_yaw(message: Quaternion, angle: float) -> None:
    """Write a rotation about z (rad) into a quaternion."""
    message.x, message.y, message.z, message.w = 0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)


def yaw(message: Quaternion) -> float:
    """Angle about z (rad, in (-pi, pi]) of a planar orientation; the norm of the quaternion does not matter."""
    x, y, z, w = message.x, message.y, message.z, message.w
    return math.atan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z)


def unwrap(angle: float, near: float) -> float:
    """The angle plus the whole turns that bring it closest to `near` (rad)."""
    return angle + math.tau * round((near - angle) / math.tau)


class JointCodec:
    """Coordinates and velocities of a scenario's one-dof joints as JointState; a joint shows `sign` times its coordinate.

    A coordinate has the same index in configurations and velocities.
    """

    def __init__(self, joints: Sequence[Joint], space: Space):
        self.names = [joint.name for joint in joints]
        self._joints = [(space.names.index(joint.coordinate), joint.sign) for joint in joints]

    def angles(self, q: Sequence[float]) -> dict[str, float]:
        """What the joints show at configuration q (nq), by name."""
        return {name: sign * q[coordinate] for name, (coordinate, sign) in zip(self.names, self._joints)}

    def message(self, velocities: bool = True) -> JointState:
        """A message to `write` into, with or without velocities."""
        zeros = array("d", bytes(8 * len(self.names)))
        return JointState(name=self.names, position=zeros[:], velocity=zeros[:] if velocities else array("d"))

    def write(self, message: JointState, q: Sequence[float], v: Sequence[float]) -> None:
        """Write configuration q (nq) and velocity v (nw)."""
        positions, velocities = message.position, message.velocity
        for i, (coordinate, sign) in enumerate(self._joints):
            positions[i] = sign * q[coordinate]
            if velocities:
                velocities[i] = sign * v[coordinate]

    def read(self, message: JointState, q: MutableSequence[float], v: MutableSequence[float]) -> bool:
        """Read into q (nq) and v (nw), joints in any order, others ignored; returns whether there are velocities.

        Raises ConversionError for missing joints, wrong lengths and values that are not finite.
        """
        names, positions, velocities = message.name, message.position, message.velocity
        if len(positions) != len(names) or len(velocities) not in (0, len(names)):
            raise ConversionError(
                f"joint state with {len(names)} names, {len(positions)} positions, {len(velocities)} velocities; "
                "expected as many positions as names, and as many velocities or none"
            )
        if names == self.names:
            order = range(len(names))
        else:
            missing = [name for name in self.names if name not in names]
            if missing:
                raise ConversionError(f"joint state without the joints {missing}; it has {list(names)}")
            order = [names.index(name) for name in self.names]
        if not all(map(math.isfinite, positions)) or not all(map(math.isfinite, velocities)):
            raise ConversionError("joint state with a value that is not finite")
        for i, (coordinate, sign) in zip(order, self._joints):
            q[coordinate] = sign * positions[i]
            if velocities:
                v[coordinate] = sign * velocities[i]
        return len(velocities) > 0


class BodyCodec:
    """A planar body's pose (theta, x, y) and body velocity (omega, forward, side) as Odometry; both start at `index`."""

    def __init__(self, body: Body, space: Space):
        self.parent, self.frame = body.parent, body.frame
        self.index = space.names.index(body.coordinates[0])

    def message(self) -> Odometry:
        """A message to `write` into."""
        message = Odometry(child_frame_id=self.frame)
        message.header.frame_id = self.parent
        return message

    def write(self, message: Odometry, q: Sequence[float], v: Sequence[float]) -> None:
        """Write configuration q (nq) and velocity v (nw)."""
        i = self.index
        pose, twist = message.pose.pose, message.twist.twist
        pose.position.x, pose.position.y = q[i + 1], q[i + 2]
        set_yaw(pose.orientation, q[i])
        twist.angular.z, twist.linear.x, twist.linear.y = v[i], v[i + 1], v[i + 2]

    def read(self, message: Odometry, q: MutableSequence[float], v: MutableSequence[float], near: float) -> None:
        """Read into q (nq) and v (nw), the heading unwrapped to be close to `near` (rad); raises ConversionError if a value is not finite."""
        i = self.index
        pose, twist = message.pose.pose, message.twist.twist
        values = (yaw(pose.orientation), pose.position.x, pose.position.y, twist.angular.z, twist.linear.x, twist.linear.y)
        if not all(map(math.isfinite, values)):
            raise ConversionError("odometry with a value that is not finite")
        q[i], q[i + 1], q[i + 2] = unwrap(values[0], near), values[1], values[2]
        v[i : i + 3] = values[3:]


def command_message(inputs: Sequence[str]) -> JointState:
    """A command message to `write_command` into."""
    return JointState(name=list(inputs), effort=array("d", bytes(8 * len(inputs))))


def write_command(message: JointState, values: Sequence[float], stamp_ns: int) -> None:
    """Write efforts (nu) that answer the state stamped `stamp_ns`."""
    set_time(message.header.stamp, stamp_ns)
    for i, value in enumerate(values):
        message.effort[i] = value


def read_command(message: JointState) -> tuple[list[str], tuple[float, ...], int]:
    """Names, efforts and stamp (ns) of a command, unchecked: the command gate judges them."""
    return message.name, tuple(message.effort), nanoseconds(message.header.stamp)
