"""Events of adaptive runs: SciPy's on R^n, several in a step, those that end the run, functions of
numbers, on the manifold.
"""

import math

import casadi as ca
import lie_cases
import numpy as np
import pytest
import scipy.integrate
from refusals import refusal

import nh_control as nh
from nh_control.geometry.homogeneous import SphereAction, TranslationAction
from nh_control.integrators.adaptive import AdaptiveIntegrator
from nh_control.numerics.adaptive import crossings
from nh_control.systems.rigid_body import heavy_top

LINE = TranslationAction("x", "v")
TIMES = np.linspace(0, 20, 81)


def marked(function, **attributes):
    """The event as SciPy wants it."""
    for name, value in attributes.items():
        setattr(function, name, value)
    return function


def swing(t, y):
    """A driven oscillator, in numbers and in expressions."""
    return [y[1], -y[0] + 0.3 * (ca.sin(t) if isinstance(t, ca.SX) else np.sin(t))]


EVENTS = {
    "both directions": lambda: [lambda t, y: y[0]],
    "rising": lambda: [marked(lambda t, y: y[0] - 0.2, direction=1)],
    "falling": lambda: [marked(lambda t, y: y[0] - 0.2, direction=-1)],
    "of time": lambda: [lambda t, y: t - 7.25],
    "two": lambda: [lambda t, y: y[0] - 0.3, marked(lambda t, y: y[1], direction=-1)],
    "terminal": lambda: [lambda t, y: y[0], marked(lambda t, y: y[1] + 0.5, terminal=True)],
    "the third": lambda: [marked(lambda t, y: y[0], terminal=3), lambda t, y: y[1]],
}


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("name", EVENTS)
def test_on_vectors_they_are_scipys(name, numeric):
    tolerances = {"rtol": 1e-7, "atol": 1e-9}
    events = [marked(event, numeric=numeric) for event in EVENTS[name]()]
    for t_eval, span in ((None, (0, 20)), (TIMES, (0, 20)), (TIMES[::-1], (20, 0))):
        run = nh.solve_ivp(
            (LINE, swing), span, [1.0, 0.1], t_eval=t_eval, events=events, **tolerances
        )
        other = scipy.integrate.solve_ivp(
            swing, span, [1.0, 0.1], t_eval=t_eval, events=events, **tolerances
        )
        assert run.status == other.status and len(run.t) == len(other.t)
        # round-off in the errors changes the steps a little
        assert np.allclose(run.t, other.t, rtol=0, atol=1e-5)
        assert np.allclose(run.y, other.y, rtol=0, atol=1e-5)
        stopped_late = numeric and run.status == 1
        assert run.nfev == other.nfev or stopped_late
        for mine, theirs in zip(run.t_events + run.y_events, other.t_events + other.y_events):
            assert np.shape(mine)[0] == np.shape(theirs)[0]
            assert np.allclose(mine, np.reshape(theirs, np.shape(mine)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("numeric", [False, True])
def test_the_first_terminal_of_several_in_one_step_ends_the_run(numeric):
    """A body at constant speed takes one step across all of them."""
    levels = [0.7, 0.3, 0.5, 0.2]
    events = [
        marked(lambda t, y, at=at: y[0] - at, terminal=at >= 0.5, numeric=numeric) for at in levels
    ]
    run = nh.solve_ivp(
        (TranslationAction("x"), lambda t, y: [ca.SX(1)]),
        (0, 10),
        [0.0],
        events=events,
        first_step=1.0,
        dense_output=True,
    )
    assert run.status == 1 and "terminal event occurred at t = 0.5" in run.message
    assert [len(times) for times in run.t_events] == [0, 1, 1, 1]
    assert np.allclose(run.t, [0, 0.5]) and np.allclose(run.y, [[0, 0.5]])
    assert run.naccepted == 1 and abs(run.sol.t_max - 0.5) < 1e-15
    with pytest.raises(ValueError, match="known for times from 0 to 0.5"):
        run.sol(0.6)


def test_a_bouncing_ball_goes_on_where_it_stopped():
    """A zero at the start is no event, so a terminal event does not stop the next run at once."""
    ground = marked(lambda t, y: y[0], terminal=True, direction=-1)
    ball = AdaptiveIntegrator((LINE, lambda t, y: [y[1], -10.0]), events=ground)
    t, y, hits = 0.0, np.array([5.0, 0.0]), []
    for _ in range(4):
        run = ball.solve((t, 20.0), y)
        t, y = float(run.t[-1]), run.y[:, -1] * [0, -0.5]
        hits.append(t)
    assert np.allclose(np.diff(hits), [1.0, 0.5, 0.25], rtol=0, atol=1e-9)


def test_an_event_on_the_manifold():
    """The top's axis crosses the horizon: the point is on both."""
    top = heavy_top(lie_cases.MILD_TOP)
    axis = lambda t, x: x[0] ** 2 + x[3] ** 2 - x[1] ** 2 - x[2] ** 2 - 0.6  # noqa: E731
    x0 = np.concatenate([top.space.origin, [0.3, 0.2, -0.4]])
    run = nh.solve_ivp(top, (0, 5), x0, events=axis, rtol=1e-9, atol=1e-12, dense_output=True)
    (times,), (points,) = run.t_events, run.y_events
    assert len(times) >= 2 and points.shape == (len(times), 7)
    assert abs(np.linalg.norm(points[:, :4], axis=1) - 1).max() < 1e-15
    assert max(abs(axis(0, x)) for x in points) < 1e-12
    assert np.array_equal(points.T, run.sol(times))


def test_an_event_before_a_singularity_comes_first():
    late = marked(lambda t, y: y[0] - 100.0, terminal=True)
    for numeric in (False, True):
        late.numeric = numeric
        run = nh.solve_ivp(
            (TranslationAction("y"), lambda t, y: y**2), (0, 2), [1.0], events=late, rtol=1e-10
        )
        assert run.status == 1 and abs(run.t[-1] - 0.99) < 1e-8 and run.success


def test_events_that_cannot_be_used_are_refused(snapshot):
    wrong = (
        lambda t, q: q[1] + math.sin(q[0]),
        lambda t, q: 1 if q[0] > 0 else -1,
        lambda t, q: q,
        marked(lambda t, q: q[0], terminal=-1),
        marked(lambda t, q: q[0], terminal=1.5),
        [lambda t, q: q[0], 3],
        marked(lambda t, q: 1 / 0, numeric=True),
    )
    problem, errors = (SphereAction(), lambda t, q: [0, 0, 1]), (ValueError, ZeroDivisionError)
    solve = lambda event: nh.solve_ivp(problem, (0, 1), [1.0, 0, 0], events=event)
    assert [refusal(lambda: solve(event), errors) for event in wrong] == snapshot


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("name", ["two", "terminal", "the third"])
def test_a_run_of_many_native_calls_is_one_run(name, numeric, monkeypatch):
    """Its steps, the times that are asked for, events, their counts, and the whole curve."""
    runs = []
    for room, t_eval in ((1000, None), (3, None), (7, TIMES)):
        monkeypatch.setattr("nh_control.integrators.adaptive_run.BATCH_SIZE", room)
        events = [marked(event, numeric=numeric) for event in EVENTS[name]()]
        runs.append(
            nh.solve_ivp(
                (LINE, swing),
                (0, 20),
                [1.0, 0.1],
                t_eval=t_eval,
                events=events,
                dense_output=True,
                rtol=1e-7,
                atol=1e-9,
            )
        )
    one, many, asked = runs
    assert many.naccepted == one.naccepted > 6 and many.status == one.status
    np.testing.assert_allclose(many.t, one.t, rtol=0, atol=1e-10)
    np.testing.assert_allclose(many.y, one.y, rtol=0, atol=1e-10)
    if one.status == 0:
        assert (many.nfev, many.nrejected) == (one.nfev, one.nrejected)
    assert many.message == one.message
    for found in (many, asked):
        for mine, whole in zip(found.t_events + found.y_events, one.t_events + one.y_events):
            assert len(mine) == len(whole)
            np.testing.assert_allclose(mine, whole, rtol=0, atol=1e-10)
        assert (found.sol.t_min, found.sol.t_max) == (0.0, pytest.approx(one.t[-1], abs=1e-10))
        inside = [t for t in TIMES if t < one.t[-1]]
        np.testing.assert_allclose(found.sol(inside), one.sol(inside), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(asked.t, [t for t in TIMES if t <= one.t[-1]])
    np.testing.assert_allclose(asked.y, one.sol(asked.t), rtol=0, atol=1e-10)


def test_a_value_that_ends_at_zero_crosses_and_one_that_starts_there_does_not():
    before = np.array([-1.0, -1.0, 1.0, 1.0, 0.0, -1.0, 1.0])
    after = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -1.0])
    directions = np.array([0.0, -1.0, 0.0, -1.0, 0.0, 1.0, 1.0])
    expected = [True, False, True, True, False, True, False]
    assert crossings(before, after, directions).tolist() == expected
