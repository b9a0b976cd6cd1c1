"""What the tracker's interfaces send and when, between messages: without DDS, in one thread."""

import types
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from loop_outputs import tracker_output

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from builtin_interfaces.msg import Time  # noqa: E402
from rclpy import time as ros_time  # noqa: E402
from rclpy.clock import ROSClock  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402

from nh_control import Trajectory  # noqa: E402
from nh_control.loop import state_estimate  # noqa: E402
from nh_control.loop.arming import (  # noqa: E402
    Arming,
    DisarmCommand,
    DisarmedInputs,
    Limits,
    SafeRange,  # noqa: E402
    Safety,
)
from nh_control.loop.hardware_estimate import MeasuredState  # noqa: E402
from nh_control.loop.hardware_tracker import (  # noqa: E402
    HardwareTracker,
    StateRefused,
    Timing,
)
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence  # noqa: E402
from nh_control.loop.reports import Refusal  # noqa: E402
from nh_control.loop.tracker_report import TrackerReport  # noqa: E402
from nh_control.ros.messages import (  # noqa: E402
    conversions,
    hardware_interface,
    simulation_interface,
)
from nh_control.ros.messages.hardware_interface import HardwareInterface  # noqa: E402
from nh_control.ros.messages.simulation_interface import SimulationInterface  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.scenarios import get  # noqa: E402

STEPS = 50


def hanging(dsys):
    return Trajectory(dsys.h, np.zeros((STEPS + 1, 2)), np.zeros((STEPS, 1)))


SCENARIO = replace(get("pendulum_swing_up"), references={"hanging": hanging})
H_NS = round(SCENARIO.step_s * 1e9)


@cache
def tracker(integral):
    model = SCENARIO.model()
    return SCENARIO.tracker(model, SCENARIO.reference(model), integral)


class Node:
    """A node's services and log, and the subscriptions of its inbox."""

    def __init__(self):
        self.services, self.topics, self.errors, self.infos = {}, {}, [], []
        self.name = "tracker"
        self.closed = False
        self.warnings, self.starts_told, self.listening, self.published = [], 1, [], {}
        self.now_ns = 0
        now = lambda: types.SimpleNamespace(nanoseconds=self.now_ns)  # noqa: E731
        self.clock = types.SimpleNamespace(now=now)

    def create_publisher(self, kind, topic, quality):
        """What it publishes is kept."""
        return types.SimpleNamespace(publish=self.published.setdefault(topic, []).append)

    def create_service(self, kind, name, callback):
        """Known by its name."""
        self.services[name] = lambda **fields: callback(kind.Request(**fields), kind.Response())

    def subscribe(self, kind, topic, callback, *quality, raw=False, **options):
        """Known by its topic."""
        in_bytes = lambda message: callback(serialize_message(message))  # noqa: E731
        self.topics[topic] = in_bytes if raw else callback

    def call(self, request):
        """At once."""
        return request()

    def get_clock(self):
        """At 0, unless it is another one."""
        return self.clock

    def get_logger(self):
        """Keeps what is told."""
        return types.SimpleNamespace(
            error=self.errors.append, info=self.infos.append, warning=self.warnings.append
        )

    def count_publishers(self, topic):
        """Somebody says when the reference starts, or nobody."""
        return self.starts_told if topic == "reference_start" else 0

    def get_subscriptions_info_by_topic(self, topic):
        """Nobody listens, if not told otherwise."""
        return self.listening


class Interface:
    """An interface with a tracker of the hanging pendulum; `sent` are (u, k, stamp)."""

    def __init__(self, integral=False):
        self.sequence = ReferenceSequence(tracker(integral))
        self.dsys = model = self.sequence.dsys
        self.node, self.sent, self.begun = Node(), [], 0
        self.codecs, self.report = codecs(SCENARIO, model), TrackerReport(SCENARIO, model)

    def _begin(self):
        self.begun += 1

    def _send(self, *command):
        self.sent.append(command)

    def state(self, k, angle=0.0, rate=0.0):
        """The pendulum's state of step k arrives."""
        (codec,) = self.codecs
        codec.write([angle], [rate])
        conversions.set_time(codec.message.header.stamp, k * H_NS)
        self.node.topics[codec.topic](codec.message)


