"""A tracker that comes late: from where it may still follow the reference."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control.damping import DAMPING_S, damping_input
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.state_estimate import JoinCheck, obstacle


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


class Course:
    """A sequence whose leg begins at step 100 and ends at 105; the model fails at its step
    `wall`.
    """

    def __init__(self, wall=None, error=None, h=0.1):
        self.asked, self.wall, self.error = [], wall, error
        self.dsys = SimpleNamespace(h=h, step=lambda x, u: x + u)

    def leg(self, k):
        return SimpleNamespace(start=100, end=105, tracker=self)

    def command(self, k, x):
        self.asked.append((k, float(x[0])))
        if self.wall == k:
            raise self.error
        return SimpleNamespace(u=1.0)


@pytest.mark.parametrize("error", [ValueError("no luck"), np.linalg.LinAlgError("no luck")])
def test_a_reference_is_tried_to_its_end_from_where_it_is(error):
    course, x = Course(), np.array([7.0])
    assert obstacle(course, 102, x) == "" and course.asked == [(2, 7), (3, 8), (4, 9)]
    said = obstacle(Course(3, error), 102, x)
    assert "the model fails at t = 10.300 s" in said and "no luck" in said


def test_it_is_asked_once_a_second_and_in_another_run_at_once():
    course, refused = Course(3, ValueError("no luck"), h=1 / 2), []
    late = JoinCheck(course)
    for k in (100, 101, 102, 103):
        with pytest.raises(ValueError, match=f"at step {k}: tracked"):
            late.require(k, np.zeros(1))
        refused.append(len(course.asked))
    assert refused == [4, 4, 6, 6]
    course.wall = None
    with pytest.raises(ValueError, match="at step 103"):
        late.require(103, np.zeros(1))
    late.reset()
    late.require(103, np.zeros(1))
    assert len(course.asked) == 8
