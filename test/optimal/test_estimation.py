"""The Kalman filter: the textbook's on a linear system, exact derivatives on manifolds, errors
within their covariance, feedback from measurements alone.
"""

import casadi as ca
import control
import differences
import numpy as np
import pytest
from optimal_cases import optimized, pushed_ball, springs_system
from scipy.stats import chi2

from nh_control.control.estimation import Belief, KalmanFilter, OutputFeedback
from nh_control.integrators import midpoint, nonholonomic_midpoint
from nh_control.scenarios import get
from nh_control.systems import snakeboard


@pytest.fixture(scope="module")
def springs():
    return midpoint(springs_system(), 0.1)


def test_it_is_the_kalman_filter_of_a_linear_system_and_settles_where_the_library_says(springs):
    W, V = np.diag([1e-3, 2e-3, 4e-3, 1e-3]), np.array([[0.02, 0.005], [0.005, 0.03]])
    lin, C = springs.linearize(np.zeros(4), np.zeros(1)), np.eye(4)[:2]
    kalman, rng = KalmanFilter(springs, W, V), np.random.default_rng(1)
    belief, x, P = Belief(np.ones(4), np.eye(4)), np.ones(4), np.eye(4)
    for _ in range(300):
        y, u = rng.normal(size=2), rng.normal(size=1)
        gain = P @ C.T @ np.linalg.inv(C @ P @ C.T + V)
        x, P = x + gain @ (y - C @ x), (np.eye(4) - gain @ C) @ P
        after = kalman.update(belief, y)
        np.testing.assert_allclose(after.x, x, atol=1e-9)
        np.testing.assert_allclose(after.P, P, atol=1e-12)
        x, P = lin.A @ x + lin.B @ u, lin.A @ P @ lin.A.T + W
        belief = kalman.predict(after, u)
    _, steady, _ = control.dlqe(lin.A, np.eye(4), C, W, V)
    np.testing.assert_allclose(belief.P, steady, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "make",
    [lambda: midpoint(pushed_ball(), 0.1), lambda: nonholonomic_midpoint(snakeboard(), 0.1)],
    ids=["sphere", "SE(2)"],
)
def test_derivatives_on_manifolds_are_exact(make):
    """H of a measurement of one's own, and how an error is carried to the corrected estimate, by
    differences of every component.
    """
    dsys, rng = make(), np.random.default_rng(2)
    n = dsys.ndx
    kalman = KalmanFilter(
        dsys, np.eye(n), np.eye(2), lambda x: ca.vertcat(ca.sin(x[0]) * x[-1], ca.sumsqr(x) + x[1])
    )
    x, dx = (
        dsys.retract(dsys.state_space.origin, 0.5 * rng.normal(size=n)),
        0.5 * rng.normal(size=n),
    )
    H = kalman.innovation(Belief(x, np.eye(n)), np.zeros(2)).H
    corrected, carry = kalman._functions("correct", x, dx)
    after = corrected[:, 0]
    np.testing.assert_allclose(after, dsys.retract(x, dx), atol=1e-14)
    np.testing.assert_allclose(
        H, differences.jacobian(lambda e: kalman.expected(dsys.retract(x, e)), n, 2e-3), atol=1e-9
    )
    np.testing.assert_allclose(
        carry,
        differences.jacobian(lambda e: dsys.local(after, dsys.retract(x, dx + e)), n, 2e-3),
        atol=1e-9,
    )


def test_the_covariance_of_an_update_is_about_the_new_estimate():
    """On the sphere, after an innovation of half a radian: Joseph's form at the old estimate, in
    local coordinates of the new one by differences.
    """
    dsys, rng = midpoint(pushed_ball(), 0.1), np.random.default_rng(3)
    root = rng.normal(size=(4, 4))
    P, V, H = root @ root.T / 10, 0.05 * np.eye(2), np.eye(4)[:2]
    x = dsys.retract(dsys.state_space.origin, [0.3, -0.2, 0.6, 0.4])
    y = dsys.system.space.retract(dsys.configuration(x), np.array([0.4, -0.5]))
    after = KalmanFilter(dsys, np.eye(4), V).update(Belief(x, P), y)
    K = P @ H.T @ np.linalg.inv(H @ P @ H.T + V)
    joseph = (np.eye(4) - K @ H) @ P @ (np.eye(4) - K @ H).T + K @ V @ K.T
    dx = K @ [0.4, -0.5]
    carry = differences.jacobian(lambda e: dsys.local(after.x, dsys.retract(x, dx + e)), 4, 2e-3)
    np.testing.assert_allclose(after.x, dsys.retract(x, dx), atol=1e-14)
    assert np.abs(carry - np.eye(4)).max() > 0.01
    np.testing.assert_allclose(after.P, carry @ joseph @ carry.T, atol=1e-9)
    assert (after.P == after.P.T).all()


