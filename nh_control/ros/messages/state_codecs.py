"""Codecs between a scenario's configuration and velocity and its messages: one for its joints, one
for a planar body, one for bodies in space.

Codecs write into messages that are made once, because they are published thousands of times per
second.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any, TypeAlias

import numpy as np
from geometry_msgs.msg import Pose, Transform, Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState, MultiDOFJointState
from transforms3d.quaternions import quat2mat

from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Space
from nh_control.numerics.expressions import Vector
from nh_control.ros.loop.reports import Refusal, shortened
from nh_control.ros.messages import conversions
from nh_control.ros.messages.conversions import ConversionError
from nh_control.runs.decoding import unwrap, yaw
from nh_control.runs.topics import odometry_of
from nh_control.scenarios import Body, BodyState, Joint, Scenario

UNKNOWN = -1.0
"""First entry of the covariance of a twist that is not known, as in sensor_msgs/Imu."""


def codecs(
    scenario: Scenario,
    dsys: DiscreteSystem,
    velocities: bool = True,
    parameters: Any = None,
    prefix: str = "",
) -> tuple[Codec, ...]:
    """The codecs that together contain the state of the scenario's system with these `parameters`,
    by default its own. Messages have velocities or, like those of encoders, none; frames begin
    with `prefix`.
    """
    parameters = scenario.parameters if parameters is None else parameters
    space = dsys.system.space
    parts: list[Codec] = []
    if scenario.joints:
        parts.append(JointCodec(scenario.joints, space, velocities))
    if scenario.body is not None:
        parts.append(PlanarCodec(scenario.body, space, velocities, prefix))
    if scenario.to_bodies is not None and scenario.from_bodies is not None:
        parts.append(
            SpatialCodec(
                scenario.to_bodies, scenario.from_bodies, dsys, velocities, parameters, prefix
            )
        )
    return tuple(parts)


class JointCodec:
    """Coordinates c of an Rn and velocities `c_dot` of one-dof joints as JointState; a joint shows
    `sign` times its coordinate.
    """

    topic, message_type = "joint_states", JointState

    def __init__(self, joints: Sequence[Joint], space: Space, velocities: bool = True):
        self.names = [joint.name for joint in joints]
        self._joints = [(*joint.place(space), joint.sign) for joint in joints]
        zeros = array("d", bytes(8 * len(joints)))
        self.message = JointState(
            name=self.names, position=zeros[:], velocity=zeros[:] if velocities else array("d")
        )
        self.outgoing: Sequence[tuple[str, Any]] = ((self.topic, self.message),)
        self.odometry: Sequence[Odometry] = ()

    def write(self, q: Sequence[float], v: Sequence[float]) -> None:
        """Write configuration q (nq) and velocity v (nw)."""
        positions, velocities = self.message.position, self.message.velocity
        for i, (coordinate, rate, sign) in enumerate(self._joints):
            positions[i] = sign * q[coordinate]
            if velocities:
                velocities[i] = sign * v[rate]

    def read(
        self, message: JointState, q: MutableSequence[float], v: MutableSequence[float]
    ) -> bool:
        """Read into q (nq) and v (nw), joints in any order, others ignored; returns whether all
        have velocities. A velocity NaN is none, as joint_state_broadcaster publishes it for joints
        without this interface; velocities that are not there are left alone.

        Raises ConversionError for missing joints, wrong lengths, and other values of these joints
        that are not finite.
        """
        names, positions, velocities = message.name, message.position, message.velocity
        require_lengths(message)
        order = _order(names, self.names, "joint state")
        rates = [velocities[i] for i in order] if velocities else [math.nan] * len(order)
        for name, i, velocity in zip(self.names, order, rates):
            if not math.isfinite(positions[i]) or math.isinf(velocity):
                raise ConversionError(
                    Refusal.NOT_FINITE,
                    f"joint state with a value of {name} that is not finite: position "
                    f"{positions[i]}, velocity {velocity}",
                )
        for i, velocity, (coordinate, rate, sign) in zip(order, rates, self._joints):
            q[coordinate] = sign * positions[i]
            if not math.isnan(velocity):
                v[rate] = sign * velocity
        return not any(map(math.isnan, rates))


class PlanarCodec:
    """A planar body's pose (theta, x, y) and body velocity (omega, forward, side) as Odometry."""

    topic, message_type = "odom", Odometry

    def __init__(self, body: Body, space: Space, velocities: bool = True, prefix: str = ""):
        self._index, self._rate = body.place(space)
        self._z = body.z
        self.message = _odometry(prefix + body.parent, prefix + body.frame, velocities)
        self._velocities = velocities
        self.outgoing: Sequence[tuple[str, Any]] = ((self.topic, self.message),)
        self.odometry: Sequence[Odometry] = (self.message,)

    def write(self, q: Sequence[float], v: Sequence[float]) -> None:
        """Write configuration q (nq) and velocity v (nw)."""
        j, twist = self._rate, self.message.twist.twist
        self.place(q, self.message.pose.pose)
        if self._velocities:
            twist.angular.z, twist.linear.x, twist.linear.y = v[j], v[j + 1], v[j + 2]

    def place(self, q: Vector, pose: Pose) -> None:
        """Write the pose of the body at configuration q (nq)."""
        i = self._index
        pose.position.x, pose.position.y, pose.position.z = q[i + 1], q[i + 2], self._z
        conversions.set_yaw(pose.orientation, q[i])

    def read(
        self, message: Odometry, q: MutableSequence[float], v: MutableSequence[float]
    ) -> bool:
        """Read into q (nq) and v (nw), the heading unwrapped to be close to that of q; returns
        whether there is a whole twist. Its numbers NaN, and all of a twist that is not known, are
        left alone. Raises ConversionError for other values that are not finite.
        """
        i, j = self._index, self._rate
        pose, twist = message.pose.pose, message.twist.twist
        values = yaw(pose.orientation), pose.position.x, pose.position.y
        known = message.twist.covariance[0] != UNKNOWN
        rates = (twist.angular.z, twist.linear.x, twist.linear.y) if known else 3 * (math.nan,)
        if not all(map(math.isfinite, values)) or any(map(math.isinf, rates)):
            raise ConversionError(
                Refusal.NOT_FINITE,
                f"odometry with a value that is not finite: pose {values}, twist {rates}",
            )
        q[i], q[i + 1], q[i + 2] = unwrap(values[0], q[i]), values[1], values[2]
        return _write_known(rates, v, j)


