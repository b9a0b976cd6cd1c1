"""Which commands the validator lets through, what is applied without one, and deadlines."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nh_control.geometry.spaces import Rn
from nh_control.loop.clocks import Pacer, StepClock
from nh_control.loop.command_validator import CommandNames, CommandValidator, Fallback, Rejection
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.mechanics.system import System
from nh_control.scenarios import Joint
from nh_control.scenarios.driven_joints import DrivenJoint, driven_joints, joint_efforts

INPUTS = ("a", "b")
NAMES = CommandNames(INPUTS)
LIMITS = np.array([[-1.0, 1.0], [-np.inf, np.inf]])
CLOCK = StepClock(0.01)
WALL, DAY = 1_790_000_000 * 10**9, 24 * 3600 * 10**9


def validator(timeout_steps=1, fallback="zero", strict=True, names=NAMES):
    return CommandValidator(names, LIMITS, CLOCK, timeout_steps, fallback, strict=strict)


def offer(g, step, values=(0.5, 2.0), names=INPUTS, stamp=None, at=None):
    """Offer an answer to state `step` while the plant is at step `at`."""
    return g.offer(
        names, values, CLOCK.stamp(step) if stamp is None else stamp, step if at is None else at
    )


def test_names_in_any_order_are_accepted_and_values_clipped_to_the_limits():
    g = validator()
    assert offer(g, 0, (7.0, -3.0), names=("b", "a")) is None
    assert g.take(0) == (-1.0, 7.0)
    assert (g.accepted, g.clipped, dict(g.saturated)) == (1, 1, {"a": 1})
    offer(g, 1, (7.0, 30.0), names=("b", "a"))
    assert dict(g.saturated) == {"a": 2}


@pytest.mark.parametrize(
    ("reason", "arguments"),
    [
        (Rejection.WRONG_NAMES, {"names": ("a", "c")}),
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
def test_other_commands_are_rejected_and_counted(reason, arguments):
    g = validator()
    assert offer(g, 4) is None
    assert offer(g, **{"step": 5, **arguments}) is reason
    assert g.rejected == {reason: 1} and g.accepted == 1 and not g.answers(5)


def test_a_command_is_late_when_it_would_not_be_fresh():
    g = validator(timeout_steps=3)
    assert offer(g, 4, at=7) is Rejection.LATE
    assert offer(g, 5, at=7) is None
    assert not g.answers(7) and g.age(7) == 2


def test_a_repetition_of_what_was_said_not_of_what_was_applied_is_harmless():
    g = validator()
    assert offer(g, 0, (7.0, 0.0)) is None and g.take(0) == (1.0, 0.0)
    assert offer(g, 0, (7.0, 0.0)) is None and offer(g, 0, (7.0, 0.0), at=3) is None
    assert (g.accepted, g.rejected.total()) == (1, 0)
    assert offer(g, 0, (1.0, 0.0)) is Rejection.DUPLICATE


def test_an_answer_to_the_first_state_that_comes_twice_is_counted_once():
    g = validator(strict=False)
    assert offer(g, 0) is None and offer(g, 0) is None and offer(g, 0, at=1) is None
    assert g.accepted == 1
    assert offer(g, 0, (0.25, 2.0), at=1) is None  # without a stamp, for the present state
    assert g.accepted == 2 and g.take(1) == (0.25, 2.0)


@pytest.mark.parametrize(
    ("fallback", "expected"), [("hold", (1.0, 2.0)), ("zero", (0.0, 0.0)), ("wait", None)]
)
def test_the_fallback_applies_once_the_command_is_no_longer_fresh(fallback, expected):
    g = validator(timeout_steps=3, fallback=fallback)
    offer(g, 0, (7.0, 2.0))
    assert g.take(0) == g.take(1) == g.take(2) == (1.0, 2.0)
    assert (g.held_steps, g.fallback_steps) == (2, 0)
    assert g.take(3) == expected  # what is held is what was applied
    assert (g.held_steps, g.fallback_steps) == (2, fallback != "wait")


def test_hold_without_any_command_is_zero_and_a_new_run_forgets_the_last_one():
    g = validator(fallback=Fallback.HOLD)
    assert g.take(0) == (0.0, 0.0)
    offer(g, 5)
    g.clear()
    assert g.take(0) == (0.0, 0.0)
    assert offer(g, 0) is None and g.answers(0)


@pytest.mark.parametrize(("fallback", "clipped"), [("tracker", 1.0), ("damp", 9.0)])
def test_fallbacks_ask_for_their_values_each_time_and_the_tracker_s_are_clipped(fallback, clipped):
    g, values = validator(fallback=fallback), iter([(0.5, 2.0), (9.0, -3.0)])
    g.fallback_inputs[Fallback(fallback)] = lambda: next(values)
    assert (g.take(0), g.take(1), g.fallback_steps) == ((0.5, 2.0), (clipped, -3.0), 2)


@pytest.mark.parametrize("fallback", ["zero", "hold", "damp"])
def test_no_force_is_what_the_plant_says(fallback):
    g = validator(fallback=fallback)
    assert g.take(0) == (0.0, 0.0)
    g.fallback_inputs[Fallback.ZERO] = lambda: [3.0, 4.0]
    assert g.take(1) == (3.0, 4.0)


@pytest.mark.parametrize("stamp", [0, WALL])
def test_commands_of_another_clock_answer_the_present_state_one_after_the_other(stamp):
    g = validator(timeout_steps=3, strict=False)
    for step, values in ((0, (0.1, 0.2)), (5, (0.3, 0.4)), (5, (0.5, 0.6)), (6, (0.7, 0.8))):
        assert offer(g, step, values, stamp=stamp) is None
        assert g.take(step) == values and g.answers(step)
    assert g.take(8) == (0.7, 0.8) and g.take(9) == (0.0, 0.0) and not g.rejected


def test_the_newest_answer_of_one_sender_acts_and_the_first_one_of_several():
    """A controller with a clock of its own may answer a state twice, or not at all."""
    g = validator(timeout_steps=3, strict=False)
    assert offer(g, 4, (0.1, 0.2)) is None and offer(g, 4, (0.3, 0.4)) is None
    assert g.take(4) == (0.3, 0.4) and (g.accepted, g.rejected.total()) == (2, 0)
    g.several = lambda: True
    assert offer(g, 5, (0.5, 0.6)) is None
    assert offer(g, 5, (0.7, 0.8)) is Rejection.DUPLICATE and g.take(5) == (0.5, 0.6)


@pytest.mark.parametrize("stamp", [1, 12_345_678, 49_000_000, 10**12, WALL])
def test_targets_answer_the_present_state_whatever_their_stamp(stamp):
    g = CommandValidator(NAMES, LIMITS, CLOCK, 3, "zero", strict=False, own_clock=True)
    for step, values in ((5, (0.1, 0.2)), (5, (0.3, 0.4)), (6, (0.5, 0.6))):
        assert offer(g, step, values, stamp=stamp) is None and g.answers(step)
        assert g.take(step) == values
    assert g.accepted == 3 and not g.rejected


NONE, NO = (math.nan, math.nan), Rejection.NO_COMMAND


def test_nan_of_inputs_that_nobody_commanded_is_no_command():
    g = validator(timeout_steps=3, strict=False)
    g.fallback_inputs[Fallback.ZERO] = lambda: (0.0, 7.0)
    assert [offer(g, step, NONE) for step in range(3)] == [NO] * 3
    assert (g.accepted, g.rejected.total()) == (0, 0) and not g.answers(2)
    assert offer(g, 3, (0.5, math.nan)) is None and g.take(3) == (0.5, 7.0)
    assert offer(g, 4, (math.nan, 0.1)) is Rejection.NOT_FINITE  # it had a command
    assert offer(g, 4, (0.5, math.inf)) is Rejection.NOT_FINITE
    g.clear()
    assert offer(g, 0, NONE) is NO
    assert offer(validator(), 0, NONE) is Rejection.NOT_FINITE  # lock-step


def test_lock_step_takes_no_command_of_another_clock():
    """Nor is one far behind a clock, whatever is waited for."""
    assert offer(validator(), 5, stamp=WALL) is Rejection.FUTURE
    assert offer(validator(), 5, stamp=0) is Rejection.LATE
    assert offer(validator(strict=False), 5, stamp=-WALL) is Rejection.WRONG_STAMP


def test_clocks_are_the_same_up_to_some_days():
    """A stamp of a state that will be in a week is of the future; one of a year is another's."""
    assert offer(validator(strict=False), 5, stamp=7 * DAY) is Rejection.FUTURE
    assert offer(validator(strict=False), 5, stamp=365 * DAY) is None


