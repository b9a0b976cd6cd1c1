"""Wire format of states: the fields of their messages, and one codec for every kind of message.

Nodes copy the fields into and out of ROS messages. Recordings, replays and simulations use the
same codecs without ROS; messages read from a recording have the attributes of ROS messages.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Space
from nh_control.numerics.expressions import Vector
from nh_control.scenarios import Body, BodyState, Joint, Scenario

Row: TypeAlias = np.ndarray | MutableSequence[float]
"""Numbers of a configuration or velocity to read into."""
UNKNOWN = -1.0
"""First entry of the covariance of a quantity that is not known, see sensor_msgs/Imu."""
ABSENT = (math.nan,) * 3
"""A linear or angular velocity that a message does not have."""


class JointFields(NamedTuple):
    """Fields of a sensor_msgs/JointState; `velocities` are empty if there are none."""

    names: Sequence[str]
    positions: Sequence[float]
    velocities: Sequence[float]


class BodyFields(NamedTuple):
    """Fields of a nav_msgs/Odometry, or of one body in a MultiDOFJointState: position (3) in m and
    quaternion (4) in the parent frame, linear (3, m/s) and angular (3, rad/s) velocity in the axes
    of the body, ABSENT if they are not known.
    """

    position: Sequence[float]
    quaternion_wxyz: Sequence[float]
    linear_velocity: Sequence[float]
    angular_velocity: Sequence[float]


class MultiBodyFields(NamedTuple):
    """Fields of a sensor_msgs/MultiDOFJointState: bodies in a parent frame, by their names."""

    parent: str
    names: Sequence[str]
    bodies: Sequence[BodyFields]


def unwrap(angle: float, near: float) -> float:
    """The angle plus the whole turns that bring it closest to `near` (rad), or the angle itself if
    one of them is not finite.
    """
    turns = (near - angle) / math.tau
    return angle + math.tau * round(turns) if math.isfinite(turns) else angle


def yaw(wxyz: Sequence[float]) -> float:
    """Angle about z (rad, in (-pi, pi]) of a planar orientation; the norm of the quaternion (4)
    does not matter.
    """
    w, x, y, z = wxyz
    return math.atan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z)


def yaw_wxyz(angle: float) -> tuple[float, float, float, float]:
    """Quaternion (4) of a rotation about z (rad)."""
    return math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)


class StateCodec(Protocol):
    """Converts a part of a state, of the joints or frames `names`, to fields of the message on
    `topic` and back.
    """

    topic: str
    names: list[str]

    def fields(self, q: Vector, v: Vector) -> Any:
        """The fields of configuration q (nq) and velocity v (nw)."""

    def message_fields(self, message: Any) -> Any:
        """The fields of a message."""

    def read(self, fields: Any, q: Row, v: Row) -> bool:
        """Read into q (nq) and v (nw); returns whether the message has all velocities. Absent
        velocities become NaN.
        """


class JointStateCodec:
    """Coordinates c of an Rn and velocities `c_dot` of one-dof joints; a joint shows `sign` times
    its coordinate.
    """

    topic, message_type = "joint_states", "sensor_msgs/msg/JointState"

    def __init__(self, joints: Sequence[Joint], space: Space):
        self._places = {joint.name: (*joint.place(space), joint.sign) for joint in joints}
        self.names = list(self._places)

    def fields(self, q: Vector, v: Vector) -> JointFields:
        """The fields of configuration q (nq) and velocity v (nw)."""
        places = self._places.values()
        return JointFields(
            self.names,
            [sign * q[coordinate] for coordinate, _, sign in places],
            [sign * v[rate] for _, rate, sign in places],
        )

    def message_fields(self, message: Any) -> JointFields:
        """The fields of a message."""
        return JointFields(message.name, message.position, message.velocity)

    def read(self, fields: JointFields, q: Row, v: Row) -> bool:
        """Read into q (nq) and v (nw), joints in any order, others ignored; returns whether all
        have velocities. Absent velocities, and those that are NaN, become NaN.
        """
        names, positions, velocities = fields
        moving = len(velocities) == len(names)
        rates = velocities if moving else [math.nan] * len(names)
        shown = [
            (*self._places[name], position, velocity)
            for name, position, velocity in zip(names, positions, rates)
            if name in self._places
        ]
        for coordinate, rate, sign, position, _ in shown:
            q[coordinate], v[rate] = sign * position, math.nan
        for _, rate, sign, _, velocity in shown:  # joints of one coordinate: one rate is enough
            if math.isnan(velocity):
                moving = False
            else:
                v[rate] = sign * velocity
        return moving


class OdometryCodec:
    """A planar body's pose (theta, x, y) and body velocity (omega, forward, side)."""

    topic, message_type = "odom", "nav_msgs/msg/Odometry"

    def __init__(self, body: Body, space: Space):
        self.frames = [(body.parent, body.frame)]
        self.names = [body.frame]
        self._heading, self._rate = body.place(space)
        self._z, self.rest = body.z, np.zeros(space.nw)

    def fields(self, q: Vector, v: Vector) -> BodyFields:
        """The fields of configuration q (nq) and velocity v (nw)."""
        i, j = self._heading, self._rate
        return BodyFields(
            (q[i + 1], q[i + 2], self._z),
            yaw_wxyz(q[i]),
            (v[j + 1], v[j + 2], 0.0),
            (0.0, 0.0, v[j]),
        )

    def bodies(self, q: Vector, v: Vector) -> list[BodyFields]:
        """The fields of the odometry of all bodies."""
        return [self.fields(q, v)]

    def message_fields(self, message: Any) -> BodyFields:
        """The fields of a message."""
        known = message.twist.covariance[0] != UNKNOWN
        pose = message.pose.pose
        return _body(pose.position, pose.orientation, message.twist.twist if known else None)

    def read(self, fields: BodyFields, q: Row, v: Row) -> bool:
        """Read into q (nq) and v (nw), the heading unwrapped to be close to that of q; returns
        whether the twist is known. Absent velocities become NaN.
        """
        i, j = self._heading, self._rate
        rates = fields.angular_velocity[2], fields.linear_velocity[0], fields.linear_velocity[1]
        q[i], q[i + 1] = unwrap(yaw(fields.quaternion_wxyz), q[i]), fields.position[0]
        q[i + 2] = fields.position[1]
        v[j], v[j + 1], v[j + 2] = rates
        return not any(map(math.isnan, rates))


