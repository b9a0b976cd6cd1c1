"""What the tracker's interfaces send and when, between messages: without DDS, in one thread."""

import types
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from bench import Desk, Ended, benches, listener
from builtin_interfaces.msg import Time
from rclpy import time as ros_time
from rclpy.clock import ROSClock

from nh_control import Trajectory
from nh_control.control import Command
from nh_control.loop import joining
from nh_control.loop.arming import (
    Arming,
    ArmingLimits,
    DisarmCommand,
    DisarmedInputs,
    SafeRange,
    Safety,
)
from nh_control.loop.hardware_estimate import MeasuredState
from nh_control.loop.hardware_tracker import Answer, HardwareTracker, Timing
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.tracker_report import TrackerReport
from nh_control.ros.messages import conversions, hardware_interface, simulation_interface
from nh_control.ros.messages.hardware_interface import HardwareInterface
from nh_control.ros.messages.simulation_interface import SimulationInterface
from nh_control.ros.messages.state_codecs import codecs
from nh_control.scenarios import get

STEPS = 50


def hanging(dsys):
    return Trajectory(dsys.h, np.zeros((STEPS + 1, 2)), np.zeros((STEPS, 1)))


SCENARIO = replace(get("pendulum_swing_up"), references={"hanging": hanging})
H_NS = round(SCENARIO.step_s * 1e9)


@cache
def tracker(integral):
    model = SCENARIO.model()
    return SCENARIO.tracker(model, SCENARIO.reference(model), integral)


def tracker_output(report, send, restarted, matched=lambda: 0):
    """An output of a tracker whose commands go to `send`."""
    publisher = types.SimpleNamespace(get_subscription_count=matched, topic_name="c")
    return types.SimpleNamespace(
        report=report,
        send=send,
        restarted=restarted,
        publisher=publisher,
        count_subscribers=lambda: None,
    )


class Interface:
    """An interface with a tracker of the hanging pendulum; `sent` are (u, k, stamp)."""

    def __init__(self, make, integral=False):
        self.sequence = ReferenceSequence(tracker(integral))
        self.dsys = model = self.sequence.dsys
        self.node, self.desk, self.sent, self.begun = make("tracker"), Desk(), [], 0
        self.codecs, self.report = codecs(SCENARIO, model), TrackerReport(SCENARIO, model)

    def _begin(self):
        self.begun += 1

    def _send(self, *command):
        self.sent.append(command)

    def state(self, k, angle=0.0, rate=0.0):
        self.desk.state(self.codecs, [angle], [rate], round(k * H_NS))

    @property
    def values(self):
        return self.report.make().values

    def told(self, level):
        return [text for one, text in self.node.logged if one == level]


class Hardware(Interface):
    """That of hardware."""

    def __init__(
        self,
        make,
        by_service=False,
        after=DisarmCommand.NONE,
        ranges=(),
        timing=Timing(),
        **limits,
    ):
        super().__init__(make)
        self.tracker = HardwareTracker(self.sequence, MeasuredState(self.dsys), timing)
        self.arming = Arming(ArmingLimits(**limits))
        self.made = HardwareInterface(
            self.node, self.desk, self.codecs, self.tracker,
            Safety(
                self.arming, DisarmedInputs(self.dsys, after),
                SafeRange(SCENARIO, self.dsys.system.space, ranges), np.array([True]), by_service,
            ),
            tracker_output(self.report, self._send, self._begin),
        )  # fmt: skip

    def arm(self, on=True):
        return self.node.call("~/arm", data=on)


class Silent(Hardware):
    """Armed hardware of which nothing is heard, by a simulated clock or by wall time."""

    def __init__(self, make, monkeypatch, simulated):
        super().__init__(make, silence_s=0.5)
        self.arming.armed = True
        self.clock, self.wall_s = ROSClock(), 1000.0
        self.clock._set_ros_time_is_active(simulated)
        self.node.get_clock = lambda: self.clock
        clock = lambda: self.wall_s
        steady = types.SimpleNamespace(monotonic=clock, perf_counter=clock)
        monkeypatch.setattr(hardware_interface, "time", steady)

    def armed_after(self, wall_s, simulated_s):
        self.wall_s += wall_s
        now = self.clock.now().nanoseconds + round(simulated_s * 1e9)
        self.clock.set_ros_time_override(ros_time.Time(nanoseconds=now))
        self.made.tick()
        return self.arming.armed


