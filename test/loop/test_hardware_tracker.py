"""Commands for hardware: states at any time, compensation of delays, what is refused."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control import Command
from nh_control.discrete.results import StepFailed
from nh_control.loop.hardware_estimate import FilteredState, Implausible, MeasuredState
from nh_control.loop.hardware_tracker import Diverged, HardwareTracker, StateRefused, Timing
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal
from nh_control.numerics import compiled
from nh_control.runs.measurements import Measurements
from nh_control.runs.tracker_replay import replay

WALL = 1_790_000_000_000_000_000
REST = [0.0, 0.0], [0.0, 0.0]
TOO_MUCH = 1e100
"""A force under which the model fails."""


def ns(seconds):
    return WALL + round(seconds * 1e9)


def u(value):
    return np.array([value])


class Watched(MeasuredState):
    """The last measurement; keeps what it was `given`, raises a `trouble`, and notes resets."""

    def __init__(self, dsys):
        self.given, self.trouble, self.forgotten = [], [], []
        super().__init__(dsys)

    def state(self, time_ns, q, v, inputs, expected):
        self.given.append(([(float(u[0]), round(s, 9)) for u, s in inputs], expected))
        if self.trouble:
            raise self.trouble[0]
        return super().state(time_ns, q, v, inputs, expected)

    def reset(self):
        self.forgotten.append(True)
        super().reset()


class Robot:
    """A tracker of hardware along the swing up, and its estimate, if no other one a watched one;
    `answer` is of a state at rest, if not told otherwise, `after_s` it was measured.
    """

    def __init__(self, cart, timing=Timing(), estimate=Watched, **more):
        self.dsys, tracker = cart
        self.states = tracker.reference.states
        self.estimate = estimate(self.dsys)
        self.tracker = HardwareTracker(ReferenceSequence(tracker, **more), self.estimate, timing)

    def answer(self, seconds, after_s=0.0, q=REST[0], v=REST[1]):
        return self.tracker.answer(ns(seconds), q, v, ns(seconds + after_s))

    def on_reference(self, k, after_s=0.0):
        x = self.states[k]
        q, v = self.dsys.configuration(x), self.dsys.velocity(x)
        return self.answer(k * self.dsys.h, after_s, q, v)

    def send(self, value, seconds):
        self.tracker.add_input(u(value), ns(seconds))


@pytest.fixture
def robot(cart):
    """Return f(timing, estimate) -> Robot."""
    return partial(Robot, cart)


filtered = partial(FilteredState, noise=1e-3, acceleration=1.0)


# Inputs and times --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timing", "after_s", "pieces"),
    [
        (Timing(), 0.0, [(9.0, 0.1), (1.5, 0.2)]),
        (Timing(actuation_s=0.05), 0.0, [(9.0, 0.15), (1.5, 0.15)]),
        # where clocks differ: after the state that it answers
        (Timing(), 100.0, [(9.0, 0.1), (1.5, 0.2)]),
        # where they agree: when it was sent
        (Timing(compensate=True), 0.05, [(9.0, 0.1), (1.5, 0.2)]),
    ],
)
def test_the_estimate_gets_the_inputs_since_the_last_state_and_none_before_the_first(
    robot, timing, after_s, pieces
):
    it = robot(timing)
    it.send(9.0, 0.2)
    it.answer(1.0, after_s)
    it.send(1.5, 101.1 if after_s == 100.0 else 1.1)
    it.answer(1.3, after_s)
    assert [given for given, _ in it.estimate.given] == [[], pieces]


def test_after_a_stop_nothing_acts_and_after_a_reset_nothing_is_known(robot):
    it = robot()
    it.tracker.start(ns(0.0))
    it.answer(1.0)
    it.send(1.5, 1.1)
    it.tracker.stop(ns(1.2))
    assert it.tracker.start_ns is None  # the reference is to start again
    it.answer(1.3)
    assert it.estimate.given[-1][0] == [(0.0, 0.1), (1.5, 0.1), (0.0, 0.1)]
    it.tracker.start(ns(0.0))
    it.answer(5.0, after_s=100.0)
    forgotten = len(it.estimate.forgotten)
    it.tracker.reset()
    assert len(it.estimate.forgotten) == forgotten + 1 and it.tracker.start_ns is None
    it.send(1.5, 1.1)
    it.answer(1.0)
    it.answer(1.3)
    assert [given for given, _ in it.estimate.given[-2:]] == [[], [(0.0, 0.1), (1.5, 0.2)]]


@pytest.mark.parametrize("compensate", [False, True])
def test_after_a_gap_of_more_than_ten_seconds_states_are_estimated_anew(robot, compensate):
    it = robot(Timing(compensate=compensate), filtered)
    assert it.tracker.gap_s(ns(1e6)) == 0.0
    it.answer(0.0)
    assert (it.tracker.gap_s(ns(10.0)), it.tracker.gap_s(ns(10.5))) == (0.0, 10.5)
    found = it.answer(1e8, 0.0, [0.3, 0.1], [0.2, 0.0])
    np.testing.assert_array_equal(found.x, it.dsys.measured_state([0.3, 0.1], [0.2, 0.0]))


def commands_by(robot, timing, clock_s):
    """Commands along the reference by a clock so far ahead of states that come 5 ms late."""
    it, found = robot(timing, filtered), []
    it.tracker.start(ns(0.0))
    for k in range(20):
        late_s = 0.005 + clock_s
        q = it.dsys.configuration(it.states[k]) + 0.01
        found.append(it.answer(0.01 * k, late_s, q, None).command.u)
        it.tracker.add_input(found[-1], ns(0.01 * k + late_s) + 1_000_000)
    return np.array(found)


@pytest.mark.parametrize(
    ("timing", "clock_s"),
    [
        (Timing(), -1e9),
        (Timing(), 3.0),
        # a clock that is read after the states, as simulation time may be
        (Timing(compensate=True), -0.045),
    ],
)
def test_clocks_may_differ_where_delays_are_not_compensated_or_negative(robot, timing, clock_s):
    expected = commands_by(robot, Timing(), 0.0)
    np.testing.assert_allclose(commands_by(robot, timing, clock_s), expected, rtol=1e-9)


# Targets and commands ----------------------------------------------------------------------------


def test_on_the_reference_at_any_time_the_command_is_the_reference_s(robot, cart):
    it, (dsys, tracker) = robot(), cart
    it.tracker.start(ns(0.0))
    for k in (0, 40, 41):
        found = it.on_reference(k)
        assert found.step == k
        np.testing.assert_allclose(found.command.u, tracker.reference.inputs[k], atol=1e-5)
    half = dsys.with_step(dsys.h / 2).step(it.states[60], tracker.reference.inputs[60])
    found = it.answer(60.5 * dsys.h, 0.0, dsys.configuration(half), dsys.velocity(half))
    assert np.abs(found.command.error).max() < 5e-4  # between steps it is of second order


def test_what_is_expected_is_the_reference_at_the_time_of_the_state(robot):
    it = robot()
    it.answer(1.0)
    np.testing.assert_array_equal(it.estimate.given[-1][1], it.states[0])
    it.tracker.start(ns(5.0))
    assert it.answer(3.0).step == 0  # before its start
    assert it.answer(5.0 + 40 * it.dsys.h).step == 40
    np.testing.assert_allclose(it.estimate.given[-1][1], it.states[40], atol=1e-9)


@pytest.mark.parametrize(
    ("compensate", "late", "step"), [(True, 0.8, 12), (False, 0.8, 10), (True, -1.4, 11)]
)
def test_a_command_is_for_the_time_at_which_it_acts(robot, compensate, late, step):
    """A state that seems to come from the future is as old as its answer takes."""
    it = robot(Timing(actuation_s=0.014, compensate=compensate))
    it.tracker.start(ns(0.0))
    found = it.answer(0.1, after_s=0.01 * late)
    assert found.step == step and it.dsys.h == 0.01
    assert found.age_s == pytest.approx(0.01 * late)


def test_with_compensation_the_command_is_for_the_state_when_it_acts(robot, cart):
    """A state on the reference that is 1.4 steps old, with the reference's inputs sent since."""
    inputs, answers = cart[1].reference.inputs, {}
    for compensate in (False, True):
        it = robot(Timing(compensate=compensate))
        it.tracker.start(ns(0.0))
        for j in (60, 61):
            it.tracker.add_input(inputs[j], ns(j * it.dsys.h))
        answers[compensate] = it.on_reference(60, 1.4 * it.dsys.h)
    assert answers[True].step == 61 and answers[False].step == 60
    np.testing.assert_allclose(answers[True].command.u, inputs[61], atol=0.05)
    assert np.abs(answers[True].command.error).max() < 5e-4


