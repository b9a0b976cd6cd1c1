"""Goals and trajectories of other nodes: checked and converted to plain numbers."""

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
"""Largest difference of a goal's stamp from the present time of the states."""


@dataclass(frozen=True)
class Body:
    """The body of goals and trajectories, `name` in the frame `parent`."""

    name: str
    parent: str


def goal(message: PoseStamped, body: Body, now_ns: int, height: float) -> np.ndarray:
    """Position (3) in m of a goal; z = 0, which rviz's 2D goals have, stands for `height`.
    Orientations are ignored.

    Raises ConversionError for another frame, a position that is not finite, and a stamp of another
    time than the present; stamps of 0 or of another clock are accepted.
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


def planar_goal(message: PoseStamped, body: Body, now_ns: int) -> np.ndarray:
    """Pose (theta, x, y) of a goal in the plane; z and tilt are ignored.

    Raises ConversionError as `goal` does, and for an orientation that is no unit quaternion.
    """
    x, y, _ = goal(message, body, now_ns, height=0.0)
    conversions.unit_wxyz(message.pose.orientation, "the goal")
    return np.array([yaw(conversions.wxyz(message.pose.orientation).tolist()), x, y])


def velocity_command(
    message: Twist | TwistStamped, body: Body, now_ns: int, timeout_s: float
) -> tuple[float, float]:
    """Forward speed (m/s) and yaw rate (rad/s) of a command; other components are ignored.

    Raises ConversionError for a frame other than the body's or none, for numbers that are not
    finite, and for stamps older than `timeout_s`, unless that is 0; stamps of 0 or of another
    clock are accepted.
    """
    twist = message
    if isinstance(message, TwistStamped):
        twist, frame = message.twist, message.header.frame_id
        text = f"in the frame {frame[:60]!r}; expected {body.name!r} or none"
        _require(frame in ("", body.name), Refusal.FRAME, text)
        stamp = _stamp(message, now_ns)
        age_s = (now_ns - stamp) / NANOSECONDS
        text = f"stamped {age_s:.3g} s in the past; it counts for {timeout_s:g} s"
        _require(not (stamp and timeout_s) or age_s <= timeout_s, Refusal.STAMP, text)
    command = float(twist.linear.x), float(twist.angular.z)
    text = f"linear.x and angular.z are {list(command)}, not finite"
    _require(bool(np.isfinite(command).all()), Refusal.NOT_FINITE, text)
    return command


def trajectory(
    message: MultiDOFJointTrajectory, body: Body, now_ns: int, h: float
) -> Callable[[Guidance, int, int], Guidance]:
    """The plan of a trajectory of the body: a function of a guidance, its step, and the step of
    the run at which the motion starts. With stamp 0, or a stamp of another clock, times count from
    that start.

    Positions and, if there are any, velocities are used, in the parent frame's axes; orientations
    and accelerations are ignored. Raises ConversionError for another frame or body, a stamp in the
    past, numbers that are missing or not finite, and times that do not increase from 0 or later;
    the plan raises it if its first point is due before the motion can start.
    """
    _require_frame(message, body)
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
    velocities = None
    if any(point.velocities for point in message.points):
        velocities = np.array(
            [
                _vector(point.velocities, "linear", k, "velocity")
                for k, point in enumerate(message.points)
            ]
        )

    def plan(guidance: Guidance, k: int, start: int) -> Guidance:
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
    """A trajectory of the joints, and the stamp (ns) from which its times count, 0 for none or one
    of another clock. Efforts and the frame are ignored.

    Raises ConversionError for other joints, a stamp in the past, numbers that are missing or not
    finite, times that do not increase, an end in motion, and more than LONGEST_S.
    """
    names = list(message.joint_names)
    text = f"joint_names are {shortened(names)}; expected {shortened(joints)}, each once"
    _require(sorted(names) == sorted(joints), Refusal.NAMES, text)
    _require(bool(message.points), Refusal.LENGTH, "no points")
    stamp = _stamp(message, now_ns)
    _require_not_past(stamp, now_ns)
    times = [conversions.nanoseconds(p.time_from_start) / NANOSECONDS for p in message.points]
    _require_increasing(np.array(times))
    _require(
        0 < times[-1] <= LONGEST_S,
        Refusal.STAMP,
        f"it lasts {times[-1]:g} s, expected more than 0 and at most {LONGEST_S:g} s: send it in "
        "parts",
    )
    for k, point in enumerate(message.points):
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
        f"stamped {(now_ns - stamp) / NANOSECONDS:.3g} s in the past: give the simulation time at "
        f"which it is to start, or stamp 0",
    )


def _require_increasing(times: np.ndarray) -> None:
    _require(
        times[0] >= 0 and bool((np.diff(times) > 0).all()),
        Refusal.STAMP,
        f"times_from_start must increase from 0 or later, got {shortened(times.tolist())} s",
    )


def _stamp(
    message: PoseStamped | TwistStamped | MultiDOFJointTrajectory | JointTrajectoryMessage,
    now_ns: int,
) -> int:
    """Stamp in ns; 0, which means now, for a stamp of another clock."""
    stamp = conversions.nanoseconds(message.header.stamp)
    return stamp if abs(stamp - now_ns) <= OTHER_CLOCK_NS else 0


def _vector(parts: Sequence[Any], field: str, point: int, what: str) -> np.ndarray:
    """The vector of the only transform or twist of a point."""
    if len(parts) != 1:
        raise ConversionError(
            Refusal.LENGTH,
            f"point {point} has {len(parts)} times a {what}; expected one in every point "
            f"or, of velocities, in none",
        )
    value = conversions.xyz(getattr(parts[0], field))
    if not np.isfinite(value).all():
        raise ConversionError(
            Refusal.NOT_FINITE, f"point {point} has a {what} that is not finite: {value.tolist()}"
        )
    return value


def _require_frame(message: PoseStamped | MultiDOFJointTrajectory, body: Body) -> None:
    frame = message.header.frame_id
    text = f"in the frame {frame[:60]!r}; expected {body.parent!r}"
    _require(frame == body.parent, Refusal.FRAME, text)


def _require(condition: bool, kind: Refusal, reason: str) -> None:
    if not condition:
        raise ConversionError(kind, reason)
