"""Which leg commands at which step, and planning beside the control loop."""

import gc
import queue
import threading
import weakref
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pytest

from nh_control.control import Command
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.loop.replanner import ATTEMPTS, LEAD_S, Replanner

H = 0.1


class System:
    """All that a sequence needs of a discrete system."""

    h = H


class Follower:
    """A tracker whose command is its reference's state and the step it was asked for."""

    dsys = System()

    def __init__(self, reference):
        self.reference = reference

    def with_reference(self, reference):
        return Follower(reference)

    def target(self, k):
        return self.reference.states[min(k, len(self.reference))]

    def command(self, k, x, memory=None):
        return Command(np.array([self.target(k)[0], k]), np.zeros(2, bool), np.zeros(1), memory)


def reference(*values, name="reference"):
    states = np.array(values, dtype=float)[:, None]
    return Trajectory(H, states, np.zeros((len(states) - 1, 1)), name=name)


@dataclass(frozen=True)
class Guided:
    """A guidance that counts its plans."""

    plans: int = 0
    reference: Trajectory | None = None

    def to(self, value, length):
        """A plan along a reference of `value`."""
        return Guided(self.plans + 1, reference(*np.full(length + 1, value)))


GUIDANCE = Guided()


def leg(start, length=20, value=1.0):
    """A leg of `value` from `start` on."""
    return ReferenceLeg(0, Follower(reference(0.0, 0.0)), GUIDANCE).next(
        start, lambda guidance, _: guidance.to(value, length)
    )


@pytest.fixture
def sequence():
    return ReferenceSequence(Follower(reference(*np.zeros(11))), GUIDANCE)


def test_a_leg_commands_from_its_start_until_a_reset_forgets_it(sequence):
    assert sequence.add(leg(5, value=7.0)) and sequence.first == 0
    commands = [sequence.command(k, None).u for k in range(8)]
    assert [u[0] for u in commands] == [0.0] * 5 + [7.0] * 3
    assert [u[1] for u in commands] == [0, 1, 2, 3, 4, 0, 1, 2]
    assert sequence.target(100) == 7.0
    assert (sequence.leg(4).end, sequence.leg(5).end) == (10, 25)
    assert sequence.leg(5).guidance.plans == 1 and GUIDANCE.plans == 0
    assert sequence.command(7, None, "estimate").memory == "estimate"  # is carried over
    sequence.reset()
    assert sequence.step == 0 and sequence.target(5) == 0.0
    assert sequence.leg(5).end == 10 and sequence.leg(5).guidance is GUIDANCE


def test_a_goal_is_planned_with_the_step_count_of_the_leg_it_leaves(sequence):
    sequence.add(leg(5))
    asked = []
    sequence.leg(12).next(12, lambda guidance, k: asked.append(k) or guidance.to(1.0, 3))
    assert asked == [7]
    with pytest.raises(ValueError, match="this leg has no guidance"):
        ReferenceLeg(0, Follower(reference(0.0, 0.0))).next(3, lambda guidance, k: None)


def test_another_reference_begins_at_the_next_step_and_again_after_a_reset(sequence):
    sequence.command(3, None)
    sequence.add(leg(6, value=7.0))
    other = Follower(reference(4.0, 5.0, 6.0))
    assert sequence.begin(other).start == 4
    commands = [sequence.command(k, None).u.tolist() for k in range(3, 8)]
    assert commands == [[0.0, 3], [4.0, 0], [5.0, 1], [6.0, 2], [6.0, 3]]
    sequence.reset()
    assert sequence.command(1, None).u.tolist() == [5.0, 1]
    sequence.reset()
    assert sequence.begin(Follower(reference(8.0, 9.0))).start == 0
    assert sequence.command(1, None).u.tolist() == [9.0, 1]


def test_legs_that_are_over_are_forgotten(sequence):
    first = weakref.ref(leg_of := leg(3))
    assert sequence.add(leg_of)
    del leg_of
    for start in range(10, 1000, 10):
        sequence.command(start - 1, None)
        plan = lambda guidance, _: guidance.to(1.0, 20)
        assert sequence.add(sequence.leg(start).next(start, plan))
    gc.collect()
    assert first() is None
    assert sequence.leg(990).end == 1010 and sequence.first == 980
    with pytest.raises(ValueError, match="begins at step 980, but step 979 was requested"):
        sequence.target(979)


def test_a_new_leg_replaces_those_that_start_then_or_later_unless_it_is_late(sequence):
    eighth = leg(8, value=8.0)
    sequence.add(eighth)
    sequence.add(leg(4, value=3.0))
    sequence.add(leg(4, value=4.0))
    values = lambda *steps: [float(sequence.target(k)[0]) for k in steps]
    assert values(3, 4, 8, 15) == [0.0, 4.0, 4.0, 4.0]
    assert eighth.tracker not in sequence.trackers and len(sequence.trackers) == 3
    sequence.add(leg(10, value=10.0))
    assert values(8, 9, 10) == [4.0, 4.0, 10.0]
    sequence.command(12, None)
    assert not sequence.add(leg(12)) and values(15) == [10.0]
    assert sequence.add(leg(13)) and values(15) == [1.0]