class Simulated(Interface):
    """That of a simulated plant."""

    def __init__(self, make, integral=False, expected=()):
        super().__init__(make, integral)
        self.matched, self.process = 0, Ended()
        self.node.seen_publishers["reference_start"] = ["plant"]
        self.made = SimulationInterface(
            self.node, self.desk, self.codecs, self.sequence,
            tracker_output(self.report, self._send, self._begin, lambda: self.matched),
            self.process, expected,
        )  # fmt: skip

    @property
    def learned(self):
        return self.report.last[1].memory.disturbance

    def start(self, k):
        time = Time()
        conversions.set_time(time, k * H_NS)
        self.desk.give("reference_start", time)


@pytest.fixture(scope="module")
def make():
    with benches() as make:
        yield make


@pytest.fixture
def hardware(make):
    """Return f(**options) -> Hardware."""
    return partial(Hardware, make)


@pytest.fixture
def simulated(make):
    """Return f(**options) -> Simulated, whose reference starts at 0."""

    def begun(**options):
        plant = Simulated(make, **options)
        plant.start(0)
        return plant

    return begun


# Of hardware -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [False, True])
def test_nothing_is_sent_to_hardware_before_it_is_armed_or_after_it_is_not(hardware, stops):
    robot = hardware()
    robot.state(0, 0.1)
    robot.state(1, 0.1)
    assert robot.sent == []
    assert robot.arm().message == "armed"
    robot.state(2, 0.1)
    assert len(robot.sent) == 1 and robot.sent[0][0][0] < 0
    if stops:
        robot.made.stop()
        assert robot.told("error") == ["disarmed: the tracker stopped"]
    else:
        robot.arm(False)
        robot.state(3, 0.1)
        assert robot.told("info") == ["armed", "disarmed: by request"]
        assert robot.told("error") == []
    assert len(robot.sent) == 1 and robot.begun == 1 and robot.values["armed"] is False


def test_a_start_that_is_asked_for_waits_until_it_is_armed_and_is_forgotten_by_a_disarming(
    hardware,
):
    robot = hardware(by_service=True)
    reported = lambda: [robot.values[name] for name in ("armed", "started", "disarmings")]
    assert robot.node.call("~/start").message == "disarmed" and reported() == [False, False, 0]
    robot.state(0)
    assert robot.tracker.start_ns is None
    robot.arm()
    robot.node.wall_ns = H_NS + 3_000_000
    robot.state(1)
    assert robot.tracker.start_ns == H_NS and reported() == [True, True, 0]
    robot.state(2)
    assert robot.values["state_age_ms"] == pytest.approx(3.0 - 1e-6 * H_NS)
    robot.arm(False)
    assert reported() == [False, False, 1]
    robot.arm()
    robot.state(3)
    assert robot.tracker.start_ns is None and "~/start" in robot.report.make().message
    assert robot.node.call("~/start").message == "armed"
    assert "~/start" not in robot.report.make().message
    robot.state(4)
    told = [conversions.nanoseconds(time) for time in robot.node.sent("reference_start")]
    assert told == [H_NS, 4 * H_NS]  # for recordings


def test_a_simulator_that_is_slow_or_pauses_is_not_silent(make, monkeypatch):
    robot = Silent(make, monkeypatch, simulated=True)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.0)  # no time has come yet
    assert robot.armed_after(wall_s=0.1, simulated_s=1e9)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.4)
    assert robot.armed_after(wall_s=3.0, simulated_s=-1e9)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.4)
    assert not robot.armed_after(wall_s=0.0, simulated_s=0.2)
    assert "no usable state for 0.6 s" in robot.arming.reason


