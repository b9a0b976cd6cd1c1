"""Conversion between messages and plain numbers: commands, vectors, quaternions and times.

Quaternions are ordered (w, x, y, z) in this package and in transforms3d, and (x, y, z, w) in ROS.
Only this file converts between the two.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Quaternion, Vector3
from sensor_msgs.msg import JointState

from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.reports import Refusal, Unusable
from nh_control.numerics.expressions import Vector

UNIT = 1e-2
"""Maximum deviation of a quaternion's norm from 1. Within this limit, a quaternion is
normalized.
"""


class ConversionError(Unusable):
    """A message that lacks required entries or has unusable entries."""


def nanoseconds(stamp: Time) -> int:
    """A stamp in integer nanoseconds."""
    return stamp.sec * NANOSECONDS + stamp.nanosec


def set_time(stamp: Time, time_ns: int) -> None:
    """Write integer nanoseconds into a stamp."""
    stamp.sec, stamp.nanosec = divmod(time_ns, NANOSECONDS)


def xyz(message: Vector3 | Point) -> np.ndarray:
    """Components (3) of a Vector3 or Point."""
    return np.array([message.x, message.y, message.z])


def set_xyz(message: Vector3 | Point, values: Sequence[float]) -> None:
    """Write three floats into a Vector3 or Point."""
    message.x, message.y, message.z = values


def wxyz(message: Quaternion) -> np.ndarray:
    """Quaternion (4) from a message, ordered wxyz, without normalization."""
    return np.array([message.w, message.x, message.y, message.z])


def set_wxyz(message: Quaternion, values: Sequence[float]) -> None:
    """Write a quaternion (4) of floats, ordered wxyz."""
    message.w, message.x, message.y, message.z = values


def xyzw(wxyz: Sequence[float]) -> tuple[float, float, float, float]:
    """Quaternion (4) in the order of the fields of a message, from one ordered wxyz."""
    w, x, y, z = wxyz
    return x, y, z, w


def unit_wxyz(message: Quaternion, what: str) -> np.ndarray:
    """Unit quaternion (4) from a message, ordered wxyz (see `unit`)."""
    return unit(wxyz(message), what)


def unit(wxyz: Vector, what: str) -> np.ndarray:
    """Normalize a quaternion (4). Raises ConversionError as `require_unit` does."""
    return np.asarray(wxyz) / require_unit(wxyz, what)


def require_unit(wxyz: Vector, what: str) -> float:
    """The norm of a quaternion (4). Raises ConversionError if it differs from 1 by more than UNIT.
    `what` names the oriented object in this message.
    """
    # the comparison is also false if the norm is NaN
    norm = math.hypot(*wxyz)
    if not abs(norm - 1) <= UNIT:
        raise ConversionError(
            Refusal.ORIENTATION,
            f"orientation of {what} is not a unit quaternion; its norm is {norm:.3g}",
        )
    return norm


def command_message(inputs: Sequence[str]) -> JointState:
    """A command message for `write_command`."""
    return JointState(name=list(inputs), effort=array("d", bytes(8 * len(inputs))))


def write_command(message: JointState, values: Vector, stamp_ns: int) -> None:
    """Write the efforts (nu) that answer the state with the stamp `stamp_ns`."""
    set_time(message.header.stamp, stamp_ns)
    for i, value in enumerate(values):
        message.effort[i] = value


def read_command(message: JointState) -> tuple[list[str], Sequence[float], int]:
    """Names, efforts and stamp (ns) of a command. The command validator checks them."""
    return message.name, tuple(message.effort), nanoseconds(message.header.stamp)


def read_targets(
    message: JointState, kinds: Mapping[str, str]
) -> tuple[list[str], Sequence[float], Sequence[float], int]:
    """Names, targets, rates of the targets, and stamp (ns) of a command. `kinds` gives the kind of
    each joint's target, position or velocity. Values that the message does not contain are NaN. If
    the lengths are wrong, no targets are returned.

    The fields `position` and `velocity` each contain values for all names, for the names in
    `kinds`, or for the names whose kind is that field.
    """
    names, fields = message.name, dict[str, dict[str, float]]()
    for kind in ("position", "velocity"):
        values = getattr(message, kind)
        chosen = (
            names,
            [name for name in names if name in kinds],
            [name for name in names if kinds.get(name) == kind],
        )
        # the length of the field decides which names its values belong to
        fitting = next((group for group in chosen if len(group) == len(values)), [])
        fields[kind] = dict(zip(fitting, values))
    present = {name for name, kind in kinds.items() if name in fields[kind]}
    # the field for the joint's kind contains its target
    targets = [fields[kinds[n]].get(n, math.nan) if n in kinds else math.nan for n in names]
    # the velocity of a position target is its rate
    rates = [
        fields["velocity"].get(n, math.nan) if kinds.get(n) == "position" else math.nan
        for n in names
    ]
    complete = present.issuperset(kinds.keys() & names)
    return names, targets if complete else [], rates, nanoseconds(message.header.stamp)
