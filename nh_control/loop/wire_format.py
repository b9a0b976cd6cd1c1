"""Wire format of states: the fields of their messages, and one codec for every kind of message.

Nodes copy the fields into and out of ROS messages. Recordings, replays and simulations use the
same codecs without ROS; messages read from a recording have the attributes of ROS messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableSequence, Sequence
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
UNKNOWN_RATES = (math.nan,) * 3


class JointFields(NamedTuple):
    """Fields of a joint in a sensor_msgs/JointState; an unknown velocity is NaN."""

    position: float
    velocity: float


class BodyFields(NamedTuple):
    """Fields of a nav_msgs/Odometry, or of one body in a MultiDOFJointState: position (3) in m and
    quaternion (4) in the parent frame, linear (3, m/s) and angular (3, rad/s) velocity in the axes
    of the body, UNKNOWN_RATES if they are not known.
    """

    position: Sequence[float]
    quaternion_wxyz: Sequence[float]
    linear_velocity: Sequence[float]
    angular_velocity: Sequence[float]


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

    def fields(self, q: Vector, v: Vector) -> Mapping[str, Any]:
        """Fields of configuration q (nq) and velocity v (nw), by `names`."""

    def message_fields(self, message: Any) -> Mapping[str, Any]:
        """Fields of a message, by the names of its joints or frames."""

    def read(self, fields: Any, q: Row, v: Row) -> bool:
        """Read into q (nq) and v (nw); returns whether all velocities are known, the others become
        NaN. Fields of other names are ignored.
        """


class JointStateCodec:
    """Coordinates c of an Rn and velocities `c_dot` of one-dof joints; a joint shows `sign` times
    its coordinate.
    """

    topic, message_type = "joint_states", "sensor_msgs/msg/JointState"

    def __init__(self, joints: Sequence[Joint], space: Space):
        self._places = {joint.name: (*joint.place(space), joint.sign) for joint in joints}
        self.names = list(self._places)

    def fields(self, q: Vector, v: Vector) -> dict[str, JointFields]:
        """The fields of all joints."""
        return {
            name: JointFields(sign * q[coordinate], sign * v[rate])
            for name, (coordinate, rate, sign) in self._places.items()
        }

    def message_fields(self, message: Any) -> dict[str, JointFields]:
        """The fields of a message; its velocities are known if there are as many as names."""
        rates = message.velocity
        if len(rates) != len(message.name):
            rates = [math.nan] * len(message.name)
        return dict(zip(message.name, map(JointFields, message.position, rates)))

    def read(self, fields: Mapping[str, JointFields], q: Row, v: Row) -> bool:
        """Read the joints that are there."""
        moving, places = True, [(*self._places[n], *fields[n]) for n in self.names if n in fields]
        for coordinate, rate, sign, position, _ in places:
            q[coordinate], v[rate] = sign * position, math.nan
        for _, rate, sign, _, velocity in places:  # joints of one coordinate: one rate is enough
            if math.isnan(velocity):
                moving = False
            else:
                v[rate] = sign * velocity
        return moving


class OdometryCodec:
    """A planar body's pose (theta, x, y) and body velocity (omega, forward, side)."""

    topic, message_type = "odom", "nav_msgs/msg/Odometry"

    def __init__(self, body: Body, space: Space):
        self.names, self.parents = [body.frame], [body.parent]
        self._heading, self._rate = body.place(space)
        self._z, self.rest = body.z, np.zeros(space.nw)

    def fields(self, q: Vector, v: Vector) -> dict[str, BodyFields]:
        """The fields of the body."""
        i, j = self._heading, self._rate
        position, linear = (q[i + 1], q[i + 2], self._z), (v[j + 1], v[j + 2], 0.0)
        return {self.names[0]: BodyFields(position, yaw_wxyz(q[i]), linear, (0.0, 0.0, v[j]))}

    def message_fields(self, message: Any) -> dict[str, BodyFields]:
        """The fields of a message, whatever its frame."""
        twist = None if message.twist.covariance[0] == UNKNOWN else message.twist.twist
        pose = message.pose.pose
        return {self.names[0]: _body(pose.position, pose.orientation, twist)}

    def read(self, fields: Mapping[str, BodyFields], q: Row, v: Row) -> bool:
        """Read the body, the heading unwrapped to be close to that of q."""
        i, j, body = self._heading, self._rate, fields[self.names[0]]
        q[i] = unwrap(yaw(body.quaternion_wxyz), q[i])
        q[i + 1], q[i + 2] = body.position[:2]
        v[j], (v[j + 1], v[j + 2]) = body.angular_velocity[2], body.linear_velocity[:2]
        return not any(map(math.isnan, v[j : j + 3]))


class MultiDofCodec:
    """Bodies in space, which together contain the state of a plant with these `parameters`."""

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
        """The fields of all bodies."""
        return {
            body.frame: BodyFields(
                body.position.tolist(),
                body.quaternion_wxyz.tolist(),
                (body.linear_velocity @ quat2mat(body.quaternion_wxyz)).tolist(),
                body.angular_velocity_body.tolist(),
            )
            for body in self._to_bodies(self._parameters, np.asarray(q), np.asarray(v))
        }

    def message_fields(self, message: Any) -> dict[str, BodyFields]:
        """The fields of a message with as many transforms as names, and as many twists or none."""
        parts = [(transform.translation, transform.rotation) for transform in message.transforms]
        twists = message.twist if len(message.twist) else [None] * len(parts)
        bodies = (_body(*pose, twist) for pose, twist in zip(parts, twists))
        return dict(zip(message.joint_names, bodies))

    def read(self, fields: Mapping[str, BodyFields], q: Row, v: Row) -> bool:
        """Read all bodies, none of which may be missing, their quaternions normalized; bodies are
        put in the measured directions at the right distances. Raises ValueError for bodies that
        the scenario refuses.
        """
        bodies = []
        for name, parent in zip(self.names, self.parents):
            position, wxyz, linear, angular = map(np.array, fields[name])
            wxyz = wxyz / math.sqrt(wxyz @ wxyz)
            bodies.append(
                BodyState(name, parent, position, wxyz, quat2mat(wxyz) @ linear, angular)
            )
        configuration, velocity = (part.tolist() for part in self._from_bodies(bodies))
        q[: len(configuration)], v[: len(velocity)] = configuration, velocity
        return not any(map(math.isnan, velocity))


BodiesCodec: TypeAlias = OdometryCodec | MultiDofCodec
"""Codecs of bodies in their `parents`; `rest` is a velocity (nw)."""


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
        self._q, velocity = self._q.copy(), np.zeros(self._model.system.space.nw)
        self.read(self._plant.configuration(x), self._plant.velocity(x), self._q, velocity)
        return self._q, velocity

    def read(self, sent_q: np.ndarray, sent_v: np.ndarray, q: Row, v: Row) -> None:
        """Read the messages of a configuration and velocity into q (nq), which on entry is close
        to it, and v (nw).
        """
        for codec in self._codecs:
            codec.read(codec.fields(sent_q, sent_v), q, v)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The model's state (nx) of the plant's state x (plant.nx)."""
        return self._model.measured_state(*self.carried(x))


def _body(position: Any, orientation: Any, twist: Any) -> BodyFields:
    """Fields of the parts of a message; the twist is None if it is not known."""
    return BodyFields(
        _xyz(position),
        (orientation.w, orientation.x, orientation.y, orientation.z),
        UNKNOWN_RATES if twist is None else _xyz(twist.linear),
        UNKNOWN_RATES if twist is None else _xyz(twist.angular),
    )


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z
