"""What a plant says about itself: every value where it belongs, and what it warns of."""

import time
import types
from collections import Counter

import numpy as np
import pytest

from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Rn
from nh_control.loop.clocks import PacingStatistics
from nh_control.loop.command_validator import Fallback, Rejection
from nh_control.loop.plant_report import PlantReport, RotationMonitor
from nh_control.loop.simulation_loop import Mode

STATISTICS = PacingStatistics(100, 49.0, 3, 1e-6, 2e-6, 3e-6, 4e-6, 5e-6)


class Loop:
    """A loop with a number of its own for everything, at step 250 of 0.02 s."""

    def __init__(self):
        self.mode, self.reason, self.awaited_s, self.awaited = Mode.RUNNING, "", 0.0, ""
        self.plant = types.SimpleNamespace(
            step=250,
            initial="start",
            dsys=types.SimpleNamespace(energy=lambda x: {"start": 7.0}[x], h=0.01),
            energy=9.5,
            newton_iterations=11,
            constraint_residual=1e-9,
            faults=types.SimpleNamespace(report=lambda: {"fault psi:noise": "active"}),
        )
        self.validator = types.SimpleNamespace(
            accepted=12,
            age=lambda step: step - 237,
            clipped=14,
            saturated=Counter(torque=15),
            rejected=Counter({Rejection.LATE: 16, Rejection.FUTURE: 1}),
            fallback=Fallback.HOLD,
            fallback_steps=18,
            held_steps=21,
            examples={Rejection.LATE: "stamped 3 s"},
        )
        self.statistics = STATISTICS
        self.pacer = types.SimpleNamespace(
            statistics=lambda: self.statistics, period_s=0.02, speed_factor=2.0
        )


@pytest.fixture
def clock(monkeypatch):
    """Time as the tests want it."""
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def monitor(values, warning=""):
    """Something that is watched."""
    return types.SimpleNamespace(report=lambda: (values, warning))


def test_every_value_is_there_under_its_name(clock):
    report = PlantReport(Loop(), monitor({"grip (N)": 19.0}), monitor({"turn": 20.0}))
    clock.now += 2.0
    made = report.make()
    assert made.values == {
        "mode": "running",
        "step": 250,
        "time_s": 5.0,
        "rate_hz": 50.0,
        "real_time_factor": 1.0,
        "speed_factor": 2.0,
        "missed_steps": 3,
        "jitter_mean_us": pytest.approx(1.0),
        "jitter_p50_us": pytest.approx(2.0),
        "jitter_p90_us": pytest.approx(3.0),
        "jitter_p99_us": pytest.approx(4.0),
        "jitter_max_us": pytest.approx(5.0),
        "commands_accepted": 12,
        "command_age_steps": 13,
        "commands_clipped": 14,
        "clipped: torque": 15,
        "commands_rejected": 17,
        "rejected: late": 16,
        "rejected: answers a future state": 1,
        "fallback": "hold",
        "fallback_steps": 18,
        "held_steps": 21,
        "newton_iterations": 11,
        "energy_J": 9.5,
        "energy_change_J": 2.5,
        "constraint_residual": 1e-9,
        "grip (N)": 19.0,
        "turn": 20.0,
        "fault psi:noise": "active",
    }
    assert made.news == {"command rejected, late": "stamped 3 s"}


def test_turns_are_those_since_the_last_report():
    turns = RotationMonitor(SO3(), 0.1)
    for rate in (2.0, -40.0, 3.0):
        turns.observe(np.array([0.0, rate, 0.0]))
    values, warning = turns.report()
    assert values == {"turn_per_step_rad": pytest.approx(4.0)}
    assert "40 rad/s" in warning and " 4 rad in one step" in warning
    turns.observe(np.array([3.0, 0.0, 4.0]))
    assert turns.report() == ({"turn_per_step_rad": pytest.approx(0.5)}, "")
    still = RotationMonitor(Rn("x"), 0.1)
    still.observe(np.array([100.0]))
    assert still.report() == ({}, "")


def test_warnings_are_about_what_is_new_and_say_how_much(clock):
    loop, warnings = Loop(), ["", "a loose grip"]
    report = PlantReport(loop, types.SimpleNamespace(report=lambda: ({}, warnings.pop())))
    made = report.make()
    new, mode = made.message.split("; ")
    assert (made.level, mode) == ("warn", "running")
    counts = "17 commands", "18 steps with the fallback (hold)", "3 steps missed", "a loose grip"
    assert all(count in new for count in counts)
    loop.validator.rejected[Rejection.LATE] += 2
    loop.validator.fallback_steps += 4
    made = report.make()
    new, mode = made.message.split("; ")
    assert "2 commands" in new and "4 steps with the fallback (hold)" in new and mode == "running"
    assert "missed" not in new and "grip" not in new


def test_missed_deadlines_alone_are_said(clock):
    loop = Loop()
    report = PlantReport(loop)
    report.make()
    loop.statistics = PacingStatistics(150, 49.0, 8, 0.0, 0.0, 0.0, 0.0, 0.0)
    clock.now += 5.0
    made = report.make()
    assert made.message == "5 steps missed since the last report; running"
    assert made.values["rate_hz"] == 10.0 and made.values["real_time_factor"] == 0.2
    made = report.make()
    assert (made.level, made.message) == ("ok", "running") and made.values["rate_hz"] == 0.0


@pytest.mark.parametrize(
    ("mode", "reason", "awaited_s", "level", "message"),
    [
        (Mode.PAUSED, "by request", 0.0, "ok", "paused: by request"),
        (Mode.FINISHED, "5 steps done", 0.0, "ok", "finished: 5 steps done"),
        (Mode.RUNNING, "", 1.0, "ok", "running"),
        (Mode.RUNNING, "", 2.7, "warn", "waiting for 3 s for the tracker"),
        (Mode.FAILED, "step 7 failed", 2.7, "error", "failed: step 7 failed"),
    ],
)
def test_what_it_does_is_said(clock, mode, reason, awaited_s, level, message):
    loop = Loop()
    report = PlantReport(loop)
    report.make()
    loop.mode, loop.reason = mode, reason
    loop.awaited_s, loop.awaited = awaited_s, "the tracker"
    made = report.make()
    assert (made.level, made.message) == (level, message)