class Owner:
    """The thread that owns a sequence: what its replanner posted, and what became of it."""

    def __init__(self, sequence, lead_s=0.5):
        self.inbox, self.outcomes, self.sequence = queue.SimpleQueue(), [], sequence
        note = lambda *outcome: self.outcomes.append(outcome)
        self.replanner = Replanner(sequence, self.inbox.put, note, note, lead_s)

    def plan(self, leg, what="goal", serve=1):
        self.replanner.request(what, leg)
        for _ in range(serve):
            self.inbox.get(timeout=10)()

    def serve(self):
        self.inbox.get(timeout=10)()


@pytest.fixture
def owners(sequence):
    """Return f(lead_s) -> Owner; all end."""
    made = []
    yield lambda *lead_s: made.append(Owner(sequence, *lead_s)) or made[-1]
    for owner in made:
        owner.replanner.close()


@pytest.fixture
def owner(owners):
    return owners()


def test_a_leg_is_planned_ahead_and_followed(owner):
    owner.sequence.command(2, None)
    owner.plan(leg)
    ((what, made),) = owner.outcomes
    assert (what, made.start) == ("goal", 7)
    assert owner.sequence.target(7) == 1.0 and owner.sequence.target(6) == 0.0
    owner.plan(leg)  # planning took no step, so the next leg needs no more
    assert owner.outcomes[-1][1].start == 3


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("too fast"), "too fast"),
        (StepFailed("system", H, "no", 1.0, 1.0, 3, Conditioning(1e9, 1.0, 1.0)), "system"),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),  # a mistake is raised, too
    ],
)
def test_a_goal_that_cannot_be_planned_is_refused_with_the_reason(owner, error, said):
    def plan(k):
        raise error

    owner.replanner.request("goal", plan)
    mistake = isinstance(error, ZeroDivisionError)
    with pytest.raises(ZeroDivisionError) if mistake else nullcontext():
        owner.serve()
    ((what, reason),) = owner.outcomes
    assert what == "goal" and said in reason and owner.sequence.target(15) == 0.0


def test_a_leg_that_is_late_is_planned_again_further_ahead(owner):
    asked, may_finish = [], threading.Semaphore(0)

    def plan(k):
        asked.append(k)
        assert may_finish.acquire(timeout=10)
        return leg(k, length=100)

    owner.replanner.request("goal", plan)
    for step in (6, 12):
        owner.sequence.command(step, None)
        may_finish.release()
        owner.serve()
    ((_, made),) = owner.outcomes
    assert asked == [5, 6 + 12] and made.start == 18

    def late(k):
        owner.sequence.command(k + 1, None)  # as if time passed
        return leg(k, length=10_000)

    owner.replanner.request("late", late)
    for _ in range(ATTEMPTS):
        owner.serve()
    assert owner.outcomes[1][0] == "late" and "planning took" in owner.outcomes[1][1]


def test_the_newest_goal_replaces_older_ones_and_one_that_is_dropped_has_no_outcome(owner):
    go = threading.Event()

    def slow(k):
        assert go.wait(10)
        return leg(k, value=5.0)

    owner.replanner.request("first", slow)
    owner.replanner.request("second", lambda k: leg(k, value=6.0))
    go.set()
    owner.serve()
    owner.serve()
    assert [what for what, _ in owner.outcomes] == ["second"]
    assert owner.sequence.target(15) == 6.0
    owner.replanner.request("third", lambda k: leg(k, value=7.0))
    owner.replanner.forget()
    owner.serve()
    assert len(owner.outcomes) == 1 and owner.sequence.target(15) == 6.0


def test_the_lead_is_a_second_at_first_and_then_twice_what_planning_took(owners, sequence):
    """In whole steps; and twice what it took where a leg was late."""
    asked = []

    def took(steps):
        def plan(k):
            asked.append(k - sequence.step)
            sequence.command(sequence.step + steps, None)  # as if time passed
            return leg(k, length=1000)

        return plan

    owner = owners(LEAD_S)
    for steps in (3, 0, 0):
        owner.plan(took(steps))
    assert asked == [10, 6, 1]  # of 0.1 s
    late = iter((4, 0))
    owner.plan(lambda k: took(next(late))(k), serve=2)
    assert asked[3:] == [1, 8]
    owners(0.29).plan(took(0))
    assert asked[-1] == 3


def test_trackers_are_exchanged_in_the_legs_that_have_them_and_after_a_reset(sequence):
    added = leg(5, value=7.0)
    assert sequence.add(added)
    first, second = sequence.trackers[0], added.tracker
    assert sequence.trackers == [first, first, second]
    others = [Follower(reference(value, value)) for value in (2.0, 3.0)]
    sequence.exchange([(second, others[1])])
    assert sequence.trackers == [first, first, others[1]]
    assert sequence.leg(5).start == 5 and sequence.leg(5).guidance is added.guidance
    sequence.exchange([(first, others[0])])
    assert [float(sequence.target(k)[0]) for k in (4, 5)] == [2.0, 3.0]
    sequence.reset()
    assert sequence.trackers == [others[0], others[0]] and sequence.leg(0).guidance is GUIDANCE