class Hardware(Interface):
    """That of hardware."""

    def __init__(
        self, by_service=False, after=DisarmCommand.NONE, ranges=(), timing=Timing(), **limits
    ):
        super().__init__()
        self.tracker = HardwareTracker(self.sequence, MeasuredState(self.dsys), timing)
        self.arming = Arming(Limits(**limits))
        self.made = HardwareInterface(
            self.node, self.node, self.codecs, self.tracker,
            Safety(
                self.arming, DisarmedInputs(self.dsys, after),
                SafeRange(SCENARIO, self.dsys.system.space, ranges), np.array([True]), by_service,
            ),
            tracker_output(self.report, self._send, self._begin),
        )  # fmt: skip


class Silent(Hardware):
    """That of armed hardware of which nothing is heard, by a simulated clock, or by wall time
    alone.
    """

    def __init__(self, monkeypatch, simulated):
        super().__init__(silence_s=0.5)
        self.arming.armed = True
        self.node.clock, self.wall_s = ROSClock(), 1000.0
        self.node.clock._set_ros_time_is_active(simulated)
        clock = lambda: self.wall_s  # noqa: E731
        steady = types.SimpleNamespace(monotonic=clock, perf_counter=clock)
        monkeypatch.setattr(hardware_interface, "time", steady)

    def armed_after(self, wall_s, simulated_s):
        """Whether it is armed after so much silence."""
        self.wall_s += wall_s
        now = self.node.clock.now().nanoseconds + round(simulated_s * 1e9)
        self.node.clock.set_ros_time_override(ros_time.Time(nanoseconds=now))
        self.made.tick()
        return self.arming.armed


class Simulated(Interface):
    """That of a simulated plant."""

    def __init__(self, integral=False, expected=()):
        super().__init__(integral)
        self.matched = 0
        publisher = types.SimpleNamespace(
            get_subscription_count=lambda: self.matched, topic_name="c"
        )
        self.made = SimulationInterface(
            self.node, self.node, self.codecs, self.sequence,
            tracker_output(self.report, self._send, self._begin, publisher), expected,
        )  # fmt: skip

    @property
    def learned(self):
        """The disturbance that it knows."""
        return self.report.last[1].memory.disturbance

    def start(self, k):
        """The plant says that the reference starts at step k."""
        time = Time()
        conversions.set_time(time, k * H_NS)
        self.node.topics["reference_start"](time)


@pytest.mark.parametrize("after", [DisarmCommand.NONE, DisarmCommand.ZERO])
def test_nothing_is_sent_to_hardware_before_it_is_armed(after):
    robot = Hardware(after=after)
    robot.state(0, 0.1)
    robot.state(1, 0.1)
    assert robot.sent == []
    assert robot.node.services["~/arm"](data=True).message == "armed"
    robot.state(2, 0.1)
    assert len(robot.sent) == 1 and robot.sent[0][0][0] < 0
    robot.node.services["~/arm"](data=False)
    robot.state(3, 0.1)
    assert [u.tolist() for u, *_ in robot.sent[1:]] == (
        [[0.0]] if after is DisarmCommand.ZERO else []
    )
    assert robot.node.infos == ["armed", "disarmed: by request"] and robot.begun == 1
    assert robot.node.errors == []


@pytest.mark.parametrize("after", [DisarmCommand.NONE, DisarmCommand.ZERO])
def test_a_tracker_that_stops_disarms_and_says_so(after):
    robot = Hardware(after=after)
    robot.node.services["~/arm"](data=True)
    robot.state(0, 0.1)
    robot.made.stop()
    assert robot.node.errors == ["disarmed: the tracker stopped"]
    assert robot.report.make().values["armed"] is False
    assert [u.tolist() for u, *_ in robot.sent[1:]] == (
        [[0.0]] if after is DisarmCommand.ZERO else []
    )


def test_the_limit_is_on_the_errors_of_the_configuration():
    robot = Hardware(error=0.3)
    robot.node.services["~/arm"](data=True)
    robot.state(0, 0.1, 5.0)
    assert robot.arming.armed and len(robot.sent) == 1
    robot.state(1, 0.31)
    assert not robot.arming.armed and "tracking error" in robot.arming.reason
    assert robot.node.errors == [f"disarmed: {robot.arming.reason}"]


