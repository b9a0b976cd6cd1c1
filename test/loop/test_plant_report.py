"""What a plant says about itself: every value where it belongs, and what it warns of."""

import time
import types
from dataclasses import replace

import numpy as np
import pytest
from scripted_loop import ALWAYS, LIGHT, TOO_MUCH

from nh_control import scenarios
from nh_control.control import Command
from nh_control.geometry.rotations import SO3
from nh_control.loop.arming import error_limit
from nh_control.loop.error_bounds import ErrorBounds
from nh_control.loop.plant_report import OutputMonitor, PlantReport, RotationMonitor
from nh_control.loop.reference_sequence import ReferenceLeg
from nh_control.loop.reports import Refusal
from nh_control.loop.tracker_report import TrackerReport
from nh_control.scenarios import MonitoredOutput


def told(report):
    made = report.begin().complete()
    return made.level, made.message


def test_every_value_is_there_under_its_name(scripted, snapshot):
    run = scripted("theta:bias=0.1", "torque:bias=0.1", away=ALWAYS, speed=0.5, wait=False,
                   limit=1.0, timeout_steps=6, fallback="hold")  # fmt: skip
    turns, grip = RotationMonitor(SO3(), 0.1), OutputMonitor(GRIP, 0.0)
    turns.observe(np.array([0.0, 2.0, 0.0]))
    grip.observe(1, np.array([9.0, 8.0]), np.zeros(1), np.zeros(2), {})
    report = PlantReport(run.loop, tables=(grip, turns))
    run.answer(0, 7.0)
    run.loop.command(("brake",), (1.0,), 0)
    run.answer(5)
    run.answer(5)
    run.at(0.05, lambda: setattr(run, "now", 0.15))
    run.run(0.4)
    made = report.begin().complete()
    rounded = {k: float(f"{v:.6g}") if type(v) is float else v for k, v in made.values.items()}
    assert rounded == snapshot
    assert set(made.news) == {
        "command rejected, wrong names",
        "command rejected, answers a future state",
    }


def test_warnings_are_about_what_is_new_and_say_how_much(scripted):
    run, grip = scripted(away=ALWAYS, wait=False, fallback="hold"), OutputMonitor(GRIP, 2.0)
    report = PlantReport(run.loop, tables=(grip,))
    assert told(report) == ("ok", "running")
    run.loop.command(("brake",), (1.0,), 0)
    run.answer(9)
    run.at(0.005, lambda: setattr(run, "now", 0.045))
    run.run(0.0605)
    grip.observe(1, np.ones(2), np.zeros(1), np.zeros(2), {})
    new = "2 commands rejected, 2 steps with the fallback (hold), 3 steps missed"
    low = "1 steps with a loose grip (left, right)"
    assert told(report) == ("warn", f"{new}, {low} since the last report; running")
    run.answer(99)
    assert told(report) == ("warn", "1 commands rejected since the last report; running")
    run.now += 1.0
    assert told(report) == ("ok", "running")


def test_what_it_waits_for_is_said_after_a_second_and_rates_are_of_this_time(scripted):
    run = scripted(lockstep=True, away=ALWAYS)
    report = PlantReport(run.loop)
    run.run(1.0)
    assert told(report) == ("ok", "running")
    run.run(1.0)
    run.now = 3.7
    assert told(report) == (
        "warn",
        "waiting for 3 s for the command that answers step 0; is the tracker running?",
    )
    run.away = (0.0, 3.7)
    run.run(4.7)
    values = report.begin().complete().values
    assert values["rate_hz"] == pytest.approx(100.0, abs=1.0)
    assert values["real_time_factor"] == pytest.approx(1.0, abs=0.02)
    assert report.begin().complete().values["rate_hz"] == 0.0  # at once


def test_a_pause_an_end_and_a_failure_are_said_with_their_reason(scripted):
    run = scripted(dsys=LIGHT, wait=False, last_step=2, away=ALWAYS)
    report = PlantReport(run.loop)
    run.loop.pause()
    assert told(report) == ("ok", "paused: by request")
    run.loop.resume()
    run.run(0.5)
    report.begin().complete()
    assert told(report) == ("ok", "finished: 2 steps done")
    run.loop.reset()
    run.answer(0, TOO_MUCH)
    run.run(1.0)
    level, message = told(report)
    assert level == "error" and message == f"failed: {run.loop.reason}"


