"""How a tracker joins a run late: at the present time, at another point, by a motion, or not."""

from functools import cache

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control.damping import damping_or_idle
from nh_control.loop import joining
from nh_control.loop.error_bounds import ErrorBounds
from nh_control.loop.joining import Joining, planned_motion
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal, Unusable
from nh_control.loop.responder import Responder


@cache
def parts(name):
    scenario = scenarios.get(name)
    dsys = scenario.model()
    reference = scenario.reference(dsys)
    return scenario, dsys, reference, scenario.tracker(dsys, reference)


@cache
def left_alone(name, steps, followed):
    """The state after `followed` steps of the reference, and `steps` without a tracker."""
    scenario, dsys, reference, tracker = parts(name)
    x, u = reference.states[0], None
    for k in range(followed + steps):
        if k < followed:
            u = tracker.command(k, x).u
        elif scenario.nodes.get("fallback") != "hold":
            u = damping_or_idle(dsys, x)
        x = dsys.step(x, u)
    return followed + steps, x


class Late:
    """A tracker that comes late to a run; `told` says how it joins."""

    def __init__(self, name, plan=None, bounds=None):
        self.scenario, self.dsys, reference, tracker = parts(name)
        guidance = self.scenario.make_guidance(self.dsys, reference)
        self.sequence, self.told, self.legs = ReferenceSequence(tracker, guidance), [], []
        self.bounds = bounds or ErrorBounds.of(self.scenario, self.dsys, reference)
        plan = plan or planned_motion(self.scenario, self.sequence)
        self.joining = Joining(self.sequence, self.bounds, plan, self._joined)

    def _joined(self, leg, text):
        self.told.append(text)
        self.legs.append(leg)

    def flown(self, k, x, steps):
        """The tracked number that is farthest off after this number of steps."""
        for i in range(k, k + steps):
            command = self.sequence.command(i, x)
            x = self.dsys.step(x, command.u)
        return float(self.bounds.size(command.error))


@pytest.mark.parametrize(
    ("name", "steps", "followed", "told", "start"),
    [
        ("snakeboard", 50, 400, "joins the run at t = 4.500 s", 0),
        ("snakeboard", 300, 740, "with the reference 3.23 s late from now on, because", 323),
        ("cart_pole", 100, 150, "with the reference 1.63 s late from now on, because", 163),
    ],
)
def test_a_run_is_joined_at_its_present_time_or_at_the_nearest_point_from_which_it_can_be(
    name, steps, followed, told, start
):
    late, (k, x) = Late(name), left_alone(name, steps, followed)
    assert late.joining.join(k, x) == ""
    (text,) = late.told
    assert told in text and late.sequence.leg(k).start == start
    left = late.sequence.leg(k).end - k
    assert late.flown(k, x, left) < late.bounds.error  # and not only in the trial
    late.sequence.reset()
    assert late.sequence.leg(k).start == 0


def test_a_vehicle_joins_by_a_motion_to_the_reference_s_end():
    late = Late("car")
    q = late.dsys.configuration(parts("car")[2].states[-1]) + [0.0, 0.0, 0.3, 20.0, -15.0]
    x = late.dsys.measured_state(q, np.zeros(late.dsys.system.space.nw))
    assert late.joining.join(300, x) == ""
    (text,), leg = late.told, late.sequence.leg(300)
    assert "by a motion of" in text and leg.start == 300
    assert late.flown(300, x, leg.end - 300) < 0.1
    ends = leg.tracker.reference.states[-1], parts("car")[2].states[-1]
    reached, expected = (late.dsys.configuration(end)[2:] for end in ends)  # theta, x, y
    np.testing.assert_allclose(reached, expected, atol=0.05)


def test_a_motion_that_was_planned_too_slowly_begins_with_the_next_state():
    """A payload that a plan, which takes seconds, brings back from where its fall has ended."""
    scenario, dsys, reference, tracker = parts("quadrotor_payload")
    k, x = left_alone("quadrotor_payload", 100, 200)
    plans = []

    def plan(step, state):
        plans.append(step)
        return joining.ReferenceLeg(step, tracker)

    late = Late("quadrotor_payload", plan)
    passed = iter(["a wall"] * (1 + joining.POINTS) + ["", "a wall"] + ["a wall"] * 9)
    late.joining = Joining(late.sequence, late.bounds, plan, late._joined)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "obstacle", lambda *_: next(passed))
        assert late.joining.join(k, x) == "" and late.sequence.leg(k).start == k
        assert late.joining.join(k, x) == ""  # the same state again
        assert "does not join" in late.joining.join(k + 150, x)  # it has moved on, too far
    assert plans == [k, k + 150]
    late.joining.reset()
    passed = iter(["a wall"] * (1 + joining.POINTS) + ["", ""])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "obstacle", lambda *_: next(passed))
        late.joining.join(k, x)
        assert late.joining.join(k + 150, x) == "" and late.sequence.leg(k + 150).start == k + 150


def test_a_run_that_cannot_be_joined_is_left_to_the_plant_and_said_in_a_sentence():
    late, (k, x) = Late("snakeboard"), left_alone("snakeboard", 300, 200)
    text = late.joining.join(k, x)
    assert text.startswith(
        "the tracker does not join the run at t = 5.000 s and sends no commands"
    )
    assert "the model fails at t = 7.200 s" in text and "reset the run" in text
    assert not late.told and late.sequence.leg(k).start == 0
    responder = Responder(late.sequence, joining=Joining(late.sequence, late.bounds))
    q, v = late.dsys.configuration(x).tolist(), late.dsys.velocity(x).tolist()

    def read(into_q, into_v):
        into_q[:], into_v[:] = q, v

    with pytest.raises(Unusable, match="does not join") as refused:
        responder.respond(k, responder.measure(k, read))
    assert refused.value.kind is Refusal.JOIN


def test_a_payload_571_m_away_is_not_tracked():
    late, (k, x) = (
        Late("quadrotor_payload", plan=lambda k, x: no_way()),
        left_alone("quadrotor_payload", 100, 200),
    )
    far = x.copy()
    far[2] -= 571.0
    assert "does not join" in late.joining.join(k, far)


def no_way():
    raise ValueError("no way")


def test_a_run_is_followed_from_its_start_and_past_its_end_whatever_comes():
    late, (k, x) = Late("snakeboard"), left_alone("snakeboard", 300, 200)
    assert late.joining.join(0, x) == "" and late.joining.join(k, x) == ""
    late.joining.reset()
    assert late.joining.join(k, x)
    late.joining.reset()
    assert late.joining.join(2000, x) == "" and late.told == ["joins the run at t = 20.000 s"]


def test_it_is_tried_once_a_second_or_more_seldom_and_in_another_run_at_once(monkeypatch):
    tried, clock = [], [0.0]
    late, (_, x) = Late("snakeboard"), left_alone("snakeboard", 50, 400)

    def obstacle(leg, k, x, bounds):
        if leg.start == 0:
            tried.append(k)
            clock[0] += 0.02 if k < 850 else 0.3
        return "a wall"

    monkeypatch.setattr(joining, "obstacle", obstacle)
    monkeypatch.setattr(joining.time, "monotonic", lambda: clock[0])
    for k in (700, 701, 799, 800, 850, 1000, 1149, 1150):
        if k == 850:
            late.joining.reset()
        assert "a wall" in late.joining.join(k, x)
    assert tried == [700, 800, 850, 1150]
