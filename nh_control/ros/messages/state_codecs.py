"""Messages of states: one for a scenario's joints, one for a planar body, one for bodies in space.
Their codecs convert configurations and velocities to fields and back; these classes copy the
fields into and out of messages, and refuse unusable messages.

Messages are made once, because they are published thousands of times per second.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any, TypeAlias

from geometry_msgs.msg import Point, Pose, Quaternion, Transform, Twist, Vector3
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState, MultiDOFJointState

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.reports import Refusal, shortened
from nh_control.loop.wire_format import (
    UNKNOWN,
    BodiesCodec,
    BodyFields,
    JointFields,
    JointStateCodec,
    MultiDofCodec,
    OdometryCodec,
    state_codecs,
    yaw,
)
from nh_control.numerics.expressions import Vector
from nh_control.ros.messages import conversions
from nh_control.ros.messages.conversions import ConversionError
from nh_control.runs.topics import odometry_of
from nh_control.scenarios import Scenario

Numbers: TypeAlias = MutableSequence[float]


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
    parts: list[Codec] = []
    for codec in state_codecs(scenario, dsys.system.space, parameters):
        if isinstance(codec, JointStateCodec):
            parts.append(JointCodec(codec, velocities))
        elif isinstance(codec, OdometryCodec):
            parts.append(PlanarCodec(codec, velocities, prefix))
        elif isinstance(codec, MultiDofCodec):
            parts.append(SpatialCodec(codec, velocities, prefix))
    return tuple(parts)


class JointCodec:
    """One-dof joints as JointState."""

    topic, message_type = JointStateCodec.topic, JointState

    def __init__(self, codec: JointStateCodec, velocities: bool = True):
        self._codec, self.names = codec, codec.names
        zeros = array("d", bytes(8 * len(self.names)))
        self.message = JointState(
            name=self.names, position=zeros[:], velocity=zeros[:] if velocities else array("d")
        )
        self.outgoing: Sequence[tuple[str, Any]] = ((self.topic, self.message),)
        self.odometry: Sequence[Odometry] = ()

    def write(self, q: Vector, v: Vector) -> None:
        """Write configuration q (nq) and velocity v (nw)."""
        positions, velocities = self.message.position, self.message.velocity
        for i, joint in enumerate(self._codec.fields(q, v).values()):
            positions[i] = joint.position
            if velocities:
                velocities[i] = joint.velocity

    def fields(self, message: JointState) -> dict[str, JointFields]:
        """The fields of a message; raises ConversionError unless every joint has a position, and
        all or none a velocity.
        """
        sizes = names, positions, velocities = [
            len(part) for part in (message.name, message.position, message.velocity)
        ]
        if positions != names or velocities not in (0, names):
            raise ConversionError(
                Refusal.LENGTH,
                "joint state with {} names, {} positions, {} velocities; expected as many "
                "positions as names, and as many velocities or none".format(*sizes),
            )
        return self._codec.message_fields(message)

    def read(self, message: JointState, q: Numbers, v: Numbers) -> bool:
        """Read into q (nq) and v (nw) as its codec does. A velocity NaN is none, as
        joint_state_broadcaster publishes it for joints without this interface.

        Raises ConversionError for missing joints, wrong lengths, and other values of these joints
        that are not finite.
        """
        return self.read_fields(self.fields(message), q, v)

    def read_fields(self, fields: Mapping[str, JointFields], q: Numbers, v: Numbers) -> bool:
        """Read fields as `read` does."""
        _require(self.names, fields, "joint state")
        for name in self.names:
            position, velocity = fields[name]
            if not math.isfinite(position) or math.isinf(velocity):
                raise ConversionError(
                    Refusal.NOT_FINITE,
                    f"joint state with a value of {name} that is not finite: position "
                    f"{position}, velocity {velocity}",
                )
        return self._codec.read(fields, q, v)


class BodyCodec:
    """Bodies as Odometry each, whose poses and body velocities are in the parent frames."""

    def __init__(self, codec: BodiesCodec, velocities: bool = True, prefix: str = ""):
        self._codec, self.names = codec, codec.names
        self.odometry = [Odometry(child_frame_id=prefix + name) for name in codec.names]
        for message, parent in zip(self.odometry, codec.parents):
            message.header.frame_id = prefix + parent
            if not velocities:
                message.twist.covariance[0] = UNKNOWN

    def write(self, q: Vector, v: Vector) -> None:
        """Write configuration q (nq) and velocity v (nw)."""
        self._write(self._codec.fields(q, v))

    def place(self, q: Vector, pose: Pose) -> None:
        """Write the pose of the first body at configuration q (nq)."""
        first, *_ = self._codec.fields(q, self._codec.rest).values()
        _write_pose(first, pose.position, pose.orientation)

    def _write(self, bodies: Mapping[str, BodyFields]) -> None:
        for fields, message in zip(bodies.values(), self.odometry):
            _write_pose(fields, message.pose.pose.position, message.pose.pose.orientation)
            if message.twist.covariance[0] != UNKNOWN:
                _write_twist(fields, message.twist.twist)


class PlanarCodec(BodyCodec):
    """A planar body."""

    topic, message_type = OdometryCodec.topic, Odometry

    def __init__(self, codec: OdometryCodec, velocities: bool = True, prefix: str = ""):
        super().__init__(codec, velocities, prefix)
        (self.message,) = self.odometry
        self.outgoing: Sequence[tuple[str, Any]] = ((self.topic, self.message),)

    def read(self, message: Odometry, q: Numbers, v: Numbers) -> bool:
        """Read into q (nq) and v (nw) as its codec does; raises ConversionError for values that
        are not finite, other than rates NaN, which are unknown.
        """
        fields = self._codec.message_fields(message)
        (body,) = fields.values()
        values = yaw(body.quaternion_wxyz), *body.position[:2]
        rates = body.angular_velocity[2], *body.linear_velocity[:2]
        if not all(map(math.isfinite, values)) or any(map(math.isinf, rates)):
            raise ConversionError(
                Refusal.NOT_FINITE,
                f"odometry with a value that is not finite: pose {values}, twist {rates}",
            )
        return self._codec.read(fields, q, v)


class SpatialCodec(BodyCodec):
    """Bodies in space, which together contain the state, as MultiDOFJointState, and each of them
    as Odometry on `<frame>/odom`. Transforms give the bodies' frames in the parent frame.
    """

    topic, message_type = MultiDofCodec.topic, MultiDOFJointState

    def __init__(self, codec: MultiDofCodec, velocities: bool = True, prefix: str = ""):
        super().__init__(codec, velocities, prefix)
        self.message = MultiDOFJointState(
            joint_names=self.names,
            transforms=[Transform() for _ in self.names],
            twist=[Twist() for _ in self.names if velocities],
        )
        self.parent = self.message.header.frame_id = prefix + codec.parents[0]
        self.outgoing: Sequence[tuple[str, Any]] = (
            (self.topic, self.message),
            *((odometry_of(name), message) for name, message in zip(self.names, self.odometry)),
        )

    def _write(self, bodies: Mapping[str, BodyFields]) -> None:
        super()._write(bodies)
        for body, transform in zip(bodies.values(), self.message.transforms):
            _write_pose(body, transform.translation, transform.rotation)
        for body, twist in zip(bodies.values(), self.message.twist):
            _write_twist(body, twist)

    def read(self, message: MultiDOFJointState, q: Numbers, v: Numbers) -> bool:
        """Read into q (nq) and v (nw) as its codec does, up to the sign of quaternions.

        Raises ConversionError for missing bodies, wrong lengths or frames, values that are not
        finite, other than rates NaN, and orientations that are no unit quaternions.
        """
        n, n_twists = len(message.transforms), len(message.twist)
        if n != len(message.joint_names) or n_twists not in (0, n):
            raise ConversionError(
                Refusal.LENGTH,
                f"multi-dof joint state with {len(message.joint_names)} names, {n} "
                f"transforms, {n_twists} twists; "
                "expected as many transforms as names, and as many twists or none",
            )
        if message.header.frame_id != self.parent:
            raise ConversionError(
                Refusal.FRAME,
                f"multi-dof joint state in the frame {message.header.frame_id[:60]!r}; expected "
                f"{self.parent!r}",
            )
        fields = self._codec.message_fields(message)
        _require(self.names, fields, "multi-dof joint state")
        for name in self.names:
            position, wxyz, linear, angular = fields[name]
            if not all(map(math.isfinite, position)) or any(map(math.isinf, (*linear, *angular))):
                raise ConversionError(
                    Refusal.NOT_FINITE,
                    f"multi-dof joint state with a value of {name} that is not finite",
                )
            conversions.unit(wxyz, name)
        try:
            return self._codec.read(fields, q, v)
        except ValueError as error:
            raise ConversionError(Refusal.MODEL, str(error)) from error


Codec: TypeAlias = JointCodec | PlanarCodec | SpatialCodec
"""A part of the state, in messages of `message_type` on `topic`; `write` fills `message`.
`outgoing` are pairs of all topics and messages that `write` fills; `odometry` are those of poses.
"""


def _require(names: Sequence[str], fields: Mapping[str, object], what: str) -> None:
    """Raise ConversionError for missing names."""
    missing = [name for name in names if name not in fields]
    if missing:
        raise ConversionError(
            Refusal.NAMES, f"{what} without {missing}; it has {shortened(list(fields))}"
        )


def _write_pose(fields: BodyFields, position: Point | Vector3, orientation: Quaternion) -> None:
    conversions.set_xyz(position, fields.position)
    conversions.set_wxyz(orientation, fields.quaternion_wxyz)


def _write_twist(fields: BodyFields, twist: Twist) -> None:
    conversions.set_xyz(twist.linear, fields.linear_velocity)
    conversions.set_xyz(twist.angular, fields.angular_velocity)
