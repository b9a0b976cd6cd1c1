"""States from measurements: at the steps of a simulation, and at any times of hardware."""

import numpy as np
import pytest
from refusals import refusal

from nh_control import scenarios
from nh_control.control.input_history import predict
from nh_control.integrators import midpoint
from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.loop.state_estimate import StateEstimate
from nh_control.systems.spherical_pendulum import spherical_pendulum

NAN = np.nan


def u(value):
    return np.array([value])


# At the steps of a simulation --------------------------------------------------------------------

SHORT = {"snakeboard": "parking", "quadrotor_payload": "parabola"}


@pytest.fixture(scope="module", params=SHORT)
def way(request):
    scenario = scenarios.get(request.param)
    model = scenario.model()
    return model, scenario.reference(model, SHORT[request.param])


def distance(way, estimate, steps, velocities=False):
    """Largest difference from the reference of the states that are estimated along it."""
    model, reference = way
    differences = []
    for k in steps:
        x = reference.states[k]
        v = model.velocity(x) if velocities else None
        before = reference.inputs[k - 1]
        found = estimate.state(k, model.configuration(x), v, before, x)
        differences.append(np.abs(model.local(found, x)).max())
    return max(differences)


def test_a_state_is_exact_with_velocities_and_without_by_the_momentum_of_the_step(way):
    assert distance(way, StateEstimate(way[0]), range(50), velocities=True) < 1e-12
    estimate = StateEstimate(way[0])
    assert distance(way, estimate, range(50)) < 1e-9 and estimate.approximated == 0
    estimate.reset()
    assert distance(way, estimate, [0]) < 1e-9 and estimate.approximated == 0  # a new start


def test_gaps_are_bridged_and_counted(way):
    estimate = StateEstimate(way[0])
    assert distance(way, estimate, range(0, 60, 3)) < 0.3 and estimate.approximated == 19


@pytest.mark.parametrize(
    ("name", "moved"), [("snakeboard", [0.0, 0.1, 2.0, 0.0, 0.4]), ("cart_pole", [1e200, 1e200])]
)
def test_configurations_that_no_step_joins_have_their_mean_velocity(name, moved):
    """By a ValueError of the one model, and a StepFailed of the other."""
    dsys = scenarios.get(name).model()
    estimate, space = StateEstimate(dsys), dsys.system.space
    q, none = np.zeros(space.nq), np.zeros(dsys.nu)
    target = dsys.measured_state(q, 0.1 * np.arange(space.nw))
    state = lambda k, at: estimate.state(k, at, None, none, target)
    mean = lambda steps, by: dsys.measured_state(by, space.velocity(q, by) / (steps * dsys.h))
    np.testing.assert_array_equal(state(3, q), target)
    q[:] = 99.0  # the array of the next message
    q = np.zeros(space.nq)
    np.testing.assert_allclose(state(4, moved), mean(1, moved))
    assert estimate.approximated == 1
    velocity = dsys.velocity(target)
    np.testing.assert_array_equal(state(4, q), dsys.measured_state(q, velocity))  # no new step
    np.testing.assert_allclose(state(6, moved), mean(2, moved))
    assert estimate.approximated == 2
    estimate.reset()
    np.testing.assert_array_equal(state(7, moved), dsys.measured_state(moved, velocity))


# At the times of hardware ------------------------------------------------------------------------


def test_the_filter_finds_velocities_at_irregular_times_from_noisy_positions(cart):
    dsys, _ = cart
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.uniform(0.002, 0.025, 300))
    errors = {}
    for estimate in (FilteredState(dsys, 1e-3, 0.1), MeasuredState(dsys)):
        x, before, wrong = dsys.state([0.0, 0.4], [0.3, -1.0]), 0.0, []
        for t in times:
            x = predict(dsys, x, [(u(2.0), t - before)])
            noisy = dsys.configuration(x) + 1e-3 * rng.normal(size=2)
            guess = estimate.state(round(t * 1e9), noisy, None, [(u(2.0), t - before)], x)
            before = t
            wrong.append(dsys.velocity(guess) - dsys.velocity(x))
        errors[type(estimate)] = np.sqrt(np.mean(np.square(wrong[100:])))
    assert errors[FilteredState] < 0.02 and errors[MeasuredState] > 5 * errors[FilteredState]


def test_without_velocities_the_last_two_configurations_make_one(cart):
    dsys, tracker = cart
    estimate, expected = MeasuredState(dsys), tracker.reference.states[60]
    first = estimate.state(0, [0.0, 0.1], None, (), expected)
    assert np.abs(dsys.velocity(first)).max() > 0.1
    np.testing.assert_allclose(dsys.velocity(first), dsys.velocity(expected), atol=1e-12)
    for k, q in enumerate(([0.1, 0.2], [0.4, 0.3]), 1):
        x = estimate.state(k * 10**8, q, None, (), expected)
    np.testing.assert_allclose(dsys.velocity(x), [3.0, 1.0], atol=1e-12)