def test_a_part_of_a_step_has_that_part_of_its_noise(springs):
    """From a state that is known exactly."""
    W, still = np.diag([1e-3, 2e-3, 4e-3, 1e-3]), np.zeros((4, 4))
    kalman, tenth = KalmanFilter(springs, W, np.eye(2)), springs.with_step(springs.h / 10)
    belief = kalman.predict(Belief(np.ones(4), still), [0.3], tenth)
    np.testing.assert_allclose(belief.P, W / 10, rtol=1e-12)
    np.testing.assert_allclose(belief.x, tenth.step(np.ones(4), [0.3]))
    np.testing.assert_allclose(kalman.predict(Belief(np.ones(4), still), [0.3]).P, W)


def test_errors_of_the_snakeboard_are_within_their_covariance():
    """Normalized errors `e^T P^-1 e` of seeded runs from noisy configurations: their mean is that
    of chi squared, at every time and over all of them.
    """
    scenario, runs, steps = get("snakeboard"), 20, 120
    dsys = scenario.model()
    reference, nv = scenario.reference(dsys, "parking"), dsys.system.space.nv
    W, V, start = (
        np.diag([1e-8] * nv + [1e-6] * 3),
        1e-4 * np.eye(nv),
        np.diag([1e-3] * nv + [1e-2] * 3),
    )
    kalman, errors = KalmanFilter(dsys, W, V), np.empty((runs, steps))
    for run in range(runs):
        rng = np.random.default_rng(run)
        x = dsys.retract(reference.states[0], np.sqrt(np.diag(start)) * rng.normal(size=dsys.ndx))
        belief = Belief(reference.states[0], start)
        for k, u in enumerate(reference.inputs[:steps]):
            belief = kalman.update(
                belief,
                dsys.system.space.retract(dsys.configuration(x), 1e-2 * rng.normal(size=nv)),
            )
            e = dsys.local(belief.x, x)
            errors[run, k] = e @ np.linalg.solve(belief.P, e)
            belief = kalman.predict(belief, u)
            x = dsys.retract(dsys.step(x, u), np.sqrt(np.diag(W)) * rng.normal(size=dsys.ndx))
    low, high = chi2.ppf([1e-5, 1 - 1e-5], runs * dsys.ndx) / runs
    assert low < errors.mean(axis=0).min() and errors.mean(axis=0).max() < high
    low, high = chi2.ppf([0.01, 0.99], runs * dsys.ndx) / runs
    assert low < errors.mean() < high
    assert np.trace(belief.P[nv:, nv:]) < 0.2 * np.trace(start[nv:, nv:])


@pytest.mark.parametrize(
    "name", [pytest.param("pendulum_swing_up", marks=pytest.mark.slow), "cart_pole"]
)
def test_feedback_from_noisy_configurations_swings_up_and_holds(name):
    scenario, dsys, reference = optimized(name)
    nv = dsys.system.space.nv
    sigma, rng = 2e-3, np.random.default_rng(5)
    kalman = KalmanFilter(dsys, np.diag([1e-10] * nv + [1e-8] * nv), sigma**2 * np.eye(nv))
    start = Belief(reference.states[0], np.diag([1e-2] * nv + [1e-2] * nv))
    feedback = OutputFeedback(scenario.tracker(dsys, reference), kalman, start)
    x, memory, steps = (
        dsys.retract(reference.states[0], np.full(dsys.ndx, 0.05)),
        None,
        len(reference) + 100,
    )
    for k in range(steps):
        command = feedback.command(k, dsys.configuration(x) + sigma * rng.normal(size=nv), memory)
        memory = command.memory
        x = dsys.step(x, command.u)
    assert np.abs(dsys.local(reference.states[-1], x)).max() < 0.02
    assert np.abs(dsys.local(memory[0].x, x)).max() < 0.01


@pytest.mark.parametrize(
    ("W", "V", "text"),
    [
        (np.eye(3), np.eye(2), r"W must be a finite symmetric \(4, 4\)"),
        (np.eye(4), np.eye(3), r"V must be a finite symmetric \(2, 2\)"),
        (np.eye(4), np.diag([1.0, 0.0]), "V must be positive definite"),
        (-np.eye(4), np.eye(2), "W must be positive semidefinite"),
    ],
)
def test_covariances_that_are_none_are_refused(springs, W, V, text):
    with pytest.raises(ValueError, match=text):
        KalmanFilter(springs, W, V)
