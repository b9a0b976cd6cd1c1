"""Before hardware, part by part: what a tracker hands to its estimate, forgets and refuses, what
takes its permission away, and what a recording of it says again.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control import Command
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.geometry.spaces import Rn
from nh_control.loop import hardware_tracker
from nh_control.loop.arming import (
    Arming,
    DisarmCommand,
    DisarmedInputs,
    Limits,
    SafeRange,
    quantities,
)
from nh_control.loop.hardware_estimate import FilteredState, Implausible, MeasuredState
from nh_control.loop.hardware_tracker import Diverged, HardwareTracker, StateRefused, Timing
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal
from nh_control.loop.shadow import Shadow
from nh_control.loop.state_estimate import JoinCheck, StateEstimate, obstacle
from nh_control.runs.measurements import Measurements
from nh_control.runs.tracker_replay import replay

S = 10**9
FAILED = StepFailed("arm", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))
REST = [0.0, 0.0], [0.0, 0.0]


@pytest.fixture(scope="module")
def cart():
    """The cart pole's model, and a tracker along its swing up."""
    scenario = scenarios.get("cart_pole")
    dsys = scenario.model()
    return dsys, scenario.tracker(dsys, scenario.reference(dsys))


class Spy(MeasuredState):
    """What was measured, with what the estimate was `given` and how often it was `forgotten`; a
    `trouble` is raised instead.
    """

    given, forgotten, trouble = (), 0, None

    def state(self, time_ns, q, v, inputs, expected):
        pieces = [(float(u[0]), round(s, 9)) for u, s in inputs]
        Spy.given = (*Spy.given, (pieces, expected))
        if Spy.trouble is not None:
            raise Spy.trouble
        return super().state(time_ns, q, v, inputs, expected)

    def reset(self):
        Spy.forgotten += 1
        super().reset()


@pytest.fixture
def spied(cart):
    """Return f(timing) -> a tracker with a Spy, and f(s, after s): a state at rest for it."""
    dsys, tracker = cart
    Spy.given, Spy.forgotten, Spy.trouble = (), 0, None

    def make(timing=Timing(), **how):
        hardware = HardwareTracker(ReferenceSequence(tracker), Spy(dsys), timing, **how)

        def answer(seconds, after_s=0.0, q=REST[0], v=REST[1]):
            return hardware.answer(round(seconds * S), q, v, round((seconds + after_s) * S))

        return hardware, answer

    return make


def u(value):
    return np.array([value])


# --- the tracker ---------------------------------------------------------------------------------


def test_states_of_any_age_are_used_and_nothing_is_compensated_unless_it_is_said():
    assert Timing() == Timing(0.0, 0.0, False)
    assert (hardware_tracker.LONGEST_S, hardware_tracker.IN_TURN) == (10.0, 10)


def test_a_state_comes_once(spied):
    hardware, answer = spied()
    answer(1.0)
    with pytest.raises(StateRefused, match="stamped 0 s before the last state"):
        answer(1.0)
    assert (hardware.gap_s(11 * S), hardware.gap_s(round(11.5 * S))) == (0.0, 10.5)


def test_what_was_sent_acts_later_by_the_time_of_the_actuators(spied):
    hardware, answer = spied(Timing(actuation_s=0.05))
    answer(1.0)
    hardware.add_input(u(1.5), round(1.1 * S))
    answer(1.3)
    assert Spy.given[-1][0] == [(0.0, 0.15), (1.5, 0.15)]


def test_what_was_sent_acts_after_the_state_it_answers_where_clocks_differ(spied):
    hardware, answer = spied()
    answer(1.0, after_s=100.0)
    hardware.add_input(u(1.5), round(101.1 * S))
    answer(1.3, after_s=100.0)
    assert Spy.given[-1][0] == [(0.0, 0.1), (1.5, 0.2)]


def test_what_was_sent_acts_when_it_was_sent_where_clocks_agree(spied):
    hardware, answer = spied(Timing(compensate=True))
    answer(1.0, after_s=0.05)
    hardware.add_input(u(1.5), round(1.1 * S))
    answer(1.3, after_s=0.05)
    assert Spy.given[-1][0] == [(0.0, 0.1), (1.5, 0.2)]


