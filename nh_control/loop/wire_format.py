"""The wire format of states: the fields of their messages, and one codec for each kind of message.

Nodes copy the fields into and out of ROS messages. Recordings, replays and simulations use the
same codecs without ROS. Messages read from a recording have the attributes of ROS messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Space
from nh_control.numerics.expressions import Vector
from nh_control.scenarios import BodyState, Joint, PlanarBody, Scenario

Row: TypeAlias = np.ndarray | MutableSequence[float]
"""A configuration or velocity into which values are read."""
UNKNOWN = -1.0
"""First entry of the covariance of an unknown quantity (see sensor_msgs/Imu)."""
UNKNOWN_RATES = (math.nan,) * 3


class JointFields(NamedTuple):
    """Fields of a joint in a sensor_msgs/JointState; an unknown velocity is NaN."""

    position: float
    velocity: float


class BodyFields(NamedTuple):
    """Fields of a nav_msgs/Odometry, or of one body in a MultiDOFJointState: the position (3) in m
    and the quaternion (4) in the parent frame; and the linear (3, m/s) and angular (3, rad/s)
    velocity in body axes, or UNKNOWN_RATES.
    """

    position: Sequence[float]
    quaternion_wxyz: Sequence[float]
    linear_velocity: Sequence[float]
    angular_velocity: Sequence[float]


def unwrap(angle: float, near: float) -> float:
    """Add whole turns to an angle so that it is as close as possible to `near` (rad). Returns the
    angle unchanged if either of the two is not finite.
    """
    # the nearest integer number of turns
    turns = (near - angle) / math.tau
    return angle + math.tau * round(turns) if math.isfinite(turns) else angle


def yaw(wxyz: Sequence[float]) -> float:
    """Return the angle about z (rad, in (-pi, pi]) of a planar orientation; the quaternion (4) may
    have any norm.
    """
    w, x, y, z = wxyz
    return math.atan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z)


def yaw_wxyz(angle: float) -> tuple[float, float, float, float]:
    """Return the quaternion (4) of a rotation about z (rad)."""
    # (cos(angle/2), sin(angle/2) axis) with the axis z
    return math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)


def rotated(wxyz: Sequence[float], vector: Sequence[float]) -> list[float]:
    """Rotate a vector (3) by a quaternion (4) of any norm. For a few floats, this is faster than
    NumPy.
    """
    (w, x, y, z), (a, b, c) = wxyz, vector
    s = 2 / (w * w + x * x + y * y + z * z)
    # v + w c + r x c with c = s (r x v) and the quaternion's vector part r = (x, y, z)
    i, j, k = s * (y * c - z * b), s * (z * a - x * c), s * (x * b - y * a)
    return [a + w * i + y * k - z * j, b + w * j + z * i - x * k, c + w * k + x * j - y * i]


class StateCodec(Protocol):
    """Converts the part of a state that belongs to the joints or frames in `names` to fields of
    the message on `topic` and back.
    """

    topic: str
    names: list[str]

    def fields(self, q: Vector, v: Vector) -> Mapping[str, Any]:
        """Return the fields for the configuration q (nq) and the velocity v (nw), by the names in
        `names`.
        """

    def message_fields(self, message: Any) -> Mapping[str, Any]:
        """Return the fields of a message by the names of its joints or frames."""

    def read(self, fields: Any, q: Row, v: Row) -> bool:
        """Read the fields into q (nq) and v (nw). Returns whether all velocities are known.
        Unknown velocities become NaN. Fields with other names are ignored.
        """


class JointStateCodec:
    """Converts coordinates c of an Rn and velocities `c_dot` of joints with one degree of freedom.
    The value of a joint is `sign` times its coordinate.
    """

    topic, message_type = "joint_states", "sensor_msgs/msg/JointState"

    def __init__(self, joints: Sequence[Joint], space: Space):
        self._places = {joint.name: (*joint.place(space), joint.sign) for joint in joints}
        self.names = list(self._places)

    def fields(self, q: Vector, v: Vector) -> dict[str, JointFields]:
        """Return the fields of all joints."""
        return {
            name: JointFields(sign * q[coordinate], sign * v[rate])
            for name, (coordinate, rate, sign) in self._places.items()
        }

    def message_fields(self, message: Any) -> dict[str, JointFields]:
        """Return the fields of a message. Velocities are known if there are as many velocities as
        names.
        """
        rates = message.velocity
        if len(rates) != len(message.name):
            rates = [math.nan] * len(message.name)
        return dict(zip(message.name, map(JointFields, message.position, rates)))

    def read(self, fields: Mapping[str, JointFields], q: Row, v: Row) -> bool:
        """Read the joints that the message contains."""
        moving, places = True, [(*self._places[n], *fields[n]) for n in self.names if n in fields]
        for coordinate, rate, sign, position, _ in places:
            q[coordinate], v[rate] = sign * position, math.nan
        for _, rate, sign, _, velocity in places:  # one rate is enough for joints that share it
            if math.isnan(velocity):
                moving = False
            else:
                v[rate] = sign * velocity
        return moving


class OdometryCodec:
    """Converts a planar body's pose (theta, x, y) and body velocity (omega, forward, side)."""

    topic, message_type = "odom", "nav_msgs/msg/Odometry"

    def __init__(self, body: PlanarBody, space: Space):
        self.names, self.parents = [body.frame], [body.parent]
        self._heading, self._rate = body.place(space)
        self._z, self.rest = body.z, np.zeros(space.nw)

    def fields(self, q: Vector, v: Vector) -> dict[str, BodyFields]:
        """Return the fields of the body."""
        i, j = self._heading, self._rate
        position, linear = (q[i + 1], q[i + 2], self._z), (v[j + 1], v[j + 2], 0.0)
        return {self.names[0]: BodyFields(position, yaw_wxyz(q[i]), linear, (0.0, 0.0, v[j]))}

    def message_fields(self, message: Any) -> dict[str, BodyFields]:
        """Return the fields of a message in any frame."""
        twist = None if message.twist.covariance[0] == UNKNOWN else message.twist.twist
        pose = message.pose.pose
        return {self.names[0]: _body(pose.position, pose.orientation, twist)}

    def read(self, fields: Mapping[str, BodyFields], q: Row, v: Row) -> bool:
        """Read the body. Its heading is unwrapped to be close to the heading in q."""
        i, j, body = self._heading, self._rate, fields[self.names[0]]
        q[i] = unwrap(yaw(body.quaternion_wxyz), q[i])
        q[i + 1], q[i + 2] = body.position[:2]
        v[j], (v[j + 1], v[j + 2]) = body.angular_velocity[2], body.linear_velocity[:2]
        return not any(map(math.isnan, v[j : j + 3]))


