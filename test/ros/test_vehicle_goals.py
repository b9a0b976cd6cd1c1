"""Velocity commands and goals that the tracker takes for a vehicle: what is refused with which
reason, and the legs that follow the others.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from geometry_msgs.msg import PoseStamped, Twist, TwistStamped  # noqa: E402
from goal_observer import Observer  # noqa: E402

from nh_control.loop.reference_sequence import ReferenceSequence  # noqa: E402
from nh_control.loop.reports import Refusal  # noqa: E402
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


def goal(x=1.0, y=0.5, yaw=0.3, frame="odom"):
    message = PoseStamped()
    message.header.frame_id = frame
    message.pose.position.x, message.pose.position.y = x, y
    conversions.set_wxyz(message.pose.orientation, yaw_wxyz(yaw))
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
    ],
)
def test_messages_that_mean_nothing_are_refused(take, kind):
    with pytest.raises(ConversionError) as refused:
        take()
    assert refused.value.kind is kind


def test_a_goal_without_an_orientation_is_refused():
    message = goal()
    conversions.set_wxyz(message.pose.orientation, [0.0] * 4)
    with pytest.raises(ConversionError, match="no unit quaternion"):
        planar_goal(message, BODY, NOW)


class Vehicle:
    """Goals of a vehicle that stands, without a node."""

    def __init__(self, stamped=True, timeout_s=TIMEOUT_S):
        model, guidance, tracker = loop()
        self.posted, self.topics, self.refused, self.paths = [], {}, [], []
        self.sequence, self.model = ReferenceSequence(tracker), model
        log = SimpleNamespace(info=lambda _: None, warning=lambda _: None)
        self.report = SimpleNamespace(
            state=None,
            accept_goal=lambda: None,
            refuse_goal=lambda kind, text: self.refused.append(kind),
        )
        subscribe = lambda kind, topic, take, _: self.topics.update({topic: (kind, take)})  # noqa: E731
        paths = SimpleNamespace(
            body=BODY, message=lambda *_: "path", publish=self.paths.append, pose=lambda x: x
        )
        node = SimpleNamespace(get_logger=lambda: log)
        inbox = SimpleNamespace(post=self.posted.append, subscribe=subscribe)
        context = RequestContext(node, inbox, self.sequence, self.report, lambda: NOW)
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
        self.topics["cmd_vel"][1](command(*values, **options))

    def speed(self, k):
        """Forward speed and yaw rate of the reference."""
        return self.model.velocity(self.sequence.target(k))[[-2, -3]]


@cache
def loop():
    scenario = get("differential_drive")
    model = scenario.model()
    reference = scenario.reference(model, "standstill")
    tracker = scenario.tracker(model, reference)
    return model, VehicleGuidance(model, scenario.drive), tracker


@pytest.fixture
def vehicle():
    made = Vehicle()
    yield made
    made.goals.close()


def test_the_type_of_commands_is_a_choice(vehicle):
    assert vehicle.topics["cmd_vel"][0] is TwistStamped
    plain = Vehicle(stamped=False)
    assert plain.topics["cmd_vel"][0] is Twist
    plain.goals.close()


def test_a_command_counts_until_the_timeout(vehicle):
    vehicle.command(0.3)
    vehicle.settle()
    start, h = vehicle.sequence.leg(10**6).start, vehicle.model.h
    assert start == round(0.1 / h)  # the first lead
    assert vehicle.speed(start + round(TIMEOUT_S / h))[0] == pytest.approx(0.3)
    assert abs(vehicle.speed(start + round((TIMEOUT_S + 0.3) / h) + 2)).max() < 1e-12


def test_with_a_timeout_of_0_a_command_counts_until_the_next_one():
    vehicle = Vehicle(timeout_s=0.0)
    try:
        vehicle.command(0.3, stamp_s=0.1)  # old
        vehicle.settle()
        h, begun = vehicle.model.h, vehicle.sequence.leg(10**6).start
        for k in range(0, round(30.0 / h), round(1.0 / h)):
            vehicle.sequence.step = begun + k
            vehicle.goals.renew()
            vehicle.settle()
            late = vehicle.sequence.step + round(4.0 / h)
            assert vehicle.speed(late)[0] == pytest.approx(0.3)
        assert begun + round(20.0 / h) < vehicle.sequence.leg(vehicle.sequence.step).start
        vehicle.command(0.0)
        vehicle.settle()
        end = vehicle.sequence.leg(10**6)
        vehicle.sequence.step = end.end + round(10.0 / h)
        vehicle.goals.renew()
        vehicle.settle()
        assert vehicle.sequence.leg(10**6) is end and abs(vehicle.speed(end.end)).max() < 1e-12
        assert vehicle.refused == []
    finally:
        vehicle.goals.close()


def test_a_goal_ends_a_command_that_counts_until_the_next_one():
    vehicle = Vehicle(timeout_s=0.0)
    try:
        vehicle.command(0.3)
        vehicle.settle()
        vehicle.sequence.step = vehicle.sequence.leg(10**6).start + round(6.0 / vehicle.model.h)
        vehicle.goals.goal(goal(5.0, 0.5))
        vehicle.goals.renew()  # while the goal is planned
        vehicle.settle()
        leg = vehicle.sequence.leg(10**6)
        assert leg.tracker.reference.name == "goal"
        vehicle.sequence.step = leg.end + 1
        vehicle.goals.renew()
        vehicle.settle()
        assert vehicle.sequence.leg(10**6) is leg
    finally:
        vehicle.goals.close()


def test_the_newest_of_many_commands_is_followed_once_the_others_are_planned(vehicle):
    for k in range(20):
        vehicle.command(0.01 * k, 0.1)
    vehicle.settle()
    assert vehicle.speed(vehicle.sequence.leg(10**6).start + 40) == pytest.approx([0.19, 0.1])


def test_a_command_leaves_the_reference_without_a_jump(vehicle):
    vehicle.command(0.4)
    vehicle.settle()
    vehicle.sequence.step, vehicle.report.state = 40, vehicle.sequence.target(0)
    vehicle.command(-0.4, 0.5)
    vehicle.settle()
    speeds = np.array([vehicle.speed(k) for k in range(10, 200)])
    assert (np.abs(np.diff(speeds, axis=0)).max(0) <= np.array([1.0, 2.0]) * 0.01 + 1e-9).all()


def test_after_a_reference_it_starts_where_the_vehicle_is(vehicle):
    pushed = vehicle.model.state([0, 0, 0.5, 1.0, 2.0], np.zeros(5))
    vehicle.sequence.step, vehicle.report.state = 5000, pushed
    vehicle.command(0.4)
    vehicle.settle()
    leg = vehicle.sequence.leg(10**6)
    np.testing.assert_allclose(leg.tracker.reference.states[0], pushed)


def test_a_command_replaces_a_goal_and_a_goal_a_command(vehicle):
    first, second = Observer(), Observer()
    vehicle.goals.goal(goal(), first)
    vehicle.settle()
    ((_, end),) = first.heard
    np.testing.assert_allclose(vehicle.sequence.target(end)[2:5], [0.3, 1.0, 0.5], atol=1e-6)
    assert vehicle.paths == ["path"]
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
    assert vehicle.refused == [Refusal.NOT_FINITE, Refusal.FRAME, Refusal.MODEL]
    assert [kind for kind, _ in observer.heard] == [Refusal.FRAME, Refusal.MODEL]
