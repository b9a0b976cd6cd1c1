"""The time in which a tracker of hardware misses states, without nodes."""

import types

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from rclpy.clock import ROSClock  # noqa: E402
from rclpy.time import Time  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.control.reference_sequence import ReferenceSequence  # noqa: E402
from nh_control.ros.loop.after_disarming import AfterDisarming, Kind  # noqa: E402
from nh_control.ros.loop.arming import Arming, Limits  # noqa: E402
from nh_control.ros.loop.hardware_estimate import MeasuredState  # noqa: E402
from nh_control.ros.loop.hardware_tracker import HardwareTracker, Timing  # noqa: E402
from nh_control.ros.loop.safe_range import SafeRange  # noqa: E402
from nh_control.ros.loop.tracker_report import TrackerReport  # noqa: E402
from nh_control.ros.messages import hardware_interface  # noqa: E402
from nh_control.ros.messages.hardware_interface import HardwareInterface  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402


class Robot:
    """An armed tracker that hears nothing, by a simulated clock, or by wall time alone."""

    def __init__(self, monkeypatch, simulated):
        self.clock, self.wall_s = ROSClock(), 1000.0
        self.clock._set_ros_time_is_active(simulated)
        steady = types.SimpleNamespace(monotonic=lambda: self.wall_s)
        monkeypatch.setattr(hardware_interface, "time", steady)
        nothing = lambda *_: None  # noqa: E731
        node = types.SimpleNamespace(
            create_service=nothing,
            get_clock=lambda: self.clock,
            get_logger=lambda: types.SimpleNamespace(error=nothing),
        )
        inbox = types.SimpleNamespace(subscribe=nothing)
        scenario = scenarios.get("pendulum_swing_up")
        dsys = scenario.model()
        sequence = ReferenceSequence(scenario.tracker(dsys, scenario.reference(dsys)))
        self.arming = Arming(Limits(silence_s=0.5), armed=True)
        self._interface = HardwareInterface(
            node,
            inbox,
            codecs(scenario, dsys),
            HardwareTracker(sequence, MeasuredState(dsys), Timing()),
            self.arming,
            TrackerReport(scenario, dsys),
            nothing,
            False,
            AfterDisarming(dsys, Kind.NONE),
            SafeRange(scenario, dsys.system.space),
            lambda: None,
        )

    def armed_after(self, wall_s, simulated_s):
        """Whether it is armed after so much silence."""
        self.wall_s += wall_s
        now = self.clock.now().nanoseconds
        self.clock.set_ros_time_override(Time(nanoseconds=now + round(simulated_s * 1e9)))
        self._interface.tick()
        return self.arming.armed


def test_a_simulator_that_is_slow_or_pauses_is_not_silent(monkeypatch):
    robot = Robot(monkeypatch, simulated=True)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.0)  # no time has come yet
    assert robot.armed_after(wall_s=0.1, simulated_s=1e9)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.4)
    assert robot.armed_after(wall_s=3.0, simulated_s=-1e9)
    assert robot.armed_after(wall_s=3.0, simulated_s=0.4)
    assert not robot.armed_after(wall_s=0.0, simulated_s=0.2)
    assert "no state that can be used for 0.6 s" in robot.arming.reason


def test_silence_is_measured_by_wall_time_where_there_is_no_other(monkeypatch):
    robot = Robot(monkeypatch, simulated=False)
    assert robot.armed_after(wall_s=0.0, simulated_s=0.0)
    assert robot.armed_after(wall_s=0.4, simulated_s=0.0)
    assert not robot.armed_after(wall_s=0.2, simulated_s=0.0)