# What is watched ---------------------------------------------------------------------------------


GRIP = MonitoredOutput(
    "grip", ("left", "right"), "N", lambda p, q, v, u, external: q + u - p, minimum=0.0,
    warning="a loose grip",
)  # fmt: skip


def test_the_lowest_values_and_those_that_are_too_low_are_told_once():
    monitor = OutputMonitor(GRIP, 1.0)
    see = lambda step, *q: monitor.observe(step, np.array(q), np.zeros(1), np.zeros(2), {})
    names = ["grip left (N)", "grip right (N)", "lowest grip left (N)", "lowest grip right (N)"]
    assert monitor.report() == ({}, "")
    rows = [(9.0, 9.0), (4.0, 3.0), (4.0, 3.0), (0.5, 2.0), (5.0, 6.0)]
    for step, q in enumerate(rows):
        see(step, *q)
    values, warning = monitor.report()
    assert values == dict(zip(names, [4.0, 5.0, -0.5, 1.0]))
    assert warning == "1 steps with a loose grip (left)"
    assert monitor.report() == (dict(zip(names, [4.0, 5.0, 4.0, 5.0])), "")
    see(4, 0.0, 0.0)  # the same state again
    see(0, 0.0, 0.0)  # after a reset: no step was made
    assert monitor.report()[1] == ""


def test_steps_are_evaluated_when_a_report_is_completed(scripted):
    """In another thread than the plant's, all steps in one table."""
    tables = []

    def values(p, q, v, u, external):
        tables.append((q[:, 0].tolist(), {name: len(rows) for name, rows in external.items()}))
        return q

    monitor = OutputMonitor(replace(GRIP, values=values, takes_tables=True), 0.0)
    report = PlantReport(scripted().loop, tables=(monitor,))
    for step, external in ((1, {}), (2, {}), (3, {"cart": np.zeros(1)}), (4, {})):
        monitor.observe(step, np.array([5.0 - step, 1.0]), np.zeros(1), np.zeros(2), external)
    begun = report.begin()
    assert tables == []
    made = begun.complete()
    assert tables == [([4.0, 3.0], {}), ([2.0], {"cart": 1}), ([1.0], {})]
    lowest = [made.values[f"{prefix}grip left (N)"] for prefix in ("", "lowest ")]
    assert lowest == [1.0, 1.0] and report.begin().complete().values["grip right (N)"] == 1.0


# Of a tracker ------------------------------------------------------------------------------------


SCENARIO = scenarios.get("snakeboard")
MODEL = SCENARIO.model()
STANDING = MODEL.state(MODEL.system.space.origin, np.zeros(MODEL.system.space.nw))


@pytest.fixture
def clock(monkeypatch):
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
    report, x = TrackerReport(SCENARIO, MODEL), STANDING
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
    report.add_command(0, x, STANDING, command([False] * 2, error), 0)
    values = report.make().values
    assert values["error_norm"] == pytest.approx(np.linalg.norm(error))
    for name, size in zip(MODEL.state_space.tangent_names, error):
        assert values[f"error: {name}"] == size
    parts = {name: value for name, value in values.items() if name.startswith("error of")}
    assert parts["error of position (m)"] == pytest.approx(np.hypot(1.0, 2.0))
    assert parts["error of heading (rad)"] == pytest.approx(0.3)