def test_nothing_is_learned_before_the_start_or_from_states_after_lost_ones():
    scenario = scenarios.get("cart_pole")
    dsys = scenario.model()
    tracker = scenario.tracker(dsys, scenario.reference(dsys), integral=True)
    it = Robot((dsys, tracker))

    def learned(k, x):
        found = it.answer(k * dsys.h, 0.0, dsys.configuration(x), dsys.velocity(x))
        return found.command.memory.disturbance

    pushed = [0.0, 0.0, 0.05, 0.0]
    assert not learned(-1, it.states[0]).any()
    it.tracker.start(ns(0.0))
    assert not learned(1, it.states[1] + pushed).any()
    found = learned(2, it.states[2] - pushed)
    assert np.abs(found).max() > 1e-4
    np.testing.assert_array_equal(learned(4, it.states[2] + pushed), found)


def test_after_a_rehearsal_nothing_is_left_to_compile_and_nothing_is_known(monkeypatch):
    scenario = scenarios.get("cart_pole")

    def fresh():
        dsys = scenario.model()
        tracker = scenario.tracker(dsys, scenario.reference(dsys))
        return Robot((dsys, tracker), Timing(compensate=True), filtered)

    def answers(it):
        it.tracker.start(ns(0.0))
        for k, late in enumerate((0.0, 0.3, 0.0)):
            answer = it.answer((k + late) * 0.01, 0.003, [0.01 * k, 0.1], None)
            it.tracker.add_input(answer.command.u, ns((k + late) * 0.01 + 0.003))
            yield [*answer.x, *answer.command.u]

    expected, it = list(answers(fresh())), fresh()
    it.tracker.warm_up()
    assert it.tracker.start_ns is None and it.tracker.last_ns == -1
    assert not it.tracker.uncompensated
    monkeypatch.setattr(compiled, "Native", None)
    np.testing.assert_array_equal(list(answers(it)), expected)


