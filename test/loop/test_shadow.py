"""A model beside a robot, without ROS: what it did not expect, and when it may look."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.loop.shadow import Shadow, Statistics


@pytest.fixture(scope="module")
def cart():
    return scenarios.get("cart_pole").model()


def motion(dsys, n=40):
    """States (n + 1) and inputs (n) of a motion."""
    inputs = [np.array([4 * np.sin(0.3 * k)]) for k in range(n)]
    return dsys.simulate(dsys.state([0.0, 0.4], [0.0, 0.0]), np.array(inputs)).states, inputs


def at(k):
    return k * 10_000_000


def test_statistics_are_those_of_all_rows():
    rows, s = np.random.default_rng(0).normal(size=(50, 3)), Statistics()
    for row in rows:
        s.add(row)
    np.testing.assert_allclose(s.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(s.deviation, rows.std(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_array_equal(s.largest, np.abs(rows).max(axis=0))


def test_a_plant_like_the_model_is_expected_and_another_one_not(cart):
    for mass, least, most in ((0.3, 0.0, 1e-12), (0.33, 1e-4, 1e-1)):
        states, inputs = motion(cart.with_parameters(m_pole=mass))
        other = cart.with_parameters(m_pole=mass)
        shadow = Shadow(cart, MeasuredState(cart), patience=5, answering=True)
        found = []
        for k, x in enumerate(states):
            found += shadow.measured(at(k), other.configuration(x), other.velocity(x))
            if k < len(inputs):
                shadow.command(inputs[k], at(k), at(k))
        found += shadow.settle()
        assert len(found) == len(inputs) and shadow.names == list(cart.state_space.tangent_names)
        assert [residual.time_ns for residual in found] == [at(k) for k in range(1, 41)]
        assert least <= max(np.abs(r.values).max() for r in found) < most


def test_a_state_waits_for_the_command_that_answers_the_one_before(cart):
    states, inputs = motion(cart)
    shadow = Shadow(cart, MeasuredState(cart), patience=3, answering=True)
    q, v = ([f(x).tolist() for x in states] for f in (cart.configuration, cart.velocity))
    assert shadow.measured(at(0), q[0], v[0]) == []
    assert shadow.measured(at(1), q[1], v[1]) == []  # which input acted is not known yet
    shadow.command(inputs[0], at(0), at(0))
    shadow.command(inputs[1], at(1), at(1))
    found = shadow.measured(at(2), q[2], v[2])
    assert [r.time_ns for r in found] == [at(1), at(2)]
    assert max(np.abs(r.values).max() for r in found) < 1e-12
    late = [len(shadow.measured(at(k), q[k], v[k])) for k in (3, 4, 5, 6, 7)]
    assert late == [0, 0, 0, 1, 1]  # patience is over: the last command is taken to be held


def test_after_a_gap_that_is_too_long_to_be_predicted_it_begins_anew(cart):
    states, inputs = motion(cart)
    shadow = Shadow(cart, MeasuredState(cart), patience=1)
    q, v = ([f(x).tolist() for x in states] for f in (cart.configuration, cart.velocity))
    late = round(100 / cart.h)
    assert shadow.measured(at(0), q[0], v[0]) == []
    shadow.command(inputs[0], at(0), at(0))
    assert shadow.measured(at(1), q[1], v[1]) == []
    (last,) = shadow.measured(at(late), q[2], v[2])
    assert last.time_ns == at(1)
    assert "jumped ahead by 100 s" in shadow.report().message
    shadow.measured(at(late + 1), q[3], v[3])
    assert [residual.time_ns for residual in shadow.settle()] == [at(late + 1)]


def test_nothing_is_expected_while_no_command_has_been_heard(cart):
    states, inputs = motion(cart)
    shadow = Shadow(cart, MeasuredState(cart), patience=2, answering=True)
    found = []
    for k, x in enumerate(states[:8]):
        found += shadow.measured(at(k), cart.configuration(x), cart.velocity(x))
        if k >= 5:  # the tracker was found late
            shadow.command(inputs[k], at(k), at(k))
        elif k == 4:
            report = shadow.report()
            assert (report.message, report.values["states_unanswered"]) == (
                "waiting for commands",
                2,
            )
    assert [r.time_ns for r in found + shadow.settle()] == [at(6), at(7)]
    assert max(np.abs(r.values).max() for r in found) < 1e-12
    assert shadow.report().values["states_unanswered"] == 5


def test_commands_act_as_far_as_actuators_can(cart):
    states, _ = motion(cart, 1)
    limit = cart.system.input_bounds[0, 1]
    x1 = cart.step(states[0], [limit])
    shadow = Shadow(cart, MeasuredState(cart))
    shadow.measured(at(0), cart.configuration(states[0]), cart.velocity(states[0]))
    shadow.command([2 * limit], at(0), at(0))
    shadow.measured(at(1), cart.configuration(x1), cart.velocity(x1))
    (residual,) = shadow.settle()
    assert np.abs(residual.values).max() < 1e-12


def test_positions_alone_give_the_innovations_of_the_filter(cart):
    rng, noise = np.random.default_rng(1), 1e-3
    states, inputs = motion(cart, 300)
    shadow = Shadow(cart, FilteredState(cart, noise, 0.1))
    found = []
    for k, x in enumerate(states):
        y = cart.configuration(x) + noise * rng.normal(size=2)
        found += shadow.measured(at(k), y, None)
        if k < len(inputs):
            shadow.command(inputs[k], at(k), at(k))
    rows = np.array([r.values for r in found])[100:]
    assert rows.shape[1] == 2 and shadow.names == ["x", "theta"]
    assert (np.abs(rows.mean(axis=0)) < 3e-4).all()
    assert ((rows.std(axis=0) > 0.9e-3) & (rows.std(axis=0) < 1.5e-3)).all()


def test_what_cannot_be_used_is_refused_and_told(cart):
    states, _ = motion(cart, 4)
    shadow = Shadow(cart, MeasuredState(cart))
    for k in (0, 1, 2):
        q = cart.configuration(states[k]) if k != 1 else np.array([1e308, -1e308])
        v = cart.velocity(states[k]) if k != 1 else np.array([1e308, 1e308])
        shadow.measured(at(k), q, v)
    assert len(shadow.settle()) == 1 and shadow.refused.total() == 1
    report = shadow.report()
    assert report.level == "warn" and "cannot be used" in report.message
    assert report.values["residuals"] == 1 and report.values["states_refused"] == 1
    assert shadow.report().level == "ok"
    assert shadow.measured(at(2), q, v) == []  # not newer
