"""What the tracker's interfaces send and when, between messages: without DDS, in one thread."""

import types
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from builtin_interfaces.msg import Time  # noqa: E402
from rclpy import time as ros_time  # noqa: E402
from rclpy.clock import ROSClock  # noqa: E402

from nh_control import Trajectory  # noqa: E402
from nh_control.control.reference_sequence import ReferenceSequence  # noqa: E402
from nh_control.ros.loop import joining  # noqa: E402
from nh_control.ros.loop.after_disarming import AfterDisarming, Kind  # noqa: E402
from nh_control.ros.loop.arming import Arming, Limits  # noqa: E402
from nh_control.ros.loop.hardware_estimate import MeasuredState  # noqa: E402
from nh_control.ros.loop.hardware_tracker import HardwareTracker, Timing  # noqa: E402
from nh_control.ros.loop.safe_range import SafeRange  # noqa: E402
from nh_control.ros.loop.tracker_report import TrackerReport  # noqa: E402
from nh_control.ros.messages import conversions, hardware_interface  # noqa: E402
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
        self.clock = types.SimpleNamespace(now=lambda: types.SimpleNamespace(nanoseconds=0))

    def create_service(self, kind, name, callback):
        """Known by its name."""
        self.services[name] = lambda **fields: callback(kind.Request(**fields), kind.Response())

    def subscribe(self, kind, topic, callback, *quality, **options):
        """Known by its topic."""
        self.topics[topic] = callback

    def call(self, request):
        """At once."""
        return request()

    def get_clock(self):
        """At 0, unless it is another one."""
        return self.clock

    def get_logger(self):
        """Keeps what is told."""
        return types.SimpleNamespace(error=self.errors.append, info=self.infos.append)

    def count_publishers(self, topic):
        """Somebody says when the reference starts."""
        return 1

    def get_subscriptions_info_by_topic(self, topic):
        """Nobody listens."""
        return []


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

    def __init__(self, by_service=False, after=Kind.NONE, **limits):
        super().__init__()
        self.tracker = HardwareTracker(self.sequence, MeasuredState(self.dsys), Timing())
        self.arming = Arming(Limits(**limits))
        self.made = HardwareInterface(
            self.node, self.node, self.codecs, self.tracker, self.arming, self.report,
            self._send, by_service, AfterDisarming(self.dsys, after),
            SafeRange(SCENARIO, self.dsys.system.space), self._begin,
        )  # fmt: skip


class Silent(Hardware):
    """That of armed hardware of which nothing is heard, by a simulated clock, or by wall time
    alone.
    """

    def __init__(self, monkeypatch, simulated):
        super().__init__(silence_s=0.5)
        self.arming.arm()
        self.node.clock, self.wall_s = ROSClock(), 1000.0
        self.node.clock._set_ros_time_is_active(simulated)
        steady = types.SimpleNamespace(monotonic=lambda: self.wall_s)
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

    def __init__(self, integral=False):
        super().__init__(integral)
        publisher = types.SimpleNamespace(get_subscription_count=lambda: 0, topic_name="c")
        self.made = SimulationInterface(
            self.node, self.node, self.codecs, self.sequence, self.report, publisher,
            self._send, self._begin,
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


@pytest.mark.parametrize("after", [Kind.NONE, Kind.ZERO])
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
    assert [u.tolist() for u, *_ in robot.sent[1:]] == ([[0.0]] if after is Kind.ZERO else [])
    assert robot.node.infos == ["armed", "disarmed: by request"] and robot.begun == 1
    assert robot.node.errors == []


@pytest.mark.parametrize("after", [Kind.NONE, Kind.ZERO])
def test_a_tracker_that_stops_disarms_and_says_so(after):
    robot = Hardware(after=after)
    robot.node.services["~/arm"](data=True)
    robot.state(0, 0.1)
    robot.made.stop()
    assert robot.node.errors == ["disarmed: the tracker stopped"]
    assert robot.report.make().values["armed"] is False
    assert [u.tolist() for u, *_ in robot.sent[1:]] == ([[0.0]] if after is Kind.ZERO else [])


def test_the_limit_is_on_the_errors_of_the_configuration():
    robot = Hardware(error=0.3)
    robot.node.services["~/arm"](data=True)
    robot.state(0, 0.1, 5.0)
    assert robot.arming.armed and len(robot.sent) == 1
    robot.state(1, 0.31)
    assert not robot.arming.armed and "tracking error" in robot.arming.reason
    assert robot.node.errors == [f"disarmed: {robot.arming.reason}"]


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
    still.state(5, 0.05, -0.2)
    lost.state(5, 0.05, -0.2)
    assert not still.learned.any() and not lost.learned.any()
    lost.state(6, 0.06)
    assert lost.learned.any()


def test_a_run_that_cannot_be_joined_gets_no_commands(monkeypatch):
    monkeypatch.setattr(joining, "obstacle", lambda *_: "a wall")
    late = Simulated()
    late.start(0)
    late.state(7)
    late.state(8)
    assert late.sent == [] and late.report.make().values["states_refused"] == 2
    late.state(0)
    late.state(9)
    assert [k for _, k, _ in late.sent] == [0, 9]