class SpatialCodec:
    """Bodies in space, which together contain the state, as MultiDOFJointState, and each of them
    as Odometry on `<frame>/odom`.

    Transforms give the bodies' frames in the parent frame; both parts of a twist are in the axes
    of the body, as in nav_msgs/Odometry.
    """

    topic, message_type = "multi_dof_joint_states", MultiDOFJointState

    def __init__(
        self,
        to_bodies: Callable[[Any, np.ndarray, np.ndarray], Sequence[BodyState]],
        from_bodies: Callable[[Sequence[BodyState]], tuple[np.ndarray, np.ndarray]],
        dsys: DiscreteSystem,
        velocities: bool = True,
        parameters: Any = None,
        prefix: str = "",
    ):
        self._parameters, space = parameters, dsys.system.space
        self._to_bodies, self._from_bodies = to_bodies, from_bodies
        self._velocities = velocities
        self._rest = np.zeros(space.nw)
        bodies = self._to_bodies(self._parameters, space.origin, self._rest)
        self.names, self.parent = [body.frame for body in bodies], prefix + bodies[0].parent
        self.message = MultiDOFJointState(
            joint_names=self.names,
            transforms=[Transform() for _ in bodies],
            twist=[Twist() for _ in bodies if velocities],
        )
        self.message.header.frame_id = self.parent
        self.odometry: Sequence[Odometry] = tuple(
            _odometry(prefix + body.parent, prefix + body.frame, velocities) for body in bodies
        )
        self.outgoing: Sequence[tuple[str, Any]] = (
            (self.topic, self.message),
            *((odometry_of(body.frame), message) for body, message in zip(bodies, self.odometry)),
        )

    def write(self, q: Sequence[float], v: Sequence[float]) -> None:
        """Write configuration q (nq) and velocity v (nw)."""
        for i, body in enumerate(self._to_bodies(self._parameters, np.asarray(q), np.asarray(v))):
            position, orientation = body.position.tolist(), body.quaternion_wxyz.tolist()
            transform, pose = self.message.transforms[i], self.odometry[i].pose.pose
            conversions.set_xyz(transform.translation, position)
            conversions.set_xyz(pose.position, position)
            conversions.set_wxyz(transform.rotation, orientation)
            conversions.set_wxyz(pose.orientation, orientation)
            if self._velocities:
                linear = (body.linear_velocity @ quat2mat(orientation)).tolist()
                angular = body.angular_velocity_body.tolist()
                for twist in (self.message.twist[i], self.odometry[i].twist.twist):
                    conversions.set_xyz(twist.linear, linear)
                    conversions.set_xyz(twist.angular, angular)

    def place(self, q: Vector, pose: Pose) -> None:
        """Write the pose of the first body at configuration q (nq)."""
        body = self._to_bodies(self._parameters, np.asarray(q), self._rest)[0]
        conversions.set_xyz(pose.position, body.position.tolist())
        conversions.set_wxyz(pose.orientation, body.quaternion_wxyz.tolist())

    def read(
        self, message: MultiDOFJointState, q: MutableSequence[float], v: MutableSequence[float]
    ) -> bool:
        """Read into q (nq) and v (nw), bodies in any order, others ignored; returns whether there
        are whole twists. Velocities that are not there, or that follow from NaN, are left alone.

        The sign of a quaternion is ignored, and it is normalized; bodies are put in the measured
        directions at the right distances. Raises ConversionError for missing bodies, wrong lengths
        or frames, other values that are not finite and orientations that are no unit quaternions.
        """
        transforms, twists = message.transforms, message.twist
        if len(transforms) != len(message.joint_names) or len(twists) not in (0, len(transforms)):
            raise ConversionError(
                Refusal.LENGTH,
                f"multi-dof joint state with {len(message.joint_names)} names, {len(transforms)} "
                f"transforms, {len(twists)} twists; "
                "expected as many transforms as names, and as many twists or none",
            )
        if message.header.frame_id != self.parent:
            raise ConversionError(
                Refusal.FRAME,
                f"multi-dof joint state in the frame {message.header.frame_id[:60]!r}; expected "
                f"{self.parent!r}",
            )
        order = _order(message.joint_names, self.names, "multi-dof joint state")
        bodies = [
            self._body(name, transforms[i], twists[i] if twists else Twist())
            for name, i in zip(self.names, order)
        ]
        try:
            configuration, velocity = (part.tolist() for part in self._from_bodies(bodies))
        except ValueError as error:
            raise ConversionError(Refusal.MODEL, str(error)) from error
        q[: len(configuration)] = configuration
        return bool(twists) and _write_known(velocity, v, 0)

    def _body(self, name: str, transform: Transform, twist: Twist) -> BodyState:
        position, linear, angular = (
            conversions.xyz(part) for part in (transform.translation, twist.linear, twist.angular)
        )
        if not np.isfinite(position).all() or np.isinf([linear, angular]).any():
            raise ConversionError(
                Refusal.NOT_FINITE,
                f"multi-dof joint state with a value of {name} that is not finite",
            )
        orientation = conversions.unit_wxyz(transform.rotation, name)
        return BodyState(
            name, self.parent, position, orientation, quat2mat(orientation) @ linear, angular
        )


