"""State messages: one for a scenario's joints, one for a planar body, and one for bodies in space.
The codecs of `wire_format` convert configurations and velocities to fields and back. The classes
here copy the fields to and from messages, and refuse unusable messages.

Messages are published thousands of times per second. Therefore the numbers of a state are written
directly into the bytes of a template.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any, TypeAlias

from geometry_msgs.msg import Pose, Transform, Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState, MultiDOFJointState

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.reports import Refusal, shortened
from nh_control.loop.wire_format import (
    UNKNOWN,
    UNKNOWN_RATES,
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
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.conversions import ConversionError
from nh_control.runs.topics import odometry_of
from nh_control.scenarios import Scenario

Numbers: TypeAlias = MutableSequence[float]
NO_TWIST = (0.0,) * 6
"""The numbers of a twist that is not measured."""


def codecs(
    scenario: Scenario,
    dsys: DiscreteSystem,
    velocities: bool = True,
    parameters: Any = None,
    prefix: str = "",
    efforts: bool = False,
) -> tuple[Codec, ...]:
    """The codecs whose messages together contain the state of the scenario's system. The system
    has the given `parameters`, by default the scenario's. With `velocities`, the messages contain
    velocities, which encoder messages do not. With `efforts`, the joint messages contain efforts.
    Frame names begin with `prefix`.
    """
    # the type of the fields determines the message
    parts: list[Codec] = []
    for codec in state_codecs(scenario, dsys.system.space, parameters):
        if isinstance(codec, JointStateCodec):
            parts.append(JointCodec(codec, velocities, efforts))
        elif isinstance(codec, OdometryCodec):
            parts.append(PlanarCodec(codec, velocities, prefix))
        elif isinstance(codec, MultiDofCodec):
            parts.append(SpatialCodec(codec, velocities, prefix))
    return tuple(parts)


class JointCodec:
    """Joints with one degree of freedom, as JointState."""

    topic, message_type = JointStateCodec.topic, JointState

    def __init__(self, codec: JointStateCodec, velocities: bool = True, efforts: bool = False):
        self._codec, self.names = codec, codec.names
        # create arrays with their final lengths, because a template needs constant lengths
        zeros = array("d", bytes(8 * len(self.names)))
        self.message = JointState(
            name=self.names,
            position=zeros[:],
            velocity=zeros[:] if velocities else array("d"),
            effort=zeros[:] if efforts else array("d"),
        )
        self.template = Template(self.message)
        self.outgoing: Sequence[tuple[str, Template]] = ((self.topic, self.template),)
        self.odometry: Sequence[Odometry] = ()

    def write(self, q: Vector, v: Vector, efforts: Sequence[float] = ()) -> None:
        """Write configuration q (nq), velocity v (nw) and joint efforts into `message`."""
        self.template.write(self.numbers(self.shown(q, v), efforts))

    def shown(self, q: Vector, v: Vector) -> dict[str, JointFields]:
        """The message fields at configuration q (nq) and velocity v (nw)."""
        fields = self._codec.fields(q, v)
        if self.message.velocity:
            return fields
        # NaN marks velocities that encoders do not measure
        return {name: JointFields(joint.position, math.nan) for name, joint in fields.items()}

    def numbers(
        self, fields: Mapping[str, JointFields], efforts: Sequence[float] = ()
    ) -> list[float]:
        """The numbers in `message` for these fields and joint efforts. Missing efforts are
        zero.
        """
        numbers = [joint.position for joint in fields.values()]
        if self.message.velocity:
            numbers += [joint.velocity for joint in fields.values()]
        if self.message.effort:
            numbers += efforts or [0.0] * len(self.names)
        return numbers

    def odometry_numbers(self, fields: Mapping[str, JointFields]) -> list[list[float]]:
        """An empty list, because joints have no odometry."""
        return []

    def fields(self, message: JointState) -> dict[str, JointFields]:
        """The fields of a message. Raises ConversionError unless every joint has a position, and
        either all joints or none have a velocity.
        """
        self._require_lengths(message)
        return self._codec.message_fields(message)

    def numbered_fields(
        self, message: JointState, numbers: Sequence[float]
    ) -> dict[str, JointFields]:
        """The fields of a message like `message`, which has these `numbers` (see
        `Template.numbers`). Raises ConversionError as `fields` does.
        """
        self._require_lengths(message)
        n = len(message.name)
        rates = numbers[n : 2 * n] if message.velocity else [math.nan] * n
        return dict(zip(message.name, map(JointFields, numbers, rates)))

    def _require_lengths(self, message: JointState) -> None:
        names, positions, velocities = (
            len(part) for part in (message.name, message.position, message.velocity)
        )
        # all joints have a position, and all or none have a velocity
        if positions != names or velocities not in (0, names):
            raise ConversionError(
                Refusal.LENGTH,
                f"joint state with {names} names, {positions} positions, {velocities} velocities; "
                "expected as many positions as names, and as many velocities or none",
            )

    def read(self, message: JointState, q: Numbers, v: Numbers) -> bool:
        """Read into q (nq) and v (nw) as the codec does. A velocity of NaN counts as missing,
        because joint_state_broadcaster publishes NaN for joints without a velocity interface.

        Raises ConversionError for missing joints, wrong lengths, and other values that are not
        finite.
        """
        return self.read_fields(self.fields(message), q, v)

    def read_fields(self, fields: Mapping[str, JointFields], q: Numbers, v: Numbers) -> bool:
        """Read fields as `read` does."""
        _require(self.names, fields, "joint state")
        for name in self.names:
            # NaN means a missing velocity, but infinity is an error
            position, velocity = fields[name]
            if not math.isfinite(position) or math.isinf(velocity):
                raise ConversionError(
                    Refusal.NOT_FINITE,
                    f"joint state with a value of {name} that is not finite: position "
                    f"{position}, velocity {velocity}",
                )
        return self._codec.read(fields, q, v)


class BodyCodec:
    """Bodies, each with an Odometry message. Poses are in the parent frame, and twists are in the
    body's axes.
    """

    def __init__(self, codec: BodiesCodec, velocities: bool = True, prefix: str = ""):
        self._codec, self.names, self._velocities = codec, codec.names, velocities
        self.odometry = [Odometry(child_frame_id=prefix + name) for name in codec.names]
        for message, parent in zip(self.odometry, codec.parents):
            message.header.frame_id = prefix + parent
            if not velocities:
                # -1 marks a twist that is not measured
                message.twist.covariance[0] = UNKNOWN
        self.odometry_templates = [Template(message) for message in self.odometry]

    def write(self, q: Vector, v: Vector, efforts: Sequence[float] = ()) -> None:
        """Write configuration q (nq) and velocity v (nw) into the messages."""
        for template, numbers in zip(
            self.odometry_templates, self.odometry_numbers(self.shown(q, v))
        ):
            template.write(numbers)

    def shown(self, q: Vector, v: Vector) -> dict[str, BodyFields]:
        """The message fields at configuration q (nq) and velocity v (nw)."""
        fields = self._codec.fields(q, v)
        if self._velocities:
            return fields
        # rates that are NaN are unknown
        unknown = {"linear_velocity": UNKNOWN_RATES, "angular_velocity": UNKNOWN_RATES}
        return {name: body._replace(**unknown) for name, body in fields.items()}

    def place(self, q: Vector, pose: Pose) -> None:
        """Write the pose of the first body at configuration q (nq)."""
        # velocities do not matter for a pose
        first, *_ = self._codec.fields(q, self._codec.rest).values()
        conversions.set_xyz(pose.position, first.position)
        conversions.set_wxyz(pose.orientation, first.quaternion_wxyz)

    def odometry_numbers(self, fields: Mapping[str, BodyFields]) -> list[list[float]]:
        """The numbers in each message of `odometry` for these fields. Unknown rates are zero."""
        return [
            [*_pose(body), *(_twist(body) if self._velocities else NO_TWIST)]
            for body in fields.values()
        ]


class PlanarCodec(BodyCodec):
    """A planar body as Odometry."""

    topic, message_type = OdometryCodec.topic, Odometry

    def __init__(self, codec: OdometryCodec, velocities: bool = True, prefix: str = ""):
        super().__init__(codec, velocities, prefix)
        (self.message,), (self.template,) = self.odometry, self.odometry_templates
        self.outgoing: Sequence[tuple[str, Template]] = ((self.topic, self.template),)

    def numbers(
        self, fields: Mapping[str, BodyFields], efforts: Sequence[float] = ()
    ) -> list[float]:
        """The numbers in `message` for these fields."""
        (numbers,) = self.odometry_numbers(fields)
        return numbers

    def read(self, message: Odometry, q: Numbers, v: Numbers) -> bool:
        """Read into q (nq) and v (nw) as the codec does. Rates that are NaN are unknown. Raises
        ConversionError for other values that are not finite.
        """
        return self.read_fields(self._codec.message_fields(message), q, v)

    def numbered_fields(
        self, message: Odometry, numbers: Sequence[float]
    ) -> dict[str, BodyFields]:
        """The fields of a message like `message`, which has these `numbers`."""
        twist = None if message.twist.covariance[0] == UNKNOWN else numbers[7:]
        return {self.names[0]: _body(numbers[:7], twist)}

    def read_fields(self, fields: Mapping[str, BodyFields], q: Numbers, v: Numbers) -> bool:
        """Read fields as `read` does."""
        # only the heading and the position in the plane are used
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
    """Bodies in space. One MultiDOFJointState contains the state of all bodies, and each body also
    has an Odometry message on `<frame>/odom`. Transforms are the poses of the bodies' frames in
    the parent frame.
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
        self.template = Template(self.message)
        odometry = zip(map(odometry_of, self.names), self.odometry_templates)
        self.outgoing: Sequence[tuple[str, Template]] = ((self.topic, self.template), *odometry)

    def write(self, q: Vector, v: Vector, efforts: Sequence[float] = ()) -> None:
        """Write configuration q (nq) and velocity v (nw) into the messages."""
        super().write(q, v)
        self.template.write(self.numbers(self.shown(q, v)))

    def numbers(
        self, fields: Mapping[str, BodyFields], efforts: Sequence[float] = ()
    ) -> list[float]:
        """The numbers in `message` for these fields."""
        numbers = [number for body in fields.values() for number in _pose(body)]
        if self._velocities:
            numbers += [number for body in fields.values() for number in _twist(body)]
        return numbers

    def read(self, message: MultiDOFJointState, q: Numbers, v: Numbers) -> bool:
        """Read into q (nq) and v (nw) as the codec does. The signs of quaternions may differ.
        Rates that are NaN are unknown.

        Raises ConversionError for missing bodies, wrong lengths or frames, other values that are
        not finite, and orientations that are not unit quaternions.
        """
        self._require_layout(message)
        return self.read_fields(self._codec.message_fields(message), q, v)

    def numbered_fields(
        self, message: MultiDOFJointState, numbers: Sequence[float]
    ) -> dict[str, BodyFields]:
        """The fields of a message like `message`, which has these `numbers`. Raises
        ConversionError for wrong lengths or frames.
        """
        self._require_layout(message)
        n = len(message.joint_names)
        poses = (numbers[7 * i : 7 * i + 7] for i in range(n))
        starts = range(7 * n, 13 * n, 6)
        twists = (numbers[i : i + 6] if message.twist else None for i in starts)
        return dict(zip(message.joint_names, map(_body, poses, twists)))

    def _require_layout(self, message: MultiDOFJointState) -> None:
        # a message may lack all twists, but not only some of them
        n, n_twists = len(message.transforms), len(message.twist)
        if n != len(message.joint_names) or n_twists not in (0, n):
            raise ConversionError(
                Refusal.LENGTH,
                f"multi-dof joint state with {len(message.joint_names)} names, {n} "
                f"transforms, {n_twists} twists; "
                "expected as many transforms as names, and as many twists or none",
            )
        # poses in another frame would be misread
        if message.header.frame_id != self.parent:
            raise ConversionError(
                Refusal.FRAME,
                f"multi-dof joint state in the frame {message.header.frame_id[:60]!r}; expected "
                f"{self.parent!r}",
            )

    def read_fields(self, fields: Mapping[str, BodyFields], q: Numbers, v: Numbers) -> bool:
        """Read fields as `read` does."""
        _require(self.names, fields, "multi-dof joint state")
        for name in self.names:
            position, wxyz, linear, angular = fields[name]
            if not all(map(math.isfinite, position)) or any(map(math.isinf, (*linear, *angular))):
                raise ConversionError(
                    Refusal.NOT_FINITE,
                    f"multi-dof joint state with a value of {name} that is not finite",
                )
            conversions.require_unit(wxyz, name)
        try:
            return self._codec.read(fields, q, v)
        except ValueError as error:
            raise ConversionError(Refusal.MODEL, str(error)) from error


