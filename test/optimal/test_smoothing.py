"""The iterated smoother: batch least squares of a linear system, the minimum of its cost on
manifolds, better than the filter, errors within their covariance.
"""

import casadi as ca
import numpy as np
import pytest
from optimal_cases import springs_system
from refusals import refusal
from scipy.optimize import least_squares

import nh_control as nh
from nh_control.control.estimation import Belief


@pytest.fixture(scope="module")
def springs():
    return nh.midpoint(springs_system(), 0.1)


def tumbling():
    """A body that tumbles, whose attitude is measured."""
    body = nh.System(
        name="tumbling_body",
        space=nh.SO3(),
        lagrangian=lambda q, omega: ca.dot(np.array([2.0, 1.6, 1.2]), omega**2) / 2,
        inputs=("tx",),
        force=lambda q, v, u: ca.vertcat(u, 0, 0),
    )
    return nh.midpoint(body, 0.1)


def recorded(dsys, start, W, V, inputs, rng):
    """True states from the start's distribution, and measured configurations."""
    x = dsys.retract(start.x, rng.multivariate_normal(np.zeros(dsys.ndx), start.P))
    states, ys = [x], []
    for u in inputs:
        noise = rng.multivariate_normal(np.zeros(dsys.ndx), W)
        states.append(dsys.retract(dsys.step(states[-1], u), noise))
    space = dsys.system.space
    for x in states:
        noise = rng.multivariate_normal(np.zeros(space.nv), V)
        ys.append(space.retract(dsys.configuration(x), noise))
    return np.array(states), ys


def test_of_a_linear_system_it_is_the_batch_least_squares_solution(springs):
    """All states at once, with some measurements missing, of a function of one's own."""
    rng, steps, n = np.random.default_rng(1), 25, 4
    root, V = rng.normal(size=(4, 4)), np.array([[0.02, 0.005], [0.005, 0.03]])
    W, start = np.diag([1e-3, 2e-3, 4e-3, 1e-3]), Belief(rng.normal(size=4), root @ root.T)
    inputs = rng.normal(size=(steps, 1))
    ys = [None if k in (0, 7, 8, steps) else rng.normal(size=2) for k in range(steps + 1)]
    lin, H = springs.linearize(np.zeros(4), np.zeros(1)), np.eye(4)[[2, 0]]
    rows, values = [], []

    def add(covariance, block, value):
        whiten = np.linalg.inv(np.linalg.cholesky(covariance))
        rows.append(whiten @ block)
        values.append(whiten @ value)

    def at(k, matrix):
        return np.kron(np.eye(steps + 1)[k], matrix)

    add(start.P, at(0, np.eye(n)), start.x)
    for k, u in enumerate(inputs):
        add(W, at(k + 1, np.eye(n)) - at(k, lin.A), lin.B @ u)
    for k, y in enumerate(ys):
        if y is not None:
            add(V, at(k, H), y)
    J = np.vstack(rows)
    expected = np.linalg.lstsq(J, np.concatenate(values), rcond=None)[0].reshape(-1, n)
    covariance = np.linalg.inv(J.T @ J)
    found = nh.smooth(
        nh.KalmanFilter(springs, W, V, lambda x: ca.vertcat(x[2], x[0])), start, inputs, ys
    )
    np.testing.assert_allclose(found.trajectory.states, expected, atol=1e-10)
    for k in range(steps + 1):
        block = covariance[n * k : n * k + n, n * k : n * k + n]
        np.testing.assert_allclose(found.belief(k).P, block, atol=1e-10)
    noise = expected[1:] - expected[:-1] @ lin.A.T - inputs @ lin.B.T
    np.testing.assert_allclose(found.disturbances, noise, atol=1e-9)
    assert found.iterations == 1 and found.correction < 1e-6


def test_on_rotations_it_minimizes_its_cost():
    """The cost of scipy's least squares over all states, in charts about them."""
    dsys, rng, steps = tumbling(), np.random.default_rng(2), 6
    W, V = np.diag([1e-3] * 3 + [1e-2] * 3), 0.1 * np.eye(3)
    start = Belief(dsys.state([1, 0, 0, 0], [0.5, 1.0, -0.4]), np.diag([0.3] * 3 + [0.5] * 3))
    inputs = rng.normal(size=(steps, 1))
    _, ys = recorded(dsys, start, W, V, inputs, rng)
    found = nh.smooth(nh.KalmanFilter(dsys, W, V), start, inputs, ys)
    space = dsys.system.space

    def errors(dx):
        x = dsys.retract(found.trajectory.states, dx.reshape(steps + 1, 6))
        prior = dsys.local(start.x, x[0]) / np.sqrt(np.diag(start.P))
        ends = [dsys.step(*row) for row in zip(x[:-1], inputs)]
        noise = [dsys.local(*pair) / np.sqrt(np.diag(W)) for pair in zip(ends, x[1:])]
        measured = [space.local(dsys.configuration(a), y) / 0.1**0.5 for a, y in zip(x, ys)]
        return np.concatenate([prior, *noise, *measured])

    best = least_squares(errors, np.zeros(6 * (steps + 1)), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(best.x, 0.0, atol=1e-5)
    assert found.iterations > 1  # one would do for a linear system


def test_what_gives_no_estimate_is_refused(springs, snapshot):
    kalman, start = nh.KalmanFilter(springs, np.eye(4), np.eye(2)), Belief(np.zeros(4), np.eye(4))
    inputs, told = np.zeros((3, 1)), []
    for ys, options in (
        (np.zeros((3, 2)), {}),
        (np.full((4, 2), np.nan), {}),
        (np.zeros((4, 3)), {}),
        (np.ones((4, 2)), {"max_iterations": 0}),
    ):
        told.append(refusal(lambda: nh.smooth(kalman, start, inputs, ys, **options)))
    assert told == snapshot
