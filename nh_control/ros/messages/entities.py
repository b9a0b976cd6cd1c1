"""The bodies of a scenario: the pose and twist of each body, and states with a new pose."""

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
"""Maximum distance (m, rad) of a planar body's pose from its plane."""


class Entities:
    """Bodies of the plant `dsys` with its physical `parameters`. The names of their frames begin
    with `prefix`, but the names of the bodies do not.
    """

    def __init__(self, scenario: Scenario, dsys: DiscreteSystem, parameters: Any, prefix: str):
        # only bodies are entities, because joints have no pose
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
        """Write the pose and the twist of a body at the state x (nx), both in the axes of its
        parent frame, and return the parent frame's name.
        """
        message = self._written(name, x)
        source, body_twist = message.pose.pose, message.twist.twist
        orientation = conversions.wxyz(source.orientation)
        conversions.set_xyz(pose.position, conversions.xyz(source.position).tolist())
        conversions.set_wxyz(pose.orientation, orientation.tolist())
        # odometry has the twist in the body's axes: R v
        rotation = quat2mat(orientation)
        for part, of_body in (
            (twist.linear, body_twist.linear),
            (twist.angular, body_twist.angular),
        ):
            conversions.set_xyz(part, (rotation @ conversions.xyz(of_body)).tolist())
        return str(message.header.frame_id)

    def state_with(
        self, name: str, x: np.ndarray, frame: str, pose: Pose | None, twist: Twist | None
    ) -> np.ndarray:
        """The state x (nx) with a new pose and twist for a body, in the same axes as in `show`. A
        value of None leaves that part unchanged. Other bodies keep their poses as far as links and
        wheels allow. `frame` is the parent frame or empty. Raises ValueError for an impossible
        state.
        """
        message, (codec, _, i) = self._written(name, x), self._bodies[name]
        if frame not in ("", message.header.frame_id):
            raise ConversionError(
                Refusal.FRAME,
                f"{name} in the frame {frame!r}; expected {message.header.frame_id!r}",
            )
        if pose is not None:
            # change the body's odometry, and then read the messages of all bodies
            _place(message.pose.pose, pose, name, isinstance(codec, PlanarCodec))
        if twist is not None:
            _set_twist(message, twist, name)
        # the state of bodies in space is read from MultiDOFJointState
        if not isinstance(codec, PlanarCodec):
            target = codec.message.transforms[i]
            position = conversions.xyz(message.pose.pose.position)
            conversions.set_xyz(target.translation, position.tolist())
            orientation = conversions.wxyz(message.pose.pose.orientation)
            conversions.set_wxyz(target.rotation, orientation.tolist())
            twist_of_body, rates = codec.message.twist[i], message.twist.twist
            conversions.set_xyz(twist_of_body.linear, conversions.xyz(rates.linear).tolist())
            conversions.set_xyz(twist_of_body.angular, conversions.xyz(rates.angular).tolist())
        q, v = self._dsys.configuration(x).tolist(), self._dsys.velocity(x).tolist()
        codec.read(codec.message, q, v)
        return self._dsys.state(q, v)

    def _written(self, name: str, x: np.ndarray) -> Odometry:
        """Write the messages of all bodies at the state x (nx), and return the body's message."""
        codec, message, _ = self._bodies[name]
        codec.write(self._dsys.configuration(x).tolist(), self._dsys.velocity(x).tolist())
        return message


def _place(target: Pose, pose: Pose, name: str, planar: bool) -> None:
    orientation, position = conversions.unit_wxyz(pose.orientation, name), pose.position
    if not np.isfinite(conversions.xyz(position)).all():
        raise ConversionError(
            Refusal.NOT_FINITE, f"position of {name} with a value that is not finite"
        )
    # x and y of the quaternion are zero for a rotation about z
    tilt = math.hypot(orientation[1], orientation[2])
    if planar and max(tilt, abs(position.z)) > FLAT:
        raise ConversionError(
            Refusal.ORIENTATION, f"{name} moves in the plane z = 0 and turns about z alone"
        )
    conversions.set_xyz(target.position, conversions.xyz(position).tolist())
    conversions.set_wxyz(target.orientation, orientation.tolist())


def _set_twist(message: Odometry, twist: Twist, name: str) -> None:
    """Write a twist, given in the parent's axes, into a message, which has it in the body's
    axes.
    """
    linear, angular = conversions.xyz(twist.linear), conversions.xyz(twist.angular)
    if not np.isfinite([linear, angular]).all():
        raise ConversionError(
            Refusal.NOT_FINITE, f"twist of {name} with a value that is not finite"
        )
    rotation = quat2mat(conversions.wxyz(message.pose.pose.orientation))
    body_twist = message.twist.twist
    # R^T v, where v is a row
    conversions.set_xyz(body_twist.linear, (linear @ rotation).tolist())
    conversions.set_xyz(body_twist.angular, (angular @ rotation).tolist())