def test_a_service_says_why_hardware_is_not_armed():
    robot = Hardware(error=0.3)
    robot.state(0, 0.31)
    refused = robot.node.services["~/arm"](data=True)
    assert not refused.success and not robot.arming.armed
    assert "tracking error" in refused.message and "is beyond 0.3" in refused.message
    robot.state(1, 0.29)
    assert robot.sent == [] and robot.node.services["~/arm"](data=True).success
    robot.state(2, 0.29)
    assert len(robot.sent) == 1


def test_after_disarming_a_start_is_to_be_asked_for_again():
    robot = Hardware(by_service=True)
    arm, start = (robot.node.services[name] for name in ("~/arm", "~/start"))
    arm(data=True)
    robot.state(0)
    assert robot.tracker.start_ns is None
    start()
    robot.state(1)
    assert robot.tracker.start_ns == H_NS
    arm(data=False)
    arm(data=True)
    robot.state(2)
    assert robot.tracker.start_ns is None
    start()
    robot.state(3)
    assert robot.tracker.start_ns == 3 * H_NS
    told = [time.sec * 10**9 + time.nanosec for time in robot.node.published["reference_start"]]
    assert told == [H_NS, 3 * H_NS]  # for recordings


def test_a_simulator_that_is_slow_or_pauses_is_not_silent(monkeypatch):
    robot = Silent(monkeypatch, simulated=True)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.0)  # no time has come yet
    assert robot.armed_after(wall_s=0.1, simulated_s=1e9)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.4)
    assert robot.armed_after(wall_s=3.0, simulated_s=-1e9)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.4)
    assert not robot.armed_after(wall_s=0.0, simulated_s=0.2)
    assert "no state that can be used for 0.6 s" in robot.arming.reason


def test_silence_is_measured_by_wall_time_where_there_is_no_other(monkeypatch):
    robot = Silent(monkeypatch, simulated=False)
    assert robot.armed_after(wall_s=0.0, simulated_s=0.0)
    assert robot.armed_after(wall_s=0.4, simulated_s=0.0)
    assert not robot.armed_after(wall_s=0.2, simulated_s=0.0)


def test_a_reference_that_starts_elsewhere_starts_once():
    plant = Simulated()
    plant.start(0)
    plant.state(0)
    plant.state(7)
    plant.start(20)
    assert plant.begun == 1
    plant.state(20)
    assert [k for _, k, _ in plant.sent] == [0, 7, 0]
    plant.start(0)
    plant.state(0)
    assert plant.begun == 2 and plant.sent[-1][1] == 0


def test_states_that_did_not_come_are_no_surprise():
    """A disturbance is learned from two states in a row, not from what was foretold long ago."""
    still, lost = Simulated(integral=True), Simulated(integral=True)
    for plant in (still, lost):
        plant.start(0)
        plant.state(0)
    still.state(1)
    still.state(3, 0.05, -0.2)
    lost.state(2, 0.05, -0.2)
    assert not still.learned.any() and not lost.learned.any()
    lost.state(3, 0.06)
    assert lost.learned.any()


def test_where_the_plant_is_put_elsewhere_in_the_same_run_nothing_is_known_of_before():
    plant = Simulated(integral=True)
    plant.start(0)
    plant.state(2)
    plant.state(3, 0.1, 0.3)
    assert plant.learned.any()
    plant.start(0)
    plant.state(3, 0.1, 0.3)
    assert plant.sent[-1][0] is not None and not plant.learned.any() and plant.begun == 0


