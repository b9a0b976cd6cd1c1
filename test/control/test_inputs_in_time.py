"""Which inputs acted when, and the whole steps and parts of steps that they make up."""

import numpy as np
import pytest

import nh_control as nh
from nh_control.control.input_history import InputHistory, predict, split_into_steps
from nh_control.systems import pendulum

MS = 1_000_000


def pieces(history, begin_ms, end_ms):
    return [
        (u.tolist(), round(1e3 * s, 9)) for u, s in history.between(begin_ms * MS, end_ms * MS)
    ]


def test_before_the_first_input_and_after_all_are_forgotten_the_idle_one_acts():
    history = InputHistory(np.array([0.2, -0.1]))
    assert pieces(history, 0, 5) == [([0.2, -0.1], 5.0)]
    history.add(3 * MS, np.array([1.0, 2.0]))
    assert pieces(history, 0, 5) == [([0.2, -0.1], 3.0), ([1.0, 2.0], 2.0)]
    assert pieces(history, 3, 4) == [([1.0, 2.0], 1.0)]
    assert pieces(history, 0, 3) == [([0.2, -0.1], 3.0)]
    history.clear()
    assert pieces(history, 0, 5) == [([0.2, -0.1], 5.0)]


def test_an_input_for_the_same_time_replaces_the_one_before():
    history = InputHistory(np.zeros(1))
    for value in (1.0, 2.0):
        history.add(3 * MS, np.array([value]))
    assert pieces(history, 0, 5) == [([0.0], 3.0), ([2.0], 2.0)]


@pytest.mark.parametrize(("kept", "known"), [((2,), 2), ((None,), 1500), ((), 1000)])
def test_the_history_keeps_the_given_number_of_inputs_or_all_or_a_thousand(kept, known):
    history = InputHistory(np.zeros(1), *kept)
    for k in range(1500):
        history.add(k * MS, np.array([1.0 + k]))
    found = pieces(history, 0, 1500)
    assert len(found) == known + (known < 1500) and found[-1] == ([1500.0], 1.0)


@pytest.mark.parametrize(
    ("duration_s", "whole", "rest"),
    [
        (0.3, 3, 0.0),  # 0.3 / 0.1 is less than 3 in floating point
        (0.1, 1, 0.0),
        (0.04, 0, 0.04),
        (0.25, 2, 0.05),
        (0.1 + 5e-5, 1, 0.0),  # a part that is nothing
        (0.1 - 5e-5, 1, 0.0),
        (0.1 + 2e-4, 1, 2e-4),
        (0.0, 0, 0.0),
    ],
)
def test_a_duration_is_whole_steps_and_a_part(duration_s, whole, rest):
    dsys = nh.midpoint(pendulum(), 0.1)
    found = [step.h for step in split_into_steps(dsys, duration_s)]
    assert found[:whole] == [0.1] * whole
    np.testing.assert_allclose(found[whole:], [rest] * (rest > 0), rtol=1e-9)


def test_states_are_predicted_by_all_inputs_in_turn():
    dsys = nh.midpoint(pendulum(), 0.1)
    x = dsys.state([0.3], [0.5])
    u, w = np.array([1.0]), np.array([-2.0])
    expected = dsys.step(dsys.step(dsys.step(x, u), w), w)
    np.testing.assert_array_equal(predict(dsys, x, [(u, 0.1), (w, 0.2)]), expected)
    np.testing.assert_array_equal(predict(dsys, x, []), x)