class MultiDofCodec:
    """Converts bodies in space that together contain the state of a plant with the given
    `parameters`.
    """

    topic, message_type = "multi_dof_joint_states", "sensor_msgs/msg/MultiDOFJointState"

    def __init__(self, scenario: Scenario, space: Space, parameters: Any):
        to_bodies, from_bodies = scenario.to_bodies, scenario.from_bodies
        if to_bodies is None or from_bodies is None:
            raise ValueError(f"scenario {scenario.name}: expected to_bodies and from_bodies")
        self._to_bodies, self._from_bodies = to_bodies, from_bodies
        self._parameters, self.rest = parameters, np.zeros(space.nw)
        bodies = scenario.resting_bodies(space)
        self.names, self.parents = [b.frame for b in bodies], [b.parent for b in bodies]

    def fields(self, q: Vector, v: Vector) -> dict[str, BodyFields]:
        """Return the fields of all bodies."""
        fields = {}
        for body in self._to_bodies(self._parameters, np.asarray(q), np.asarray(v)):
            w, x, y, z = wxyz = body.quaternion_wxyz.tolist()
            # messages have the velocity in the body's axes: rotate by the conjugate quaternion
            linear = rotated((-w, x, y, z), body.linear_velocity.tolist())
            rates = body.angular_velocity_body.tolist()
            fields[body.frame] = BodyFields(body.position.tolist(), wxyz, linear, rates)
        return fields

    def message_fields(self, message: Any) -> dict[str, BodyFields]:
        """Return the fields of a message with one transform per name, and either one twist per
        name or no twists.
        """
        parts = [(transform.translation, transform.rotation) for transform in message.transforms]
        twists = message.twist if len(message.twist) else [None] * len(parts)
        bodies = (
            _body(position, orientation, twist)
            for (position, orientation), twist in zip(parts, twists)
        )
        return dict(zip(message.joint_names, bodies))

    def read(self, fields: Mapping[str, BodyFields], q: Row, v: Row) -> bool:
        """Read all bodies and normalize their quaternions. No body may be missing. The scenario
        places the bodies in the measured directions at the right distances. Raises ValueError for
        bodies that the scenario refuses.
        """
        rows = []
        for name in self.names:
            position, wxyz, linear, angular = fields[name]
            norm = math.hypot(*wxyz)
            rows.append([*position, *(x / norm for x in wxyz), *rotated(wxyz, linear), *angular])
        # one array for all bodies, because creating arrays takes most of the time
        bodies = [
            BodyState(name, parent, row[:3], row[3:7], row[7:10], row[10:])
            for name, parent, row in zip(self.names, self.parents, np.array(rows))
        ]
        configuration, velocity = (part.tolist() for part in self._from_bodies(bodies))
        q[: len(configuration)], v[: len(velocity)] = configuration, velocity
        return not any(map(math.isnan, velocity))