def test_a_stamped_command_wins_against_those_of_another_clock_while_it_is_fresh():
    g = validator(timeout_steps=3, strict=False)
    assert offer(g, 9, (0.1, 0.1), stamp=0) is None
    assert offer(g, 8, (0.2, 0.2), at=9) is None and g.take(9) == (0.2, 0.2)
    assert offer(g, 10, (0.3, 0.3), stamp=0) is Rejection.STALE
    assert offer(g, 10, (0.3, 0.3), stamp=WALL) is Rejection.FUTURE
    assert g.take(10) == (0.2, 0.2)
    assert offer(g, 11, (0.4, 0.4), stamp=WALL) is None and g.take(11) == (0.4, 0.4)


def test_an_effort_on_a_joint_is_checked_as_the_input_that_it_becomes():
    g = validator(names=CommandNames(INPUTS, [DrivenJoint("hinge", 1, -4.0)], ("hinge", "still")))
    assert offer(g, 0, (0.5, 3.0), names=("still", "hinge", "a")) is None
    assert g.take(0) == (1.0, -2.0) and g.clipped == 1
    assert offer(g, 1, (1e308, 0.0), names=("hinge", "a")) is Rejection.NOT_FINITE
    assert offer(g, 1, (0.1, 0.5, 3.0), names=("still", "hinge", "a")) is Rejection.WRONG_LENGTH
    assert offer(g, 1, (0.0, 2.0, 0.5), names=("still", "hinge", "a")) is None
    assert g.take(1) == (0.5, -8.0)


