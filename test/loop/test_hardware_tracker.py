"""Commands for hardware, without ROS: estimates at any time, compensation of delays, arming."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control.input_history import InputHistory, predict
from nh_control.loop.arming import Arming, ArmingRefused, Limits
from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.loop.hardware_tracker import (
    Diverged,
    HardwareTracker,
    StateRefused,
    Timing,
)
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal
from nh_control.numerics import compiled

WALL = 1_790_000_000_000_000_000


@pytest.fixture(scope="module")
def cart():
    """The cart pole's model, and a tracker along its swing up."""
    scenario = scenarios.get("cart_pole")
    dsys = scenario.model()
    return dsys, scenario.tracker(dsys, scenario.reference(dsys))


def ns(seconds):
    return WALL + round(seconds * 1e9)


# --- inputs --------------------------------------------------------------------------------------


def test_inputs_act_from_their_times_and_a_later_one_takes_the_place_of_what_was_to_come():
    history = InputHistory(np.array([0.0]))
    history.add(ns(1.0), np.array([1.0]))
    history.add(ns(2.0), np.array([2.0]))
    history.add(ns(1.5), np.array([3.0]))
    pieces = [(u[0], round(s, 9)) for u, s in history.between(ns(0.25), ns(3.0))]
    assert pieces == [(0.0, 0.75), (1.0, 0.5), (3.0, 1.5)]
    assert [(u[0], round(s, 9)) for u, s in history.between(ns(1.6), ns(1.7))] == [(3.0, 0.1)]
    assert list(history.between(ns(2.0), ns(2.0))) == []


def test_states_are_predicted_over_whole_steps_and_a_part(cart):
    dsys, _ = cart
    x, u = dsys.state([0.1, 0.3], [0.2, -0.5]), np.array([1.5])
    expected = dsys.with_step(0.004).step(dsys.step(dsys.step(x, u), u), u)
    np.testing.assert_array_equal(predict(dsys, x, [(u, 0.024)]), expected)


# --- estimates -----------------------------------------------------------------------------------


def motion(dsys, times, force):
    """Configurations and velocities of the model at times, under a force."""
    x, at, found = dsys.state([0.0, 0.4], [0.3, -1.0]), 0.0, []
    for t in times:
        x = predict(dsys, x, [(np.array([force]), t - at)])
        at = t
        found.append((dsys.configuration(x), dsys.velocity(x), x))
    return found


def test_the_filter_finds_velocities_at_irregular_times_from_noisy_positions(cart):
    dsys, _ = cart
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.uniform(0.002, 0.025, 300))
    force, errors = 2.0, {}
    for name, estimate in (
        ("filter", FilteredState(dsys, 1e-3, 0.1)),
        ("none", MeasuredState(dsys)),
    ):
        before, wrong = 0.0, []
        for t, (q, v, x) in zip(times, motion(dsys, times, force)):
            noisy = q + 1e-3 * rng.normal(size=2)
            guess = estimate.state(ns(t), noisy, None, [(np.array([force]), t - before)], x)
            before = t
            wrong.append(dsys.velocity(guess) - v)
        errors[name] = np.sqrt(np.mean(np.square(wrong[100:])))
    assert errors["filter"] < 0.02 and errors["none"] > 5 * errors["filter"]


def test_a_filter_needs_positive_noise(cart):
    with pytest.raises(ValueError, match="noise > 0 and acceleration > 0, got 0"):
        FilteredState(cart[0], 0.0, 1.0)


# --- commands ------------------------------------------------------------------------------------


def test_on_the_reference_at_any_time_the_command_is_the_reference_s(cart):
    dsys, tracker = cart
    reference = tracker.reference
    hardware = HardwareTracker(ReferenceSequence(tracker), MeasuredState(dsys), Timing())
    hardware.start(ns(0.0))
    for k in (0, 40, 41):
        x = reference.states[k]
        answer = hardware.answer(
            ns(k * dsys.h), dsys.configuration(x), dsys.velocity(x), ns(k * dsys.h)
        )
        assert answer.step == k
        np.testing.assert_allclose(answer.command.u, reference.inputs[k], atol=1e-5)
    middle = HardwareTracker(ReferenceSequence(tracker), MeasuredState(dsys), Timing())
    middle.start(ns(0.0))
    half = dsys.with_step(dsys.h / 2).step(reference.states[60], reference.inputs[60])
    answer = middle.answer(ns(60.5 * dsys.h), dsys.configuration(half), dsys.velocity(half), 0)
    assert np.abs(answer.command.error).max() < 5e-4  # between steps it is of second order


