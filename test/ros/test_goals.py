"""How goals, trajectories and velocity commands are read, and which are refused."""

import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from bench import Desk, benches
from geometry_msgs.msg import PoseStamped, Transform, Twist, TwistStamped, Vector3
from goal_observer import Observer
from std_msgs.msg import Header
from trajectory_msgs.msg import (
    JointTrajectory,
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
    MultiDOFJointTrajectoryPoint,
)

from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal
from nh_control.loop.tracker_report import TrackerReport
from nh_control.loop.wire_format import yaw_wxyz
from nh_control.ros.messages import conversions, goals
from nh_control.ros.messages.goal_actions import FollowJoints
from nh_control.ros.messages.joint_goals import JointGoals
from nh_control.ros.messages.motion_requests import RequestContext
from nh_control.ros.messages.vehicle_goals import CommandOptions, VehicleGoals
from nh_control.scenarios import get
from nh_control.scenarios.vehicle_guidance import VehicleGuidance

BODY, VEHICLE = goals.GoalBody("payload", "odom"), goals.GoalBody("base_link", "odom")
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
    (command(frame="map"), Refusal.FRAME, "expected 'base_link' or no frame"),
    (command(stamp_s=9.4), Refusal.STAMP, "in the past"),
    (trajectory(frame="map"), Refusal.FRAME, "in the frame 'map'"),
    (trajectory(joints=()), Refusal.NAMES, "joint_names are"),
    (trajectory(joints=("payload", "quad1")), Refusal.NAMES, "are .'payload', 'quad1'.; expected"),
    (with_parts("transforms", 0), Refusal.LENGTH, "point 1: expected one translation, got 0"),
    (with_parts("transforms", 2), Refusal.LENGTH, "point 1: expected one translation, got 2"),
    (with_parts("velocities", 0), Refusal.LENGTH, "point 1: expected one velocity, got 0"),
    (with_parts("velocities", 2), Refusal.LENGTH, "point 1: expected one velocity, got 2"),
    (trajectory(times=()), Refusal.LENGTH, "no points"),
    (trajectory(stamp_s=9.0), Refusal.STAMP, "stamped 1 s in the past"),
    (trajectory(times=(1.0, 1.0)), Refusal.STAMP, "must increase and not be negative"),
    (trajectory(times=(-0.5, 1.0)), Refusal.STAMP, "must increase and not be negative"),
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
    (joint_trajectory(velocities=((0, 0), (1, 0))), Refusal.LENGTH, "must end at rest"),
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


# Legs for joints and vehicles --------------------------------------------------------------------


@cache
def loop(name, reference=""):
    scenario = get(name)
    model = scenario.model()
    return scenario, model, scenario.tracker(model, scenario.reference(model, reference))


class Requests:
    """The requests of a tracker whose node talks to nobody."""

    def __init__(self, node, scenario, model, tracker):
        self.now, self.desk, self.posted, self.model = NOW, Desk(), [], model
        self.desk.post = self.posted.append
        self.sequence, self.report = ReferenceSequence(tracker), TrackerReport(scenario, model)
        self.context = RequestContext(
            node, self.desk, self.sequence, self.report, lambda: self.now
        )

    def settle(self):
        while True:
            self.goals._replanner._executor.submit(lambda: None).result(60)
            if not self.posted:
                return
            while self.posted:
                self.posted.pop(0)()

    def is_at(self, k, x):
        self.sequence.step = k
        self.report.add_command(k, x, x, self.last.tracker.command(0, x), 0)

    @property
    def last(self):
        return self.sequence.leg(10**6)

    def refused(self, *kinds):
        values = self.report.make().values
        return [values[f"goals refused: {kind.value}"] for kind in kinds]


class Arm(Requests):
    """Goals of an arm's joints."""

    def __init__(self, node):
        super().__init__(node, *loop("urdf"))
        self.goals = JointGoals(self.context, get("urdf").joints)

    def ask(self, *given, **more):
        observer = Observer()
        self.goals.trajectory(joint_trajectory(*given, **more), observer)
        self.settle()
        return observer.heard


def place(x=1.0, frame="odom", y=0.5):
    return goal((x, y, 0.0), frame, wxyz=yaw_wxyz(0.3))


