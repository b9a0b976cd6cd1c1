"""Messages of states as numbers, read and made without ROS, in the form that `nh_control.ros`
writes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.control.input_history import NANOSECONDS
from nh_control.geometry.spaces import Space
from nh_control.numerics.expressions import Vector
from nh_control.runs import topics
from nh_control.scenarios import BodyState, Scenario

UNKNOWN = -1.0
"""First entry of the covariance of an unknown twist."""


class RecordingError(RuntimeError):
    """A recording does not hold a run; the message says what is missing."""


def chosen(connections: Iterable[Any], wanted: Collection[str]) -> dict[str, str]:
    """The wanted topics by their full names in a recording. A topic is taken in the namespace
    nearest to the root, because `reference/joint_states` is no state; raises RecordingError if two
    robots have one.
    """
    topics: dict[str, list[str]] = {}
    for connection in connections:
        name = connection.topic.rsplit("/", 1)[-1]
        if name in wanted:
            topics.setdefault(name, []).append(connection.topic)
    out = {}
    for name, full in topics.items():
        nearest = min(topic.count("/") for topic in full)
        several = sorted({topic for topic in full if topic.count("/") == nearest})
        if len(several) > 1:
            raise RecordingError(f"the recording is of several robots: {', '.join(several)}")
        out[several[0]] = name
    return out


def unwrap(angle: float, near: float) -> float:
    """The angle plus the whole turns that bring it closest to `near` (rad)."""
    return angle + math.tau * round((near - angle) / math.tau)


def yaw(orientation: Any) -> float:
    """Angle about z (rad, in (-pi, pi]) of a planar orientation; the norm of the quaternion does
    not matter.
    """
    x, y, z, w = orientation.x, orientation.y, orientation.z, orientation.w
    return math.atan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z)


def nanoseconds(stamp: Any) -> int:
    """A stamp in integer nanoseconds."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


