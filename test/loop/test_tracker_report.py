"""What a tracker says about itself: counts, rates since the last report, what it warns of."""

import time
import types

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control import Command
from nh_control.loop.reference_sequence import ReferenceLeg
from nh_control.loop.reports import Refusal
from nh_control.loop.tracker_report import TrackerReport

SCENARIO = scenarios.get("snakeboard")
MODEL = SCENARIO.model()
START = MODEL.state(MODEL.system.space.origin, np.zeros(MODEL.system.space.nw))


@pytest.fixture
def clock(monkeypatch):
    """Time as the tests want it."""
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def command(saturated, error=None):
    error = np.zeros(MODEL.ndx) if error is None else error
    return Command(np.zeros(MODEL.nu), np.array(saturated), error)


def test_rates_and_times_are_those_since_the_last_report(clock):
    report = TrackerReport(SCENARIO, MODEL)
    for seconds in (2e-3, 6e-3, 1e-3):
        report.add_response_time(seconds)
        report.add_state_age(2 * seconds)
    clock.now += 0.5
    values = report.make().values
    ages = [values[f"state_age_{what}ms"] for what in ("", "mean_", "max_")]
    assert ages == pytest.approx([2.0, 6.0, 12.0]) and 11.0 < values["state_age_p99_ms"] < 12.0
    assert values["rate_hz"] == pytest.approx(6.0)
    assert values["response_mean_us"] == pytest.approx(3000.0)
    assert values["response_max_us"] == pytest.approx(6000.0)
    report.add_response_time(4e-3)
    clock.now += 2.0
    values = report.make().values
    assert values["rate_hz"] == pytest.approx(0.5)
    assert values["response_mean_us"] == values["response_max_us"] == pytest.approx(4000.0)
    assert "state_age_ms" not in values
    assert report.make().values["rate_hz"] == 0.0  # at once: no time has passed
    clock.now += 1.0
    assert report.make().values["response_mean_us"] == 0.0


def test_steps_at_a_limit_are_counted_in_all_and_by_input():
    report, x = TrackerReport(SCENARIO, MODEL), START
    for step, saturated in enumerate([(True, False), (True, True), (False, False), (True, False)]):
        report.add_command(step, x, x, command(saturated), 2)
    values = report.make().values
    first, second = MODEL.inputs
    assert (values["step"], values["steps_saturated"]) == (3, 3)
    assert values[f"steps_saturated: {first}"] == 3
    assert values[f"steps_saturated: {second}"] == 1
    never = TrackerReport(SCENARIO, MODEL)
    never.add_command(0, x, x, command((True, False)), 0)
    assert [name for name in never.make().values if "saturated: " in name] == [
        f"steps_saturated: {first}"
    ]
    assert values["momenta_approximated"] == 2


def test_errors_are_shown_by_their_names_and_parts():
    report, space = TrackerReport(SCENARIO, MODEL), MODEL.system.space
    assert not [name for name in report.make().values if name.startswith("error of")]
    error = np.arange(1.0, MODEL.ndx + 1)
    q = np.array(space.origin)
    q[2:5] = 0.3, 1.0, 2.0  # theta, x, y
    x = MODEL.state(q, np.zeros(space.nw))
    report.add_command(0, x, START, command([False] * 2, error), 0)
    values = report.make().values
    assert values["error_norm"] == pytest.approx(np.linalg.norm(error))
    for name, size in zip(MODEL.state_space.tangent_names, error):
        assert values[f"error: {name}"] == size
    parts = {name: value for name, value in values.items() if name.startswith("error of")}
    assert parts["error of position (m)"] == pytest.approx(np.hypot(1.0, 2.0))
    assert parts["error of heading (rad)"] == pytest.approx(0.3)


def test_it_says_the_worst_there_is_to_say_and_counts_refusals_since_the_last_report(clock):
    report, x = TrackerReport(SCENARIO, MODEL), START

    def judged():
        made = report.make()
        return made.level, made.message

    assert judged() == ("warn", "waiting for states")
    report.add_command(0, x, x, command([False] * 2), 0)
    report.add_response_time(1e-3)
    assert judged() == ("ok", "tracking")
    assert judged() == ("warn", "no new states")
    report.add_response_time(1e-3)
    report.refuse_goal(Refusal.MODEL, "the goal is too far")
    assert judged() == ("warn", "the goal is too far")
    report.add_response_time(1e-3)
    assert judged() == ("ok", "tracking")
    report.add_response_time(1e-3)
    report.refuse_state(Refusal.NAMES, "no joint")
    report.refuse_state(Refusal.STAMP, "no stamp")
    assert judged() == ("error", "2 states refused, the last one: no stamp")
    report.add_response_time(1e-3)
    report.refuse_state(Refusal.NAMES, "no joint")
    assert judged() == ("error", "1 states refused, the last one: no joint")
    report.refuse_state(Refusal.STAMP, "no stamp")
    report.accept_goal()
    report.set_status({"armed": False}, "not armed")
    made = report.make()
    assert (made.level, made.message) == ("warn", "not armed")
    assert made.values["armed"] is False
    counts = [made.values[what] for what in ("goals_accepted", "goals_refused")]
    assert counts == [1, 1] and made.values["states_refused"] == 4
    kinds = {
        name: made.values[f"states refused: {name}"] for name in ("wrong names", "wrong stamp")
    }
    assert kinds == {"wrong names": 2, "wrong stamp": 2}
    # the first one of a kind, for the log
    news = {"state refused, wrong names": "no joint", "state refused, wrong stamp": "no stamp"}
    assert made.news == news


def held(hold):
    """A leg of 40 steps that begins at step 10."""
    reference = type("Way", (), {"name": "a_way", "__len__": lambda self: 40})()
    return ReferenceLeg(10, types.SimpleNamespace(reference=reference, hold=hold))


@pytest.mark.parametrize(
    ("step", "hold", "saturated", "level", "message"),
    [
        (49, True, True, "ok", "tracking"),
        (50, False, True, "ok", "tracking"),
        (150, True, False, "ok", "tracking: the reference ended 1 s ago, its last state is held"),
        (
            10**8 + 50,
            True,
            True,
            "warn",
            "the reference ended 1e+06 s ago, its last state is held, 1 of 1 commands saturated",
        ),
        (250, False, False, "warn", "the reference ended 2 s ago and is not held: no forces"),
    ],
)
def test_it_is_said_that_a_reference_is_over(step, hold, saturated, level, message):
    report = TrackerReport(SCENARIO, MODEL)
    report.add_command(step, START, START, command((saturated, False)), 0)
    report.add_response_time(1e-3)
    report.set_leg(held(hold))
    told = report.make()
    assert (told.level, told.message) == (level, message)
    assert told.values["reference"] == "a_way"
    assert told.values["reference_left_s"] == pytest.approx((50 - step) * MODEL.h)
    report.add_response_time(1e-3)
    assert "saturated" not in report.make().message