class Vehicle(Requests):
    """Goals and commands of a vehicle that stands."""

    def __init__(self, node, stamped=True, timeout_s=TIMEOUT_S):
        scenario, model, tracker = loop("differential_drive", "standstill")
        super().__init__(node, scenario, model, tracker)
        self.shown = []
        paths = SimpleNamespace(
            body=VEHICLE, message=lambda *_: "path", publish=self.shown.append, pose=lambda x: x
        )
        guidance = VehicleGuidance(model, scenario.drive)
        self.goals = VehicleGoals(
            self.context, paths, guidance, CommandOptions(stamped, timeout_s)
        )

    def command(self, *values, **options):
        self.desk.give("cmd_vel", command(*values, **options))

    def speed(self, k):
        return self.model.velocity(self.sequence.target(k))[[-2, -3]]

    def renew(self, k):
        """At a step, a command that counts until the next one is planned again."""
        self.sequence.step = k
        self.goals.renew()
        self.settle()


@pytest.fixture
def make():
    """Makes requests: f(kind, **options); all end."""
    made = []
    with benches() as bench:
        yield lambda kind, **given: made.append(kind(bench("tracker"), **given)) or made[-1]
        for one in made:
            one.goals.close()


@pytest.fixture
def arm(make):
    return make(Arm)


@pytest.fixture
def vehicle(make):
    return make(Vehicle)


# Joints ------------------------------------------------------------------------------------------


def follow(arm, steps):
    states = [loop("urdf")[2].reference.states[0]]
    for _ in range(steps):
        u = arm.sequence.command(arm.sequence.step, states[-1]).u
        states.append(arm.model.step(states[-1], u))
        arm.sequence.step += 1
    return np.array(states)


def test_a_trajectory_is_followed_from_the_present_reference_on(arm):
    assert list(arm.desk.subscribed) == ["joint_trajectory"]
    ((start, end),) = heard = arm.ask()
    assert start == 200 and end == start + 404  # a second ahead
    x = follow(arm, end + 10)
    np.testing.assert_allclose(x[-1][:2], [0.3, 0.4], atol=1e-9)
    np.testing.assert_allclose(x[start + 200][:2], [0.1, 0.2], atol=1e-6)
    assert np.abs(np.diff(arm.model.velocity(x), axis=0)).max() < 0.05
    again = arm.ask(times=(0.5,), positions=((0.0, 0.0),))
    assert again[0][0] > end and "replaced by" in heard[-1][1]
    arm.sequence.step = again[0][0] + 20  # it stops where it is
    arm.goals.stop()
    arm.settle()
    stop = arm.last.tracker.reference
    assert np.abs(arm.model.velocity(stop.states[0])).max() > 0.05
    assert np.abs(arm.model.velocity(stop.states[-1])).max() < 1e-9


def test_times_count_from_a_stamp(arm):
    arm.now = 0
    assert arm.ask(stamp_s=0.5)[0][1] == 504  # it starts after a second
    follow(arm, 300)
    late = arm.ask(times=(0.1, 0.9), stamp_s=0.5)
    assert "no change is possible before" in late[0][1]


def test_motions_beyond_the_limits_and_other_joints_are_refused(arm):
    for given, kind in (
        ({"positions": ((0, 2.0), (0, 5.0))}, Refusal.MODEL),
        ({"times": (0.01,), "positions": ((1.0, 1.0),)}, Refusal.MODEL),
        ({"names": ("a", "b")}, Refusal.NAMES),
    ):
        assert arm.ask(**given)[0][0] is kind
    assert arm.refused(Refusal.MODEL, Refusal.NAMES) == [2, 1]


def test_the_action_tells_desired_and_actual_positions(arm):
    arm.is_at(0, arm.model.state([0.1, -0.2], [0, 0]))
    feedback = SimpleNamespace(header=Header())
    request = SimpleNamespace(begin=0, time_ns=lambda begin, step: 0)
    FollowJoints().fill_feedback(feedback, request, arm.goals.progress())
    assert feedback.joint_names == ["shoulder", "elbow"]
    assert list(feedback.actual.positions) == [0.1, -0.2]
    np.testing.assert_allclose(feedback.error.positions, [-0.1, 0.2], atol=1e-12)


# Vehicles ----------------------------------------------------------------------------------------