BodyCodec: TypeAlias = PlanarCodec | SpatialCodec
"""Codecs of bodies; `place` writes the pose of the first one."""
Codec: TypeAlias = JointCodec | BodyCodec
"""A part of the state, in messages of `message_type` on `topic`; `write` fills `message`.
`outgoing` are pairs of all topics and messages that `write` fills; `odometry` are those of poses.
"""


def require_lengths(message: JointState) -> None:
    """Raise ConversionError unless every joint has a position, and all or none a velocity."""
    names, positions, velocities = map(len, (message.name, message.position, message.velocity))
    if positions != names or velocities not in (0, names):
        raise ConversionError(
            Refusal.LENGTH,
            f"joint state with {names} names, {positions} positions, {velocities} velocities; "
            "expected as many positions as names, and as many velocities or none",
        )


def _order(names: Sequence[str], wanted: list[str], what: str) -> Sequence[int]:
    """Indices of the wanted names in `names`; raises ConversionError with the missing ones."""
    if names == wanted:
        return range(len(wanted))
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ConversionError(
            Refusal.NAMES, f"{what} without {missing}; it has {shortened(names)}"
        )
    return [names.index(name) for name in wanted]


def _write_known(rates: Sequence[float], v: MutableSequence[float], start: int) -> bool:
    """Write the rates that are not NaN into v from an index on; returns whether these are all."""
    for i, rate in enumerate(rates, start):
        if not math.isnan(rate):
            v[i] = rate
    return not any(map(math.isnan, rates))


def _odometry(parent: str, frame: str, velocities: bool) -> Odometry:
    message = Odometry(child_frame_id=frame)
    message.header.frame_id = parent
    if not velocities:
        message.twist.covariance[0] = UNKNOWN
    return message