class StateDecoder:
    """Reads the messages on `topics`, which together contain a state of the scenario."""

    def __init__(self, scenario: Scenario, space: Space):
        self._scenario, self._space = scenario, space
        self._joints = {j.name: (*j.place(space), j.sign) for j in scenario.joints}
        readers = {
            "joint_states": self._joint_state,
            "odom": self._odometry,
            "multi_dof_joint_states": self._multi_dof,
        }
        self._readers = {topic: readers[topic] for topic in topics.states(scenario)}
        self.topics = tuple(self._readers)
        self._frames = [body.frame for body in scenario.resting_bodies(space)]
        self.heading: int | None = None
        """Index of the planar body's heading in configurations, if there is a planar body."""
        if scenario.body is not None:
            self.heading, self._turn = scenario.body.place(space)

    def parts(self, topic: str, message: Any) -> list[str]:
        """The part of the state in a message: joints by their names, bodies by the topic."""
        if topic != "joint_states":
            return [topic]
        return [name for name in message.name if name in self._joints]

    @property
    def n_parts(self) -> int:
        """Number of the parts that make a state."""
        return len(self._joints) + len([topic for topic in self.topics if topic != "joint_states"])

    def read(self, topic: str, message: Any, q: np.ndarray, v: np.ndarray) -> bool:
        """Read into configuration q (nq) and velocity v (nw), NaN where there is none; returns
        whether all are there. Raises RecordingError for bodies that are missing.
        """
        return self._readers[topic](message, q, v)

    def _joint_state(self, message: Any, q: np.ndarray, v: np.ndarray) -> bool:
        moving = len(message.velocity) == len(message.name)
        rates = message.velocity if moving else [math.nan] * len(message.name)
        for name, position, velocity in zip(message.name, message.position, rates):
            if name in self._joints:
                coordinate, rate, sign = self._joints[name]
                q[coordinate], v[rate] = sign * position, sign * velocity
                moving = moving and not math.isnan(velocity)
        return moving

    def _odometry(self, message: Any, q: np.ndarray, v: np.ndarray) -> bool:
        i = self.heading
        pose, twist, o = message.pose.pose, message.twist.twist, message.pose.pose.orientation
        rates = np.array([twist.angular.z, twist.linear.x, twist.linear.y])
        if message.twist.covariance[0] == UNKNOWN:
            rates[:] = math.nan
        if i is not None:
            q[i : i + 3] = yaw(o), pose.position.x, pose.position.y
            v[self._turn : self._turn + 3] = rates
        return not np.isnan(rates).any()

    def _multi_dof(self, message: Any, q: np.ndarray, v: np.ndarray) -> bool:
        """Twists are in the axes of the body, as in nav_msgs/Odometry."""
        if self._scenario.from_bodies is None:
            raise RecordingError(f"the scenario {self._scenario.name!r} has no bodies in space")
        moving, names = len(message.twist) > 0, list(message.joint_names)
        if missing := [frame for frame in self._frames if frame not in names]:
            raise RecordingError(f"a state has the bodies {names}, without {missing}")
        bodies = []
        for frame in self._frames:
            i = names.index(frame)
            place, rotation = message.transforms[i].translation, message.transforms[i].rotation
            wxyz = np.array([rotation.w, rotation.x, rotation.y, rotation.z])
            linear, angular = np.full((2, 3), math.nan)
            if moving:
                linear, angular = _xyz(message.twist[i].linear), _xyz(message.twist[i].angular)
            velocity = quat2mat(wxyz) @ linear
            bodies.append(
                BodyState(frame, message.header.frame_id, _xyz(place), wxyz, velocity, angular)
            )
        configuration, velocity = self._scenario.from_bodies(bodies)
        q[: len(configuration)], v[: len(velocity)] = configuration, velocity
        return not np.isnan(velocity).any()

    # As messages carry it ------------------------------------------------------------------------

    def carried(self, parameters: Any, q: Vector, v: Vector) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and velocity as they are read from the messages of a plant with these
        physical parameters at q (nq) and v (nw), with the same bits.
        """
        q1, v1 = np.zeros(self._space.nq), np.zeros(self._space.nw)
        writers = {
            "joint_states": lambda: self._written_joints(q, v),
            "odom": lambda: self._written_odometry(q, v),
            "multi_dof_joint_states": lambda: self._written_bodies(parameters, q, v),
        }
        for topic in self.topics:
            self.read(topic, writers[topic](), q1, v1)
        return q1, v1

    def _written_joints(self, q: Vector, v: Vector) -> Any:
        places = self._joints.values()
        return SimpleNamespace(
            name=list(self._joints),
            position=[sign * q[coordinate] for coordinate, _, sign in places],
            velocity=[sign * v[rate] for _, rate, sign in places],
        )

    def _written_odometry(self, q: Vector, v: Vector) -> Any:
        i, j = self.heading or 0, self._turn
        half = q[i] / 2
        rotation = SimpleNamespace(x=0.0, y=0.0, z=math.sin(half), w=math.cos(half))
        twist = SimpleNamespace(angular=_vector(0, 0, v[j]), linear=_vector(v[j + 1], v[j + 2]))
        pose = SimpleNamespace(position=_vector(q[i + 1], q[i + 2]), orientation=rotation)
        return SimpleNamespace(
            pose=SimpleNamespace(pose=pose), twist=SimpleNamespace(twist=twist, covariance=[0.0])
        )

    def _written_bodies(self, parameters: Any, q: Vector, v: Vector) -> Any:
        to_bodies = self._scenario.to_bodies
        bodies = to_bodies(parameters, np.asarray(q), np.asarray(v)) if to_bodies else ()
        names, transforms, twists = [], [], []
        for body in bodies:
            w, x, y, z = body.quaternion_wxyz
            names.append(body.frame)
            transforms.append(
                SimpleNamespace(
                    translation=_vector(*body.position),
                    rotation=SimpleNamespace(w=w, x=x, y=y, z=z),
                )
            )
            linear = body.linear_velocity @ quat2mat(body.quaternion_wxyz)
            angular = body.angular_velocity_body
            twists.append(SimpleNamespace(linear=_vector(*linear), angular=_vector(*angular)))
        header = SimpleNamespace(frame_id="")
        return SimpleNamespace(
            header=header, joint_names=names, transforms=transforms, twist=twists
        )


def _xyz(message: Any) -> np.ndarray:
    return np.array([message.x, message.y, message.z])


def _vector(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(x=x, y=y, z=z)
