"""Joint trajectories that the tracker takes: what is refused with which reason, and the legs that
follow the others.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Desk, benches  # noqa: E402
from goal_observer import Observer  # noqa: E402
from std_msgs.msg import Header  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from nh_control.loop.reference_sequence import ReferenceSequence  # noqa: E402
from nh_control.loop.reports import Refusal  # noqa: E402
from nh_control.loop.tracker_report import TrackerReport  # noqa: E402
from nh_control.ros.messages import conversions, goal_actions  # noqa: E402
from nh_control.ros.messages.conversions import ConversionError  # noqa: E402
from nh_control.ros.messages.goals import joint_trajectory  # noqa: E402
from nh_control.ros.messages.joint_goals import JointGoals  # noqa: E402
from nh_control.ros.messages.motion_requests import RequestContext  # noqa: E402
from nh_control.scenarios import get  # noqa: E402

JOINTS = "shoulder", "elbow"
NOW = 10 * 10**9


def message(
    times=(1.0, 2.0), positions=((0.1, 0.2), (0.3, 0.4)), names=JOINTS, stamp_s=0.0, **more
):
    made = JointTrajectory(joint_names=list(names))
    conversions.set_time(made.header.stamp, round(stamp_s * 1e9))
    for k, (time_s, position) in enumerate(zip(times, positions)):
        own = {field: list(map(float, rows[k])) for field, rows in more.items()}
        point = JointTrajectoryPoint(positions=list(map(float, position)), **own)
        conversions.set_time(point.time_from_start, round(time_s * 1e9))
        made.points.append(point)
    return made


def test_a_message_becomes_a_trajectory_with_its_stamp():
    given = message(names=("elbow", "shoulder"), stamp_s=11.0, velocities=((1, 2), (0, 0)))
    found, stamp = joint_trajectory(given, JOINTS, NOW)
    assert stamp == 11 * 10**9 and found.names == ("elbow", "shoulder")
    assert found.velocities.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert joint_trajectory(message(stamp_s=1.7e9), JOINTS, NOW)[1] == 0  # of another clock


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (message(names=("shoulder", "wrist")), Refusal.NAMES, "expected .*'elbow'"),
        (message(names=("shoulder", "shoulder")), Refusal.NAMES, "each once"),
        (message(times=()), Refusal.LENGTH, "no points"),
        (message(stamp_s=9.0), Refusal.STAMP, "1 s in the past"),
        (message(times=(2.0, 1.0)), Refusal.STAMP, "must increase"),
        (message(times=(1.0, 400.0)), Refusal.STAMP, "at most 300 s"),
        (message(times=(0.0,)), Refusal.STAMP, "more than 0"),
        (message(positions=((0.1, np.nan), (0, 0))), Refusal.NOT_FINITE, "point 0"),
        (message(positions=((0.1,), (0.3,))), Refusal.LENGTH, "expected 2 positions"),
        (message(velocities=((0, 0), (1, 0))), Refusal.LENGTH, "ends at rest"),
    ],
)
def test_messages_that_cannot_be_followed_are_refused(given, kind, words):
    with pytest.raises(ConversionError, match=words) as refused:
        joint_trajectory(given, JOINTS, NOW)
    assert refused.value.kind is kind


class Arm:
    """Joint goals of a tracker whose node talks to nobody."""

    def __init__(self, node):
        scenario, model, tracker = loop()
        self.now, self.desk, self.posted = NOW, Desk(), []
        self.desk.post = self.posted.append
        self.sequence, self.report = ReferenceSequence(tracker), TrackerReport(scenario, model)
        context = RequestContext(node, self.desk, self.sequence, self.report, lambda: self.now)
        self.goals = JointGoals(context, scenario.joints)

    def settle(self):
        self.goals._replanner._executor.submit(lambda: None).result(60)
        while self.posted:
            self.posted.pop(0)()

    def ask(self, *given, **more):
        """What is heard of a trajectory that is asked for."""
        observer = Observer()
        self.goals.trajectory(message(*given, **more), observer)
        self.settle()
        return observer.heard


@cache
def loop():
    scenario = get("urdf")
    model = scenario.model()
    return scenario, model, scenario.tracker(model, scenario.reference(model))


@pytest.fixture
def arm():
    with benches() as make:
        made = Arm(make("tracker"))
        yield made
        made.goals.close()


def follow(sequence, x, steps):
    """States of the closed loop from the present step on."""
    states, model = [x], loop()[1]
    for _ in range(steps):
        states.append(model.step(states[-1], sequence.command(sequence.step, states[-1]).u))
        sequence.step += 1
    return np.array(states)


def test_a_trajectory_is_followed_from_the_present_reference_on(arm):
    assert list(arm.desk.subscribed) == ["joint_trajectory"]
    model, heard = loop()[1], arm.ask()
    ((start, end),) = heard
    assert start == 200 and end == start + 404  # a second ahead
    x = follow(arm.sequence, loop()[2].reference.states[0], end + 10)
    np.testing.assert_allclose(x[-1][:2], [0.3, 0.4], atol=1e-9)
    np.testing.assert_allclose(x[start + 200][:2], [0.1, 0.2], atol=1e-6)
    assert np.abs(np.diff(model.velocity(x), axis=0)).max() < 0.05
    again = arm.ask(times=(0.5,), positions=((0.0, 0.0),))
    assert again[0][0] > end and "replaced by" in heard[-1][1]
    arm.sequence.step = again[0][0] + 20  # it stops where it is
    arm.goals.stop()
    arm.settle()
    stop = arm.sequence.leg(10**6).tracker.reference
    assert np.abs(model.velocity(stop.states[0])).max() > 0.05
    assert np.abs(model.velocity(stop.states[-1])).max() < 1e-9


def test_times_count_from_a_stamp(arm):
    arm.now = 0
    assert arm.ask(stamp_s=0.5)[0][1] == 504  # it starts after a second
    follow(arm.sequence, loop()[2].reference.states[0], 300)
    late = arm.ask(times=(0.1, 0.9), stamp_s=0.5)
    assert "no change is possible before" in late[0][1]


def test_motions_beyond_the_limits_and_other_joints_are_refused(arm):
    for given, kind in (
        ({"positions": ((0, 2.0), (0, 5.0))}, Refusal.MODEL),
        ({"times": (0.01,), "positions": ((1.0, 1.0),)}, Refusal.MODEL),
        ({"names": ("a", "b")}, Refusal.NAMES),
    ):
        assert arm.ask(**given)[0][0] is kind
    values = arm.report.make().values
    kinds = Refusal.MODEL, Refusal.NAMES
    assert [values[f"goals refused: {kind.value}"] for kind in kinds] == [2, 1]


def test_the_action_tells_desired_and_actual_positions(arm):
    x = loop()[1].state([0.1, -0.2], [0, 0])
    arm.report.add_command(0, x, x, loop()[2].command(0, x), 0)
    feedback = SimpleNamespace(header=Header())
    request = SimpleNamespace(begin=0, time_ns=lambda begin, step: 0)
    kind = goal_actions.FollowJoints()
    kind.fill_feedback(feedback, request, arm.goals.progress())
    assert feedback.joint_names == list(JOINTS)
    assert list(feedback.actual.positions) == [0.1, -0.2]
    np.testing.assert_allclose(feedback.error.positions, [-0.1, 0.2], atol=1e-12)
    asked, empty = [], SimpleNamespace(points=[])
    goals = SimpleNamespace(
        trajectory=lambda given, _: asked.append(given),
        refuse=lambda what, reason, kind, _: asked.append((kind, reason)),
    )
    kind.ask(goals, SimpleNamespace(trajectory="way", multi_dof_trajectory=empty), None)
    body = SimpleNamespace(points=[1])
    kind.ask(goals, SimpleNamespace(trajectory="way", multi_dof_trajectory=body), None)
    assert asked[0] == "way" and asked[1][0] is Refusal.NAMES
    assert "only trajectory is followed" in asked[1][1]
