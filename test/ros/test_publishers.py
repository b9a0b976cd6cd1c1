"""What publishers say to whom and when: reports, targets, states for those who come late."""

import itertools
import threading
import time
from types import SimpleNamespace
from unittest import mock

import pytest
import rclpy
from bench import Desk, Publisher, alone, benches, listener
from bob import BOB
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from sensor_msgs.msg import JointState

from nh_control.loop.reports import PendingReport, Report
from nh_control.ros.messages import conversions, state_publisher, tracker_output
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.state_publisher import StatePublisher
from nh_control.ros.messages.tracker_output import TargetPublisher
from nh_control.ros.runtime import subscribers
from nh_control.ros.runtime.inbox import Inbox, Local
from nh_control.ros.runtime.local_topics import LocalTopics, hand_over, local_count
from nh_control.ros.runtime.subscribers import (
    LateSubscribers,
    matched_subscribers,
    wait_delivered,
)

MODEL = BOB.model()
RECORDER, DISPLAY, LATCHED = listener("recorder"), listener("display"), listener("rviz", True)


@pytest.fixture
def bench():
    with benches() as make:
        yield make("plant", "robot1")


class Told:
    """Diagnostics with an inbox of which some is not heard, beside other nodes in disorder."""

    def __init__(self, bench):
        self.bench, self.reports, self.others, self.deaf = bench, [], [], {}
        desk = Desk()
        desk.incompatible_publishers = lambda: self.deaf
        self.made = Diagnostics(
            bench, desk, "simulation", "bob", self._report, lambda: self.others
        )
        self.given = Report("ok", "running", {})

    def _report(self):
        self.reports.append(1)
        return self.given

    def status(self, level="ok", values=None, news=None):
        self.given = Report(level, "running", values or {}, news or {})
        self.made.publish()
        return self.bench.sent("/diagnostics")[-1].status[0]


def test_a_status_has_the_node_s_name_and_the_time_and_every_second_another_one(bench):
    told = Told(bench)
    bench.wall_ns = 3 * 10**9 + 5
    status = told.status(values={"time_s": 0.123456789, "step": 12, "mode": "running"})
    assert (status.name, status.hardware_id) == ("robot1/plant: simulation", "bob")
    assert [(v.key, v.value) for v in status.values] == [
        ("time_s", "0.123457"),
        ("step", "12"),
        ("mode", "running"),
        ("malformed", "0"),
        ("callback_errors", "0"),
        ("middleware_errors", "0"),
    ]
    assert conversions.nanoseconds(bench.sent("/diagnostics")[-1].header.stamp) == 3 * 10**9 + 5
    assert bench.made["/diagnostics"].topic_name == "/diagnostics"
    ((period_s, report, options),) = bench.timed
    report()
    assert period_s == 1.0 and told.reports == [1, 1] and len(bench.sent("/diagnostics")) == 2
    assert options["clock"].clock_type is ClockType.STEADY_TIME  # also while simulations pause


def test_a_report_is_completed_in_the_executor_s_thread_and_in_order(bench):
    """The inbox's thread, which steps the plant, only begins it."""
    guards, completed = [], []
    bench.create_guard_condition = lambda callback: guards.append(callback) or mock.Mock()
    told = Told(bench)
    later = lambda: completed.append(1) or Report("ok", "later", {})
    told.given = PendingReport(later)
    ((_, report, _),) = bench.timed
    report()
    assert told.reports == [1] and completed == [] and not bench.sent("/diagnostics")
    told.given = Report("ok", "last", {})
    told.made.publish()  # a change of the mode is reported at once, after what was begun
    guards[0]()
    texts = [message.status[0].message for message in bench.sent("/diagnostics")]
    assert completed == [1] and texts == ["later", "last"]


@pytest.mark.parametrize(
    ("level", "alone", "in_disorder"), [("ok", 0, 1), ("warn", 1, 1), ("error", 2, 2)]
)
def test_disorder_is_a_warning_and_no_less_than_what_is_reported(bench, level, alone, in_disorder):
    told = Told(bench)
    number = lambda status: int.from_bytes(status.level, "little")
    status = told.status(level)
    assert number(status) == alone and status.message == "running"
    told.others = ["two clocks"]
    told.deaf = {"/odom": ["camera (reliability)", "robot"]}
    text = (
        "/odom of camera (reliability), robot is not received: its quality of service is "
        "incompatible"
    )
    status = told.status(level)
    assert number(status) == in_disorder
    assert status.message == f"running; two clocks; {text}"
    told.status(level)
    assert bench.logged == [("warning", "two clocks"), ("warning", text)]


def test_news_are_logged_once_of_every_kind(bench):
    told = Told(bench)
    for text in ("first", "second"):
        told.status(news={"late": text, "wrong": text})
    assert [text.split(";")[0] for _, text in bench.logged] == ["late: first", "wrong: first"]
    assert {level for level, _ in bench.logged} == {"warning"}