def test_an_error_beyond_its_bounds_is_a_warning_and_then_an_error_and_not_tracking():
    """The largest since the last report; bounds follow from the scenario's initial error."""
    bounds = ErrorBounds.of(SCENARIO, MODEL, SCENARIO.reference(MODEL))
    assert bounds.error == error_limit(SCENARIO, MODEL, SCENARIO.reference(MODEL))
    assert bounds.warning == 0.3 * bounds.error
    report, told = TrackerReport(SCENARIO, MODEL, bounds), []
    i = int(np.argmax(bounds.tracked))
    below, above = 0.9 * bounds.warning, 1.1 * bounds.warning
    for sizes in ((below,), (above, 0.0), (0.0, 571.0), (np.nan,), (0.0,)):
        for size in sizes:
            error = np.zeros(MODEL.ndx)
            error[i] = -size
            error[MODEL.system.space.nv :] = 1e3  # momenta are not bounded
            report.add_command(0, STANDING, STANDING, command([False] * 2, error), 0)
            report.add_response_time(1e-3)
        made = report.make()
        told.append((made.level, made.message))
    assert told[0] == told[4] == ("ok", "tracking")
    assert [level for level, _ in told] == ["ok", "warn", "error", "error", "ok"]
    assert "tracking error 571 (m, rad) is beyond" in told[2][1] and "inf" in told[3][1]
    given = ErrorBounds.of(SCENARIO, MODEL, SCENARIO.reference(MODEL), 0.0, 2.0)
    assert (given.warning, given.error) == (np.inf, 2.0)
    assert given.judge(3.0)[0] == "error" and given.judge(1.9) == ("ok", "")


def test_it_says_the_worst_there_is_to_say_and_counts_refusals(clock, snapshot):
    report, x, told = TrackerReport(SCENARIO, MODEL), STANDING, []
    answer = lambda: report.add_response_time(1e-3)
    names = lambda: report.refuse_state(Refusal.NAMES, "no joint")
    stamp = lambda: report.refuse_state(Refusal.STAMP, "no stamp")
    for events in (
        (),
        (lambda: report.add_command(0, x, x, command([False] * 2), 0), answer),
        (),
        (answer, lambda: report.refuse_goal(Refusal.MODEL, "the goal is too far")),
        (answer,),
        (answer, names, stamp),
        (answer, names),
        (stamp, report.accept_goal, lambda: report.set_status({"armed": False}, "not armed")),
    ):
        for event in events:
            event()
        made = report.make()
        told.append(f"{made.level}: {made.message}")
    counted = ("armed", "goals_accepted", "goals_refused", "states_refused",
               "states refused: wrong names", "states refused: wrong stamp")  # fmt: skip
    assert (told, [made.values[name] for name in counted], made.news) == snapshot


def held(hold):
    reference = type("Way", (), {"name": "a_way", "__len__": lambda self: 40})()
    return ReferenceLeg(10, types.SimpleNamespace(reference=reference, hold=hold))


def test_it_is_said_that_a_reference_is_over(snapshot):
    """After 50 steps, held or not, with and without saturated commands."""
    said = []
    for step, hold in ((49, True), (50, False), (150, True), (10**8, True), (250, False)):
        report = TrackerReport(SCENARIO, MODEL)
        report.set_leg(held(hold))
        for saturated in (True, False):
            report.add_command(step, STANDING, STANDING, command((saturated, False)), 0)
            report.add_response_time(1e-3)
            made = report.make()
            said.append(f"{made.level}: {made.message}")
            assert made.values["reference"] == "a_way"
            assert made.values["reference_left_s"] == pytest.approx((50 - step) * MODEL.h)
    assert said == snapshot


@pytest.mark.parametrize(
    ("hold", "level", "largest"), [(True, "error", 3.0), (False, "warn", 0.0)]
)
def test_errors_after_the_end_count_where_it_is_held(hold, level, largest):
    bounds = ErrorBounds.of(SCENARIO, MODEL, SCENARIO.reference(MODEL), 1.0, 2.0)
    report, error = TrackerReport(SCENARIO, MODEL, bounds), np.zeros(MODEL.ndx)
    error[int(np.argmax(bounds.tracked))] = 3.0
    report.set_leg(held(hold))
    report.add_command(150, STANDING, STANDING, command([False] * 2, error), 0)
    report.add_response_time(1e-3)
    made = report.make()
    assert (made.level, made.values["error_largest"]) == (level, largest)
    assert hold or "ended 1 s ago and is not held" in made.message