def test_after_a_stop_nothing_acts_and_the_reference_is_to_start_again(spied):
    hardware, answer = spied()
    hardware.start(0)
    answer(1.0)
    hardware.add_input(u(1.5), round(1.1 * S))
    hardware.stop(round(1.2 * S))
    assert hardware.start_ns is None
    answer(1.3)
    assert Spy.given[-1][0] == [(0.0, 0.1), (1.5, 0.1), (0.0, 0.1)]


def test_a_reset_forgets_states_inputs_clocks_and_the_start(spied):
    hardware, answer = spied()
    hardware.start(0)
    hardware.add_input(u(9.0), round(0.1 * S))
    answer(5.0, after_s=100.0)
    forgotten = Spy.forgotten
    hardware.reset()
    assert Spy.forgotten == forgotten + 1 and hardware.start_ns is None
    hardware.add_input(u(1.5), round(1.1 * S))
    answer(1.0)
    answer(1.3)
    assert Spy.given[-2][0] == [] and Spy.given[-1][0] == [(0.0, 0.1), (1.5, 0.2)]


def test_a_model_that_cannot_follow_begins_anew(spied):
    hardware, answer = spied()
    answer(1.0)
    forgotten, Spy.trouble = Spy.forgotten, FAILED
    with pytest.raises(StepFailed):
        answer(1.1)
    assert Spy.forgotten == forgotten + 1


def test_implausible_states_are_counted_in_turn_only(spied):
    hardware, answer = spied()
    wrong = Implausible(Refusal.IMPLAUSIBLE, "too far")
    for turn, last in enumerate((StateRefused, Diverged, StateRefused)):
        for k in range(9):
            Spy.trouble = wrong
            with pytest.raises(StateRefused):
                answer(1.0 + turn + 0.01 * k)
        Spy.trouble = wrong if turn else None
        forgotten = Spy.forgotten
        if turn == 0:
            answer(1.5)  # one that is plausible: counted anew
        elif turn == 1:
            with pytest.raises(last):
                answer(2.5)
            assert Spy.forgotten == forgotten + 1


def test_what_is_expected_is_the_reference_at_the_time_of_the_state(cart, spied):
    dsys, tracker = cart
    hardware, answer = spied()
    answer(1.0)
    states = tracker.reference.states
    np.testing.assert_array_equal(Spy.given[-1][1], states[0])
    hardware.start(5 * S)
    assert answer(3.0).step == 0  # before its start
    assert answer(5.0 + 40 * dsys.h).step == 40
    np.testing.assert_allclose(Spy.given[-1][1], states[40], atol=1e-9)


@pytest.mark.parametrize("part", [-0.3, 0.3])
def test_between_steps_the_target_is_between_their_states(cart, spied, part):
    dsys, tracker = cart
    hardware, answer = spied()
    hardware.start(0)
    found, states = answer((60 + part) * dsys.h), tracker.reference.states
    other = states[60 + (1 if part > 0 else -1)]
    np.testing.assert_allclose(found.target, 0.7 * states[60] + 0.3 * other, atol=1e-9)
    np.testing.assert_array_equal(found.x, dsys.measured_state(*REST))


def test_before_the_first_step_that_is_known_the_target_goes_on_backwards(cart):
    """Another leg begins there: what was before says nothing of it."""
    dsys, tracker = cart
    states, asked = tracker.reference.states, []
    command = lambda k, x, memory: Command(u(0.0), u(False), np.zeros(4))  # noqa: E731
    sequence = SimpleNamespace(
        dsys=dsys, first=0, target=lambda k: asked.append(k) or states[k], command=command
    )
    hardware = HardwareTracker(sequence, MeasuredState(dsys), Timing())
    hardware.start(0)
    sequence.first = 60
    asked.clear()
    found = hardware.answer(round(58.2 * dsys.h * S), *REST, 0)
    np.testing.assert_allclose(found.target, 2.8 * states[60] - 1.8 * states[61], atol=1e-9)
    assert set(asked) == {60, 61} and found.step == 60


