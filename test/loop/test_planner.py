"""Plans beside the thread that answers: what is late is answered without them."""

import threading
from functools import cache

import numpy as np
import pytest

import nh_control as nh
from nh_control.control.constraint_margins import ConstraintMargins
from nh_control.control.trackers import linear
from nh_control.loop.planner import Planner
from nh_control.scenarios import MpcOptions, constraints_along, get, mpc_tracker

SCENARIO = get("cart_pole")
START = np.array([0.2, np.pi + 0.1, 0.1, 0.0])


@cache
def tracker():
    dsys = SCENARIO.model(step_s=0.02)
    states = np.tile([0.0, np.pi, 0.0, 0.0], (121, 1))
    rest = nh.Trajectory(dsys.h, states, np.zeros((120, 1)), dsys.state_names, dsys.inputs)
    return mpc_tracker(SCENARIO, dsys, rest, MpcOptions(horizon_s=0.4))


@pytest.fixture
def gate(monkeypatch):
    gate, made = threading.Event(), tracker().prepare

    def prepare(memory, k=None):
        assert gate.wait(60)
        return made(memory, k)

    monkeypatch.setattr(tracker(), "prepare", prepare)
    gate.set()
    yield gate
    gate.set()


@pytest.fixture
def planner():
    made = []

    def make(*arguments):
        made.append(Planner(*arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("prepared", [False, True])
def test_in_lockstep_every_plan_is_waited_for_and_is_that_of_one_call(planner, prepared):
    mpc, waiting = tracker(), planner(None)
    memory, expected = None, None
    for k in range(3):
        memory = waiting.answer(mpc, k, START, memory).memory
        expected = mpc.command(k, START, expected).memory
        np.testing.assert_array_equal(memory.inputs, expected.inputs)
        if prepared:
            waiting.prepare()
    values = waiting.values()
    assert values["commands_by_plan"] == 3 and values["plans_late"] == 0
    assert (
        values["plan_age_steps"] == 0 and values["answer_max_ms"] >= values["answer_mean_ms"] > 0
    )
    assert waiting.trouble() == "" and "answer_max_ms" not in waiting.values()


def test_a_late_plan_is_answered_without_and_becomes_the_last_one(planner, gate):
    mpc, hurried = tracker(), planner(0.0)
    memory = hurried.answer(mpc, 0, START, None).memory  # a run's first plan is waited for
    assert memory.age == 0 and memory.arrays
    made = mpc.command(1, START, memory).memory
    gate.clear()
    hurried.prepare()
    late = hurried.answer(mpc, 1, START, memory)
    np.testing.assert_array_equal(late.u, mpc.late(1, START, memory).u)
    hurried.prepare()  # nothing more is begun meanwhile
    assert hurried._prepared is None
    later = hurried.answer(mpc, 2, START, late.memory)
    assert (later.memory.age, later.memory.late) == (2, 2)
    gate.set()
    hurried._late.outcome.result()
    last = hurried.answer(mpc, 3, START, later.memory)
    if last.memory.age:  # the plan that was late; a fast machine may have a new one
        assert last.memory.age == 2
        np.testing.assert_array_equal(last.memory.inputs, made.inputs)
    assert "followed an earlier plan" in hurried.trouble()


def test_a_preparation_of_another_run_or_leg_is_not_used(planner):
    mpc, waiting = tracker(), planner(None)
    other = mpc.with_reference(mpc.reference)
    memory = waiting.answer(mpc, 0, START, None).memory
    for asked, k, given in ((other, 1, memory), (mpc, 2, memory), (mpc, 0, None)):
        waiting.answer(mpc, 0, START, None)
        waiting.prepare()
        answer = waiting.answer(asked, k, START, given)
        np.testing.assert_array_equal(answer.u, asked.command(k, START, given).u)


def test_other_trackers_answer_themselves_and_margins_are_reported(planner):
    mpc = tracker()
    lqr, plain = linear(mpc), planner(None)
    np.testing.assert_array_equal(
        plain.answer(lqr, 0, START, None).u, lqr.command(0, START, None).u
    )
    kept = constraints_along(SCENARIO, mpc.dsys, "swing_up")
    watching = planner(None, True, ConstraintMargins(mpc.dsys, kept))
    watching.answer(mpc, 0, START, None)
    watching.answer(mpc, 0, START - [1.0, 0, 0, 0], None)
    assert watching.values()["margin: track"] == pytest.approx(0.2)
    assert watching.margin == pytest.approx(0.2)


def test_a_preparation_after_another_memory_is_not_used(planner):
    """Of the same step and tracker, such as after a reset to another state."""
    mpc, waiting = tracker(), planner(None)
    waiting.answer(mpc, 0, START, None)
    waiting.prepare()
    other = mpc.command(0, START - [0.5, 0.3, 0.0, 0.0]).memory
    answer = waiting.answer(mpc, 1, START, other)
    np.testing.assert_array_equal(answer.u, mpc.command(1, START, other).u)


def test_the_first_plan_is_waited_for_by_the_patient_alone_others_get_lqr(planner, gate):
    """The gate opens only after the impatient one has answered."""
    mpc, hurried = tracker(), planner(0.0, False)
    gate.clear()
    command = hurried.answer(mpc, 0, START, None)
    np.testing.assert_array_equal(command.u, linear(mpc).command(0, START).u)
    assert not command.memory.arrays and hurried.values()["plan_age_steps"] == -1
    assert "1 came from LQR" in hurried.trouble()
    threading.Timer(0.2, gate.set).start()
    assert planner(0.0, True).answer(mpc, 0, START, None).memory.arrays


def test_trouble_is_told_once_and_margins_are_the_least_until_then(planner, gate):
    mpc = tracker()
    kept = constraints_along(SCENARIO, mpc.dsys, "swing_up")
    hurried = planner(0.0, False, ConstraintMargins(mpc.dsys, kept))
    gate.clear()
    for position in (0.1, 0.3, 0.2):
        hurried.answer(mpc, 0, START * [0, 1, 1, 1] + [position, 0, 0, 0], None)
    least = hurried.values()["margin: track"]
    assert least == pytest.approx(hurried.margin - 0.1)
    assert "of 3 commands, 0 followed an earlier plan and 3 came from LQR" in hurried.trouble()
    assert hurried.trouble() == "" and hurried.values()["commands_by_lqr"] == 3
