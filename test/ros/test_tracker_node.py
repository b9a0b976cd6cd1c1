"""What the tracker publishes for states and goals, and what its parameters do."""

import time
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
from bench import Desk, Ended, benches
from bob import BOB, STEPS, hanging, pushed, put_up
from geometry_msgs.msg import PoseStamped, Transform
from goal_observer import Observer
from rclpy.parameter import Parameter
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from nh_control.loop import tracker_parts
from nh_control.loop.arming import ArmingLimits, DisarmCommand
from nh_control.loop.hardware_tracker import HardwareTracker, Timing
from nh_control.loop.tracker_parts import TrackerParts
from nh_control.ros.messages import conversions
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.tracker_output import JointEfforts
from nh_control.ros.nodes import tracker
from nh_control.ros.runtime.declared import TRACKER
from nh_control.ros.runtime.process import UsageError
from nh_control.ros.runtime.subscribers import DELIVERY_S
from nh_control.scenarios.driven_joints import DrivenJoint

H_NS = 10**7
MODEL = BOB.model()
REFERENCE = pushed(MODEL)
SHOWN = codecs(BOB, MODEL)


class Answering:
    """A tracker in this thread."""

    def __init__(self, make, namespace="", **parameters):
        given = {"scenario": "bob"} | parameters
        self.node, self.desk, self.ended = make("tracker", namespace, **given), Desk(), Ended()
        self.made = tracker.Tracker(self.node, self.desk, self.ended)
        self.node.made["reference/joint_states"].at.clear()

    def state(self, k, angle=None, rate=0.0):
        """A state of step k arrives, if not told otherwise that of the reference."""
        row = REFERENCE.states[min(k, STEPS)]
        q, v = MODEL.configuration(row), MODEL.velocity(row)
        if angle is not None:
            q, v = [angle], [rate]
        self.desk.state(SHOWN, q, v, k * H_NS)

    def last(self, topic):
        """The last message of a topic, and the step of its stamp."""
        message = self.node.sent(topic)[-1]
        return message, conversions.nanoseconds(message.header.stamp) // H_NS

    @property
    def gains(self):
        """The last gains, with the names and sizes that they were sent with."""
        message = self.node.sent("controller_state/gains")[-1]
        rows, columns = message.layout.dim
        assert rows.stride == rows.size * columns.size and columns.stride == columns.size
        assert (rows.label, columns.label) == ("torque", "theta,p_theta")
        return np.array(message.data).reshape(rows.size, columns.size)

    def set(self, name, value):
        return self.node.set_parameters([Parameter(name, value=value)])[0]

    def report(self):
        return self.node.report()


@pytest.fixture
def trackers(monkeypatch):
    """Makes trackers: f(**parameters), of the scenario or with other parts of it."""
    put_up(monkeypatch)
    with benches() as make:
        yield lambda *namespace, **parameters: Answering(make, *namespace, **parameters)


def test_a_state_is_answered_with_its_stamp_and_everything_that_explains_the_command(trackers):
    robot = trackers()
    expected = BOB.tracker(MODEL, REFERENCE, False)
    for k in (3, 4):
        robot.state(k, 0.4, 0.2)
        x = MODEL.state([0.4], [0.2])
        wanted = expected.command(k, x)
        command, step = robot.last("joint_commands")
        assert step == k and command.name == ["torque"]
        assert list(command.effort) == pytest.approx(wanted.u, abs=1e-12)
        assert np.abs(robot.gains - expected.gains.K[k]).max() < 1e-12
        error, step = robot.last("controller_state/error")
        assert step == k and error.name == ["theta", "p_theta"]
        assert list(error.position) == pytest.approx(wanted.error)
        target, step = robot.last("controller_state/reference")
        assert step == k and target.name == list(MODEL.state_names)
        assert list(target.position) == pytest.approx(REFERENCE.states[k])
        time.sleep(0.005)  # targets are sent at intervals
    assert len(robot.node.sent("joint_commands")) == 2
    robot.state(4, 0.4, 0.2)  # again: the same answer, with all that explains it
    for topic in ("joint_commands", "controller_state/error", "controller_state/gains"):
        assert len(robot.node.sent(topic)) == 3
        assert robot.node.sent(topic)[-1] == robot.node.sent(topic)[-2]
    target, step = robot.last("reference/joint_states")
    assert step == 4
    assert list(target.position) == pytest.approx(MODEL.configuration(REFERENCE.states[4]))
    assert list(target.velocity) == pytest.approx(MODEL.velocity(REFERENCE.states[4]))
    pose = robot.last("reference/multi_dof_joint_states")[0].transforms[0].translation
    assert pose.x == pytest.approx(np.sin(target.position[0]))
    robot.state(STEPS + 1, 0.4)  # past the end
    assert not robot.gains.any()