class MultiDofCodec:
    """Bodies in space, which together contain the state of a plant with these `parameters`."""

    topic, message_type = "multi_dof_joint_states", "sensor_msgs/msg/MultiDOFJointState"

    def __init__(self, scenario: Scenario, space: Space, parameters: Any):
        to_bodies, from_bodies = scenario.to_bodies, scenario.from_bodies
        if to_bodies is None or from_bodies is None:
            raise ValueError(f"scenario {scenario.name}: expected to_bodies and from_bodies")
        self._to_bodies, self._from_bodies = to_bodies, from_bodies
        self._parameters, self.rest = parameters, np.zeros(space.nw)
        self.frames = [(body.parent, body.frame) for body in scenario.resting_bodies(space)]
        self.names = [frame for _, frame in self.frames]
        self.parent = self.frames[0][0]

    def fields(self, q: Vector, v: Vector) -> MultiBodyFields:
        """The fields of configuration q (nq) and velocity v (nw)."""
        return MultiBodyFields(self.parent, self.names, self.bodies(q, v))

    def bodies(self, q: Vector, v: Vector) -> list[BodyFields]:
        """The fields of the odometry of all bodies."""
        return [
            BodyFields(
                body.position.tolist(),
                body.quaternion_wxyz.tolist(),
                (body.linear_velocity @ quat2mat(body.quaternion_wxyz)).tolist(),
                body.angular_velocity_body.tolist(),
            )
            for body in self._to_bodies(self._parameters, np.asarray(q), np.asarray(v))
        ]

    def message_fields(self, message: Any) -> MultiBodyFields:
        """The fields of a message with as many transforms as names, and as many twists or none."""
        twists = message.twist if len(message.twist) else [None] * len(message.transforms)
        bodies = [
            _body(transform.translation, transform.rotation, twist)
            for transform, twist in zip(message.transforms, twists)
        ]
        return MultiBodyFields(message.header.frame_id, list(message.joint_names), bodies)

    def missing(self, fields: MultiBodyFields) -> list[str]:
        """The bodies that are not in a message."""
        return [name for name in self.names if name not in fields.names]

    def read(self, fields: MultiBodyFields, q: Row, v: Row) -> bool:
        """Read into q (nq) and v (nw), bodies in any order, others ignored; returns whether their
        twists are known. Velocities that follow from absent ones become NaN.

        Quaternions are normalized; bodies are put in the measured directions at the right
        distances. Raises ValueError for bodies that the scenario refuses; `missing` ones must be
        refused before.
        """
        bodies = []
        for name in self.names:
            body = fields.bodies[fields.names.index(name)]
            position, wxyz, linear, angular = map(np.array, body)
            wxyz = wxyz / math.sqrt(wxyz @ wxyz)
            bodies.append(
                BodyState(name, fields.parent, position, wxyz, quat2mat(wxyz) @ linear, angular)
            )
        configuration, velocity = (part.tolist() for part in self._from_bodies(bodies))
        q[: len(configuration)], v[: len(velocity)] = configuration, velocity
        return not any(map(math.isnan, velocity))