# What is refused ---------------------------------------------------------------------------------

COMPENSATED = Timing(compensate=True)


@pytest.mark.parametrize(
    ("timing", "time_s", "now_s", "words"),
    [
        (Timing(), 1.0, 1.0, "stamped 0 s before the last state"),
        (Timing(max_age_s=0.1), 0.5, 1.02, "stamped 0.5 s before the last state"),
        (Timing(max_age_s=0.1), 1.5, 2.0, "0.5 s old by this node's clock"),
        (Timing(max_age_s=0.1), 2.9, 2.0, "0.9 s in the future by this node's clock"),
        (COMPENSATED, 1.5, 1e9, "old by .*are the clocks the same"),
        (COMPENSATED, 1e6, 0.0, "1e.06 s in the future by this node's clock"),
    ],
)
def test_states_out_of_order_too_old_or_of_the_future_are_refused(
    robot, timing, time_s, now_s, words
):
    it = robot(timing)
    it.answer(1.0)
    with pytest.raises(StateRefused, match=words) as refused:
        it.answer(time_s, now_s - time_s)
    assert refused.value.kind is Refusal.STAMP


@pytest.mark.parametrize("estimate", [filtered, MeasuredState])
def test_states_too_large_to_calculate_with_are_refused_and_leave_no_trace(robot, estimate):
    def answers(wild):
        it, found = robot(COMPENSATED, estimate), []
        it.tracker.start(ns(0.0))
        for k in range(6):
            if k == 3 and wild:
                with pytest.raises(StateRefused, match="numbers cannot be used: .*finite") as got:
                    it.answer(0.01 * k - 0.005, 0.009, [1e308, 0.0], None)
                assert got.value.kind is Refusal.MODEL
            q = it.dsys.configuration(it.states[k])
            found.append(it.answer(0.01 * k, 0.004, q, None).command.u)
            it.tracker.add_input(found[-1], ns(0.01 * k + 0.004))
        return np.array(found)

    np.testing.assert_array_equal(answers(wild=True), answers(wild=False))