class Targets:
    """A publisher of targets, at a time that a test sets."""

    def __init__(self, bench, monkeypatch):
        self.now, self.bench = 50.0, bench
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(tracker_output, "time", clock)
        monkeypatch.setattr(subscribers, "time", clock)
        self.made = TargetPublisher(bench, codecs(BOB, MODEL))
        self.sequence = SimpleNamespace(
            dsys=MODEL, target=lambda k: MODEL.state([0.1 * k], [0.2 * k])
        )
        self.topic = bench.made["reference/joint_states"]

    def publish(self, k):
        self.made.publish(self.sequence, k, 10**7 * k)

    @property
    def steps(self):
        stamps = [conversions.nanoseconds(m.header.stamp) / 10**7 for m in self.topic.sent]
        angles = [m.position[0] / 0.1 for m in self.topic.sent]
        assert stamps == pytest.approx(angles)
        return stamps


def test_targets_are_told_at_intervals_and_the_last_one_in_any_case(bench, monkeypatch):
    targets = Targets(bench, monkeypatch)
    targets.made.repeat()
    assert targets.steps == []  # there is none yet
    for k in range(5):
        targets.publish(k)
        targets.now += 0.0015
    assert targets.steps == [0, 3]
    targets.made.repeat()
    assert targets.steps == [0, 3]  # too early
    targets.now += 0.004
    targets.made.repeat()
    targets.made.repeat()
    assert targets.steps == [0, 3, 4]
    targets.topic.subscribers += 1
    targets.made.repeat()
    targets.made.repeat()
    assert targets.steps == [0, 3, 4, 4]
    assert targets.topic.sent[-1].velocity[0] == pytest.approx(0.8)
    for publisher in bench.publishers:
        publisher.subscribers = 0
    targets.now += 1
    targets.publish(9)
    assert targets.steps == [0, 3, 4, 4]


def states(bench, **options):
    made = StatePublisher(bench, codecs(BOB, MODEL), **{"clock": "clock"} | options)
    made.publish([0.1], [0.2], 10**7, 2 * 10**7)
    return made


def test_connections_settle_anew_after_one_was_missing(bench, monkeypatch):
    now, made = [50.0], states(bench)
    monkeypatch.setattr(state_publisher, "time", SimpleNamespace(monotonic=lambda: now[0]))
    topics = ("/robot1/joint_states", "/robot1/multi_dof_joint_states")
    found = []
    for after_s, there in ((0.0, 2), (0.06, 2), (0.06, 1), (0.06, 2), (0.06, 2), (0.06, 2)):
        now[0] += after_s
        bench.seen_subscriptions = dict.fromkeys(topics[:there], [RECORDER])
        found.append(made.missing(["recorder"]))
    settling = "new subscriptions to settle"
    assert found[:2] == found[3:5] == [settling, settling] and "to subscribe to" in found[2]
    assert found[5] == "" and made.missing([]) == ""


# Who hears a publisher ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "matched", "local", "heard"),
    [
        ([RECORDER, DISPLAY], 2, (), {"recorder", "display"}),
        ([], 0, (), set()),
        ([RECORDER, DISPLAY], 1, (), None),  # nobody is said to while one is not matched
        ([RECORDER, LATCHED], 1, (), {"recorder"}),  # latched messages are had later, too
        ([RECORDER], 0, ("tracker",), None),  # one in the process is not the match of another
        ([RECORDER], 1, ("tracker",), {"recorder", "tracker"}),
    ],
)
def test_nodes_hear_a_publisher_once_all_that_are_known_are_matched(known, matched, local, heard):
    node = SimpleNamespace(get_subscriptions_info_by_topic={"/odom": known}.get)
    publisher = SimpleNamespace(
        topic_name="/odom", msg_type=None, get_subscription_count=lambda: matched
    )
    topics = LocalTopics(["/odom"])
    for name in local:
        topics.subscribe(name, "/odom", print)
    shared = topics.publisher(publisher) if local else publisher
    assert matched_subscribers(node, shared) == heard


def test_publishers_whose_subscriber_is_gone_are_waited_for_together():
    waited = []

    def wait(timeout):
        waited.append(timeout.nanoseconds * 1e-9)
        time.sleep(waited[-1])
        return False

    gone = SimpleNamespace(wait_for_all_acked=wait)
    wait_delivered([gone, gone, gone], 0.05)
    assert len(waited) == 3 and sum(waited) < 0.051


def test_somebody_is_late_who_was_not_there_at_the_last_look():
    counts = [1, 0]
    publishers = [SimpleNamespace(get_subscription_count=lambda i=i: counts[i]) for i in range(2)]
    late = LateSubscribers(publishers)
    assert late.new() and not late.new() and list(late.count()) == [1, 0]
    counts[:] = [0, 1]  # one has gone, another one has come
    assert late.new()
    counts[:] = [0, 0]
    assert not late.new()