def test_silence_is_by_wall_time_where_there_is_no_other_and_unusable_states_are_silence(
    make, monkeypatch
):
    robot = Silent(make, monkeypatch, simulated=False)
    assert robot.armed_after(wall_s=0.0, simulated_s=0.0)
    assert robot.armed_after(wall_s=0.4, simulated_s=0.0)
    assert not robot.armed_after(wall_s=0.2, simulated_s=0.0)
    robot = Silent(make, monkeypatch, simulated=False)
    robot.state(0, 0.1)
    robot.wall_s += 0.6
    robot.state(1, np.nan)
    assert not robot.arming.armed and "no usable state" in robot.arming.reason
    assert robot.values["states_refused"] == 1


def armed(hardware, **options):
    robot = hardware(**options)
    robot.arm()
    return robot


def test_ranges_are_those_of_what_is_measured_not_of_what_is_expected(hardware):
    ranges = ["pendulum_joint:-0.3:0.3"]
    robot = armed(hardware, ranges=ranges, timing=Timing(compensate=True))
    robot.node.wall_ns = 5 * H_NS
    robot.state(0, 0.25, 2.0)
    assert robot.arming.armed and robot.report.state[0] > 0.3
    robot.node.wall_ns = 6 * H_NS
    robot.state(1, 0.31, -2.0)
    assert not robot.arming.armed and "pendulum_joint = 0.31" in robot.arming.reason


def test_one_of_several_inputs_that_is_saturated_for_too_long_disarms(hardware):
    robot, seen = armed(hardware, saturation_s=0.5), []
    robot.arming.observe = lambda *given: seen.append(given)
    saturated = Command(np.zeros(1), np.array([False, True]), np.array([0.1, 9.0]))
    robot.tracker.answer = lambda *given: Answer(saturated, np.zeros(2), np.zeros(2), 0, 0.0)
    robot.report.add_command = lambda *given: None
    robot.state(0)
    ((_, error, saturated, left),) = seen
    assert error.tolist() == [0.1] and saturated is True and not left


def test_a_jump_of_time_disarms_and_measurements_count_anew(hardware):
    robot = hardware()
    robot.state(300, 0.1)
    robot.state(240, 0.1)  # where nothing is armed, too
    assert robot.tracker.last_ns == 240 * H_NS
    robot.arm()
    robot.state(500, 0.1)
    robot.state(100, 0.1)
    assert robot.arming.reason == "the states' time jumped back by 8 s"
    assert not robot.arming.armed and robot.tracker.start_ns is None
    robot.arm()
    robot.state(101, 0.1)
    assert robot.tracker.start_ns == 101 * H_NS and robot.arming.armed
    sent, refused = len(robot.sent), robot.values["states_refused"]
    robot.state(10**6, 0.1)
    assert not robot.arming.armed and "jumped ahead by 2e+04 s" in robot.arming.reason
    assert len(robot.sent) == sent and robot.values["states_refused"] == refused + 1


def test_a_model_that_cannot_follow_disarms(hardware):
    robot = armed(hardware)

    def fail(*given):
        raise hardware_interface.Diverged("no end")

    robot.state(0, 0.1)
    robot.tracker.answer = fail
    robot.state(1, 0.1)
    assert robot.arming.reason == "the model cannot follow the states: no end"
    assert robot.values["states_refused"] == 1 and len(robot.sent) == 1


def test_what_is_sent_is_known_to_the_model_and_after_disarming_that_nothing_is(hardware):
    robot, sent, stopped = armed(hardware), [], []
    robot.tracker.add_input = lambda u, now_ns: sent.append((float(u[0]), now_ns))
    robot.tracker.stop = stopped.append
    robot.node.wall_ns = 7
    robot.state(0, 0.1)
    assert sent == [(robot.sent[0][0][0], 7)]
    robot.node.wall_ns = 9
    robot.arm(False)
    assert stopped == [9]


@pytest.mark.parametrize("after", [DisarmCommand.ZERO, DisarmCommand.HOLD, DisarmCommand.DAMP])
def test_after_a_disarming_commands_go_on_as_is_said(hardware, after):
    robot = armed(hardware, after=after)
    robot.state(0, 0.1)
    last = robot.sent[-1][0][0]
    assert last < 0
    robot.arm(False)
    robot.state(1, 0.0, 1.0)
    u, _, stamp = robot.sent[-1]
    assert stamp == H_NS
    expected = {DisarmCommand.ZERO: 0.0, DisarmCommand.HOLD: last}.get(after)
    assert u[0] == expected if expected is not None else u[0] < 0
    robot.made.tick()
    u, k, stamp = robot.sent[-1]
    assert (k, stamp) == (0, H_NS)  # the motion is not known any more
    assert u[0] == (last if after is DisarmCommand.HOLD else 0.0)