def test_after_a_rehearsal_nothing_is_left_to_compile_and_nothing_is_known(monkeypatch):
    scenario = scenarios.get("cart_pole")

    def fresh():
        dsys = scenario.model()
        sequence = ReferenceSequence(scenario.tracker(dsys, scenario.reference(dsys)))
        return HardwareTracker(sequence, FilteredState(dsys, 1e-3, 1.0), Timing(compensate=True))

    def answers(hardware):
        hardware.start(ns(0.0))
        for k, late in enumerate((0.0, 0.3, 0.0)):
            at = ns((k + late) * 0.01)
            answer = hardware.answer(at, [0.01 * k, 0.1], None, at + 3_000_000)
            hardware.add_input(answer.command.u, at + 3_000_000)
            yield [*answer.x, *answer.command.u]

    expected = list(answers(fresh()))
    hardware = fresh()
    hardware.warm_up()
    assert hardware.start_ns is None and hardware.last_ns == -1 and not hardware.uncompensated
    monkeypatch.setattr(compiled, "Native", None)
    np.testing.assert_array_equal(list(answers(hardware)), expected)


def test_after_states_that_were_lost_none_counts_as_a_surprise(cart):
    dsys, plain = cart
    tracker = scenarios.get("cart_pole").tracker(dsys, plain.reference, integral=True)
    hardware = HardwareTracker(ReferenceSequence(tracker), MeasuredState(dsys), Timing())
    hardware.start(ns(0.0))

    def learned(k, x):
        at = ns(k * dsys.h)
        answer = hardware.answer(at, dsys.configuration(x), dsys.velocity(x), at)
        return answer.command.memory.disturbance

    states = tracker.reference.states
    pushed = states[1] + [0.0, 0.0, 0.05, 0.0]
    assert not learned(0, states[0]).any()
    found = learned(1, pushed)
    assert np.abs(found).max() > 1e-4
    np.testing.assert_array_equal(learned(3, pushed), found)


def test_after_a_stop_a_reference_that_began_later_starts_with_the_next_start(cart):
    dsys, tracker = cart
    hardware = HardwareTracker(ReferenceSequence(tracker), MeasuredState(dsys), Timing())
    x = tracker.reference.states[40]
    measured = dsys.configuration(x), dsys.velocity(x)
    hardware.start(ns(0.0))
    hardware.answer(ns(40 * dsys.h), *measured, 0)
    hardware.sequence.begin(tracker)
    assert hardware.answer(ns(41 * dsys.h), *measured, 0).step == 41
    assert hardware.sequence.first == 0 and hardware.sequence.leg(41).start == 41
    hardware.stop(ns(1.0))
    hardware.start(ns(10.0))
    answer = hardware.answer(ns(10.0), *measured, 0)
    assert answer.step == 0
    np.testing.assert_array_equal(answer.target, tracker.reference.states[0])
    assert hardware.sequence.leg(41).start == 0


def test_with_compensation_the_command_is_for_the_state_when_it_acts(cart):
    """A state on the reference that is 1.4 steps old, with the reference's inputs sent since."""
    dsys, tracker = cart
    reference, k, h = tracker.reference, 60, dsys.h
    x = reference.states[k]
    answers = {}
    for compensate in (False, True):
        timing = Timing(compensate=compensate)
        hardware = HardwareTracker(ReferenceSequence(tracker), MeasuredState(dsys), timing)
        hardware.start(ns(0.0))
        for j in (k, k + 1):
            hardware.add_input(reference.inputs[j], ns(j * h))
        at = ns((k + 1.4) * h)
        answers[compensate] = hardware.answer(
            ns(k * h), dsys.configuration(x), dsys.velocity(x), at
        )
    assert answers[True].step == k + 1 and answers[False].step == k
    np.testing.assert_allclose(answers[True].command.u, reference.inputs[k + 1], atol=0.05)
    assert np.abs(answers[True].command.error).max() < 5e-4


