"""A tracker that comes late: from where it may still follow the reference."""

from functools import cache

import pytest

from nh_control import scenarios
from nh_control.control.damping import DAMPING_S, damping_input
from nh_control.loop import state_estimate
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.state_estimate import JoinCheck


@cache
def sequence():
    scenario = scenarios.get("snakeboard")
    dsys = scenario.model()
    return ReferenceSequence(scenario.tracker(dsys, scenario.reference(dsys)))


@cache
def left_alone(steps):
    """The snakeboard's state after 400 steps of parking, and `steps` without a tracker."""
    dsys, x = sequence().dsys, sequence().target(0)
    for k in range(400 + steps):
        following = k < 400
        u = sequence().command(k, x).u if following else damping_input(dsys, x, DAMPING_S)
        x = dsys.step(x, u)
    return x


def test_it_is_joined_where_it_can_be_followed_from():
    JoinCheck(sequence()).require(450, left_alone(50))
    with pytest.raises(ValueError, match=r"cannot be joined at step 700.*leaves the domain"):
        JoinCheck(sequence()).require(700, left_alone(300))


def test_a_run_is_followed_from_its_start_whatever_comes():
    late = JoinCheck(sequence())
    late.require(0, left_alone(300))
    late.require(700, left_alone(300))
    late.reset()
    with pytest.raises(ValueError, match="cannot be joined"):
        late.require(700, left_alone(300))


def test_it_is_asked_once_a_second(monkeypatch):
    answers, asked = iter(("a wall", "a wall", "")), []
    monkeypatch.setattr(
        state_estimate, "obstacle", lambda s, k, x: asked.append(k) or next(answers)
    )
    late, refused = JoinCheck(sequence()), []
    for k in range(50, 400):
        try:
            late.require(k, left_alone(0))
        except ValueError as reason:
            assert "a wall" in str(reason)
            refused.append(k)
    assert asked == [50, 150, 250] and refused == list(range(50, 250))