def test_subscribers_of_every_step_are_looked_for_at_intervals(monkeypatch):
    clock = SimpleNamespace(now=5.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(subscribers, "time", clock)
    publisher = outside(1)
    late = LateSubscribers([publisher])
    assert list(late.recent()) == [1]
    publisher.subscribers = 2
    clock.now += 0.5 * subscribers.LOOK_S
    assert list(late.recent()) == [1]
    clock.now += 0.6 * subscribers.LOOK_S
    assert list(late.recent()) == [2]
    publisher.subscribers = 3
    assert list(late.recent()) == [2] and late.new()  # who was not counted is late


# Within one process ------------------------------------------------------------------------------


MESSAGE = JointState(name=["a"], position=[1.0])


def outside(subscribers=0):
    """A publisher of the middleware with so many subscribers."""
    made = Publisher(JointState, "/joint_states", 1, itertools.count())
    made.subscribers = subscribers
    return made


def test_contents_stay_in_the_process_and_messages_are_for_others():
    topics, got = LocalTopics(["/joint_states"]), []
    real = outside(2)
    publisher = topics.publisher(real)
    assert publisher.topic_name == "/joint_states" and local_count(publisher) == 0
    for _ in range(2):  # instead of the first
        topics.subscribe("tracker", "/joint_states", got.append)
    assert publisher.get_subscription_count() == 3 and local_count(publisher) == 1
    publisher.publish(MESSAGE)
    hand_over(publisher, (0, {}))
    hand_over(real, (1, {}))  # there is nobody in the process
    assert got == [(0, {})] and real.sent == [MESSAGE] and local_count(real) == 0
    topics.forget("tracker")
    hand_over(publisher, (2, {}))
    assert got == [(0, {})] and not publisher.local_subscribers


@pytest.fixture
def shared():
    """An inbox with a topic that stays in the process, its publisher, and what is told."""
    told = []
    with alone() as context:
        node = rclpy.create_node("tracker", context=context)
        topics = LocalTopics(["/joint_states"])
        errors = SimpleNamespace(raised=lambda topic, error: told.append((topic, str(error))))
        inbox = Inbox(node, errors, topics)
        yield SimpleNamespace(
            node=node, inbox=inbox, publisher=topics.publisher(outside()), told=told
        )
        node.destroy_node()


def test_an_inbox_takes_contents_in_its_thread_and_tells_what_raises(shared):
    inbox, publisher, got = shared.inbox, shared.publisher, []
    inbox.subscribe(JointState, "joint_states", print, 10, local=Local(got.append))
    inbox.subscribe(JointState, "other", got.append, 10, local=Local(got.append))
    assert [one.topic_name for one in shared.node.subscriptions if "joint_s" not in one.topic_name]
    assert not [one for one in shared.node.subscriptions if one.topic_name == "/joint_states"]
    other = threading.Thread(target=publisher.hand_over, args=["content"])
    other.start()
    other.join()
    assert got == []  # until the inbox serves
    assert inbox.serve(0.0) and got == ["content"]
    publisher.hand_over("own")  # in this thread, which now is the inbox's
    assert got == ["content", "own"]
    inbox.subscribe(JointState, "joint_states", print, 10, local=Local(lambda _: 1 / 0))
    publisher.hand_over("content")
    assert shared.told == [("/joint_states", "division by zero")]


def test_a_content_is_taken_at_once_while_the_inbox_s_thread_handles_nothing(shared):
    inbox, got = shared.inbox, []
    inbox.subscribe(JointState, "joint_states", print, 10, local=Local(got.append, at_once=True))
    inbox.lent = lambda: got.append("lent")
    busy, go_on = threading.Event(), threading.Event()
    inbox.post(lambda: [busy.set(), go_on.wait(), got.append("request")])
    worker = threading.Thread(target=inbox.run, daemon=True)
    worker.start()
    busy.wait()
    threading.Timer(0.05, go_on.set).start()
    shared.publisher.hand_over("content")
    assert got == ["request", "content", "lent"]
    inbox.close()
    worker.join()
    shared.publisher.hand_over("content")  # to a node that is not active
    assert len(got) == 3


def test_messages_that_are_there_are_handled_before_a_content(shared):
    """The start of the reference before its first state."""
    inbox, got = shared.inbox, []
    inbox.subscribe(JointState, "start", lambda message: got.append(message.name), 10)
    inbox.subscribe(JointState, "joint_states", print, 10, local=Local(got.append, at_once=True))
    sender = shared.node.create_publisher(JointState, "start", 10)
    while not sender.get_subscription_count():
        time.sleep(1e-3)
    sender.publish(MESSAGE)
    assert sender.wait_for_all_acked(Duration(seconds=60))
    shared.publisher.hand_over("content")
    assert got == [["a"], "content"]


def test_a_topic_without_a_way_for_contents_is_the_middleware_s(shared):
    shared.inbox.subscribe(JointState, "joint_states", print, 10)
    assert [one for one in shared.node.subscriptions if one.topic_name == "/joint_states"]
    assert local_count(shared.publisher) == 0