def test_the_estimate_gets_the_inputs_since_the_last_state_and_none_before_the_first(cart):
    dsys, tracker = cart
    got = []

    class Spy(MeasuredState):
        def state(self, time_ns, q, v, inputs, expected):
            got.append([(float(u[0]), round(s, 9)) for u, s in inputs])
            return super().state(time_ns, q, v, inputs, expected)

    hardware = HardwareTracker(ReferenceSequence(tracker), Spy(dsys), Timing())
    hardware.add_input(np.array([1.5]), ns(0.2))
    hardware.answer(ns(1.0), [0.0, 0.0], [0.0, 0.0], ns(1.0))
    hardware.add_input(np.array([2.5]), ns(1.1))
    hardware.answer(ns(1.3), [0.0, 0.0], [0.0, 0.0], ns(1.3))
    assert got == [[], [(1.5, 0.1), (2.5, 0.2)]]


def commands_by(dsys, tracker, timing, clock_s):
    """Commands for a motion near the reference, by a tracker whose clock is so far ahead of the
    states', which come 5 ms after their measurement.
    """
    estimate = FilteredState(dsys, 1e-3, 1.0)
    hardware, found = HardwareTracker(ReferenceSequence(tracker), estimate, timing), []
    hardware.start(ns(0.0))
    for k in range(20):
        here = ns(0.01 * k)
        now = here + round((0.005 + clock_s) * 1e9)
        q = dsys.configuration(tracker.reference.states[k]) + 0.01
        found.append(hardware.answer(here, q, None, now).command.u)
        hardware.add_input(found[-1], now + 1_000_000)
    return np.array(found)


@pytest.mark.parametrize("clock_s", [-1e9, -2.0, 3.0, 1e9])
def test_the_clock_of_states_may_be_any_where_delays_are_not_compensated(cart, clock_s):
    commands = commands_by(*cart, Timing(), clock_s)
    np.testing.assert_allclose(commands, commands_by(*cart, Timing(), 0.0), rtol=1e-9)


def test_where_the_tracker_s_clock_is_behind_its_commands_act_after_their_states(cart):
    """As simulation time is, where the states are read before the clock."""
    behind = commands_by(*cart, Timing(compensate=True), -0.045)
    expected = commands_by(*cart, Timing(), 0.0)
    np.testing.assert_allclose(behind, expected, rtol=1e-9)


def test_states_out_of_order_and_too_old_are_refused(cart):
    dsys, tracker = cart
    timing = Timing(max_age_s=0.1)
    hardware = HardwareTracker(ReferenceSequence(tracker), MeasuredState(dsys), timing)
    q, v = [0.0, 0.0], [0.0, 0.0]
    hardware.answer(ns(1.0), q, v, ns(1.01))
    with pytest.raises(StateRefused, match="stamped 0.5 s before the last state"):
        hardware.answer(ns(0.5), q, v, ns(1.02))
    with pytest.raises(StateRefused, match="0.5 s old by this node's clock"):
        hardware.answer(ns(1.5), q, v, ns(2.0))
    with pytest.raises(StateRefused, match="0.9 s in the future by this node's clock"):
        hardware.answer(ns(2.9), q, v, ns(2.0))


def test_no_delay_is_compensated_over_years(cart):
    dsys, tracker = cart
    hardware = HardwareTracker(
        ReferenceSequence(tracker), MeasuredState(dsys), Timing(compensate=True)
    )
    with pytest.raises(StateRefused, match="are the clocks the same"):
        hardware.answer(round(1e9), [0.0, 0.0], [0.0, 0.0], WALL)


@pytest.mark.parametrize("compensate", [False, True])
def test_after_a_long_silence_states_are_estimated_anew(cart, compensate):
    dsys, tracker = cart
    estimate = FilteredState(dsys, 1e-3, 1.0)
    hardware = HardwareTracker(ReferenceSequence(tracker), estimate, Timing(compensate=compensate))
    hardware.answer(ns(0.0), [0.0, 0.0], [0.0, 0.0], ns(0.0))
    late = ns(1e8)
    answer = hardware.answer(late, [0.3, 0.1], [0.2, 0.0], late)
    np.testing.assert_array_equal(answer.x, dsys.measured_state([0.3, 0.1], [0.2, 0.0]))


@pytest.mark.parametrize("filtered", [True, False])
def test_states_too_large_to_calculate_with_are_refused_and_leave_no_trace(cart, filtered):
    dsys, tracker = cart

    def answers(wild):
        estimate = FilteredState(dsys, 1e-3, 1.0) if filtered else MeasuredState(dsys)
        hardware = HardwareTracker(ReferenceSequence(tracker), estimate, Timing(compensate=True))
        hardware.start(ns(0.0))
        found = []
        for k in range(6):
            now = ns(0.01 * k + 0.004)
            if k == 3 and wild:
                with pytest.raises(StateRefused, match="numbers cannot be used: .*finite"):
                    hardware.answer(ns(0.01 * k - 0.005), [1e308, 0.0], None, now)
            q = dsys.configuration(tracker.reference.states[k])
            found.append(hardware.answer(ns(0.01 * k), q, None, now).command.u)
            hardware.add_input(found[-1], now)
        return np.array(found)

    np.testing.assert_array_equal(answers(wild=True), answers(wild=False))