def test_a_first_heading_is_read_next_to_the_reference_s():
    """Which may have turned more than once."""
    board = get("snakeboard")
    model, heading = board.model(), board.body.coordinates[0]
    q = np.zeros(model.system.space.nq)
    at, rest = model.system.space.names.index(heading), np.zeros(model.system.space.nw)
    q[at] = 7.0
    target = model.state(q, rest)
    node, shown, read = Node(), codecs(board, model), []

    def command(k, x, memory):
        read.append(model.configuration(x)[at])
        raise ValueError("enough")

    sequence = types.SimpleNamespace(dsys=model, target=lambda k: target, step=0, command=command)
    output = tracker_output(TrackerReport(board, model))
    SimulationInterface(node, node, shown, sequence, output)
    node.starts_told = 0
    for codec in shown:
        codec.write(q.tolist(), rest.tolist())
        node.topics[codec.topic](codec.message)
    assert read == [pytest.approx(7.0)]
    read.clear()

    def answer(stamp, q, v, now_ns):
        read.append(q[at])
        raise StateRefused(Refusal.MODEL, "enough")

    hardware = types.SimpleNamespace(
        sequence=sequence, answer=answer, gap_s=lambda stamp: 0.0, start_ns=0, uncompensated=0
    )
    report = types.SimpleNamespace(set_status=lambda *_: None, refuse_state=lambda *_: None)
    safety = Safety(Arming(Limits()), None, None, None, False)
    HardwareInterface(node, node, shown, hardware, safety, tracker_output(report))
    for codec in shown:
        node.topics[codec.topic](codec.message)
    assert read == [pytest.approx(7.0)]


def test_a_start_that_is_asked_for_waits_until_it_is_armed():
    robot = Hardware(by_service=True)
    robot.node.services["~/start"]()
    robot.state(0)
    assert robot.tracker.start_ns is None
    robot.node.services["~/arm"](data=True)
    robot.state(1)
    assert robot.tracker.start_ns == H_NS


def test_its_report_says_whether_the_reference_has_started():
    robot = Hardware()
    started = lambda: robot.report.make().values["started"]  # noqa: E731
    robot.state(0)
    assert started() is False
    robot.node.services["~/arm"](data=True)
    robot.state(1)
    assert started() is True
    robot.node.services["~/arm"](data=False)
    assert started() is False


def test_ranges_are_those_of_what_is_measured_not_of_what_is_expected():
    robot = Hardware(ranges=["pendulum_joint:-0.3:0.3"], timing=Timing(compensate=True))
    robot.node.services["~/arm"](data=True)
    robot.node.now_ns = 5 * H_NS
    robot.state(0, 0.25, 2.0)
    assert robot.arming.armed and robot.report.state[0] > 0.3
    robot.node.now_ns = 6 * H_NS
    robot.state(1, 0.31, -2.0)
    assert not robot.arming.armed and "pendulum_joint = 0.31" in robot.arming.reason


def test_a_run_that_cannot_be_joined_gets_no_commands(monkeypatch):
    monkeypatch.setattr(state_estimate, "obstacle", lambda *_: "a wall")
    late = Simulated()
    late.start(0)
    late.state(7)
    late.state(8)
    values = late.report.make().values
    assert late.sent == [] and (values["states_refused"], values["step"]) == (2, 8)
    late.state(0)
    late.state(9)
    assert [k for _, k, _ in late.sent] == [0, 9]


# Of a simulation ---------------------------------------------------------------------------------


def test_a_state_that_comes_again_gets_the_same_answer_and_another_one_a_new_one():
    plant = Simulated()
    plant.start(0)
    for angle in (0.1, 0.1, 0.2):
        plant.state(3, angle)
    (first, *_), (again, *_), (other, *_) = plant.sent
    assert again is None and other[0] == pytest.approx(2 * first[0])
    plant.state(4, 0.1)
    plant.state(3, 0.1)  # the run has started again
    assert plant.begun == 1 and plant.sent[-1][0][0] == pytest.approx(first[0])
    assert [k for _, k, _ in plant.sent] == [3, 3, 3, 4, 3]
    assert [stamp for *_, stamp in plant.sent] == [k * H_NS for k in (3, 3, 3, 4, 3)]


def test_states_wait_until_it_is_known_when_the_reference_starts():
    plant = Simulated()
    plant.state(75)
    assert plant.sent == []
    plant.start(72)  # later than a second
    plant.state(75)
    assert plant.sent[0][1:] == (3, 75 * H_NS) and plant.made.now_ns == 75 * H_NS
    alone = Simulated()
    alone.node.starts_told = 0
    alone.state(5)
    assert alone.sent[0][1:] == (5, 5 * H_NS) and alone.made.now_ns == 5 * H_NS


def test_a_plant_that_starts_again_before_it_said_so_is_followed_from_zero():
    plant = Simulated()
    plant.start(10)
    plant.state(12)
    plant.state(3)
    assert [k for _, k, _ in plant.sent] == [2, 3] and plant.begun == 2
    assert plant.made.now_ns == 3 * H_NS