# Names -------------------------------------------------------------------------------------------

TURRET = CommandNames(("lift", "turn"), [DrivenJoint("turret", 1, -2.0)], ("turret", "flap"))


@pytest.mark.parametrize(
    ("names", "order"),
    [
        ("lift turn", ((0, 1.0), (1, 1.0))),
        ("turn lift", ((1, 1.0), (0, 1.0))),
        ("turret lift", ((1, 1.0), (0, -2.0))),
        ("flap turret lift", ((1, 1.0), (0, -2.0))),
        ("lift", None),
        ("", None),
        ("lift turn turn", None),
        ("lift turn turret", None),
        ("lift turn flap flap", None),
        ("lift turn wing", None),
        ("lift flap", None),
    ],
)
def test_every_input_is_named_once(names, order):
    assert TURRET.order(tuple(names.split())) == order


@pytest.mark.parametrize(
    ("names", "values", "ordered"),
    [
        ("flap turret lift", (0.0, 1.0, 2.0), (2.0, -2.0)),
        ("turret flap lift", (1.0, math.nan, 2.0), (2.0, -2.0)),
        ("flap turret lift", (0.5, 1.0, 2.0), None),
        ("turret flap lift", (1.0, 0.0, 2.0, 3.0), None),
        ("turret flap lift", (1.0,), None),
    ],
)
def test_a_joint_that_nothing_drives_may_have_no_effort_as_its_value(names, values, ordered):
    assert TURRET.ordered(tuple(names.split()), values) == ordered


JOINTS = (Joint("first", "x", -1.0), Joint("again", "x"), Joint("second", "y"), Joint("rest", "z"))


