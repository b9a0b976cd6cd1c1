"""Checks goals and trajectories from other nodes, and converts them to plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage
from trajectory_msgs.msg import MultiDOFJointTrajectory

from nh_control.control.joint_trajectory import JointTrajectory
from nh_control.loop.clocks import NANOSECONDS, OTHER_CLOCK_NS
from nh_control.loop.reports import Refusal, shortened
from nh_control.loop.wire_format import yaw
from nh_control.ros.messages import conversions
from nh_control.ros.messages.conversions import ConversionError
from nh_control.scenarios.guidance import Guidance
from nh_control.scenarios.payload_guidance import LONGEST_S

GOAL_AGE_S = 1.0
"""Maximum difference between a goal's stamp and the current time of the states."""


@dataclass(frozen=True)
class GoalBody:
    """The body that goals and trajectories move: its frame `name`, and the frame `parent` of the
    poses.
    """

    name: str
    parent: str


def goal(message: PoseStamped, body: GoalBody, now_ns: int, height: float) -> np.ndarray:
    """A goal's position (3) in m. If z = 0, as in rviz's 2D goals, z becomes `height`. The
    orientation is ignored.

    Raises ConversionError for another frame, for a position that is not finite, and for a stamp
    that differs from the current time by more than GOAL_AGE_S. Stamps that are 0 or come from
    another clock are accepted.
    """
    _require_frame(message, body)
    stamp = _stamp(message, now_ns)
    age_s = (now_ns - stamp) / NANOSECONDS
    if stamp and abs(age_s) > GOAL_AGE_S:
        when = f"{age_s:.3g} s in the past" if age_s > 0 else f"{-age_s:.3g} s in the future"
        raise ConversionError(
            Refusal.STAMP,
            f"stamped {when}: send it with the present simulation time (use_sim_time), or with "
            f"stamp 0",
        )
    position = conversions.xyz(message.pose.position)
    finite = bool(np.isfinite(position).all())
    _require(finite, Refusal.NOT_FINITE, f"position {position.tolist()} is not finite")
    return np.array([*position[:2], position[2] or height])


def planar_goal(message: PoseStamped, body: GoalBody, now_ns: int) -> np.ndarray:
    """Pose (theta, x, y) of a goal in the plane. Its z and tilt are ignored.

    Raises ConversionError as `goal` does, and for an orientation that is not a unit quaternion.
    """
    x, y, _ = goal(message, body, now_ns, height=0.0)
    conversions.unit_wxyz(message.pose.orientation, "the goal")
    return np.array([yaw(conversions.wxyz(message.pose.orientation).tolist()), x, y])


def velocity_command(
    message: Twist | TwistStamped, body: GoalBody, now_ns: int, timeout_s: float
) -> tuple[float, float]:
    """Forward speed (m/s) and yaw rate (rad/s) in a command. Other components are ignored.

    Raises ConversionError for a frame that is neither empty nor the body's, for numbers that are
    not finite, and for stamps older than `timeout_s`, unless that is 0. Stamps that are 0 or come
    from another clock are accepted.
    """
    # a Twist has neither frame nor stamp
    twist = message
    if isinstance(message, TwistStamped):
        twist, frame = message.twist, message.header.frame_id
        text = f"in the frame {frame[:60]!r}; expected {body.name!r} or no frame"
        _require(frame in ("", body.name), Refusal.FRAME, text)
        stamp = _stamp(message, now_ns)
        age_s = (now_ns - stamp) / NANOSECONDS
        text = f"stamped {age_s:.3g} s in the past; it is valid for {timeout_s:g} s"
        _require(not (stamp and timeout_s) or age_s <= timeout_s, Refusal.STAMP, text)
    command = float(twist.linear.x), float(twist.angular.z)
    text = f"linear.x and angular.z are {list(command)}, not finite"
    _require(bool(np.isfinite(command).all()), Refusal.NOT_FINITE, text)
    return command


