"""Conversion of messages from and to plain numbers: commands, vectors, quaternions, time.

The package and transforms3d order quaternions (w, x, y, z), ROS orders them (x, y, z, w); only
this file converts.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Quaternion, Vector3
from sensor_msgs.msg import JointState

from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.reports import Refusal, Unusable
from nh_control.numerics.expressions import Vector

UNIT = 1e-2
"""Largest deviation from 1 of the norm of a quaternion that is accepted and normalized."""


class ConversionError(Unusable):
    """A message lacks entries that are needed, or has unusable ones."""


def nanoseconds(stamp: Time) -> int:
    """A stamp in integer nanoseconds."""
    return stamp.sec * NANOSECONDS + stamp.nanosec


def set_time(stamp: Time, time_ns: int) -> None:
    """Write integer nanoseconds into a stamp."""
    stamp.sec, stamp.nanosec = divmod(time_ns, NANOSECONDS)


def xyz(message: Vector3 | Point) -> np.ndarray:
    """Numbers (3) of a Vector3 or Point."""
    return np.array([message.x, message.y, message.z])


def set_xyz(message: Vector3 | Point, values: Sequence[float]) -> None:
    """Write three floats into a Vector3 or Point."""
    message.x, message.y, message.z = values


def wxyz(message: Quaternion) -> np.ndarray:
    """Quaternion (4), ordered wxyz, of a message, as it is."""
    return np.array([message.w, message.x, message.y, message.z])


def set_wxyz(message: Quaternion, values: Sequence[float]) -> None:
    """Write a quaternion (4), four floats ordered wxyz."""
    message.w, message.x, message.y, message.z = values


def unit_wxyz(message: Quaternion, what: str) -> np.ndarray:
    """The `unit` quaternion (4), ordered wxyz, of a message."""
    return unit(wxyz(message), what)


def unit(wxyz: Vector, what: str) -> np.ndarray:
    """Unit quaternion (4) of one whose norm may be off by UNIT; raises ConversionError, naming
    `what` it orients, otherwise.
    """
    values = np.asarray(wxyz)
    norm = math.sqrt(values @ values)
    if not abs(norm - 1) <= UNIT:
        raise ConversionError(
            Refusal.ORIENTATION,
            f"orientation of {what} is no unit quaternion, its norm is {norm:.3g}",
        )
    return values / norm


def command_message(inputs: Sequence[str]) -> JointState:
    """A command message to `write_command` into."""
    return JointState(name=list(inputs), effort=array("d", bytes(8 * len(inputs))))


def write_command(message: JointState, values: Vector, stamp_ns: int) -> None:
    """Write efforts (nu) that answer the state stamped `stamp_ns`."""
    set_time(message.header.stamp, stamp_ns)
    for i, value in enumerate(values):
        message.effort[i] = value


def read_command(
    message: JointState, interface: str = "effort"
) -> tuple[list[str], tuple[float, ...], int]:
    """Names, efforts (or positions or velocities) and stamp (ns) of a command; the command
    validator checks them.
    """
    return message.name, tuple(getattr(message, interface)), nanoseconds(message.header.stamp)