BodiesCodec: TypeAlias = OdometryCodec | MultiDofCodec
"""Codecs for bodies relative to their `parents`; `rest` is the zero velocity (nw)."""


def state_codecs(
    scenario: Scenario, space: Space, parameters: Any = None
) -> tuple[StateCodec, ...]:
    """Return the codecs for the messages that together contain the state of a plant with the given
    `parameters`. The scenario's parameters are the default.
    """
    codecs: list[StateCodec] = []
    if scenario.joints:
        codecs.append(JointStateCodec(scenario.joints, space))
    if scenario.body is not None:
        codecs.append(OdometryCodec(scenario.body, space))
    if scenario.from_bodies is not None:
        plant_parameters = scenario.parameters if parameters is None else parameters
        codecs.append(MultiDofCodec(scenario, space, plant_parameters))
    return tuple(codecs)


class MessageStates:
    """Successive states of a plant with the given `parameters`, as its tracker and recordings read
    them from messages. The first heading is close to that of the model's state `first` (nx) or,
    without `first`, in (-pi, pi].
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
        """Return the configuration (nq) and the velocity (nw) that messages of the plant's state x
        contain.
        """
        self._q, velocity = self._q.copy(), np.zeros(self._model.system.space.nw)
        self.read(self._plant.configuration(x), self._plant.velocity(x), self._q, velocity)
        return self._q, velocity

    def read(self, sent_q: np.ndarray, sent_v: np.ndarray, q: Row, v: Row) -> None:
        """Read the messages of a configuration and velocity into q (nq) and v (nw). Initially, q
        must be close to the configuration.
        """
        for codec in self._codecs:
            codec.read(codec.fields(sent_q, sent_v), q, v)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the model's state (nx) for the plant's state x (plant.nx)."""
        q, v = self.carried(x)
        return self._model.measured_state(q, v)


def _body(position: Any, orientation: Any, twist: Any) -> BodyFields:
    """Return the fields for the parts of a message; an unknown twist is None."""
    return BodyFields(
        _xyz(position),
        (orientation.w, orientation.x, orientation.y, orientation.z),
        UNKNOWN_RATES if twist is None else _xyz(twist.linear),
        UNKNOWN_RATES if twist is None else _xyz(twist.angular),
    )


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z
