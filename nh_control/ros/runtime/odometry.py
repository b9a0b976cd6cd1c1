"""Odometry from the bytes that travel.

rclpy makes an Odometry of eleven messages one in another, most of them several times: 75 us, more
than all else that a planar robot's step costs. Its numbers stand after two texts, at fixed
distances, in plain little-endian CDR [OMG DDS-XTypes 1.3, 7.4], which the middlewares of ROS 2
send on the usual processors; what is encoded otherwise is left to rclpy.
"""

from __future__ import annotations

import struct
from struct import Struct

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message

PLAIN = b"\x00\x01"
"""How plain little-endian CDR begins; two bytes of options follow."""
_STAMP, _LENGTH = Struct("<iI"), Struct("<I")
_POSE, _TWIST = Struct("<7d"), Struct("<6d")
_COVARIANCE = 36
"""Numbers of a covariance."""


def odometry(data: bytes) -> Odometry | None:
    """The message of these bytes as rclpy would make it; None, as there, if they are of none."""
    try:
        if data.startswith(PLAIN):
            return _plain(data[4:])
        return deserialize_message(data, Odometry)
    except (struct.error, ValueError, RuntimeError):
        return None


def _plain(body: bytes) -> Odometry:
    """The message of what follows the first four bytes, from which places count."""
    message = Odometry()
    stamp, pose, twist = message.header.stamp, message.pose, message.twist
    stamp.sec, stamp.nanosec = _STAMP.unpack_from(body)
    message.header.frame_id, at = _text(body, _STAMP.size)
    message.child_frame_id, at = _text(body, at + -at % 4)
    at += -at % 8
    numbers = _POSE.unpack_from(body, at)
    position, orientation = pose.pose.position, pose.pose.orientation
    position.x, position.y, position.z = numbers[:3]
    orientation.x, orientation.y, orientation.z, orientation.w = numbers[3:]
    pose.covariance[:] = np.frombuffer(body, "<f8", _COVARIANCE, at + _POSE.size)
    at += _POSE.size + 8 * _COVARIANCE
    numbers = _TWIST.unpack_from(body, at)
    linear, angular = twist.twist.linear, twist.twist.angular
    linear.x, linear.y, linear.z = numbers[:3]
    angular.x, angular.y, angular.z = numbers[3:]
    twist.covariance[:] = np.frombuffer(body, "<f8", _COVARIANCE, at + _TWIST.size)
    return message


def _text(body: bytes, at: int) -> tuple[str, int]:
    """A text, which ends with a zero byte, and where it ends."""
    (length,) = _LENGTH.unpack_from(body, at)
    begin = at + _LENGTH.size
    return body[begin : begin + length - 1].decode(errors="replace"), begin + length