def test_a_mean_velocity_is_had_at_the_last_measurement():
    """On the sphere, where that at the one before has another direction."""
    dsys = midpoint(spherical_pendulum(retraction="exp"), 0.1)
    space, expected = dsys.system.space, dsys.state_space.origin
    estimate, before = MeasuredState(dsys), space.retract(space.origin, np.array([0.9, 0.2]))
    here = space.retract(before, np.array([0.3, -0.4]))
    estimate.state(0, before, None, (), expected)
    x = estimate.state(200_000_000, here, None, (), expected)
    along = (here * np.cos(0.5) - before) / np.sin(0.5)
    np.testing.assert_allclose(dsys.velocity(x), along * 0.5 / 0.2, atol=1e-12)


def covariance(dsys, estimate):
    """The filter's belief of configuration and velocity, by the prediction of a measurement."""
    kalman, belief = estimate._known
    q, v = dsys.configuration(belief.x), dsys.velocity(belief.x)
    units = [dsys.local(belief.x, dsys.measured_state(q, v + e))[2:] for e in np.eye(2)]
    M = np.array(units)
    return kalman, belief.P[:2, :2], np.linalg.solve(M, np.linalg.solve(M, belief.P[2:, 2:]).T)


@pytest.mark.parametrize("v", [[0.3, -0.4], [NAN, -0.4], None])
def test_a_filter_begins_as_sure_as_it_is_told(cart, v):
    """Velocities that are not measured are completed by the expected ones."""
    dsys, tracker = cart
    expected, q, change = tracker.reference.states[60], [0.1, 0.2], (2.0 * dsys.h) ** 2
    estimate = FilteredState(dsys, 0.01, 2.0)
    x = estimate.state(0, q, v, (), expected)
    known = np.array([NAN, NAN] if v is None else v)
    wanted = np.where(np.isnan(known), dsys.velocity(expected), known)
    np.testing.assert_allclose(x, dsys.measured_state(q, wanted), atol=1e-12)
    kalman, configuration, velocity = covariance(dsys, estimate)
    np.testing.assert_allclose(configuration, 1e-4 * np.eye(2), atol=1e-15)
    sure = np.diag(np.where(np.isnan(known), 1.0, change))
    np.testing.assert_allclose(velocity, sure, atol=1e-9)
    G = np.array([dsys.local(x, dsys.measured_state(q, wanted + e)) for e in np.eye(2)]).T
    np.testing.assert_allclose(kalman.W, change * G @ G.T, atol=1e-15)
    np.testing.assert_allclose(kalman.V, 1e-4 * np.eye(2), atol=1e-18)


def test_velocities_of_which_some_are_measured_are_completed(cart):
    """By the mean velocity, that of a step, or that which is expected."""
    dsys, tracker = cart
    expected, q, v = tracker.reference.states[60], [0.1, 0.2], [NAN, -0.4]
    for estimate in (MeasuredState(dsys), StateEstimate(dsys)):
        found = dsys.velocity(estimate.state(0, q, v, u(0.0), expected))
        np.testing.assert_allclose(found, [dsys.velocity(expected)[0], -0.4], atol=1e-12)
    last = MeasuredState(dsys)
    last.state(0, [0.0, 0.2], v, (), expected)
    np.testing.assert_allclose(dsys.velocity(last.state(10**9, q, v, (), expected)), [0.1, -0.4])
    whole, steps = StateEstimate(dsys), StateEstimate(dsys)
    for k, (at, part) in enumerate((([0.0, 0.2], v), (q, v))):
        x = whole.state(k, at, [NAN, NAN], u(1.0), expected)
        mixed = steps.state(k, at, part, u(1.0), expected)
    wanted = [dsys.velocity(x)[0], -0.4]
    np.testing.assert_allclose(dsys.velocity(mixed), wanted, atol=1e-12)


def test_a_filter_takes_inputs_for_as_long_as_they_acted(cart):
    dsys, tracker = cart
    found, start = [], tracker.reference.states[0]
    for pieces in ([(u(2.0), 0.025)], [(u(2.0), 0.01), (u(2.0), 0.015)], [(u(2.0), 0.01)]):
        estimate = FilteredState(dsys, 1e-3, 1.0)
        estimate.state(0, [0.0, 0.0], [0.0, 0.0], (), start)
        found.append(estimate.state(1, [0.0, 0.0], None, pieces, start))
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    assert np.abs(found[0] - found[2]).max() > 1e-4


def test_a_filter_needs_positive_noise(cart, snapshot):
    wrong = (0.0, 1.0), (0.1, 0.0), (1e-3, 1.0, -1.0)
    assert [refusal(lambda: FilteredState(cart[0], *numbers)) for numbers in wrong] == snapshot