def test_a_command_that_is_not_finite_is_a_refusal(robot):
    lost = lambda tracker, k, x, memory: Command(u(np.nan), u(False), np.zeros(4))
    with pytest.raises(StateRefused, match="no finite command") as refused:
        robot(answer=lost).answer(1.0)
    assert refused.value.kind is Refusal.MODEL


def test_a_model_that_cannot_follow_begins_anew_or_takes_the_state_as_it_was(robot):
    it = robot(estimate=filtered)
    it.answer(1.0)
    it.send(TOO_MUCH, 1.01)
    with pytest.raises(StepFailed):
        it.answer(1.1)
    found = it.answer(1.2, 0.0, [0.3, 0.1], [0.2, 0.0])
    np.testing.assert_array_equal(found.x, it.dsys.measured_state([0.3, 0.1], [0.2, 0.0]))
    it = robot(COMPENSATED)
    it.answer(1.0)
    assert it.tracker.uncompensated == 0
    it.send(TOO_MUCH, 1.01)
    found = it.answer(1.1, after_s=0.02)
    assert it.tracker.uncompensated == 1
    np.testing.assert_array_equal(found.x, it.dsys.measured_state(*REST))


def test_implausible_states_are_counted_in_turn_and_ten_are_a_divergence(robot):
    it = robot()

    def refused(times, at_s):
        it.estimate.trouble[:] = [Implausible(Refusal.IMPLAUSIBLE, "too far")]
        for k in range(times):
            with pytest.raises(StateRefused):
                it.answer(at_s + 0.01 * k)

    refused(9, 1.0)
    it.estimate.trouble.clear()
    it.answer(1.5)  # one that is plausible: counted anew
    refused(9, 2.0)
    forgotten = len(it.estimate.forgotten)
    with pytest.raises(
        Diverged, match="10 successive states were implausible; the last one was too far"
    ):
        it.answer(2.5)
    assert len(it.estimate.forgotten) == forgotten + 1
    refused(9, 3.0)


def flying(robot, outlier):
    """Answers three states on the reference, and returns f(wrong m) for the next ones."""
    it = robot(estimate=partial(filtered, outlier=outlier))
    it.tracker.start(ns(0.0))
    steps = iter(range(1000))

    def answer(wrong=0.0):
        k = next(steps)
        q = it.dsys.configuration(it.states[k]) + [wrong, 0.0]
        found = it.answer(k * it.dsys.h, 0.0, q, None)
        it.tracker.add_input(found.command.u, ns(k * it.dsys.h))
        return found

    for _ in range(3):
        answer()
    return answer


def test_a_state_that_no_motion_explains_is_refused_and_the_next_one_used(robot):
    answer = flying(robot, outlier=100.0)
    for wrong in (100.0, -0.5, 1e200):
        with pytest.raises(
            StateRefused, match="standard deviations from the prediction of"
        ) as got:
            answer(wrong)
        assert got.value.kind is Refusal.IMPLAUSIBLE
        assert np.abs(answer().command.error[:2]).max() < 0.01
    answer(0.01)
    for error in 9 * [StateRefused] + [Diverged]:  # which is believed in the end
        with pytest.raises(error):
            answer(100.0)
    assert answer(100.0).command.error[0] == pytest.approx(100.0, abs=0.01)
    assert flying(robot, outlier=0.0)(0.5).command.error[0] > 0.1  # no limit


@pytest.mark.parametrize("estimate", [partial(filtered, acceleration=100.0), MeasuredState])
def test_a_robot_that_has_turned_all_around_can_start_again(estimate):
    """It stands where the reference starts, one turn on, and was measured on the way."""
    scenario = scenarios.get("differential_drive")
    dsys = scenario.model()
    reference = scenario.reference(dsys, "standstill")
    sequence = ReferenceSequence(scenario.tracker(dsys, reference))
    heading = scenario.body.place(dsys.system.space)[0]
    hardware = HardwareTracker(sequence, estimate(dsys), Timing(), scenario.body)
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


# Recordings --------------------------------------------------------------------------------------


MS = 10**6