def flying(cart, outlier):
    """A tracker that has answered three states on the reference, and a function that gives it the
    next one, `wrong` m off.
    """
    dsys, tracker = cart
    hardware = HardwareTracker(
        ReferenceSequence(tracker), FilteredState(dsys, 1e-3, 1.0, outlier), Timing()
    )
    hardware.start(ns(0.0))
    steps = iter(range(1000))

    def answer(wrong=0.0):
        k = next(steps)
        q = dsys.configuration(tracker.reference.states[k]) + [wrong, 0.0]
        found = hardware.answer(ns(k * dsys.h), q, None, ns(k * dsys.h))
        hardware.add_input(found.command.u, ns(k * dsys.h))
        return found

    for _ in range(3):
        answer()
    return answer


def test_a_state_that_no_motion_explains_is_refused_and_the_next_one_used(cart):
    answer = flying(cart, outlier=100.0)
    for wrong in (100.0, -0.5, 1e200):
        with pytest.raises(StateRefused, match="standard deviations from what the model") as got:
            answer(wrong)
        assert got.value.kind is Refusal.IMPLAUSIBLE
        assert np.abs(answer().command.error[:2]).max() < 0.01
    answer(0.01)


def test_a_filter_without_a_limit_takes_what_comes(cart):
    assert flying(cart, outlier=0.0)(0.5).command.error[0] > 0.1
    with pytest.raises(ValueError, match="outlier >= 0, got -1"):
        FilteredState(cart[0], 1e-3, 1.0, -1.0)


def test_states_that_stay_implausible_are_a_divergence_after_which_they_are_believed(cart):
    answer = flying(cart, outlier=100.0)
    for _ in range(9):
        with pytest.raises(StateRefused):
            answer(100.0)
    with pytest.raises(Diverged, match="10 states in turn were implausible, the last one"):
        answer(100.0)
    assert answer(100.0).command.error[0] == pytest.approx(100.0, abs=0.01)


def test_states_far_in_the_future_are_refused_where_delays_are_compensated(cart):
    dsys, tracker = cart
    hardware = HardwareTracker(
        ReferenceSequence(tracker), MeasuredState(dsys), Timing(compensate=True)
    )
    with pytest.raises(StateRefused, match="1e.06 s in the future by this node's clock"):
        hardware.answer(ns(1e6), [0.0, 0.0], [0.0, 0.0], ns(0.0))


def test_a_tracker_tells_of_states_whose_time_is_ahead(cart):
    dsys, tracker = cart
    hardware = HardwareTracker(ReferenceSequence(tracker), MeasuredState(dsys), Timing())
    assert hardware.gap_s(ns(1e6)) == 0.0
    hardware.answer(ns(0.0), [0.0, 0.0], [0.0, 0.0], ns(0.0))
    assert hardware.gap_s(ns(9.0)) == 0.0 and hardware.gap_s(ns(1e6)) == 1e6


# --- arming --------------------------------------------------------------------------------------


def test_nothing_is_armed_unasked_and_a_request_disarms():
    arming = Arming(Limits())
    assert not arming.armed and arming.reason == "not armed yet"
    arming.disarm("by request")
    assert arming.disarmed == 0
    arming.arm(1.0)
    assert arming.armed and arming.reason == ""
    arming.disarm("by request")
    assert not arming.armed and arming.reason == "by request" and arming.disarmed == 1


def test_it_is_told_what_keeps_the_reference_from_being_followed():
    arming = Arming(Limits())
    assert arming.obstacle(awaits_start=True) == "disarmed: not armed yet"
    arming.arm(1.0)
    assert arming.obstacle(awaits_start=True) == "the reference's start is held until ~/start"
    assert arming.obstacle(awaits_start=False) == ""


