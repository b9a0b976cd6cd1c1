"""The bodies of a scenario, one by one: their poses, and a state in which one of them is moved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, Twist
from nav_msgs.msg import Odometry
from transforms3d.quaternions import quat2mat

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.reports import Refusal
from nh_control.ros.messages import conversions
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.state_codecs import BodyCodec, PlanarCodec, codecs
from nh_control.scenarios import Scenario

FLAT = 1e-6
"""Largest distance (m, rad) of a planar body's pose from its plane."""


class Entities:
    """Bodies of the plant `dsys` with its physical `parameters`. Their frames begin with `prefix`,
    their names do not.
    """

    def __init__(self, scenario: Scenario, dsys: DiscreteSystem, parameters: Any, prefix: str):
        self._codecs = [
            codec
            for codec in codecs(scenario, dsys, True, parameters, prefix)
            if isinstance(codec, BodyCodec)
        ]
        self._dsys = dsys
        self._bodies = {
            message.child_frame_id.removeprefix(prefix): (codec, message, i)
            for codec in self._codecs
            for i, message in enumerate(codec.odometry)
        }

    @property
    def names(self) -> list[str]:
        """The names of the bodies."""
        return list(self._bodies)

    def show(self, name: str, x: np.ndarray, pose: Pose, twist: Twist) -> str:
        """Write the pose of a body at the state x (nx) and its twist, both in the axes of its
        parent frame; returns that frame.
        """
        message = self._written(name, x)
        source, own = message.pose.pose, message.twist.twist
        orientation = conversions.wxyz(source.orientation)
        conversions.set_xyz(pose.position, conversions.xyz(source.position).tolist())
        conversions.set_wxyz(pose.orientation, orientation.tolist())
        rotation = quat2mat(orientation)
        for part, of_body in ((twist.linear, own.linear), (twist.angular, own.angular)):
            conversions.set_xyz(part, (rotation @ conversions.xyz(of_body)).tolist())
        return str(message.header.frame_id)

    def moved(
        self, name: str, x: np.ndarray, frame: str, pose: Pose | None, twist: Twist | None
    ) -> np.ndarray:
        """The state x (nx) with another pose and twist of a body, in the form of `show`, if they
        are not None. Other bodies stay as far as links and wheels allow; `frame` is the parent
        frame or empty. Raises ValueError for an impossible state.
        """
        message, (codec, _, i) = self._written(name, x), self._bodies[name]
        if frame not in ("", message.header.frame_id):
            raise ConversionError(
                Refusal.FRAME,
                f"{name} in the frame {frame!r}; expected {message.header.frame_id!r}",
            )
        if pose is not None:
            _place(message.pose.pose, pose, name, isinstance(codec, PlanarCodec))
        if twist is not None:
            _set_twist(message, twist, name)
        if not isinstance(codec, PlanarCodec):
            target = codec.message.transforms[i]
            position = conversions.xyz(message.pose.pose.position)
            conversions.set_xyz(target.translation, position.tolist())
            target.rotation = message.pose.pose.orientation
            codec.message.twist[i] = message.twist.twist
        q, v = self._dsys.configuration(x).tolist(), self._dsys.velocity(x).tolist()
        codec.read(codec.message, q, v)
        return self._dsys.state(q, v)

    def _written(self, name: str, x: np.ndarray) -> Odometry:
        """The body's message at the state x (nx), among the messages of all bodies."""
        codec, message, _ = self._bodies[name]
        codec.write(self._dsys.configuration(x).tolist(), self._dsys.velocity(x).tolist())
        return message


def _place(target: Pose, pose: Pose, name: str, planar: bool) -> None:
    orientation, position = conversions.unit_wxyz(pose.orientation, name), pose.position
    if not np.isfinite(conversions.xyz(position)).all():
        raise ConversionError(
            Refusal.NOT_FINITE, f"position of {name} with a value that is not finite"
        )
    tilt = math.hypot(orientation[1], orientation[2])
    if planar and max(tilt, abs(position.z)) > FLAT:
        raise ConversionError(
            Refusal.ORIENTATION, f"{name} moves in the plane z = 0 and turns about z alone"
        )
    conversions.set_xyz(target.position, conversions.xyz(position).tolist())
    conversions.set_wxyz(target.orientation, orientation.tolist())


def _set_twist(message: Odometry, twist: Twist, name: str) -> None:
    """Write a twist in the parent's axes into a message with the body's."""
    linear, angular = conversions.xyz(twist.linear), conversions.xyz(twist.angular)
    if not np.isfinite([linear, angular]).all():
        raise ConversionError(
            Refusal.NOT_FINITE, f"twist of {name} with a value that is not finite"
        )
    rotation = quat2mat(conversions.wxyz(message.pose.pose.orientation))
    own = message.twist.twist
    conversions.set_xyz(own.linear, (linear @ rotation).tolist())
    conversions.set_xyz(own.angular, (angular @ rotation).tolist())