@pytest.mark.parametrize("compensate", [True, False])
def test_a_command_is_for_the_time_at_which_it_acts(cart, spied, compensate):
    dsys, _ = cart
    hardware, answer = spied(Timing(actuation_s=1.4 * dsys.h, compensate=compensate))
    hardware.start(0)
    found = answer(10 * dsys.h, after_s=0.8 * dsys.h)
    assert found.step == (12 if compensate else 10)
    assert found.age_s == pytest.approx(0.8 * dsys.h)


def test_a_state_that_seems_to_come_from_the_future_is_as_old_as_its_answer_takes(cart, spied):
    dsys, _ = cart
    hardware, answer = spied(Timing(actuation_s=2.1 * dsys.h, compensate=True))
    hardware.start(0)
    assert answer(10 * dsys.h, after_s=-1.4 * dsys.h).step == 12


def test_after_a_stop_another_reference_has_been_forgotten(cart, spied):
    hardware, _ = spied()
    reset = []
    hardware.sequence.reset = lambda: reset.append(True)
    hardware.stop(0)
    assert reset == [True]


def test_where_the_model_cannot_foresee_the_state_it_is_taken_as_it_was(cart, spied, monkeypatch):
    def fail(*_):
        raise FAILED

    monkeypatch.setattr(hardware_tracker, "predict", fail)
    hardware, answer = spied(Timing(compensate=True))
    assert hardware.uncompensated == 0
    found = answer(1.0, after_s=0.02)
    assert hardware.uncompensated == 1
    np.testing.assert_array_equal(found.x, cart[0].measured_state(*REST))


def test_a_command_that_is_not_finite_is_a_refusal(spied):
    hardware, answer = spied()
    hardware.sequence.command = lambda k, x, memory: Command(u(np.nan), u(False), np.zeros(4))
    with pytest.raises(StateRefused, match="the command would not be finite") as refused:
        answer(1.0)
    assert refused.value.kind is Refusal.MODEL


def test_nothing_is_learned_before_the_start(spied):
    hardware, answer = spied()
    seen, made = [], hardware.sequence.command

    def command(k, x, memory):
        seen.append(memory)
        found = made(k, x, None)
        return Command(found.u, found.saturated, found.error, SimpleNamespace())

    hardware.sequence.command = command
    answer(1.0)
    answer(1.1)
    assert seen == [None, None]


# --- estimates -----------------------------------------------------------------------------------


