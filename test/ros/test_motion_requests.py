"""Legs for trajectories of joints, and for goals and velocity commands of a vehicle."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from bench import Desk, benches
from geometry_msgs.msg import Twist, TwistStamped
from goal_observer import Observer
from std_msgs.msg import Header
from test_goals import NOW, TIMEOUT_S, VEHICLE, command, goal, joint_trajectory

from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal
from nh_control.loop.tracker_report import TrackerReport
from nh_control.loop.wire_format import yaw_wxyz
from nh_control.ros.messages.goal_actions import FollowJoints
from nh_control.ros.messages.joint_goals import JointGoals
from nh_control.ros.messages.motion_requests import RequestContext
from nh_control.ros.messages.vehicle_goals import CommandOptions, VehicleGoals
from nh_control.scenarios import get
from nh_control.scenarios.vehicle_guidance import VehicleGuidance


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