BodiesCodec: TypeAlias = OdometryCodec | MultiDofCodec
"""Codecs of bodies: `frames` are pairs of the parent's and the body's, `rest` is a velocity."""


def state_codecs(
    scenario: Scenario, space: Space, parameters: Any = None
) -> tuple[StateCodec, ...]:
    """The codecs of the messages that together contain the state of a plant with these
    `parameters`, by default the scenario's.
    """
    codecs: list[StateCodec] = []
    if scenario.joints:
        codecs.append(JointStateCodec(scenario.joints, space))
    if scenario.body is not None:
        codecs.append(OdometryCodec(scenario.body, space))
    if scenario.from_bodies is not None:
        given = scenario.parameters if parameters is None else parameters
        codecs.append(MultiDofCodec(scenario, space, given))
    return tuple(codecs)


class MessageStates:
    """States of a plant with these `parameters`, one after another, as its tracker and recordings
    have them from messages; the first heading is close to that of the model's state `first` (nx),
    or without it in (-pi, pi].
    """

    def __init__(
        self,
        scenario: Scenario,
        model: DiscreteSystem,
        plant: DiscreteSystem,
        parameters: Any,
        first: np.ndarray | None = None,
    ):
        self._codecs = state_codecs(scenario, model.system.space, parameters)
        self._model, self._plant = model, plant
        self._q = np.zeros(model.system.space.nq) if first is None else model.configuration(first)

    def carried(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configuration (nq) and velocity (nw) read from the messages of the plant's state x."""
        q, v = self._plant.configuration(x), self._plant.velocity(x)
        self._q, velocity = self._q.copy(), np.zeros(self._model.system.space.nw)
        for codec in self._codecs:
            codec.read(codec.fields(q, v), self._q, velocity)
        return self._q, velocity

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The model's state (nx) of the plant's state x (plant.nx)."""
        return self._model.measured_state(*self.carried(x))


def _body(position: Any, orientation: Any, twist: Any) -> BodyFields:
    """Fields of the parts of a message; the twist is None if it is not known."""
    return BodyFields(
        _xyz(position),
        (orientation.w, orientation.x, orientation.y, orientation.z),
        ABSENT if twist is None else _xyz(twist.linear),
        ABSENT if twist is None else _xyz(twist.angular),
    )


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z