Codec: TypeAlias = JointCodec | PlanarCodec | SpatialCodec
"""A part of the state, in messages of `message_type` on `topic`. `outgoing` contains pairs of
topics and templates of the messages, first that of `template`, then those of the `odometry`, which
has the poses. `numbers` and `odometry_numbers` are the numbers in these messages for the fields
from `shown`, without the stamp; `write` writes them into the messages, and `numbered_fields` is
the reverse of `numbers`.
"""


def _require(names: Sequence[str], fields: Mapping[str, object], what: str) -> None:
    """Raise ConversionError if names are missing."""
    missing = [name for name in names if name not in fields]
    if missing:
        raise ConversionError(
            Refusal.NAMES, f"{what} without {missing}; it has {shortened(list(fields))}"
        )


def _body(pose: Sequence[float], twist: Sequence[float] | None) -> BodyFields:
    """The fields for the numbers of a pose and of a twist; an unknown twist is None."""
    x, y, z, i, j, k, w = pose
    linear, angular = (UNKNOWN_RATES, UNKNOWN_RATES) if twist is None else (twist[:3], twist[3:])
    return BodyFields((x, y, z), (w, i, j, k), linear, angular)


def _pose(body: BodyFields) -> tuple[float, ...]:
    """The numbers of a pose or transform."""
    return *body.position, *conversions.xyzw(body.quaternion_wxyz)


def _twist(body: BodyFields) -> tuple[float, ...]:
    """The numbers of a twist."""
    return *body.linear_velocity, *body.angular_velocity