def test_every_limit_disarms_with_its_reason():
    quiet = Arming(Limits(silence_s=0.5), armed=True)
    quiet.observe(10.0, np.zeros(2), False)
    quiet.check_silence(10.5)
    assert quiet.armed
    quiet.check_silence(10.6)
    assert not quiet.armed and "no state that can be used for 0.6 s" in quiet.reason

    far = Arming(Limits(error=0.2), armed=True)
    far.observe(0.0, np.array([0.1, -0.2]), False)
    assert far.armed
    far.observe(0.1, np.array([0.1, -0.21]), False)
    assert not far.armed and "tracking error 0.21 is beyond 0.2" in far.reason

    nan = Arming(Limits(error=0.2), armed=True)
    nan.observe(0.0, np.array([np.nan]), False)
    assert not nan.armed

    gone = Arming(Limits(), armed=True)
    gone.observe(0.0, np.zeros(1), False, violation="")
    assert gone.armed
    gone.observe(0.1, np.zeros(1), False, violation="cart_joint = 2 is not in -1 ... 1")
    assert not gone.armed and gone.reason.startswith("cart_joint = 2")

    weak = Arming(Limits(saturation_s=0.3), armed=True)
    for t, saturated in ((0.0, True), (0.2, True), (0.25, False), (0.5, True), (0.54, True)):
        weak.observe(t, np.zeros(1), saturated)
        assert weak.armed
    weak.observe(0.6, np.zeros(1), True)
    assert not weak.armed and "saturated for 0.35 s" in weak.reason


def test_arming_is_refused_without_a_state_of_late():
    arming = Arming(Limits(silence_s=0.5))
    with pytest.raises(ArmingRefused, match="no state .* last 0.5 s; check that the robot"):
        arming.arm(10.0)
    arming.observe(10.0, np.zeros(1), False)
    for later in (10.6, 9.0):  # too late, and a clock that went back
        with pytest.raises(ArmingRefused, match="no state"):
            arming.arm(later)
    assert not arming.armed and arming.disarmed == 0
    arming.arm(10.5)
    arming.check_silence(10.9)  # silence counts from the arming
    assert arming.armed


def test_arming_is_refused_beyond_a_limit_until_a_state_is_within_it():
    arming = Arming(Limits(error=0.2))
    arming.observe(1.0, np.array([0.1, -0.3]), False)
    with pytest.raises(ArmingRefused, match="tracking error 0.3 is beyond 0.2; bring the robot"):
        arming.arm(1.0)
    arming.observe(1.1, np.zeros(2), False, violation="cart_joint = 2 is not in -1 ... 1")
    with pytest.raises(ArmingRefused, match="cart_joint = 2"):
        arming.arm(1.1)
    assert not arming.armed and arming.reason == "not armed yet"
    arming.observe(1.2, np.array([0.2, 0.0]), False)
    arming.arm(1.2)
    assert arming.armed and arming.reason == ""


@pytest.mark.parametrize("name", ["silence_s", "error", "saturation_s"])
def test_limits_are_numbers_that_are_not_negative(name):
    for value in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"limit {name} must be >= 0 and finite"):
            Limits(**{name: value})


@pytest.mark.parametrize("kind", ["filter", "none"])
def test_a_robot_that_has_turned_all_around_can_start_again(kind):
    """It stands where the reference starts, one turn on, and was measured on the way."""
    scenario = scenarios.get("differential_drive")
    dsys = scenario.model()
    reference = scenario.reference(dsys, "standstill")
    sequence = ReferenceSequence(scenario.tracker(dsys, reference))
    estimate = FilteredState(dsys, 1e-3, 100.0) if kind == "filter" else MeasuredState(dsys)
    heading = scenario.body.place(dsys.system.space)[0]
    hardware = HardwareTracker(sequence, estimate, Timing(), scenario.body)
    q = dsys.configuration(reference.states[0])
    wheels = dsys.system.parameters.b / dsys.system.parameters.r * np.array([-1.0, 1.0])

    def error(k, turned):
        """The tracked heading's error after a turn on the spot."""
        at, now = q.copy(), ns(k * dsys.h)
        at[:2] += wheels * turned
        at[heading] = np.angle(np.exp(1j * (q[heading] + turned)))
        return hardware.answer(now, at, None, now).command.error[heading]

    hardware.start(ns(0.0))
    turns = [error(k, turned) for k, turned in enumerate(np.linspace(0.0, 2 * np.pi, 400))]
    assert turns[-1] == pytest.approx(2 * np.pi, abs=0.01)
    hardware.stop(ns(400 * dsys.h))
    for k in range(401, 440):
        assert error(k, 2 * np.pi) == pytest.approx(0.0, abs=0.01)
