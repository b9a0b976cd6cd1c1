"""Goals and trajectories in messages: what is understood, and what is refused with which
reason.
"""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from geometry_msgs.msg import PoseStamped, Transform, Twist, Vector3  # noqa: E402
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint  # noqa: E402

from nh_control.ros.messages import conversions, goals  # noqa: E402

BODY = goals.Body("payload", "odom")
NOW = 10 * 10**9
H = 0.01


def goal(position=(1.0, 2.0, 3.0), frame="odom", stamp_s=0.0):
    """A goal message."""
    message = PoseStamped()
    message.header.frame_id = frame
    conversions.set_time(message.header.stamp, round(stamp_s * 1e9))
    conversions.set_xyz(message.pose.position, position)
    return message


def trajectory(
    times=(1.0, 2.0),
    positions=((1.0, 0.0, 1.0), (2.0, 0.0, 1.0)),
    velocities=None,
    frame="odom",
    stamp_s=0.0,
    joints=("payload",),
    times_of=(1, 1),
):
    """A trajectory message; its second point has so many transforms and velocities."""
    message = MultiDOFJointTrajectory(joint_names=list(joints))
    message.header.frame_id = frame
    conversions.set_time(message.header.stamp, round(stamp_s * 1e9))
    for k, (time_s, position) in enumerate(zip(times, positions)):
        point = MultiDOFJointTrajectoryPoint(
            transforms=[
                Transform(translation=Vector3(x=position[0], y=position[1], z=position[2]))
            ]
        )
        conversions.set_time(point.time_from_start, round(time_s * 1e9))
        if velocities is not None and velocities[k] is not None:
            point.velocities = [
                Twist(linear=Vector3(x=velocities[k][0], y=velocities[k][1], z=velocities[k][2]))
            ]
        message.points.append(point)
    for k, field in enumerate(("transforms", "velocities")):
        if message.points:
            last = message.points[-1]
            setattr(last, field, times_of[k] * getattr(last, field))
    return message


class Recorded:
    """A guidance that returns what it was asked."""

    def through_points(self, *asked):
        return asked


@pytest.mark.parametrize(
    ("given", "now", "place"),
    [
        ({}, NOW, [1.0, 2.0, 3.0]),
        ({"stamp_s": 9.8}, NOW, [1.0, 2.0, 3.0]),
        ({"stamp_s": 10.1}, NOW, [1.0, 2.0, 3.0]),
        ({"position": (1.0, 2.0, 0.0)}, NOW, [1.0, 2.0, 5.0]),  # in the plane: at its height
        # stamps of another clock mean now, as those of rviz without simulation time
        ({"stamp_s": 1.8e9}, NOW, [1.0, 2.0, 3.0]),
        ({"stamp_s": 5.0}, 10**18 + NOW, [1.0, 2.0, 3.0]),
        ({"stamp_s": 15.0}, 10**18 + NOW, [1.0, 2.0, 3.0]),
    ],
)
def test_a_goal_is_its_position_now_or_at_stamp_zero(given, now, place):
    assert goals.goal(goal(**given), BODY, now, height=5.0).tolist() == place


@pytest.mark.parametrize(
    ("stamp_s", "now", "times"),
    [
        (0.0, NOW, [1.0, 2.0]),
        (12.5, NOW, [2.5, 3.5]),
        (1.8e9, NOW, [1.0, 2.0]),
        (5.0, 10**18 + NOW, [1.0, 2.0]),
        (15.0, 10**18 + NOW, [1.0, 2.0]),
    ],
)
def test_times_of_a_trajectory_count_from_its_stamp_or_from_its_start(stamp_s, now, times):
    message = trajectory(stamp_s=stamp_s)
    asked = goals.trajectory(message, BODY, now, H)(Recorded(), 100, 1100)
    assert asked[0] == 100 and asked[3] is None
    np.testing.assert_allclose(asked[1], times)
    np.testing.assert_array_equal(asked[2], [[1.0, 0.0, 1.0], [2.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (goal(frame="map"), "in the frame 'map'; expected 'odom'"),
        (goal(frame=""), "in the frame ''; expected 'odom'"),
        (goal((math.nan, 0.0, 1.0)), "not finite"),
        (goal((0.0, math.inf, 1.0)), "not finite"),
        (goal(stamp_s=5.0), "stamped 5 s in the past: send it with the present simulation time"),
        (goal(stamp_s=500.0), "in the future"),
    ],
)
def test_goals_are_refused(message, text):
    with pytest.raises(conversions.ConversionError, match=text):
        goals.goal(message, BODY, NOW, height=1.0)


def test_velocities_are_passed_on():
    given = ((0.1, 0.2, 0.3), (0.0, 0.0, 0.0))
    plan = goals.trajectory(trajectory(velocities=given), BODY, NOW, H)
    np.testing.assert_array_equal(plan(Recorded(), 100, 1100)[3], given)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (trajectory(frame="map"), "in the frame 'map'"),
        (trajectory(joints=("quad1",)), "joint_names are .'quad1'.; expected .'payload'."),
        (trajectory(joints=()), "joint_names are"),
        (trajectory(joints=("payload", "quad1")), "joint_names are .'payload', 'quad1'."),
        (trajectory(times_of=(0, 1)), "point 1 has 0 times a translation"),
        (trajectory(times_of=(2, 1)), "point 1 has 2 times a translation"),
        (trajectory(velocities=2 * ((0.0,) * 3,), times_of=(1, 2)), "has 2 times a velocity"),
        (trajectory(times=()), "no points"),
        (trajectory(stamp_s=9.0), "stamped 1 s in the past"),
        (trajectory(times=(1.0, 1.0)), "must increase from 0 or later"),
        (trajectory(times=(2.0, 1.0)), "must increase from 0 or later"),
        (trajectory(times=(-0.5, 1.0)), "must increase from 0 or later"),
        (
            trajectory(positions=((math.nan, 0.0, 0.0), (0.0, 0.0, 0.0))),
            "point 0 has a translation that is not finite",
        ),
        (
            trajectory(velocities=((0.0, 0.0, 0.0), (0.0, math.nan, 0.0))),
            "point 1 has a velocity that is not finite",
        ),
        (trajectory(velocities=((0.0, 0.0, 0.0), None)), "point 1 has 0 times a velocity"),
    ],
)
def test_trajectories_are_refused(message, text):
    with pytest.raises(conversions.ConversionError, match=text):
        goals.trajectory(message, BODY, NOW, H)


def test_a_trajectory_that_is_due_before_it_can_start_is_refused():
    plan = goals.trajectory(trajectory(stamp_s=10.0), BODY, NOW, H)
    assert plan(Recorded(), 99, 1099)[1][0] == pytest.approx(0.01)
    with pytest.raises(conversions.ConversionError, match=r"first point.* 11\.000 s.* 11\.010 s"):
        plan(Recorded(), 1, 1101)