@pytest.mark.parametrize(
    ("force", "driven", "efforts"),
    [
        (
            lambda q, v, u: [4 * u[0], u[1], 0],
            [("first", 0, -0.25), ("second", 1, 1.0)],
            [-8, 8, 3, 0],
        ),
        (lambda q, v, u: [u[1] - v[0], -q[0], 0 * u[0]], [("first", 1, -1.0)], [-3, 3, 0, 0]),
        (lambda q, v, u: [u[0] + u[1], 0, 0], [], [-5, 5, 0, 0]),
        (lambda q, v, u: [u[0], u[0], q[0] * u[1]], [], [-2, 2, 2, 1.5]),
    ],
)
def test_a_joint_is_driven_by_an_input_that_moves_it_alone(force, driven, efforts):
    """Of three unit masses; forces from outside are no actuators. Inputs (2, 3) apply efforts to
    joints, whoever else they drive.
    """
    kinetic = lambda q, v: 0.5 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    system = System("linkage", Rn("x", "y", "z"), kinetic, inputs=("a", "b"), force=force)
    pushed = with_external_forces(system, list(on_coordinates(system.space, (), {})))
    for one in (system, pushed):
        found = driven_joints(JOINTS, one, 2)
        assert [(joint.name, joint.input, joint.gain) for joint in found] == driven
        applied = joint_efforts(JOINTS, one, 2)
        q, v, u = np.array([0.5, 0, 0]), np.ones(3), np.array([2.0, 3.0])
        assert applied(q, v, u) == efforts


# Deadlines ---------------------------------------------------------------------------------------


class Clock:
    """A clock that tests move."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_lateness_does_not_accumulate(clock):
    pacer = Pacer(0.01, clock=clock)
    for k in range(1, 101):
        clock.now += pacer.remaining_s() + 0.004  # every step starts 4 ms late
        pacer.tick()
        assert clock.now == pytest.approx(100 + 0.01 * k + 0.004)
    statistics = pacer.statistics()
    assert (statistics.steps, statistics.missed) == (100, 0)
    assert statistics.jitter_mean_s == pytest.approx(0.004) == statistics.jitter_max_s
    assert statistics.rate_hz == pytest.approx(100)


def test_statistics_are_of_the_last_ten_thousand_steps_and_the_largest_of_all(clock):
    pacer = Pacer(0.01, clock=clock)
    for late in (9e-3, *(1e-7 * k for k in range(1, 10_001))):
        clock.now += pacer.remaining_s() + late
        pacer.tick()
    found = pacer.statistics()
    assert found.jitter_max_s == pytest.approx(9e-3) and found.missed == 0
    assert found.jitter_mean_s == pytest.approx(500.05e-6)
    assert found.jitter_percentiles_s == pytest.approx([500.05e-6, 900.01e-6, 990.001e-6])


# Stamps ------------------------------------------------------------------------------------------

PERIODS = [0.01, 0.001, 1 / 240, 10 / 128, 1e-3 / 3, 0.025]


@given(st.integers(0, 10**7), st.sampled_from(PERIODS))
def test_every_step_has_its_own_stamp_also_in_seconds_in_floating_point(step, h):
    clock = StepClock(h)
    assert clock.step(clock.stamp(step)) == step
    assert clock.stamp(step + 1) > clock.stamp(step)
    assert abs(clock.stamp(step) - step * h * 1e9) <= 1 + 1e-15 * step * h * 1e9
    t = step * h
    assert clock.step(int(t) * 10**9 + int((t - int(t)) * 1e9)) == step


@pytest.mark.parametrize(
    ("h", "stamp", "step"),
    [
        (0.01, -10_000_000, None),
        (0.01, 5_000_000, None),
        *((0.01, 10_000_000 + ns, 1) for ns in (-1000, 999, 1000)),
        *((0.01, 10_000_000 + ns, None) for ns in (-1001, 1001)),
        (1e-6, 5_000, 5),
        (1e-6, 5_400, None),
    ],
)
def test_a_stamp_is_that_of_a_step_up_to_a_microsecond_or_a_tenth_of_a_shorter_step(
    h, stamp, step
):
    assert StepClock(h).step(stamp) == step