def trajectory(
    message: MultiDOFJointTrajectory, body: GoalBody, now_ns: int, h: float
) -> Callable[[Guidance, int, int], Guidance]:
    """The plan for a trajectory of the body. It is a function of a guidance, the guidance's step,
    and the step of the run at which the motion starts. If the stamp is 0 or comes from another
    clock, times count from the beginning of the motion.

    Positions and any velocities are used, in the parent frame's axes. Orientations and
    accelerations are ignored. Raises ConversionError for another frame or body, for a stamp in the
    past, for numbers that are missing or not finite, and for times that are negative or do not
    increase. The plan raises the same error if its first point is due before the motion can start.
    """
    _require_frame(message, body)
    # a refusal's message quotes only the first names
    names = shortened(message.joint_names)
    named = list(message.joint_names) == [body.name]
    _require(named, Refusal.NAMES, f"joint_names are {names}; expected [{body.name!r}]")
    _require(bool(message.points), Refusal.LENGTH, "no points")
    stamp = _stamp(message, now_ns)
    _require_not_past(stamp, now_ns)
    times = np.array(
        [conversions.nanoseconds(point.time_from_start) / NANOSECONDS for point in message.points]
    )
    _require_increasing(times)
    positions = np.array(
        [
            _vector(point.transforms, "translation", k, "translation")
            for k, point in enumerate(message.points)
        ]
    )
    # velocities are optional, but all points or none must have them
    velocities = None
    if any(point.velocities for point in message.points):
        velocities = np.array(
            [
                _vector(point.velocities, "linear", k, "velocity")
                for k, point in enumerate(message.points)
            ]
        )

    def plan(guidance: Guidance, k: int, start: int) -> Guidance:
        # times relative to the beginning of the motion: t_i + stamp - start h
        due = times + stamp / NANOSECONDS - start * h if stamp else times
        if due[0] < 0:
            raise ConversionError(
                Refusal.STAMP,
                f"its first point is due at t = {start * h + due[0]:.3f} s, but no change is "
                f"possible before t = {start * h:.3f} s",
            )
        return guidance.through_points(k, due, positions, velocities)

    return plan


def joint_trajectory(
    message: JointTrajectoryMessage, joints: Sequence[str], now_ns: int
) -> tuple[JointTrajectory, int]:
    """A joint trajectory, and the stamp (ns) from which its times count. The stamp is 0 if the
    message has no stamp or a stamp from another clock. Efforts and the frame are ignored.

    Raises ConversionError for other joints, a stamp in the past, numbers that are missing or not
    finite, times that do not increase, a last point with nonzero velocity, and durations above
    LONGEST_S.
    """
    names = list(message.joint_names)
    text = f"joint_names are {shortened(names)}; expected {shortened(joints)}, each once"
    _require(sorted(names) == sorted(joints), Refusal.NAMES, text)
    _require(bool(message.points), Refusal.LENGTH, "no points")
    stamp = _stamp(message, now_ns)
    _require_not_past(stamp, now_ns)
    times = [
        conversions.nanoseconds(point.time_from_start) / NANOSECONDS for point in message.points
    ]
    _require_increasing(np.array(times))
    _require(
        0 < times[-1] <= LONGEST_S,
        Refusal.STAMP,
        f"it lasts {times[-1]:g} s, expected more than 0 and at most {LONGEST_S:g} s: send longer "
        "motions in parts",
    )
    for k, point in enumerate(message.points):
        # efforts are not checked, because they are ignored
        values = [*point.positions, *point.velocities, *point.accelerations]
        finite = bool(np.isfinite(values).all())
        _require(finite, Refusal.NOT_FINITE, f"point {k} has numbers that are not finite")
    try:
        return JointTrajectory.from_message(message), stamp
    except ValueError as error:
        raise ConversionError(Refusal.LENGTH, str(error)) from error


def _require_not_past(stamp: int, now_ns: int) -> None:
    _require(
        not 0 < stamp < now_ns,
        Refusal.STAMP,
        f"stamped {(now_ns - stamp) / NANOSECONDS:.3g} s in the past: the stamp must be the "
        f"simulation time at which the motion starts, or 0",
    )


def _require_increasing(times: np.ndarray) -> None:
    _require(
        times[0] >= 0 and bool((np.diff(times) > 0).all()),
        Refusal.STAMP,
        f"times_from_start must increase and not be negative, got {shortened(times.tolist())} s",
    )


def _stamp(
    message: PoseStamped | TwistStamped | MultiDOFJointTrajectory | JointTrajectoryMessage,
    now_ns: int,
) -> int:
    """Stamp in ns. A stamp from another clock becomes 0, which means now."""
    stamp = conversions.nanoseconds(message.header.stamp)
    return stamp if abs(stamp - now_ns) <= OTHER_CLOCK_NS else 0


def _vector(parts: Sequence[Any], field: str, point: int, what: str) -> np.ndarray:
    """The vector in a point's only transform or twist."""
    if len(parts) != 1:
        raise ConversionError(
            Refusal.LENGTH,
            f"point {point}: expected one {what}, got {len(parts)}; velocities may be left out in "
            f"all points",
        )
    value = conversions.xyz(getattr(parts[0], field))
    if not np.isfinite(value).all():
        raise ConversionError(
            Refusal.NOT_FINITE, f"point {point} has a {what} that is not finite: {value.tolist()}"
        )
    return value


def _require_frame(message: PoseStamped | MultiDOFJointTrajectory, body: GoalBody) -> None:
    frame = message.header.frame_id
    text = f"in the frame {frame[:60]!r}; expected {body.parent!r}"
    _require(frame == body.parent, Refusal.FRAME, text)


def _require(condition: bool, kind: Refusal, reason: str) -> None:
    if not condition:
        raise ConversionError(kind, reason)
