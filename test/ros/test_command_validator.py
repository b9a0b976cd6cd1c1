"""Which commands the validator lets through, and what is applied without one."""

import math

import numpy as np
import pytest

from nh_control.loop.clocks import StepClock
from nh_control.loop.command_validator import (
    CommandNames,
    CommandValidator,
    Fallback,
    Rejection,
)
from nh_control.scenarios.driven_joints import DrivenJoint

INPUTS = ("a", "b")
NAMES = CommandNames(INPUTS)
LIMITS = np.array([[-1.0, 1.0], [-np.inf, np.inf]])
CLOCK = StepClock(0.01)


WALL = 1_790_000_000 * 10**9


def validator(timeout_steps=1, fallback="zero", strict=True):
    return CommandValidator(NAMES, LIMITS, CLOCK, timeout_steps, fallback, strict=strict)


def offer(g, step, values=(0.5, 2.0), names=INPUTS, stamp=None, at=None):
    """Offer an answer to state `step` while the plant is at step `at`."""
    return g.offer(
        names, values, CLOCK.stamp(step) if stamp is None else stamp, step if at is None else at
    )


def test_accepts_names_in_any_order_and_clips_to_the_limits():
    g = validator()
    assert offer(g, 0, (7.0, -3.0), names=("b", "a")) is None
    assert g.take(0) == (-1.0, 7.0)
    assert (g.accepted, g.clipped) == (1, 1)
    assert dict(g.saturated) == {"a": 1}
    offer(g, 1, (7.0, 30.0), names=("b", "a"))
    assert dict(g.saturated) == {"a": 2}


@pytest.mark.parametrize(
    ("reason", "arguments"),
    [
        (Rejection.WRONG_NAMES, {"names": ("a", "c")}),
        (Rejection.WRONG_NAMES, {"names": ("a", "a")}),
        (Rejection.WRONG_NAMES, {"names": ()}),
        (Rejection.WRONG_LENGTH, {"values": (1.0,)}),
        (Rejection.WRONG_LENGTH, {"values": (1.0, 2.0, 3.0)}),
        (Rejection.NOT_FINITE, {"values": (1.0, math.nan)}),
        (Rejection.NOT_FINITE, {"values": (math.inf, 0.0)}),
        (Rejection.WRONG_STAMP, {"stamp": 50_100_000}),
        (Rejection.FUTURE, {"step": 6, "at": 5}),
        (Rejection.STALE, {"step": 3, "at": 5}),
        (Rejection.DUPLICATE, {"step": 4, "at": 5, "values": (9.0, 9.0)}),
    ],
)
def test_rejects_and_counts(reason, arguments):
    g = validator()
    assert offer(g, 4) is None
    assert offer(g, **{"step": 5, **arguments}) is reason
    assert g.rejected == {reason: 1} and g.accepted == 1 and not g.answers(5)


def test_a_command_is_late_when_it_would_not_be_fresh():
    g = validator(timeout_steps=3)
    assert offer(g, 4, at=7) is Rejection.LATE
    assert offer(g, 5, at=7) is None
    assert not g.answers(7) and g.age(7) == 2


def test_repeating_the_accepted_command_is_harmless():
    g = validator()
    assert offer(g, 0) is None and offer(g, 0) is None and offer(g, 0, at=3) is None
    assert (g.accepted, g.rejected.total()) == (1, 0)


def test_an_answer_to_the_first_state_that_comes_twice_is_counted_once():
    g = validator(strict=False)
    assert offer(g, 0) is None and offer(g, 0) is None and offer(g, 0, at=1) is None
    assert g.accepted == 1
    assert offer(g, 0, (0.25, 2.0), at=1) is None  # without a stamp, for the present state
    assert g.accepted == 2 and g.take(1) == (0.25, 2.0)


def test_steps_under_the_answer_to_an_earlier_state_are_counted():
    g = validator(timeout_steps=3)
    offer(g, 0)
    assert g.take(0) == g.take(1) == g.take(2) and g.held_steps == 2
    g.take(3)
    assert (g.held_steps, g.fallback_steps) == (2, 1)


@pytest.mark.parametrize(
    ("fallback", "expected"), [("hold", (0.5, 2.0)), ("zero", (0.0, 0.0)), ("stop", None)]
)
def test_fallback_applies_once_the_command_is_no_longer_fresh(fallback, expected):
    g = validator(timeout_steps=2, fallback=fallback)
    offer(g, 0)
    assert g.take(0) == g.take(1) == (0.5, 2.0) and g.fallback_steps == 0
    assert g.take(2) == expected
    assert g.fallback_steps == (fallback != "stop")


def test_hold_without_any_command_is_zero_and_clear_forgets():
    g = validator(fallback=Fallback.HOLD)
    assert g.take(0) == (0.0, 0.0)
    offer(g, 5)
    g.clear()
    assert offer(g, 0) is None and g.answers(0)


def test_the_fallback_tracker_asks_for_its_values_and_clips_them():
    values = iter([(0.5, 2.0), (9.0, -3.0)])
    g = CommandValidator(NAMES, LIMITS, CLOCK, 1, "tracker")
    g.fallback_inputs[Fallback.TRACKER] = lambda: next(values)
    assert (g.take(0), g.take(1), g.fallback_steps) == ((0.5, 2.0), (1.0, -3.0), 2)


def test_the_fallback_damp_asks_for_its_values_each_time():
    asked = iter([(1.0, 2.0), (3.0, 4.0)])
    g = CommandValidator(NAMES, LIMITS, CLOCK, 1, "damp")
    g.fallback_inputs[Fallback.DAMP] = lambda: next(asked)
    assert (g.take(0), g.take(1), g.fallback_steps) == ((1.0, 2.0), (3.0, 4.0), 2)
    assert CommandValidator(NAMES, LIMITS, CLOCK, 1, "damp").take(0) == (0.0, 0.0)


