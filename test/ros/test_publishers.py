"""What publishers say to whom and when: reports, targets, states for those who come late."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Desk, benches  # noqa: E402
from bob import BOB, hanging  # noqa: E402
from rclpy.clock_type import ClockType  # noqa: E402
from rclpy.qos import DurabilityPolicy  # noqa: E402

from nh_control.loop.reports import Report  # noqa: E402
from nh_control.ros.messages import conversions, tracker_output  # noqa: E402
from nh_control.ros.messages.codec_publisher import CodecPublisher  # noqa: E402
from nh_control.ros.messages.diagnostics import Diagnostics  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.ros.messages.state_publisher import (
    StatePublisher,  # noqa: E402
)
from nh_control.ros.messages.tracker_output import (
    ControllerState,  # noqa: E402
    TargetPublisher,  # noqa: E402
)

MODEL = BOB.model()
REFERENCE = hanging(MODEL)


@pytest.fixture
def bench():
    """A node."""
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
        """The status of a report."""
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


@pytest.mark.parametrize(
    ("level", "alone", "in_disorder"), [("ok", 0, 1), ("warn", 1, 1), ("error", 2, 2)]
)
def test_disorder_is_a_warning_and_no_less_than_what_is_reported(bench, level, alone, in_disorder):
    told = Told(bench)
    number = lambda status: int.from_bytes(status.level, "little")  # noqa: E731
    status = told.status(level)
    assert number(status) == alone and status.message == "running"
    told.others = ["two clocks"]
    told.deaf = {"/odom": ["camera (reliability)", "robot"]}
    text = (
        "/odom of camera (reliability), robot is not heard: its quality of service is incompatible"
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
        self.made = TargetPublisher(bench, codecs(BOB, MODEL))
        self.sequence = SimpleNamespace(
            dsys=MODEL, target=lambda k: MODEL.state([0.1 * k], [0.2 * k])
        )
        self.topic = bench.made["reference/joint_states"]

    def publish(self, k):
        """The target of step k."""
        self.made.publish(self.sequence, k, 10**7 * k)

    @property
    def steps(self):
        """Steps that were told."""
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
    """A publisher of states that have been heard once."""
    made = StatePublisher(bench, codecs(BOB, MODEL), **{"clock": "clock"} | options)
    made.publish([0.1], [0.2], 10**7, 2 * 10**7)
    return made


def test_states_have_the_stamp_of_the_measurement_and_the_clock_the_present_time(bench):
    made = states(bench)
    assert conversions.nanoseconds(bench.sent("clock")[-1].clock) == 2 * 10**7
    for topic in ("joint_states", "multi_dof_joint_states", "bob/odom"):
        (message,) = bench.sent(topic)
        assert conversions.nanoseconds(message.header.stamp) == 10**7
    made.publish_time(5 * 10**7)
    assert conversions.nanoseconds(bench.sent("clock")[-1].clock) == 5 * 10**7
    assert len(bench.sent("joint_states")) == 1
    assert not made.late_subscribers()
    bench.made["bob/odom"].subscribers += 1
    assert made.late_subscribers() and not made.late_subscribers()


def test_connections_settle_anew_after_one_was_missing(bench, monkeypatch):
    from nh_control.ros.messages import state_publisher

    now, made = [50.0], states(bench)
    monkeypatch.setattr(state_publisher, "time", SimpleNamespace(monotonic=lambda: now[0]))
    heard = SimpleNamespace(
        node_name="recorder", qos_profile=SimpleNamespace(durability=DurabilityPolicy.VOLATILE)
    )
    topics = ("/robot1/joint_states", "/robot1/multi_dof_joint_states")
    found = []
    for after_s, there in ((0.0, 2), (0.06, 2), (0.06, 1), (0.06, 2), (0.06, 2), (0.06, 2)):
        now[0] += after_s
        bench.seen_subscriptions = dict.fromkeys(topics[:there], [heard])
        found.append(made.missing(["recorder"]))
    settling = "new subscriptions to settle"
    assert found[:2] == found[3:5] == [settling, settling] and "to subscribe to" in found[2]
    assert found[5] == "" and made.missing([]) == ""


def test_messages_without_subscribers_are_not_sent(bench):
    made = states(bench)
    bench.made["bob/odom"].subscribers = 0
    made.publish([0.1], [0.2], 0, 0)
    assert len(bench.sent("bob/odom")) == 1 and len(bench.sent("joint_states")) == 2


def test_who_comes_to_transforms_alone_is_late_as_well(bench, monkeypatch):
    from nh_control.ros.messages import state_publisher

    transforms, sent = SimpleNamespace(get_subscription_count=lambda: count[0]), []
    count = [0]
    monkeypatch.setattr(
        state_publisher,
        "transform_broadcaster",
        lambda node, bodies: (lambda: sent.append(len(bodies)), (transforms,)),
    )
    made = states(bench)
    assert sent == []
    count[0] = 1
    assert made.late_subscribers() and not made.late_subscribers()
    made.publish([0.1], [0.2], 0, 0)
    assert sent == [1]


def test_states_are_published_where_any_topic_has_a_subscriber(bench):
    made = CodecPublisher(bench, codecs(BOB, MODEL), "ground_truth/", 1000)
    made.publish([0.1], [0.2], 3)
    assert [publisher.sent[-1].header.stamp.nanosec for publisher in made.publishers] == [3, 3]
    assert made.has_subscribers
    for publisher in made.publishers:
        publisher.subscribers = 0
    assert not made.has_subscribers
    made.publishers[1].subscribers = 1
    assert made.has_subscribers


def test_gains_are_told_row_by_row_with_the_names_of_their_rows_and_columns(bench):
    """Of a system with rotations, whose states have more numbers than local coordinates."""
    K = np.arange(18.0).reshape(3, 2, 3)
    space = SimpleNamespace(tangent_names=("a", "b", "c"))
    dsys = SimpleNamespace(
        state_names=("w", "x", "y", "z"), state_space=space, inputs=("f", "g"), nu=2, ndx=3
    )
    trackers = [SimpleNamespace(gains=SimpleNamespace(K=K), hold=hold) for hold in (False, True)]
    legs = [SimpleNamespace(start=4, tracker=tracker) for tracker in trackers]
    leg, sequence = [legs[0]], SimpleNamespace(dsys=dsys, leg=lambda k: leg[0])
    made = ControllerState(bench, sequence)
    command = SimpleNamespace(error=np.array([0.1, 0.2, 0.3]), memory=None)
    for hold, k, expected in ((0, 5, K[1]), (0, 6, K[2]), (0, 7, 0 * K[0]), (1, 9, K[2])):
        leg[0] = legs[hold]
        made.publish(np.arange(4.0), command, k, 10**7)
        gains = bench.sent("controller_state/gains")[-1]
        assert list(gains.data) == expected.ravel().tolist()
    rows, columns = gains.layout.dim
    assert (rows.label, rows.size, rows.stride) == ("f,g", 2, 6)
    assert (columns.label, columns.size, columns.stride) == ("a,b,c", 3, 3)
    reference, error = (
        bench.sent(f"controller_state/{name}")[-1] for name in ("reference", "error")
    )
    assert (reference.name, list(reference.position)) == (["w", "x", "y", "z"], [0, 1, 2, 3])
    assert (error.name, list(error.position)) == (["a", "b", "c"], [0.1, 0.2, 0.3])
    assert conversions.nanoseconds(error.header.stamp) == 10**7
