"""How goals, trajectories and velocity commands are read, and which are refused."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, Transform, Twist, TwistStamped, Vector3
from trajectory_msgs.msg import (
    JointTrajectory,
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
    MultiDOFJointTrajectoryPoint,
)

from nh_control.loop.reports import Refusal
from nh_control.loop.wire_format import yaw_wxyz
from nh_control.ros.messages import conversions, goals

BODY, VEHICLE = goals.Body("payload", "odom"), goals.Body("base_link", "odom")
JOINTS = "shoulder", "elbow"
NOW, ANOTHER_CLOCK = 10 * 10**9, 10**18 + 10 * 10**9
H, TIMEOUT_S = 0.01, 0.5
NAN = math.nan


def stamped(message, stamp_s, frame=""):
    conversions.set_time(message.header.stamp, round(stamp_s * 1e9))
    message.header.frame_id = frame
    return message


def goal(position=(1.0, 2.0, 3.0), frame="odom", stamp_s=0.0, wxyz=(1.0, 0.0, 0.0, 0.0)):
    message = stamped(PoseStamped(), stamp_s, frame)
    conversions.set_xyz(message.pose.position, position)
    conversions.set_wxyz(message.pose.orientation, wxyz)
    return message


def trajectory(
    times=(1.0, 2.0), positions=((1.0, 0.0, 1.0), (2.0, 0.0, 1.0)), velocities=((), ()),
    frame="odom", stamp_s=0.0, joints=("payload",),
):  # fmt: skip
    """A trajectory message of a body; a point has a velocity unless that is empty."""
    message = MultiDOFJointTrajectory(joint_names=list(joints))
    vector = lambda values: Vector3(**dict(zip("xyz", map(float, values))))
    for time_s, position, velocity in zip(times, positions, velocities):
        point = MultiDOFJointTrajectoryPoint(transforms=[Transform(translation=vector(position))])
        conversions.set_time(point.time_from_start, round(time_s * 1e9))
        point.velocities = [Twist(linear=vector(velocity))] if velocity else []
        message.points.append(point)
    return stamped(message, stamp_s, frame)


def with_parts(field, count):
    """A trajectory whose last point has a number of transforms or velocities."""
    message = trajectory(velocities=2 * ((0.0, 0.0, 0.0),))
    setattr(message.points[-1], field, count * getattr(message.points[-1], field))
    return message


def joint_trajectory(
    times=(1.0, 2.0), positions=((0.1, 0.2), (0.3, 0.4)), names=JOINTS, stamp_s=0.0, **more
):
    message = JointTrajectory(joint_names=list(names))
    for k, (time_s, position) in enumerate(zip(times, positions)):
        others = {field: list(map(float, rows[k])) for field, rows in more.items()}
        point = JointTrajectoryPoint(positions=list(map(float, position)), **others)
        conversions.set_time(point.time_from_start, round(time_s * 1e9))
        message.points.append(point)
    return stamped(message, stamp_s)


def command(forward=0.5, turn=0.0, frame="", stamp_s=0.0):
    message = stamped(TwistStamped(), stamp_s, frame)
    message.twist.linear.x, message.twist.angular.z = forward, turn
    return message


def read(message, now=NOW):
    if isinstance(message, JointTrajectory):
        return goals.joint_trajectory(message, JOINTS, now)
    if isinstance(message, MultiDOFJointTrajectory):
        return goals.trajectory(message, BODY, now, H)
    if isinstance(message, PoseStamped):
        return goals.goal(message, BODY, now, height=5.0)
    return goals.velocity_command(message, VEHICLE, now, TIMEOUT_S)


class Recorded:
    """A guidance that returns what it was asked."""

    def through_points(self, *asked):
        return asked


@pytest.mark.parametrize(
    ("message", "now", "place"),
    [
        (goal(), NOW, [1.0, 2.0, 3.0]),
        (goal(stamp_s=9.8), NOW, [1.0, 2.0, 3.0]),
        (goal(stamp_s=10.1), NOW, [1.0, 2.0, 3.0]),
        (goal((1.0, 2.0, 0.0)), NOW, [1.0, 2.0, 5.0]),  # in the plane: at its height
        # stamps of another clock mean now, as those of rviz without simulation time
        (goal(stamp_s=1.8e9), NOW, [1.0, 2.0, 3.0]),
        (goal(stamp_s=15.0), ANOTHER_CLOCK, [1.0, 2.0, 3.0]),
        (command(0.5, -0.2), NOW, [0.5, -0.2]),
        (command(0.5, -0.2).twist, NOW, [0.5, -0.2]),
        (command(frame="base_link", stamp_s=9.6), NOW, [0.5, 0.0]),
        (command(stamp_s=1.7e9), NOW, [0.5, 0.0]),
    ],
)
def test_a_goal_is_its_position_and_a_command_its_speeds(message, now, place):
    assert list(read(message, now)) == place


def test_a_goal_in_the_plane_has_a_heading():
    message = goal((1.0, 0.5, 0.0), wxyz=yaw_wxyz(0.3))
    np.testing.assert_allclose(goals.planar_goal(message, VEHICLE, NOW), [0.3, 1.0, 0.5])


@pytest.mark.parametrize(
    ("stamp_s", "now", "times"),
    [
        (0.0, NOW, [1.0, 2.0]),
        (12.5, NOW, [2.5, 3.5]),
        (1.8e9, NOW, [1.0, 2.0]),
        (15.0, ANOTHER_CLOCK, [1.0, 2.0]),
    ],
)
def test_times_of_a_trajectory_count_from_its_stamp_or_from_its_start(stamp_s, now, times):
    velocities = ((0.1, 0.2, 0.3), (0.0, 0.0, 0.0))
    plans = [read(trajectory(stamp_s=stamp_s, velocities=v), now) for v in (((), ()), velocities)]
    still, moving = (plan(Recorded(), 100, 1100) for plan in plans)
    assert still[0] == 100 and still[3] is None
    np.testing.assert_allclose(still[1], times)
    np.testing.assert_array_equal(still[2], [[1.0, 0.0, 1.0], [2.0, 0.0, 1.0]])
    np.testing.assert_array_equal(moving[3], velocities)


def test_a_trajectory_of_joints_has_its_stamp():
    message = joint_trajectory(
        names=("elbow", "shoulder"), stamp_s=11.0, velocities=((1, 2), (0, 0))
    )
    found, stamp = read(message)
    assert stamp == 11 * 10**9 and found.names == ("elbow", "shoulder")
    assert found.velocities.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert read(joint_trajectory(stamp_s=1.7e9))[1] == 0  # of another clock


REFUSED = [
    (goal(frame="map"), Refusal.FRAME, "in the frame 'map'; expected 'odom'"),
    (goal((NAN, 0.0, 1.0)), Refusal.NOT_FINITE, "not finite"),
    (goal(stamp_s=5.0), Refusal.STAMP, "stamped 5 s in the past: send it with the present"),
    (goal(stamp_s=500.0), Refusal.STAMP, "in the future"),
    (command(math.inf), Refusal.NOT_FINITE, "not finite"),
    (command(frame="map"), Refusal.FRAME, "expected 'base_link' or none"),
    (command(stamp_s=9.4), Refusal.STAMP, "in the past"),
    (trajectory(frame="map"), Refusal.FRAME, "in the frame 'map'"),
    (trajectory(joints=()), Refusal.NAMES, "joint_names are"),
    (trajectory(joints=("payload", "quad1")), Refusal.NAMES, "are .'payload', 'quad1'.; expected"),
    (with_parts("transforms", 0), Refusal.LENGTH, "point 1 has 0 times a translation"),
    (with_parts("transforms", 2), Refusal.LENGTH, "point 1 has 2 times a translation"),
    (with_parts("velocities", 0), Refusal.LENGTH, "point 1 has 0 times a velocity"),
    (with_parts("velocities", 2), Refusal.LENGTH, "point 1 has 2 times a velocity"),
    (trajectory(times=()), Refusal.LENGTH, "no points"),
    (trajectory(stamp_s=9.0), Refusal.STAMP, "stamped 1 s in the past"),
    (trajectory(times=(1.0, 1.0)), Refusal.STAMP, "must increase from 0 or later"),
    (trajectory(times=(-0.5, 1.0)), Refusal.STAMP, "must increase from 0 or later"),
    (trajectory(positions=2 * ((NAN, 0, 0),)), Refusal.NOT_FINITE, "point 0 has a translation"),
    (trajectory(velocities=2 * ((0, NAN, 0),)), Refusal.NOT_FINITE, "point 0 has a velocity"),
    (joint_trajectory(names=("shoulder", "wrist")), Refusal.NAMES, "expected .*'elbow'"),
    (joint_trajectory(names=("shoulder", "shoulder")), Refusal.NAMES, "each once"),
    (joint_trajectory(times=()), Refusal.LENGTH, "no points"),
    (joint_trajectory(stamp_s=9.0), Refusal.STAMP, "1 s in the past"),
    (joint_trajectory(times=(2.0, 1.0)), Refusal.STAMP, "must increase"),
    (joint_trajectory(times=(1.0, 400.0)), Refusal.STAMP, "at most 300 s"),
    (joint_trajectory(times=(0.0,)), Refusal.STAMP, "more than 0"),
    (joint_trajectory(positions=((0.1, NAN), (0, 0))), Refusal.NOT_FINITE, "point 0"),
    (joint_trajectory(positions=((0.1,), (0.3,))), Refusal.LENGTH, "expected 2 positions"),
    (joint_trajectory(velocities=((0, 0), (1, 0))), Refusal.LENGTH, "ends at rest"),
]


@pytest.mark.parametrize(("message", "kind", "words"), REFUSED)
def test_messages_that_cannot_be_followed_are_refused(message, kind, words):
    with pytest.raises(conversions.ConversionError, match=words) as refused:
        read(message)
    assert refused.value.kind is kind


def test_a_goal_without_an_orientation_has_no_heading():
    with pytest.raises(conversions.ConversionError) as refused:
        goals.planar_goal(goal(wxyz=[0.0] * 4), VEHICLE, NOW)
    assert refused.value.kind is Refusal.ORIENTATION


def test_a_trajectory_that_is_due_before_it_can_start_is_refused():
    plan = read(trajectory(stamp_s=10.0))
    assert plan(Recorded(), 99, 1099)[1][0] == pytest.approx(0.01)
    with pytest.raises(conversions.ConversionError, match=r"first point.* 11\.000 s.* 11\.010 s"):
        plan(Recorded(), 1, 1101)