@pytest.mark.parametrize("stamp", [0, WALL])
def test_commands_of_another_clock_answer_the_present_state_one_after_the_other(stamp):
    g = validator(timeout_steps=3, strict=False)
    for step, values in ((0, (0.1, 0.2)), (5, (0.3, 0.4)), (5, (0.5, 0.6)), (6, (0.7, 0.8))):
        assert offer(g, step, values, stamp=stamp) is None
        assert g.take(step) == values and g.answers(step)
    assert g.take(8) == (0.7, 0.8) and g.take(9) == (0.0, 0.0) and not g.rejected


def test_lock_step_takes_no_command_of_another_clock():
    g = validator()
    assert offer(g, 5, stamp=WALL) is Rejection.FUTURE
    assert offer(g, 5, stamp=0) is Rejection.LATE


def test_a_stamped_command_wins_against_those_of_another_clock_while_it_is_fresh():
    g = validator(timeout_steps=3, strict=False)
    assert offer(g, 9, (0.1, 0.1), stamp=0) is None
    assert offer(g, 8, (0.2, 0.2), at=9) is None and g.take(9) == (0.2, 0.2)
    assert offer(g, 10, (0.3, 0.3), stamp=0) is Rejection.STALE
    assert offer(g, 10, (0.3, 0.3), stamp=WALL) is Rejection.FUTURE
    assert g.take(10) == (0.2, 0.2)
    assert offer(g, 11, (0.4, 0.4), stamp=WALL) is None and g.take(11) == (0.4, 0.4)


def test_a_clock_that_is_far_behind_is_no_clock():
    assert offer(validator(strict=False), 5, stamp=-WALL) is Rejection.WRONG_STAMP


def test_an_effort_on_a_joint_is_checked_as_the_input_that_it_becomes():
    names = CommandNames(INPUTS, [DrivenJoint("hinge", 1, -4.0)], ("hinge", "passive"))
    g = CommandValidator(names, LIMITS, CLOCK, 1)
    assert offer(g, 0, (0.5, 3.0), names=("passive", "hinge", "a")) is None
    assert g.take(0) == (1.0, -2.0) and g.clipped == 1
    assert offer(g, 1, (1e308, 0.0), names=("hinge", "a")) is Rejection.NOT_FINITE
    assert offer(g, 1, (0.1, 0.5, 3.0), names=("passive", "hinge", "a")) is Rejection.WRONG_LENGTH
    assert offer(g, 1, (0.0, 2.0, 0.5), names=("passive", "hinge", "a")) is None
    assert g.take(1) == (0.5, -8.0)


def test_the_first_command_of_every_reason_is_kept_for_the_log():
    g = validator()
    offer(g, 5, names=("a", "c"))
    offer(g, 5, names=("b", "c"))
    offer(g, 5, (1.0,) * 1000)
    assert list(g.examples) == [Rejection.WRONG_NAMES, Rejection.WRONG_LENGTH]
    received, expected = g.examples[Rejection.WRONG_NAMES].split("expected")
    assert "[0.5, 2.0] for ['a', 'c']" in received and "a, b" in expected
    assert len(g.examples[Rejection.WRONG_LENGTH]) < 300
    offer(g, 3, at=5)
    received, expected = g.examples[Rejection.LATE].split("expected")
    assert "0.03 s" in received and "0.05 s" in received and "last 1 states" in expected
    offer(g, 5)
    offer(g, 5, (9.0, 9.0))
    assert "is there a second controller?" in g.examples[Rejection.DUPLICATE]


def test_a_validator_is_strict_holds_nothing_and_wants_an_answer_to_each_state_unless_told():
    g = CommandValidator(NAMES, LIMITS, CLOCK)
    assert offer(g, 5, stamp=0) is Rejection.LATE
    assert offer(g, 4) is None and g.take(4) == (0.5, 2.0) and g.take(5) == (0.0, 0.0)


def test_a_repetition_is_of_what_was_said_not_of_what_was_applied():
    g = validator()
    assert offer(g, 0, (7.0, 0.0)) is None and g.take(0) == (1.0, 0.0)
    assert offer(g, 0, (7.0, 0.0)) is None and g.accepted == 1
    assert offer(g, 0, (1.0, 0.0)) is Rejection.DUPLICATE


def test_what_is_held_is_what_was_applied():
    g = validator(fallback="hold")
    offer(g, 0, (7.0, 2.0))
    assert g.take(0) == g.take(1) == (1.0, 2.0)


def test_what_is_held_is_forgotten_with_the_run():
    g = validator(fallback="hold")
    offer(g, 5)
    g.clear()
    assert g.take(0) == (0.0, 0.0)


@pytest.mark.parametrize("fallback", ["zero", "hold", "damp"])
def test_no_force_is_what_the_plant_says(fallback):
    """Where coordinates are moved at will it is not 0."""
    g = CommandValidator(NAMES, LIMITS, CLOCK, 1, fallback)
    g.fallback_inputs[Fallback.ZERO] = lambda: [3.0, 4.0]
    assert g.take(0) == (3.0, 4.0)


def test_clocks_are_the_same_up_to_some_days():
    """A stamp of a state that will be in a week is of the future; one of a year is another's."""
    day = 24 * 3600 * 10**9
    assert offer(validator(strict=False), 5, stamp=7 * day) is Rejection.FUTURE
    assert offer(validator(strict=False), 5, stamp=365 * day) is None