def test_commands_are_kept_for_recorders_and_it_reports_what_is_followed(trackers):
    robot = trackers(heard_by=["recorder"])
    assert robot.node.made["joint_commands"].quality == 1000
    assert robot.node.made["controller_state/error"].quality == 1000
    assert {"goal", "trajectory"}.isdisjoint(robot.desk.subscribed)  # without a guidance
    assert robot.made._states._expected == {"recorder"} and robot.report()[0] == 1
    robot.made._states._expected.clear()
    robot.state(5)
    level, _, values = robot.report()
    assert level == 0 and values["step"] == "5" and float(values["rate_hz"]) > 0
    assert values["reference"] == "pushed"
    assert float(values["reference_left_s"]) == pytest.approx((STEPS - 5) * MODEL.h)
    for integral in (False, True):  # which learns a disturbance
        robot = trackers(integral=integral)
        for k in range(3):
            robot.state(k, 0.3 + 0.01 * k)
        memory = robot.made._output.report.last[1].memory
        assert (memory is not None and memory.disturbance.any()) == integral


def test_what_explains_commands_is_sent_to_those_who_listen_alone(trackers, monkeypatch):
    robot, now = trackers(), [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("nh_control.ros.runtime.subscribers.time", clock)
    listened = [robot.node.made[f"controller_state/{n}"] for n in ("reference", "error", "gains")]
    for publisher in listened:
        publisher.subscribers = 0
    robot.state(0)
    assert [len(publisher.sent) for publisher in listened] == [0, 0, 0]
    for i, publisher in enumerate(listened):
        publisher.subscribers = 1
        now[0] += 0.06
        robot.state(i + 1)
        assert [len(p.sent) for p in listened] == [i + 1 - j if j <= i else 0 for j in range(3)]


def test_the_path_is_that_of_the_first_body_and_is_told_to_late_comers(trackers):
    robot = trackers("robot1")
    publisher = robot.node.made["reference"]
    assert publisher.quality.durability.name == "TRANSIENT_LOCAL"
    (path,) = publisher.sent
    assert path.header.frame_id == "robot1/odom" and len(path.poses) == STEPS + 1
    for k in (0, 7, STEPS):
        pose = path.poses[k]
        angle = float(MODEL.configuration(REFERENCE.states[k])[0])
        assert pose.header.frame_id == "robot1/odom"
        assert conversions.nanoseconds(pose.header.stamp) == k * H_NS
        place = pose.pose.position
        assert (place.x, place.z) == pytest.approx((np.sin(angle), -np.cos(angle)))


def test_a_run_that_starts_anew_shows_its_path_again_and_forgets_goals(trackers):
    robot, forgotten = trackers(), []
    robot.made._goals.requests = SimpleNamespace(forget=forgotten.append)
    robot.state(4)
    robot.state(0)
    assert len(robot.node.sent("reference")) == 2
    assert forgotten == ["the run was restarted"]
    assert robot.set("reference", "hanging").successful
    assert forgotten[1:] == ["reference 'hanging' was set"]
    assert len(robot.node.sent("reference")) == 3
    assert len(robot.node.sent("reference")[-1].poses) == len(hanging(MODEL)) + 1


def test_another_reference_is_followed_from_the_next_step_on(trackers):
    robot = trackers()
    robot.state(0)
    robot.state(5)
    assert robot.set("reference", "hanging").successful
    path = robot.node.sent("reference")[-1]
    assert conversions.nanoseconds(path.poses[0].header.stamp) == 6 * H_NS
    robot.state(6)
    assert robot.last("controller_state/reference")[0].position == pytest.approx([0.0, 0.0])
    other = BOB.tracker(MODEL, hanging(MODEL), False)
    assert np.abs(robot.gains - other.gains.K[0]).max() < 1e-12
    assert ("info", "reference 'hanging' from t = 0.060 s") in robot.node.logged
    assert robot.set("reference", "hanging").successful
    assert len(robot.node.sent("reference")) == 2  # that is so already
    assert robot.set("reference", "").successful  # the scenario's own
    robot.state(7)
    assert list(robot.last("controller_state/reference")[0].position) == pytest.approx(
        REFERENCE.states[0]
    )
    refused = robot.set("reference", "flying")
    assert not refused.successful and "pushed, hanging" in refused.reason


def test_weights_are_parameters_that_change_the_gains(trackers):
    robot = trackers()
    robot.state(3)
    before = robot.gains
    assert robot.node.get_parameter("weights.torque").value == 1.0
    assert robot.set("weights.theta", 100).successful
    robot.state(4)
    assert robot.gains[0, 0] > 2 * before[0, 0]
    expected = BOB.tracker(MODEL, REFERENCE, False).with_weights({0: 100.0, 1: 1.0}, {0: 1.0})
    assert np.abs(robot.gains - expected.gains.K[4]).max() < 1e-12
    for name, value in (("torque", 0.0), ("theta", -1.0), ("theta", 0.0)):
        assert not robot.set(f"weights.{name}", value).successful
    given = trackers(**{"weights.theta": 100.0})
    given.state(4)
    assert np.abs(given.gains - expected.gains.K[4]).max() < 1e-12


def test_weights_change_for_all_legs_and_together_with_the_reference(trackers):
    weighted = lambda reference: BOB.tracker(MODEL, reference, False).with_weights(
        {0: 100.0, 1: 1.0}, {0: 1.0}
    )
    robot = trackers()
    robot.state(5)
    assert robot.set("reference", "hanging").successful  # from step 6 on
    assert robot.set("weights.theta", 100.0).successful
    robot.state(5, 0.2)  # the leg before it is followed still
    assert np.abs(robot.gains - weighted(REFERENCE).gains.K[5]).max() < 1e-12
    both = trackers()
    both.state(5)
    given = {"reference": "hanging", "weights.theta": 100.0}
    parameters = [Parameter(name, value=value) for name, value in given.items()]
    assert both.node.set_parameters_atomically(parameters).successful
    both.state(6)
    assert np.abs(both.gains - weighted(hanging(MODEL)).gains.K[0]).max() < 1e-12


# Hardware ----------------------------------------------------------------------------------------


HARDWARE = {
    "hardware.actuation_s": 0.01, "hardware.max_age_s": 0.02, "hardware.compensate_delay": False,
    "hardware.noise": 0.03, "hardware.acceleration": 4.0, "hardware.outlier": 50.0,
    "hardware.armed": True, "hardware.start": "service",
    "disarm.silence_s": 0.6, "disarm.error": 0.7, "disarm.saturation_s": 0.8,
    "disarm.command": "damp", "disarm.range": ["pivot:-1:2"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "noise", "timing", "limits", "armed", "after", "far"),
    [
        (HARDWARE, (0.03, 4.0, 50.0), Timing(0.01, 0.02, False), ArmingLimits(0.6, 0.7, 0.8), True,
         DisarmCommand.DAMP, "pivot = 2.5 is not in -1 ... 2"),
        ({}, (1e-3, 1.0, 300.0), Timing(0.0, 0.0, True), ArmingLimits(0.5, 0.5, 1.0), False,
         DisarmCommand.NONE, ""),
        ({"disarm.error": 0.0, "disarm.saturation_s": 0.0, "disarm.range": [""]},
         (1e-3, 1.0, 300.0), Timing(compensate=True), ArmingLimits(0.5, 0.0, 0.0), False,
         DisarmCommand.NONE, ""),
    ],
    ids=["all", "none", "off"],
)  # fmt: skip
def test_parameters_of_hardware_are_each_what_they_say(
    monkeypatch, parameters, noise, timing, limits, armed, after, far
):
    put_up(monkeypatch)
    estimates, real = [], tracker_parts.FilteredState
    filtered = lambda dsys, **values: estimates.append(values) or real(dsys, **values)
    monkeypatch.setattr(tracker_parts, "FilteredState", filtered)
    settings = {spec.name: spec.value for spec in TRACKER}
    settings |= {"source": "hardware", "controller": "lqr"} | parameters
    hardware, safety = TrackerParts(BOB, MODEL, REFERENCE, settings).hardware
    assert estimates == [dict(zip(("noise", "acceleration", "outlier"), noise))]
    assert hardware.timing == timing
    assert safety.arming.limits == limits and safety.disarmed_inputs.kind is after
    assert safety.arming.armed is safety.starts_by_service is armed
    assert safety.ranges.violation(np.array([2.5])) == far
    assert not safety.ranges.violation(np.array([1.9]))


def test_hardware_without_a_filter_is_rehearsed_and_a_range_of_something_else_a_wrong_use(
    trackers, monkeypatch
):
    warm = []
    monkeypatch.setattr(HardwareTracker, "warm_up", lambda self: warm.append(self))
    robot = trackers(source="hardware", **{"hardware.estimator": "none", "hardware.armed": True})
    assert len(warm) == 1
    robot.state(0, 0.3, 0.2)
    robot.state(1, 0.3)
    assert robot.made._output.report.state == pytest.approx(MODEL.measured_state([0.3], [0.0]))
    assert len(robot.node.sent("joint_commands")) == 2
    with pytest.raises(UsageError, match=r"parameter 'disarm.range': .*knee"):
        trackers(source="hardware", **{"disarm.range": ["knee:-1:1"]})


def test_hardware_is_answered_while_it_works_and_disarmed_at_the_end(trackers):
    robot = trackers(source="hardware", **{"hardware.armed": True, "hardware.estimator": "none"})
    commands, targets = (robot.node.made[n] for n in ("joint_commands", "reference/joint_states"))
    happens = [lambda: robot.state(1, 0.3, 0.2), lambda: None, robot.desk.close]
    targets.subscribers += 1  # hears the last target while nothing comes
    seen = []

    def serve():
        seen.append((len(commands.sent), len(targets.sent)))
        happens.pop(0)()

    robot.desk.on_serve = serve
    robot.made.work()
    assert seen == [(0, 0), (1, 1), (1, 2)]
    assert ("error", "disarmed: the tracker stopped") in robot.node.logged
    assert set(robot.desk.served) == {0.05}  # until then silence is looked for so often


# Goals -------------------------------------------------------------------------------------------


class Planner:
    """A guidance that goes to rest at once, and keeps what it was asked."""

    def __init__(self):
        self.asked, self.reference = [], hanging(MODEL)

    def to_goal(self, k, position):
        self.asked.append((k, [float(x) for x in position]))
        if position[0] > 100:
            raise ValueError("too far")
        return self

    def through_points(self, k, times, positions, velocities):
        self.asked.append((k, list(times)))
        return self


@pytest.fixture
def guided(trackers, monkeypatch):
    planner = Planner()
    scenario = replace(BOB, guidance=lambda dsys, reference: planner)
    put_up(monkeypatch, scenario)
    robot = trackers()
    yield robot, planner
    robot.made._goals.close()


def heard_by(observer):
    """The steps at which what it asked for begins, and the names of refusals with reasons."""
    return [
        one[0] if isinstance(one[0], int) else (one[0] and one[0].name, one[1])
        for one in observer.heard
    ]


def ask(robot, x, observer=None, stamp_ns=0):
    message = PoseStamped()
    message.header.frame_id = "odom"
    message.pose.position.x = x
    conversions.set_time(message.header.stamp, stamp_ns)
    robot.made._goals.requests.goal(message, observer)
    settle(robot)


def settle(robot):
    planned = robot.made._goals.requests._replanner._planned
    if planned is not None and not planned.cancelled():
        planned.exception(timeout=30)
    robot.made._goals.requests._replanner._executor.submit(lambda: None).result(30)


def test_a_goal_becomes_a_leg_a_path_and_a_word_to_who_asked(guided):
    robot, planner = guided
    robot.state(2)
    first, second, far = Observer(), Observer(), Observer()
    ask(robot, 0.5, first)
    start = 2 + 100  # planned a second ahead
    (asked,) = planner.asked
    present = np.cos(MODEL.configuration(REFERENCE.states[2])[0])
    assert asked[0] == start and asked[1] == pytest.approx([0.5, 0.0, -present])
    assert heard_by(first) == [start]
    path = robot.node.sent("reference")[-1]
    assert conversions.nanoseconds(path.poses[0].header.stamp) == start * H_NS
    assert len(path.poses) == len(hanging(MODEL)) + 1
    assert "goal (0.5, 0, -0.955) accepted: starts at t = 1.020 s, at rest at t = 1.120 s" in [
        text for _, text in robot.node.logged
    ]
    ask(robot, 0.6, second)
    assert heard_by(first)[1:] == [(None, "replaced by goal (0.6, 0, -0.955)")]
    ask(robot, 101.0, far)
    assert heard_by(far) == [("MODEL", "too far")] and len(heard_by(second)) == 1
    values = robot.report()[2]
    assert values["goals_accepted"] == "2" and values["goals_refused"] == "1"
    robot.state(0)  # a new run
    assert heard_by(second)[1:] == [(None, "the run was restarted")]
    robot.state(3)
    robot.state(0)
    assert len(heard_by(second)) == 2 and len(heard_by(far)) == 1


def test_a_trajectory_is_due_by_the_time_of_the_run_whatever_leg_is_followed(guided):
    robot, planner = guided
    robot.state(5)
    assert robot.set("reference", "hanging").successful
    robot.state(6)
    message = MultiDOFJointTrajectory(joint_names=["bob"])
    message.header.frame_id = "odom"
    conversions.set_time(message.header.stamp, 2 * 10**9)
    for time_s in (0, 1):
        point = MultiDOFJointTrajectoryPoint(transforms=[Transform()])
        point.time_from_start.sec = time_s
        message.points.append(point)
    pursuer = Observer()
    robot.made._goals.requests.trajectory(message, pursuer)
    settle(robot)
    ((k, due),) = planner.asked
    assert heard_by(pursuer) == [106] and k == 100  # of the leg that began at step 6
    assert due == pytest.approx([2.0 - 1.06, 3.0 - 1.06])
    texts = [text for _, text in robot.node.logged]
    assert any(
        text.startswith("trajectory of 2 points accepted: starts at t = 1.060 s") for text in texts
    )
    message.joint_names = ["camera"]
    robot.made._goals.requests.trajectory(message, pursuer)
    assert heard_by(pursuer)[1][0] == "NAMES"


def test_a_goal_that_is_replaced_or_forgotten_while_it_is_planned_is_told(guided):
    robot, planner = guided
    robot.state(2)
    goals, first, second, go = robot.made._goals.requests, Observer(), Observer(), Event()
    plan, planner.to_goal = planner.to_goal, lambda *asked: go.wait(30) and plan(*asked)
    message = PoseStamped()
    message.header.frame_id = "odom"
    goals.goal(message, first)
    goals.goal(message, second)
    ((kind, reason),) = first.heard
    assert kind is None and reason.endswith("while it was planned")
    goals.forget("enough")
    go.set()
    settle(robot)
    assert second.heard == [(None, "enough")] and len(first.heard) == 1


def test_a_path_has_its_last_pose_and_as_many_as_it_may(guided):
    paths = guided[0].made._goals.paths
    stamps = lambda *most: [
        conversions.nanoseconds(pose.header.stamp) // H_NS
        for pose in paths.message(REFERENCE, 5, *most).poses
    ]
    assert stamps() == list(range(5, 5 + STEPS + 1))
    assert stamps(4) == [5, 11, 17, 23, 25]


def test_a_goal_that_is_none_is_refused_at_once(guided):
    robot, planner = guided
    assert {"goal", "trajectory"} <= set(robot.desk.subscribed)
    robot.state(2)
    pursuer = Observer()
    ask(robot, np.nan, pursuer)
    assert heard_by(pursuer)[0][0] == "NOT_FINITE" and not planner.asked
    ask(robot, 0.5, pursuer, stamp_ns=3 * 10**9)
    assert heard_by(pursuer)[1][0] == "STAMP"
    assert robot.report()[2]["goals_refused"] == "2"
    warnings = [text for level, text in robot.node.logged if level == "warning"]
    (warning,) = warnings  # one in a while
    assert warning.startswith("goal refused: position")


def test_at_the_end_nothing_is_planned_or_changed_any_more(guided):
    robot, planner = guided
    robot.state(2)
    before, closed = robot.gains, []
    robot.made._goals.actions.close = lambda: closed.append(True)
    robot.made.close()
    assert 0.0 < robot.node.made["joint_commands"].waits[-1] <= DELIVERY_S
    with pytest.raises(RuntimeError, match="shutdown"):
        ask(robot, 0.5)
    assert planner.asked == [] and closed == [True]
    robot.set("weights.theta", 100.0)
    robot.state(3)
    assert np.abs(robot.gains - before).max() < 0.1 * np.abs(before).max()


def test_progress_is_where_the_body_is_and_should_be(guided):
    robot, planner = guided
    goals = robot.made._goals.requests
    progress = goals.progress()
    assert (progress.step, progress.time_ns, progress.body, progress.frame) == (
        0, 0, "bob", "odom",
    )  # fmt: skip
    assert progress.pose == progress.target
    goals._now = lambda: -1  # no state of hardware has come
    assert goals.progress().time_ns == 0
    goals._now = lambda: 4 * H_NS
    robot.state(4, 0.5)
    progress = goals.progress()
    target = float(MODEL.configuration(REFERENCE.states[4])[0])
    assert (progress.step, progress.time_ns) == (4, 4 * H_NS)
    assert progress.pose.position.x == pytest.approx(np.sin(0.5))
    assert progress.target.position.x == pytest.approx(np.sin(target))
    goals.stop()
    settle(robot)
    ((_, place),) = planner.asked
    assert place == pytest.approx([np.sin(target), 0.0, -np.cos(target)])


def test_a_controller_of_ros2_control_gets_the_efforts_of_the_joints(trackers):
    robot = trackers(**{"hardware.command_array": "effort_controller/commands"})
    robot.state(3, 0.4, 0.2)
    command, _ = robot.last("joint_commands")
    (array,) = robot.node.sent("effort_controller/commands")
    assert list(array.data) == list(command.effort)
    assert "effort_controller/commands" not in trackers().node.made
    joints = [DrivenJoint("b", 1, -1.0), DrivenJoint("a", 0, 0.5)]
    JointEfforts(robot.node, "commands", joints).publish(np.array([3.0, 4.0]))
    assert list(robot.node.sent("commands")[0].data) == [6.0, -4.0]