# Of a simulation ---------------------------------------------------------------------------------


def steps(plant):
    return [k for _, k, _ in plant.sent]


@pytest.mark.parametrize(
    ("events", "answered", "begun", "refused"),
    [
        ("start 0, 0, 7, start 20, 20, start 0, 0", [0, 7, 0, 0], 2, 0),
        ("75, start 72, 75, 80", [3, 8], 1, 0),  # states wait until the start is known
        ("start 72, 75, 3", [3, 3], 2, 0),  # a plant that starts again before it said so
        ("start 0, 0.5, 1.3333", [], 0, 2),  # between steps
        ("start 0, 0, nan 1, 1", [0, 1], 0, 1),
    ],
)
def test_states_are_answered_from_the_start_of_the_reference(
    make, events, answered, begun, refused
):
    plant = Simulated(make)
    for event in events.split(", "):
        *what, number = event.split()
        k = float(number)
        if what == ["start"]:
            plant.start(round(k))
        else:
            plant.state(k, np.nan if what else 0.0)
    assert steps(plant) == answered and plant.begun == begun
    report = plant.report.make()
    assert report.values["states_refused"] == refused
    assert any("source:=hardware" in text for text in report.news.values()) == (refused == 2)


def test_a_state_that_comes_again_gets_the_same_answer_and_another_one_a_new_one(simulated):
    plant = simulated()
    for angle in (0.1, 0.1, 0.2):
        plant.state(3, angle)
    (first, *_), (again, *_), (other, *_) = plant.sent
    assert again is None and other[0] == pytest.approx(2 * first[0])
    plant.state(4, 0.1)
    plant.state(3, 0.1)  # the run has started again
    assert plant.begun == 1 and plant.sent[-1][0][0] == pytest.approx(first[0])
    assert steps(plant) == [3, 3, 3, 4, 3]
    assert [stamp for *_, stamp in plant.sent] == [k * H_NS for k in (3, 3, 3, 4, 3)]


def test_a_plant_alone_need_not_say_when_the_reference_starts(make):
    alone = Simulated(make)
    alone.node.seen_publishers.clear()
    alone.state(5)
    assert alone.sent[0][1:] == (5, 5 * H_NS) and alone.made.now_ns == 5 * H_NS


def test_a_run_that_cannot_be_joined_gets_no_commands(simulated, monkeypatch):
    monkeypatch.setattr(joining, "obstacle", lambda *_: "a wall")
    late = simulated()
    late.state(7)
    late.state(8)
    values = late.values
    assert late.sent == [] and (values["states_refused"], values["step"]) == (2, 8)
    late.state(0)
    late.state(9)
    assert steps(late) == [0, 9]


def test_states_that_did_not_come_are_no_surprise(simulated):
    """A disturbance is learned from two states in a row, not from what was foretold long ago."""
    still, lost = simulated(integral=True), simulated(integral=True)
    for plant in (still, lost):
        plant.state(0)
    still.state(1)
    still.state(3, 0.05, -0.2)
    lost.state(2, 0.05, -0.2)
    assert not still.learned.any() and not lost.learned.any()
    lost.state(3, 0.06)
    assert lost.learned.any()


@pytest.mark.parametrize(
    ("elsewhere", "last", "begun"),
    [
        (lambda plant: plant.start(0), (3, 3 * 0.05), 0),  # put elsewhere in the same run
        (lambda plant: None, (3, 0.16), 0),  # the state of this step was another one
        (lambda plant: None, (0, 0.05), 1),  # the next run
    ],
)
def test_what_was_learned_is_forgotten_where_it_was_another_motion(
    simulated, elsewhere, last, begun
):
    plant = simulated(integral=True)
    for k in range(4):
        plant.state(k, 0.05 * k)
    assert plant.learned.any()
    elsewhere(plant)
    plant.state(*last)
    assert not plant.learned.any() and plant.begun == begun
    fresh = simulated(integral=True)
    fresh.state(*last)
    assert plant.sent[-1][0] == pytest.approx(fresh.sent[-1][0])