def test_the_newest_command_counts_until_the_timeout(vehicle, make):
    assert vehicle.desk.subscribed["cmd_vel"].kind is TwistStamped
    assert make(Vehicle, stamped=False).desk.subscribed["cmd_vel"].kind is Twist
    vehicle.command(0.3)
    vehicle.settle()
    start, h = vehicle.last.start, vehicle.model.h
    assert start == round(0.1 / h)  # the first lead
    assert vehicle.speed(start + round(TIMEOUT_S / h)) == pytest.approx([0.3, 0.0])
    assert abs(vehicle.speed(start + round((TIMEOUT_S + 0.3) / h) + 2)).max() < 1e-12
    for k in range(20):  # the newest is followed once the others are planned
        vehicle.command(0.01 * k, 0.1)
    vehicle.settle()
    assert vehicle.speed(vehicle.last.start + 40) == pytest.approx([0.19, 0.1])


def test_with_a_timeout_of_0_a_command_counts_until_the_next_one_or_a_goal(make):
    vehicle = make(Vehicle, timeout_s=0.0)
    vehicle.command(0.3, stamp_s=0.1)  # old
    vehicle.settle()
    h, begun = vehicle.model.h, vehicle.last.start
    for k in range(0, round(30.0 / h), round(1.0 / h)):
        vehicle.renew(begun + k)
        assert vehicle.speed(begun + k + round(4.0 / h))[0] == pytest.approx(0.3)
    assert begun + round(20.0 / h) < vehicle.sequence.leg(vehicle.sequence.step).start
    vehicle.goals.goal(place(20.0))
    vehicle.goals.renew()  # while the goal is planned
    vehicle.settle()
    vehicle.renew(vehicle.last.end + 1)
    assert vehicle.last.tracker.reference.name == "goal"
    vehicle.command(0.0)
    vehicle.settle()
    end = vehicle.last
    vehicle.renew(end.end + round(10.0 / h))
    assert vehicle.last is end and abs(vehicle.speed(end.end)).max() < 1e-12
    assert vehicle.report.make().values["goals_refused"] == 0


def test_a_command_leaves_the_reference_without_a_jump_and_starts_where_the_vehicle_is(vehicle):
    vehicle.command(0.4)
    vehicle.settle()
    vehicle.is_at(40, vehicle.sequence.target(0))
    vehicle.command(-0.4, 0.5)
    vehicle.settle()
    speeds = np.array([vehicle.speed(k) for k in range(10, 200)])
    assert (np.abs(np.diff(speeds, axis=0)).max(0) <= np.array([1.0, 2.0]) * 0.01 + 1e-9).all()
    pushed = vehicle.model.state([0, 0, 0.5, 1.0, 2.0], np.zeros(5))
    vehicle.is_at(5000, pushed)  # after the reference
    vehicle.command(0.4)
    vehicle.settle()
    np.testing.assert_allclose(vehicle.last.tracker.reference.states[0], pushed)


def test_a_command_replaces_a_goal_and_a_goal_a_command(vehicle):
    first, second = Observer(), Observer()
    vehicle.goals.goal(place(), first)
    vehicle.settle()
    ((_, end),) = first.heard
    np.testing.assert_allclose(vehicle.sequence.target(end)[2:5], [0.3, 1.0, 0.5], atol=1e-6)
    assert vehicle.shown == ["path"]
    vehicle.command(0.2)
    vehicle.settle()
    assert "replaced by velocity command" in first.heard[-1][1]
    vehicle.command(0.1)
    vehicle.goals.goal(place(), second)  # while the command is planned
    vehicle.settle()
    vehicle.command(0.3)
    vehicle.settle()
    assert "replaced by velocity command" in second.heard[-1][1]
    vehicle.goals.stop()
    vehicle.settle()
    assert abs(vehicle.speed(10**6)).max() < 1e-12


def test_refused_commands_and_goals_are_counted(vehicle):
    vehicle.command(np.nan)
    observer = Observer()
    vehicle.goals.goal(place(frame="map"), observer)
    vehicle.goals.goal(place(1e5), observer)
    vehicle.settle()
    assert vehicle.refused(Refusal.NOT_FINITE, Refusal.FRAME, Refusal.MODEL) == [1, 1, 1]
    assert [kind for kind, _ in observer.heard] == [Refusal.FRAME, Refusal.MODEL]