def test_without_velocities_the_last_two_configurations_make_one(cart):
    dsys, tracker = cart
    estimate, expected = MeasuredState(dsys), tracker.reference.states[60]
    first = estimate.state(0, [0.0, 0.1], None, (), expected)
    assert np.abs(dsys.velocity(first)).max() > 0.1
    np.testing.assert_allclose(dsys.velocity(first), dsys.velocity(expected), atol=1e-12)
    for k, q in enumerate(([0.1, 0.2], [0.4, 0.3]), 1):
        x = estimate.state(k * S // 10, q, None, (), expected)
    np.testing.assert_allclose(dsys.velocity(x), [3.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("known", [True, False])
def test_a_filter_begins_as_sure_as_it_is_told(cart, known):
    """Of the configuration by the noise; of the velocity by what a step may change, or not."""
    dsys, tracker = cart
    expected = tracker.reference.states[60]
    q, v = [0.1, 0.2], [0.3, -0.4]
    estimate = FilteredState(dsys, 0.01, 2.0)
    x = estimate.state(0, q, v if known else None, (), expected)
    v = v if known else dsys.velocity(expected)
    np.testing.assert_allclose(x, dsys.measured_state(q, v), atol=1e-12)
    kalman, belief = estimate._known
    plain = dsys.measured_state(q, v)
    G = np.array([dsys.local(plain, dsys.measured_state(q, v + e)) for e in np.eye(2)]).T
    changes = (2.0 * dsys.h) ** 2 * G @ G.T
    noise = np.diag([1e-4, 1e-4, 0.0, 0.0])
    np.testing.assert_allclose(kalman.W, changes, atol=1e-15)
    np.testing.assert_allclose(kalman.V, noise[:2, :2], atol=1e-18)
    np.testing.assert_allclose(belief.P, noise + (changes if known else G @ G.T), atol=1e-15)


def test_velocities_of_which_some_are_measured_are_completed(cart):
    """By the mean velocity, that of a step, or that which is expected; a filter is sure of those
    that are measured alone.
    """
    dsys, tracker = cart
    expected, nan = tracker.reference.states[60], np.nan
    q, v = [0.1, 0.2], [nan, -0.4]
    for estimate in (MeasuredState(dsys), StateEstimate(dsys)):
        found = estimate.state(0, q, v, u(0.0), expected)
        np.testing.assert_allclose(dsys.velocity(found)[1], -0.4, atol=1e-12)
        np.testing.assert_allclose(dsys.velocity(found)[0], dsys.velocity(expected)[0], atol=1e-12)
    last = MeasuredState(dsys)
    last.state(0, [0.0, 0.2], v, (), expected)
    np.testing.assert_allclose(dsys.velocity(last.state(S, q, v, (), expected)), [0.1, -0.4])
    steps = StateEstimate(dsys)
    x = [steps.state(k, q, [nan, nan], u(1.0), expected) for k, q in enumerate(([0.0, 0.2], q))]
    np.testing.assert_array_equal(x[0], dsys.measured_state([0.0, 0.2], dsys.velocity(expected)))
    steps.reset()
    steps.state(0, [0.0, 0.2], v, u(1.0), expected)
    mixed = dsys.velocity(steps.state(1, q, v, u(1.0), expected))
    np.testing.assert_allclose(mixed, [dsys.velocity(x[1])[0], -0.4], atol=1e-12)
    estimate = FilteredState(dsys, 0.01, 2.0)
    estimate.state(0, q, v, (), expected)
    _, belief = estimate._known
    sure = dsys.velocity(belief.x)
    np.testing.assert_allclose(sure, [dsys.velocity(expected)[0], -0.4], atol=1e-12)
    units = [dsys.local(belief.x, dsys.measured_state(q, sure + e))[2:] for e in np.eye(2)]
    M = np.array(units)
    deviations = np.linalg.solve(M, np.linalg.solve(M, belief.P[2:, 2:]).T)
    np.testing.assert_allclose(deviations, np.diag([1.0, (2.0 * dsys.h) ** 2]), atol=1e-9)


def test_a_filter_takes_inputs_for_as_long_as_they_acted(cart):
    dsys, tracker = cart
    found = []
    for pieces in ([(u(2.0), 0.025)], [(u(2.0), 0.01), (u(2.0), 0.015)], [(u(2.0), 0.01)]):
        estimate = FilteredState(dsys, 1e-3, 1.0)
        estimate.state(0, *REST, (), tracker.reference.states[0])
        found.append(estimate.state(1, [0.0, 0.0], None, pieces, tracker.reference.states[0]))
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    assert np.abs(found[0] - found[2]).max() > 1e-4
    with pytest.raises(ValueError, match="acceleration > 0, got 0.1 and 0"):
        FilteredState(dsys, 0.1, 0.0)


class Unjoined:
    """A model of which no step joins two configurations."""

    h, system = 0.1, SimpleNamespace(space=Rn("x"))

    def __init__(self, error):
        self.error = error

    def measured_state(self, q, v):
        """Both in a row."""
        return np.r_[q, v]

    def velocity(self, x):
        """The second number."""
        return x[1:]

    def state_from_configurations(self, *_):
        """None."""
        raise self.error


@pytest.mark.parametrize("error", [FAILED, ValueError("not joined")])
def test_configurations_that_no_step_joins_have_their_mean_velocity(error):
    estimate, target = StateEstimate(Unjoined(error)), np.array([9.0, 7.0])
    q = np.array([0.5])
    assert estimate.state(3, q, None, u(0.0), target).tolist() == [0.5, 7.0]
    q[0] = 99.0  # the array of the next message
    assert estimate.state(4, [1.0], None, u(0.0), target).tolist() == [1.0, pytest.approx(5.0)]
    assert estimate.approximated == 1
    assert estimate.state(4, [2.0], None, u(0.0), target).tolist() == [2.0, 7.0]
    assert estimate.state(6, [3.0], None, u(0.0), target).tolist() == [3.0, pytest.approx(5.0)]
    assert estimate.approximated == 2
    estimate.reset()
    assert estimate.state(7, [3.0], None, u(0.0), target).tolist() == [3.0, 7.0]


# --- permission ----------------------------------------------------------------------------------

FREE = np.zeros(1)


def test_arming_counts_silence_and_saturation_anew():
    arming = Arming(Limits(silence_s=0.5, saturation_s=0.5), armed=True)
    assert arming.reason == ""
    arming.observe(10.0, FREE, True)
    arming.observe(10.4, FREE, True)
    arming.disarm("by request")
    arming.arm(10.4)
    arming.check_silence(10.9)
    arming.observe(10.9, FREE, True)
    arming.observe(11.4, FREE, True)
    assert arming.armed  # saturated for just so long
    arming.observe(11.5, FREE, True)
    assert arming.reason == "an input was saturated for 0.6 s"


def test_silence_is_since_the_last_state_and_back_in_time_it_begins_again():
    arming = Arming(Limits(silence_s=0.5), armed=True)
    arming.observe(10.0, FREE, False)
    arming.observe(20.0, FREE, False)
    arming.check_silence(20.5)
    arming.check_silence(5.0)
    arming.check_silence(5.5)
    assert arming.armed
    arming.check_silence(5.6)
    assert not arming.armed


def test_saturation_that_is_there_from_the_first_state_is_not_as_old_as_the_clock():
    arming = Arming(Limits(saturation_s=0.5), armed=True)
    for now_s in (50.0, 50.4, 20.0, 20.4):
        arming.observe(now_s, FREE, True)
    assert arming.armed
    arming.observe(20.6, FREE, True)
    assert not arming.armed


def test_every_disarming_is_counted_once():
    arming = Arming(Limits(), armed=True)
    for count in (1, 2, 3):
        arming.disarm("by request")
        arming.disarm("again")
        assert arming.disarmed == count and arming.reason == "by request"
        arming.arm(1.0)


def test_the_first_reason_is_the_one_that_is_told():
    arming = Arming(Limits(error=0.1), armed=True)
    arming.disarm("by request")
    arming.disarm("again")
    arming.observe(1.0, np.ones(1), False)
    assert (arming.reason, arming.disarmed) == ("by request", 1)


def test_the_last_command_is_held_though_states_came_that_had_none():
    dsys = SimpleNamespace(idle=lambda x: -x)
    held, off = DisarmedInputs(dsys, DisarmCommand.HOLD), DisarmedInputs(dsys, DisarmCommand.ZERO)
    held.update(u(1.0), u(5.0))
    held.update(u(2.0))
    assert held.command(fresh=True).tolist() == [5.0]
    assert off.command(fresh=True) is None
    off.update(u(2.0))
    assert off.command(fresh=True).tolist() == [-2.0]


# --- ranges --------------------------------------------------------------------------------------


def test_a_range_has_its_ends_and_may_be_written_with_spaces():
    scenario = scenarios.get("cart_pole")
    space = scenario.model().system.space
    safe = SafeRange(scenario, space, [" cart_joint : -1 : 1 ", "  "])
    assert safe.violation(np.array([1.0, 0.0])) == safe.violation(np.array([-1.0, 0.0])) == ""
    assert safe.violation(np.array([1.001, 0.0])) and safe.violation(np.array([-1.001, 0.0]))
    with pytest.raises(ValueError, match="a range is written NAME:LOW:HIGH"):
        SafeRange(scenario, space, ["cart_joint:-1:1:2"])


def test_bodies_in_space_have_ranges_of_their_own():
    def to_bodies(parameters, q, v):
        assert parameters == "the robot's" and v.shape == (2,)
        return [
            SimpleNamespace(position=10 * i + q[:3], quaternion_wxyz=(np.cos(i), np.sin(i), 0, 0))
            for i in (0, 1)
        ]

    frames = [SimpleNamespace(frame=frame) for frame in ("low", "high")]
    scenario = SimpleNamespace(
        joints=(), body=None, to_bodies=to_bodies, parameters="the robot's",
        resting_bodies=lambda space: frames,
    )  # fmt: skip
    found = quantities(scenario, SimpleNamespace(nw=2, names=()))
    q = np.array([1.0, 2.0, 3.0, 4.0])
    assert {name: of(q) for name, of in found.items()} == {
        "low.x": 1.0, "low.y": 2.0, "low.z": 3.0, "low.tilt": 0.0,
        "high.x": 11.0, "high.y": 12.0, "high.z": 13.0, "high.tilt": pytest.approx(2.0),
    }  # fmt: skip


# --- joining -------------------------------------------------------------------------------------


class Course:
    """A sequence whose leg begins at step 100 and ends at 105; the model fails at `wall`."""

    def __init__(self, wall=None, error=FAILED):
        self.asked, self.wall, self.error = [], wall, error
        self.dsys = SimpleNamespace(h=0.1, step=lambda x, u: x + u)

    def leg(self, k):
        """The only one."""
        return SimpleNamespace(start=100, end=105, tracker=self)

    def command(self, k, x):
        """One, until it fails."""
        self.asked.append((k, float(x[0])))
        if self.wall == k:
            raise self.error
        return SimpleNamespace(u=1.0)


@pytest.mark.parametrize(
    "error", [FAILED, ValueError("no luck"), np.linalg.LinAlgError("no luck")]
)
def test_a_reference_is_tried_to_its_end_from_where_it_is(error):
    course = Course()
    assert obstacle(course, 102, u(7.0)) == "" and course.asked == [(2, 7), (3, 8), (4, 9)]
    said = obstacle(Course(3, error), 102, u(7.0))
    assert "the model fails at t = 10.300 s" in said and "no luck" in said


def test_another_run_is_asked_at_once():
    course = Course(3)
    late = JoinCheck(course)
    with pytest.raises(ValueError, match="cannot be joined at step 102: tracked"):
        late.require(102, u(7.0))
    asked = len(course.asked)
    with pytest.raises(ValueError, match="at step 103"):
        late.require(103, u(7.0))
    assert len(course.asked) == asked
    late.reset()
    course.wall = None
    late.require(103, u(7.0))
    assert len(course.asked) > asked


# --- a recording again ---------------------------------------------------------------------------


class Tracker:
    """A tracker that answers 10 times the position, and what it was `told`."""

    def __init__(self, refused=None, failed=None):
        self.told, self.start_ns = [], None
        self.refused, self.failed = refused, failed
        self.sequence = SimpleNamespace(dsys=SimpleNamespace(nu=1))

    def add_input(self, u, time_ns):
        """An input."""
        self.told.append(("sent", float(u[0]), time_ns))

    def start(self, time_ns):
        """The start."""
        self.start_ns = time_ns
        self.told.append(("start", time_ns))

    def stop(self, time_ns):
        """The end."""
        self.start_ns = None
        self.told.append(("stop", time_ns))

    def answer(self, time_ns, q, v, now_ns):
        """10 q."""
        self.told.append(("state", time_ns, float(q[0]), None if v[0] != v[0] else v[0], now_ns))
        if time_ns == self.refused:
            raise StateRefused(Refusal.MODEL, "too large")
        if time_ns == self.failed:
            raise FAILED
        return SimpleNamespace(command=SimpleNamespace(u=10 * q, error=-q))


def recorded():
    """Four states that came 5 after their stamps, and answers to the second and third."""
    times = np.array([100, 110, 120, 130])
    q, v = np.arange(1.0, 5.0)[:, None], np.array([[-1.0], [-2.0], [np.nan], [-4.0]])
    u, sent = np.array([[21.0], [32.0]]), np.array([117, 127])
    return Measurements(times, times + 5, q, v, u, sent, times[1:3])


def test_a_recording_is_given_to_a_tracker_as_it_was_received():
    tracker = Tracker()
    found = replay(tracker, recorded())
    assert tracker.told == [
        ("state", 100, 1.0, -1.0, 105),
        ("start", 110),
        ("state", 110, 2.0, -2.0, 115),
        ("sent", 21.0, 117),
        ("state", 120, 3.0, None, 125),
        ("sent", 32.0, 127),
        ("state", 130, 4.0, -4.0, 135),
    ]
    assert found.replayed.tolist() == [[10], [20], [30], [40]]
    np.testing.assert_array_equal(found.recorded, [[np.nan], [21], [32], [np.nan]])
    assert found.difference.tolist() == [[-1.0], [-2.0]] and found.stopped == ""
    assert found.errors.tolist() == [[-1], [-2], [-3], [-4]]


def test_a_recorder_that_missed_the_first_answered_states_does_not_move_the_reference():
    states, tracker = recorded(), Tracker()
    late = Measurements(
        states.times_ns[2:], states.received_ns[2:], states.q[2:], states.v[2:],
        states.u, states.sent_ns, states.answered_ns,
    )  # fmt: skip
    found = replay(tracker, late)
    assert tracker.told == [
        ("sent", 21.0, 117),
        ("start", 110),
        ("state", 120, 3.0, None, 125),
        ("sent", 32.0, 127),
        ("state", 130, 4.0, -4.0, 135),
    ]
    np.testing.assert_array_equal(found.recorded, [[32], [np.nan]])


def test_references_start_when_the_tracker_said_so_whatever_commands_are_known():
    tracker = Tracker()
    replay(tracker, replace(recorded(), started_ns=np.array([90, 125])))
    assert [entry for entry in tracker.told if entry[0] != "sent"] == [
        ("start", 90),
        ("state", 100, 1.0, -1.0, 105),
        ("state", 110, 2.0, -2.0, 115),
        ("state", 120, 3.0, None, 125),
        ("stop", 125),
        ("start", 125),
        ("state", 130, 4.0, -4.0, 135),
    ]


def test_what_was_sent_as_a_state_came_acts_after_it():
    states, tracker = recorded(), Tracker()
    at_once = Measurements(
        states.times_ns, states.received_ns, states.q, states.v,
        states.u, states.received_ns[1:3], states.answered_ns,
    )  # fmt: skip
    replay(tracker, at_once)
    told = [(what, time) for what, *rest in tracker.told for time in rest[-1:]]
    assert told == [
        ("state", 105), ("start", 110), ("state", 115), ("sent", 115), ("state", 125),
        ("sent", 125), ("state", 135),
    ]  # fmt: skip


def test_what_a_tracker_refuses_is_left_out_and_a_failure_ends_it():
    found = replay(Tracker(refused=110, failed=130), recorded())
    assert found.refused == ["too large"] and "no luck" in found.stopped
    assert found.replayed.tolist() == [[10], [30]] and found.difference.tolist() == [[-2.0]]


def test_without_commands_the_reference_starts_with_the_first_state():
    states, tracker = recorded(), Tracker()
    none = np.zeros(0, dtype=np.int64)
    alone = Measurements(
        states.times_ns, states.received_ns, states.q, states.v,
        np.zeros((0, 1)), none, none,
    )  # fmt: skip
    found = replay(tracker, alone)
    assert tracker.told[0] == ("start", 100) and found.difference.shape == (0, 1)


# --- a model beside a robot ----------------------------------------------------------------------


def test_a_shadow_that_is_reset_begins_anew_with_its_statistics(cart):
    dsys, _ = cart
    shadow = Shadow(dsys, MeasuredState(dsys), answering=True)
    for k in range(3):
        shadow.measured((10 + k) * S // 100, *REST)
        shadow.command([0.0], (10 + k) * S // 100, (10 + k) * S // 100)
    count = shadow.statistics.count
    assert count > 0
    shadow.reset()
    assert shadow.settle() == [] and shadow.statistics.count == count
    assert shadow.measured(0, *REST) == []  # older than before, and the first one
    shadow.measured(S // 100, *REST)
    shadow.settle()
    assert shadow.statistics.count == count and shadow.unanswered == 1


def test_what_was_answered_before_a_reset_says_nothing_of_the_states_after_it(cart):
    dsys, _ = cart
    shadow = Shadow(dsys, MeasuredState(dsys), answering=True)
    shadow.measured(0, *REST)
    shadow.command([0.0], 0, 0)
    shadow.reset()
    for k in range(4):
        shadow.measured(k * S // 100, *REST)
        if k > 1:
            shadow.command([0.0], k * S // 100, k * S // 100)
    shadow.settle()
    assert (shadow.unanswered, shadow.statistics.count) == (2, 1)


def test_a_shadow_whose_model_fails_says_so_and_goes_on(cart, monkeypatch):
    dsys, _ = cart
    shadow = Shadow(dsys, MeasuredState(dsys))
    shadow.measured(0, *REST)
    shadow.measured(S // 100, *REST)
    monkeypatch.setattr("nh_control.loop.shadow.predict", _fail)
    assert shadow.settle() == []
    monkeypatch.undo()
    made = shadow.report()
    assert made.values["predictions_failed"] == 1 and "no prediction" in made.message
    for k in (2, 3):
        shadow.measured(k * S // 100, *REST)
    assert len(shadow.settle()) == 1  # from the first measurement after it
    shadow.refuse(Refusal.STAMP, "too old")
    made = shadow.report()
    assert (made.level, made.message) == ("warn", "too old")
    assert made.values["refused: wrong stamp"] == made.values["states_refused"] == 1


def _fail(*_):
    raise FAILED


def test_a_shadow_has_the_numbers_of_its_statistics(cart):
    dsys, _ = cart
    shadow = Shadow(dsys, MeasuredState(dsys))
    assert shadow.report().message == "waiting for states"
    for row in ([1.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0]):
        shadow.statistics.add(np.array(row))
    values, name = shadow.report().values, dsys.state_space.tangent_names[0]
    assert [values[f"{what}: {name}"] for what in ("mean", "std", "max")] == [
        -0.5, pytest.approx(np.std([1, -2], ddof=1)), 2.0,
    ]  # fmt: skip
    shadow.statistics.add(np.ones(2))
    assert shadow.statistics.count == 1 and shadow.names == list(
        dsys.state_space.tangent_names[:2]
    )


def test_measurements_are_kept_as_they_were(cart):
    """One waits for the next; its arrays are those of the message that comes then."""
    dsys, _ = cart
    shadow, q, v = Shadow(dsys, MeasuredState(dsys)), np.zeros(2), np.zeros(2)
    shadow.measured(0, q, v)
    shadow.measured(S // 100, q, v)
    q[:] = v[:] = 9.0
    assert shadow.measured(S // 100, q, v) == []  # it came again
    (residual,) = shadow.settle()
    assert np.abs(residual.values).max() < 1e-9


def test_a_shadow_waits_for_one_measurement_more_unless_it_is_told(cart):
    dsys, _ = cart
    shadow = Shadow(dsys, MeasuredState(dsys))
    assert [len(shadow.measured(k * S // 100, *REST)) for k in range(4)] == [0, 0, 1, 1]


def test_commands_that_come_out_of_order_are_known_up_to_the_newest(cart):
    dsys, _ = cart
    shadow = Shadow(dsys, MeasuredState(dsys), patience=9, answering=True)
    shadow.measured(0, *REST)
    shadow.measured(S // 100, *REST)
    for k in (0, 1, 0):
        shadow.command([0.0], k * S // 100, k * S // 100)
    assert len(shadow.measured(2 * S // 100, *REST)) == 2


def test_what_a_shadow_estimated_is_forgotten_with_a_reset(cart):
    dsys, _ = cart
    Spy.forgotten, Spy.trouble = 0, None
    shadow = Shadow(dsys, Spy(dsys))
    before = Spy.forgotten
    shadow.reset()
    assert Spy.forgotten == before + 1