@pytest.fixture
def encoders(simulated):
    """A plant without velocities, and f() -> the momentum's error."""
    plant = simulated()
    plant.codecs = codecs(SCENARIO, plant.dsys, velocities=False)
    return plant, lambda: plant.report.last[1].error[1]


def test_no_velocity_is_made_of_positions_of_two_runs(encoders):
    plant, rate = encoders
    for k in range(3):
        plant.state(k, 0.1 * k)
    assert rate() != 0.0
    plant.start(10)
    plant.state(13, 0.5)  # step 3 of the next run
    assert steps(plant)[-1] == 3 and rate() == 0.0


def test_a_first_heading_is_read_next_to_the_reference_s(make):
    board = get("snakeboard")
    model = board.model()
    at, read = model.system.space.names.index(board.body.coordinates[0]), []
    q, rest = np.zeros(model.system.space.nq), np.zeros(model.system.space.nw)
    q[at] = 7.0
    way = Trajectory(model.h, np.tile(model.state(q, rest), (3, 1)), np.zeros((2, model.nu)))

    def answer(tracker, k, x, memory):
        read.append(model.configuration(x)[at])
        raise ValueError("enough")

    along = replace(board, references={"way": lambda dsys: way})
    sequence = ReferenceSequence(along.tracker(model, way), None, answer)
    shown, desk = codecs(board, model), Desk()
    output = tracker_output(TrackerReport(board, model), lambda *u: None, lambda: None)
    SimulationInterface(make("tracker"), desk, shown, sequence, output, Ended())
    desk.state(shown, q, rest, 0)
    assert read == [pytest.approx(7.0)]


class Waiting:
    """A plant that waits for `listening` nodes by a clock that sleep alone moves: `waited()`."""

    def __init__(self, simulated, monkeypatch, *listening, later=lambda time_s: None, **options):
        self.plant, self.now = simulated(**options), 10.0
        self.hear(*listening)

        def sleep(seconds):
            self.now += seconds
            assert self.now < 40.0
            later(self.now - 10.0)

        stand_in = types.SimpleNamespace(
            monotonic=lambda: self.now, sleep=sleep, perf_counter=lambda: 0.0
        )
        monkeypatch.setattr(simulation_interface, "time", stand_in)

    def hear(self, *names):
        self.plant.node.seen_subscriptions = {"c": [listener(name) for name in names]}

    def after(self, k):
        """How long it has waited in all, once a state has come."""
        self.plant.state(k)
        return self.now - 10.0


def test_a_first_or_repeated_answer_waits_for_those_who_listen_but_not_for_ever(
    simulated, monkeypatch
):
    waiting = Waiting(simulated, monkeypatch)
    assert waiting.after(0) == 0.0  # nobody listens
    waiting.hear("recorder")
    assert waiting.after(1) == 0.0  # the run has begun
    assert waiting.after(1) == pytest.approx(1.0, abs=0.1) and len(waiting.plant.sent) == 3
    (warning,) = waiting.plant.told("warning")
    assert "was not matched" in warning
    assert waiting.after(1) == pytest.approx(1.0, abs=0.1)
    assert len(waiting.plant.told("warning")) == 1


def test_the_first_answer_waits_for_those_who_are_to_hear_it(simulated, monkeypatch):
    def later(time_s):
        if time_s > 2.0:
            waiting.hear("recorder", "plant")
        if time_s > 3.0:
            waiting.plant.matched = 2

    waiting = Waiting(simulated, monkeypatch, later=later, expected=["recorder"])
    assert waiting.after(0) == pytest.approx(3.0, abs=0.1) and not waiting.plant.told("warning")
    assert len(waiting.plant.sent) == 1
    absent = Waiting(simulated, monkeypatch, "logger", expected=["recorder", "logger"])
    absent.plant.matched = 1
    assert absent.after(0) == pytest.approx(10.0, abs=0.1) and len(absent.plant.sent) == 1
    assert absent.plant.told("warning") == [
        "recorder does not subscribe to c (parameter 'heard_by')"
    ]