@pytest.mark.parametrize("stamp_ns", [H_NS // 2, H_NS + H_NS // 3])
def test_stamps_between_steps_are_refused_with_the_remedy(stamp_ns):
    plant = Simulated()
    plant.start(0)
    (codec,) = plant.codecs
    codec.write([0.0], [0.0])
    conversions.set_time(codec.message.header.stamp, stamp_ns)
    plant.node.topics[codec.topic](codec.message)
    report = plant.report.make()
    assert plant.sent == [] and report.values["states_refused"] == 1
    assert any("source:=hardware" in text for text in report.news.values())


def test_states_that_are_none_are_refused_and_the_next_one_is_answered():
    plant = Simulated()
    plant.start(0)
    plant.state(0)
    plant.state(1, np.nan)
    assert len(plant.sent) == 1 and plant.report.make().values["states_refused"] == 1
    plant.state(1, 0.1)
    assert len(plant.sent) == 2 and plant.sent[-1][0][0] < 0


def test_what_was_learned_in_a_run_is_forgotten_in_the_next_one():
    plant = Simulated(integral=True)
    plant.start(0)
    for k in range(4):
        plant.state(k, 0.05 * k)
    assert plant.learned.any()
    plant.state(0, 0.05)
    assert not plant.learned.any()
    fresh = Simulated(integral=True)
    fresh.start(0)
    fresh.state(0, 0.05)
    assert plant.sent[-1][0] == pytest.approx(fresh.sent[-1][0])


def test_velocities_that_are_not_measured_are_made_of_what_was_commanded():
    """The momentum of a pendulum that moves as the model says is exact."""
    plant = Simulated()
    plant.start(0)
    (codec,) = codecs(SCENARIO, plant.dsys, velocities=False)
    x = plant.dsys.state([0.1], [0.3])
    for k in range(4):
        codec.write(plant.dsys.configuration(x).tolist(), [0.0])
        conversions.set_time(codec.message.header.stamp, k * H_NS)
        plant.node.topics[codec.topic](codec.message)
        x = plant.dsys.step(x, plant.sent[-1][0])
    before = plant.sequence.leg(0).tracker
    measured = plant.dsys.state(plant.dsys.configuration(x), plant.dsys.velocity(x))
    codec.write(plant.dsys.configuration(x).tolist(), [0.0])
    conversions.set_time(codec.message.header.stamp, 4 * H_NS)
    plant.node.topics[codec.topic](codec.message)
    assert plant.report.last[1].error == pytest.approx(before.command(4, measured).error, abs=1e-6)


class Encoders(Simulated):
    """That of a plant without velocities; `rate` is what is made of them."""

    def __init__(self):
        super().__init__()
        self.codecs = codecs(SCENARIO, self.dsys, velocities=False)

    @property
    def rate(self):
        """The momentum's error against that of the pendulum that hangs."""
        return self.report.last[1].error[1]


def test_no_velocity_is_made_of_positions_of_two_runs():
    plant = Encoders()
    plant.start(0)
    for k in range(3):
        plant.state(k, 0.1 * k)
    assert plant.rate != 0.0
    plant.start(10)
    plant.state(13, 0.5)  # step 3 of the next run
    assert plant.sent[-1][1] == 3 and plant.rate == 0.0


def test_nothing_is_known_of_earlier_steps_after_one_that_could_not_be_followed(monkeypatch):
    plant, joined = Encoders(), [True, False, True]

    def require(check, k, x):
        if not joined.pop(0):
            raise ValueError("no")

    monkeypatch.setattr(state_estimate.JoinCheck, "require", require)
    plant.start(0)
    for k in range(3):
        plant.state(k, 0.1 * k)
    assert [k for _, k, _ in plant.sent] == [0, 2] and plant.rate == 0.0


def test_what_a_state_taught_is_forgotten_where_it_was_another_one():
    plant = Simulated(integral=True)
    plant.start(0)
    for k in range(3):
        plant.state(k, 0.05 * k)
    assert plant.learned.any()
    plant.state(2, 0.15)
    assert not plant.learned.any()


def test_a_new_run_begins_with_the_first_leg():
    plant = Simulated()
    plant.start(0)
    first = plant.sequence.leg(0).tracker
    for k in (1, 6, 10):
        plant.state(k)
        plant.sequence.add(ReferenceLeg(k + 4, first))
    plant.state(0, 0.1)
    assert plant.sent[-1][1] == 0 and plant.sequence.leg(20).start == 0


def waits(monkeypatch, slept=lambda time_s: None):
    """How long it has waited for listeners, by a clock that sleep alone moves."""
    now = [10.0]

    def sleep(seconds):
        now[0] += seconds
        assert now[0] < 40.0
        slept(now[0] - 10.0)

    stand_in = types.SimpleNamespace(
        monotonic=lambda: now[0], sleep=sleep, perf_counter=lambda: 0.0
    )
    monkeypatch.setattr(simulation_interface, "time", stand_in)
    return lambda: now[0] - 10.0


def listener(name):
    """A subscription of the commands, as the graph tells it."""
    from rclpy.qos import DurabilityPolicy

    quality = types.SimpleNamespace(durability=DurabilityPolicy.VOLATILE)
    return types.SimpleNamespace(node_name=name, qos_profile=quality)


def test_a_first_or_repeated_answer_waits_for_those_who_listen_but_not_for_ever(monkeypatch):
    plant = Simulated()
    plant.start(0)
    waited = waits(monkeypatch)
    plant.state(0)
    assert waited() == 0.0  # nobody listens
    plant.node.listening = [listener("recorder")]
    plant.state(1)
    assert waited() == 0.0  # the run has begun
    plant.state(1)
    assert waited() == pytest.approx(1.0, abs=0.1) and len(plant.sent) == 3
    assert len(plant.node.warnings) == 1 and "was not matched" in plant.node.warnings[0]
    plant.state(1)
    assert waited() == pytest.approx(1.0, abs=0.1) and len(plant.node.warnings) == 1


def test_the_first_answer_waits_for_those_who_are_to_hear_it(monkeypatch):
    plant = Simulated(expected=["recorder"])
    plant.start(0)

    def later(time_s):
        if time_s > 2.0:
            plant.node.listening = [listener("recorder"), listener("plant")]
        if time_s > 3.0:
            plant.matched = 2

    waited = waits(monkeypatch, later)
    plant.state(0)
    assert waited() == pytest.approx(3.0, abs=0.1) and not plant.node.warnings
    assert len(plant.sent) == 1
    absent = Simulated(expected=["recorder", "logger"])
    absent.start(0)
    absent.node.listening, absent.matched = [listener("logger")], 1
    waited = waits(monkeypatch)
    absent.state(0)
    assert waited() == pytest.approx(10.0, abs=0.1) and len(absent.sent) == 1
    assert absent.node.warnings == ["recorder does not hear c ('heard_by')"]


# Of hardware -------------------------------------------------------------------------------------


def armed(**options):
    """Armed hardware."""
    robot = Hardware(**options)
    robot.node.services["~/arm"](data=True)
    return robot


def test_who_leaves_its_range_is_disarmed():
    robot = armed(ranges=["pendulum_joint:-0.5:0.5"])
    robot.state(0, 0.49)
    assert robot.arming.armed
    robot.state(1, 0.51)
    assert not robot.arming.armed and "pendulum_joint" in robot.arming.reason


def test_one_of_several_inputs_that_is_saturated_for_too_long_disarms(monkeypatch):
    robot = armed(saturation_s=0.5)
    seen = []
    robot.arming.observe = lambda *given: seen.append(given)
    command = types.SimpleNamespace(
        error=np.array([0.1, 9.0]), u=np.zeros(1), saturated=np.array([False, True]), memory=None
    )
    answer = types.SimpleNamespace(
        command=command, step=0, x=np.zeros(2), target=np.zeros(2), age_s=0.0
    )
    robot.tracker.answer = lambda *given: answer
    robot.report.add_command = lambda *given: None
    robot.state(0)
    ((_, error, saturated, left),) = seen
    assert error.tolist() == [0.1] and saturated is True and not left


def test_a_jump_of_time_disarms_and_measurements_count_anew():
    robot = armed()
    robot.state(500, 0.1)
    robot.state(100, 0.1)
    assert not robot.arming.armed
    assert robot.arming.reason == "the states' time jumped back by 8 s"
    assert robot.tracker.start_ns is None
    robot.node.services["~/arm"](data=True)
    robot.state(101, 0.1)
    assert robot.tracker.start_ns == 101 * H_NS and robot.arming.armed


def test_a_jump_of_time_is_one_where_nothing_is_armed_as_well():
    robot, reset = Hardware(), []
    robot.tracker.reset = lambda: reset.append(robot.tracker.last_ns)
    for k in (500, 100):
        robot.state(k, 0.1)
    assert reset == [500 * H_NS]


def test_time_that_jumps_ahead_disarms():
    robot = armed()
    robot.state(0, 0.1)
    sent = len(robot.sent)
    robot.state(10**6, 0.1)
    assert not robot.arming.armed and "jumped ahead by 2e+04 s" in robot.arming.reason
    assert len(robot.sent) == sent
    assert robot.report.make().values["states_refused"] == 1


def test_states_that_cannot_be_used_are_told_and_count_as_silence(monkeypatch):
    robot = Silent(monkeypatch, simulated=False)
    robot.state(0, 0.1)
    robot.wall_s += 0.6
    robot.state(1, np.nan)
    assert not robot.arming.armed and "no state that can be used" in robot.arming.reason
    assert robot.report.make().values["states_refused"] == 1


def test_a_model_that_cannot_follow_disarms():
    robot = armed()

    def fail(*given):
        raise hardware_interface.Diverged("no end")

    robot.state(0, 0.1)
    robot.tracker.answer = fail
    robot.state(1, 0.1)
    assert robot.arming.reason == "the model cannot follow the states: no end"
    assert robot.report.make().values["states_refused"] == 1 and len(robot.sent) == 1


def test_what_is_sent_is_known_to_the_model_and_after_disarming_that_nothing_is():
    robot = armed()
    sent, stopped = [], []
    robot.tracker.add_input = lambda u, now_ns: sent.append((float(u[0]), now_ns))
    robot.tracker.stop = stopped.append
    robot.node.now_ns = 7
    robot.state(0, 0.1)
    assert sent == [(robot.sent[0][0][0], 7)]
    robot.node.now_ns = 9
    robot.node.services["~/arm"](data=False)
    assert stopped == [9]


@pytest.mark.parametrize("after", [DisarmCommand.ZERO, DisarmCommand.HOLD, DisarmCommand.DAMP])
def test_after_a_disarming_commands_go_on_as_is_said(after):
    robot = armed(after=after)
    robot.state(0, 0.1)
    last = robot.sent[-1][0][0]
    assert last < 0
    robot.node.services["~/arm"](data=False)
    robot.state(1, 0.0, 1.0)
    u, _, stamp = robot.sent[-1]
    assert stamp == H_NS
    expected = {DisarmCommand.ZERO: 0.0, DisarmCommand.HOLD: last}.get(after)
    assert u[0] == expected if expected is not None else u[0] < 0
    robot.made.tick()
    u, k, stamp = robot.sent[-1]
    assert (k, stamp) == (0, H_NS)
    assert u[0] == (
        last if after is DisarmCommand.HOLD else 0.0
    )  # the motion is not known any more


def test_a_report_says_whether_it_is_armed_and_started_and_what_it_waits_for():
    robot = Hardware(by_service=True)
    values = lambda: robot.report.make().values  # noqa: E731
    message = lambda: robot.report.make().message  # noqa: E731
    assert (values()["armed"], values()["started"]) == (False, False)
    assert robot.node.services["~/start"]().message == "disarmed"
    robot.node.services["~/arm"](data=True)
    robot.state(0, 0.1)
    assert (values()["armed"], values()["started"], values()["disarmings"]) == (True, True, 0)
    robot.node.services["~/arm"](data=False)
    robot.node.services["~/arm"](data=True)
    robot.state(1)
    assert (values()["started"], values()["disarmings"]) == (False, 1)
    assert "~/start" in message()
    assert robot.node.services["~/start"]().message == "armed"
    assert "~/start" not in message()


def test_ages_and_response_times_are_reported():
    robot = armed()
    robot.node.now_ns = 3_000_000
    robot.state(0, 0.1)
    values = robot.report.make().values
    assert values["state_age_ms"] == pytest.approx(3.0)
    assert values["response_max_us"] > 0