class Told(HardwareTracker):
    """A tracker that keeps what it was `told`, with times in ms."""

    def __init__(self, cart):
        dsys, tracker = cart
        self.told = []
        super().__init__(ReferenceSequence(tracker), FilteredState(dsys, 1e-3, 1.0), Timing())

    def add_input(self, u, now_ns):
        if np.any(u):  # that after a stop is the tracker's own
            self.told.append(("sent", float(u[0]), now_ns // MS))
        super().add_input(u, now_ns)

    def start(self, time_ns):
        self.told.append(("start", time_ns // MS))
        super().start(time_ns)

    def stop(self, now_ns):
        self.told.append(("stop", now_ns // MS))
        super().stop(now_ns)

    def answer(self, time_ns, q, v, now_ns):
        self.told.append(("state", time_ns // MS, float(q[0]), now_ns // MS))
        return super().answer(time_ns, q, v, now_ns)


@pytest.fixture
def tracker(cart):
    return Told(cart)


def recorded():
    """Four states that came 5 ms after their stamps, and answers to the second and third."""
    times = np.array([100, 110, 120, 130]) * MS
    q = 0.01 * np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
    u, sent = np.array([[2.1], [3.2]]), np.array([117, 127]) * MS
    return Measurements(times, times + 5 * MS, q, np.zeros((4, 2)), u, sent, times[1:3].copy())


STATES = [("state", 100 + 10 * k, 0.01 * (k + 1), 105 + 10 * k) for k in range(4)]
STATE_COLUMNS = "times_ns", "received_ns", "q", "v"
SENT = [("sent", 2.1, 117), ("sent", 3.2, 127)]


def test_a_recording_is_given_to_a_tracker_as_it_was_received(tracker):
    states = recorded()
    found = replay(tracker, states)
    assert tracker.told == [
        STATES[0], ("start", 110), STATES[1], SENT[0], STATES[2], SENT[1], STATES[3],
    ]  # fmt: skip
    assert found.replayed.shape == (4, 1) and found.errors.shape == (4, 4)
    np.testing.assert_array_equal(found.replayed, [one.command.u for one in found.answers])
    np.testing.assert_array_equal(found.errors, [one.command.error for one in found.answers])
    np.testing.assert_array_equal(found.recorded, [[np.nan], [2.1], [3.2], [np.nan]])
    np.testing.assert_array_equal(found.difference, found.replayed[1:3] - states.u)
    assert found.stopped == "" and found.refused == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        # a recorder that missed the first answered states does not move the reference
        (
            lambda m: {name: getattr(m, name)[2:] for name in STATE_COLUMNS},
            [SENT[0], ("start", 110), STATES[2], SENT[1], STATES[3]],
        ),
        # the tracker said when references started
        (
            lambda m: {"started_ns": np.array([90, 125]) * MS},
            [("start", 90), *STATES[:2], SENT[0], STATES[2], SENT[1], ("stop", 125),
             ("start", 125), STATES[3]],
        ),
        # what was sent as a state came acts after it
        (
            lambda m: {"sent_ns": m.received_ns[1:3]},
            [STATES[0], ("start", 110), STATES[1], ("sent", 2.1, 115), STATES[2],
             ("sent", 3.2, 125), STATES[3]],
        ),
        # without commands the reference starts with the first state
        (
            lambda m: {"u": m.u[:0], "sent_ns": m.sent_ns[:0], "answered_ns": m.sent_ns[:0]},
            [("start", 100), *STATES],
        ),
    ],
    ids=["missed states", "known starts", "sent at once", "no commands"],
)  # fmt: skip
def test_references_start_and_inputs_act_as_they_did(tracker, change, told):
    found = replay(tracker, replace(recorded(), **change(recorded())))
    assert tracker.told == told
    assert found.difference.shape == (np.isfinite(found.recorded).sum(), 1)


def test_what_a_tracker_refuses_is_left_out_and_a_failure_ends_it(tracker):
    states = recorded()
    states.times_ns[1] = states.times_ns[0]
    states.answered_ns[0] = states.times_ns[2]
    states.u[1] = 1e200  # under which the model fails
    found = replay(tracker, states)
    assert found.refused == ["stamped 0 s before the last state"]
    assert found.stopped.startswith("the model cannot follow the states: cart_pole")
    np.testing.assert_array_equal(found.recorded, [[np.nan], [1e200]])
    assert len(found.replayed) == 2
