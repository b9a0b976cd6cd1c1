"""Velocity commands and goals that the tracker takes for a vehicle: what is refused with which
reason, and the legs that follow the others.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Desk, benches  # noqa: E402
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped  # noqa: E402
from goal_observer import Observer  # noqa: E402

from nh_control.loop.reference_sequence import ReferenceSequence  # noqa: E402
from nh_control.loop.reports import Refusal  # noqa: E402
from nh_control.loop.tracker_report import TrackerReport  # noqa: E402
from nh_control.loop.wire_format import yaw_wxyz  # noqa: E402
from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.ros.messages.conversions import ConversionError  # noqa: E402
from nh_control.ros.messages.goals import Body, planar_goal, velocity_command  # noqa: E402
from nh_control.ros.messages.motion_requests import RequestContext  # noqa: E402
from nh_control.ros.messages.vehicle_goals import CommandOptions, VehicleGoals  # noqa: E402
from nh_control.scenarios import get  # noqa: E402
from nh_control.scenarios.vehicle_guidance import VehicleGuidance  # noqa: E402

BODY, NOW, TIMEOUT_S = Body("base_link", "odom"), 10 * 10**9, 0.5


def command(forward=0.5, turn=0.0, frame="", stamp_s=0.0):
    message = TwistStamped()
    message.header.frame_id = frame
    conversions.set_time(message.header.stamp, round(stamp_s * 1e9))
    message.twist.linear.x, message.twist.angular.z = forward, turn
    return message


def goal(x=1.0, y=0.5, wxyz=yaw_wxyz(0.3), frame="odom"):
    message = PoseStamped()
    message.header.frame_id = frame
    message.pose.position.x, message.pose.position.y = x, y
    conversions.set_wxyz(message.pose.orientation, wxyz)
    return message


def test_a_command_is_two_numbers():
    assert velocity_command(command(0.5, -0.2), BODY, NOW, TIMEOUT_S) == (0.5, -0.2)
    assert velocity_command(command(0.5, -0.2).twist, BODY, NOW, TIMEOUT_S) == (0.5, -0.2)
    assert velocity_command(command(frame="base_link", stamp_s=9.6), BODY, NOW, TIMEOUT_S)
    assert velocity_command(command(stamp_s=1.7e9), BODY, NOW, TIMEOUT_S)  # of another clock
    np.testing.assert_allclose(planar_goal(goal(), BODY, NOW), [0.3, 1.0, 0.5])


@pytest.mark.parametrize(
    ("take", "kind"),
    [
        (lambda: velocity_command(command(np.inf), BODY, NOW, TIMEOUT_S), Refusal.NOT_FINITE),
        (lambda: velocity_command(command(frame="map"), BODY, NOW, TIMEOUT_S), Refusal.FRAME),
        (lambda: velocity_command(command(stamp_s=9.4), BODY, NOW, TIMEOUT_S), Refusal.STAMP),
        (lambda: planar_goal(goal(frame="map"), BODY, NOW), Refusal.FRAME),
        (lambda: planar_goal(goal(x=np.nan), BODY, NOW), Refusal.NOT_FINITE),
        (lambda: planar_goal(goal(wxyz=[0.0] * 4), BODY, NOW), Refusal.ORIENTATION),
    ],
)
def test_messages_that_mean_nothing_are_refused(take, kind):
    with pytest.raises(ConversionError) as refused:
        take()
    assert refused.value.kind is kind


class Vehicle:
    """Goals of a vehicle that stands, by a tracker whose node talks to nobody."""

    def __init__(self, node, stamped=True, timeout_s=TIMEOUT_S):
        scenario, self.model, guidance, tracker = loop()
        self.desk, self.posted = Desk(), []
        self.desk.post = self.posted.append
        self.sequence = ReferenceSequence(tracker)
        self.report = TrackerReport(scenario, self.model)
        self.shown = []
        paths = SimpleNamespace(
            body=BODY, message=lambda *_: "path", publish=self.shown.append, pose=lambda x: x
        )
        context = RequestContext(node, self.desk, self.sequence, self.report, lambda: NOW)
        options = CommandOptions(stamped, timeout_s)
        self.goals = VehicleGoals(context, paths, guidance, options)

    def settle(self):
        """Carry out what is planned, and what follows from it."""
        while True:
            self.goals._replanner._executor.submit(lambda: None).result(60)
            if not self.posted:
                return
            while self.posted:
                self.posted.pop(0)()

    def command(self, *values, **options):
        self.desk.give("cmd_vel", command(*values, **options))

    def is_at(self, k, x):
        """The vehicle is in this state at this step."""
        self.sequence.step = k
        self.report.add_command(k, x, x, loop()[3].command(0, x), 0)

    @property
    def last(self):
        return self.sequence.leg(10**6)

    def speed(self, k):
        """Forward speed and yaw rate of the reference."""
        return self.model.velocity(self.sequence.target(k))[[-2, -3]]


@cache
def loop():
    scenario = get("differential_drive")
    model = scenario.model()
    reference = scenario.reference(model, "standstill")
    tracker = scenario.tracker(model, reference)
    return scenario, model, VehicleGuidance(model, scenario.drive), tracker


@pytest.fixture
def vehicles():
    """Return f(**options) -> Vehicle; all end."""
    made = []
    with benches() as make:
        yield lambda **options: made.append(Vehicle(make("tracker"), **options)) or made[-1]
        for one in made:
            one.goals.close()


@pytest.fixture
def vehicle(vehicles):
    return vehicles()


def test_the_newest_command_counts_until_the_timeout(vehicle, vehicles):
    assert vehicle.desk.subscribed["cmd_vel"].kind is TwistStamped
    assert vehicles(stamped=False).desk.subscribed["cmd_vel"].kind is Twist
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


def test_with_a_timeout_of_0_a_command_counts_until_the_next_one(vehicles):
    vehicle = vehicles(timeout_s=0.0)
    vehicle.command(0.3, stamp_s=0.1)  # old
    vehicle.settle()
    h, begun = vehicle.model.h, vehicle.last.start

    def renewed(k):
        vehicle.sequence.step = k
        vehicle.goals.renew()
        vehicle.settle()

    for k in range(0, round(30.0 / h), round(1.0 / h)):
        renewed(begun + k)
        assert vehicle.speed(begun + k + round(4.0 / h))[0] == pytest.approx(0.3)
    assert begun + round(20.0 / h) < vehicle.sequence.leg(vehicle.sequence.step).start
    vehicle.command(0.0)
    vehicle.settle()
    end = vehicle.last
    renewed(end.end + round(10.0 / h))
    assert vehicle.last is end and abs(vehicle.speed(end.end)).max() < 1e-12
    assert vehicle.report.make().values["goals_refused"] == 0


def test_a_goal_ends_a_command_that_counts_until_the_next_one(vehicles):
    vehicle = vehicles(timeout_s=0.0)
    vehicle.command(0.3)
    vehicle.settle()
    vehicle.sequence.step = vehicle.last.start + round(6.0 / vehicle.model.h)
    vehicle.goals.goal(goal(5.0, 0.5))
    vehicle.goals.renew()  # while the goal is planned
    vehicle.settle()
    leg = vehicle.last
    assert leg.tracker.reference.name == "goal"
    vehicle.sequence.step = leg.end + 1
    vehicle.goals.renew()
    vehicle.settle()
    assert vehicle.last is leg


def test_a_command_leaves_the_reference_without_a_jump(vehicle):
    vehicle.command(0.4)
    vehicle.settle()
    vehicle.is_at(40, vehicle.sequence.target(0))
    vehicle.command(-0.4, 0.5)
    vehicle.settle()
    speeds = np.array([vehicle.speed(k) for k in range(10, 200)])
    assert (np.abs(np.diff(speeds, axis=0)).max(0) <= np.array([1.0, 2.0]) * 0.01 + 1e-9).all()


def test_after_a_reference_it_starts_where_the_vehicle_is(vehicle):
    pushed = vehicle.model.state([0, 0, 0.5, 1.0, 2.0], np.zeros(5))
    vehicle.is_at(5000, pushed)
    vehicle.command(0.4)
    vehicle.settle()
    np.testing.assert_allclose(vehicle.last.tracker.reference.states[0], pushed)


def test_a_command_replaces_a_goal_and_a_goal_a_command(vehicle):
    first, second = Observer(), Observer()
    vehicle.goals.goal(goal(), first)
    vehicle.settle()
    ((_, end),) = first.heard
    np.testing.assert_allclose(vehicle.sequence.target(end)[2:5], [0.3, 1.0, 0.5], atol=1e-6)
    assert vehicle.shown == ["path"]
    vehicle.command(0.2)
    vehicle.settle()
    assert "replaced by velocity command" in first.heard[-1][1]
    vehicle.command(0.1)
    vehicle.goals.goal(goal(), second)  # while the command is planned
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
    vehicle.goals.goal(goal(frame="map"), observer)
    vehicle.goals.goal(goal(x=1e5), observer)
    vehicle.settle()
    values = vehicle.report.make().values
    kinds = Refusal.NOT_FINITE, Refusal.FRAME, Refusal.MODEL
    assert [values[f"goals refused: {kind.value}"] for kind in kinds] == [1, 1, 1]
    assert [kind for kind, _ in observer.heard] == [Refusal.FRAME, Refusal.MODEL]
