"""The Kalman filter: the textbook's on a linear system and on rotations, feedback from
measurements alone.
"""

import casadi as ca
import control
import differences
import numpy as np
import pytest
from optimal_cases import optimized, pushed_ball, springs_system
from refusals import refusal
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

import nh_control as nh
from nh_control.control import LqrTracker
from nh_control.control.estimation import Belief, Innovation, KalmanFilter, OutputFeedback
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.rotations import SO3
from nh_control.integrators import midpoint, nonholonomic_midpoint
from nh_control.mechanics.system import System
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
def test_derivatives_of_a_measurement_of_ones_own_are_exact_on_manifolds(make):
    dsys, rng = make(), np.random.default_rng(2)
    n = dsys.ndx
    kalman = KalmanFilter(
        dsys, np.eye(n), np.eye(2), lambda x: ca.vertcat(ca.sin(x[0]) * x[-1], ca.sumsqr(x) + x[1])
    )
    x = dsys.retract(dsys.state_space.origin, 0.5 * rng.normal(size=n))
    H = kalman.innovation(Belief(x, np.eye(n)), np.zeros(2)).H
    wanted = differences.jacobian(lambda e: kalman.expected(dsys.retract(x, e)), n, 2e-3)
    np.testing.assert_allclose(H, wanted, atol=1e-9)


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
    x = dsys.retract(reference.states[0], np.full(dsys.ndx, 0.05))
    for k in range(len(reference) + 100):
        x = dsys.step(x, feedback.command(k, dsys.configuration(x) + sigma * rng.normal(size=nv)))
    assert np.abs(dsys.local(reference.states[-1], x)).max() < 0.02
    assert np.abs(dsys.local(feedback.belief.x, x)).max() < 0.01


def test_covariances_that_are_none_are_refused(springs, snapshot):
    wrong = (
        (np.eye(3), np.eye(2)),
        (np.eye(4), np.eye(3)),
        (np.eye(4), np.diag([1.0, 0.0])),
        (-np.eye(4), np.eye(2)),
    )
    assert [refusal(lambda: KalmanFilter(springs, *one)) for one in wrong] == snapshot


INERTIA = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def body():
    """A free rigid body."""
    lagrangian = lambda q, v: ca.dot(ca.DM(INERTIA), v * v) / 2  # noqa: E731
    return midpoint(System("body", SO3("r"), lagrangian), 0.05)


def drawn(rng, values, rows):
    """Rows of independent numbers with these variances, zeros among them."""
    return np.sqrt(values) * rng.normal(size=(rows, len(values)))


def rotation(x):
    return Rotation.from_quat(np.roll(x[:4], -1))


def plus(x, d):
    turned = rotation(x) * Rotation.from_rotvec(d[:3])
    return np.concatenate([np.roll(turned.as_quat(), 1), x[4:] + d[3:]])


def minus(x, y):
    return np.concatenate([(rotation(x).inv() * rotation(y)).as_rotvec(), y[4:] - x[4:]])


def slope(function, n, e=1e-5):
    return np.column_stack([(function(e * d) - function(-e * d)) / (2 * e) for d in np.eye(n)])


W_BODY = np.array([0.0, 0.0, 0.0, 1e-6, 1e-6, 1e-6])


V_BODY = np.array([1e-4, 4e-4, 2e-4])


def multiplicative(body, x, P, y):
    """A measurement and a step of the multiplicative filter on SciPy's rotations; both beliefs."""
    H = np.eye(6)[:3]
    gain = P @ H.T @ np.linalg.inv(H @ P @ H.T + np.diag(V_BODY))
    d = gain @ (rotation(x).inv() * rotation(y)).as_rotvec()
    corrected = plus(x, d)
    reset = slope(lambda e: minus(corrected, plus(x, d + e)), 6)
    after = corrected, reset @ (np.eye(6) - gain @ H) @ P @ reset.T
    end = body.step(corrected)
    A = slope(lambda e: minus(end, body.step(plus(corrected, e))), 6)
    return after, (end, A @ after[1] @ A.T + np.diag(W_BODY))


def attitudes(body, steps, seed):
    """True states of a tumbling body, and its measured attitudes."""
    rng = np.random.default_rng(seed)
    x = body.state([1.0, 0.0, 0.0, 0.0], [0.3, 1.0, -0.5])
    states, measured = [], []
    shaken, seen = drawn(rng, W_BODY, steps), drawn(rng, V_BODY, steps)
    for k in range(steps):
        states.append(x)
        measured.append(plus(x, np.append(seen[k], np.zeros(3)))[:4])
        x = plus(body.step(x), shaken[k])
    return states, measured


def test_on_rotations_it_is_the_multiplicative_filter(body):
    """From an error of one radian, so that the covariance must be turned with the estimate."""
    states, measured = attitudes(body, 60, 5)
    start = plus(states[0], np.array([0.6, -0.7, 0.4, 0.5, -0.5, 0.5])), np.diag([0.5] * 6)
    kalman = KalmanFilter(body, np.diag(W_BODY), np.diag(V_BODY))
    belief, (x, P) = Belief(*start), start
    for y in measured:
        (x_after, P_after), (x, P) = multiplicative(body, x, P, y)
        after = kalman.update(belief, y)
        assert np.abs(minus(after.x, x_after)).max() <= 1e-7
        np.testing.assert_allclose(after.P, P_after, rtol=0, atol=1e-7 * P_after.max())
        belief = kalman.predict(after, ())
    assert np.abs(minus(belief.x, x)).max() <= 1e-7


def test_output_feedback_is_the_tracker_on_the_estimate_with_the_memories_of_both(springs):
    rest = Trajectory(0.1, np.zeros((9, 4)), np.zeros((8, 1)))
    tracker = LqrTracker(
        springs, rest, np.eye(4), [[0.1]], limits=[[-0.2, 0.2]], disturbance_gain=0.4
    )
    kalman = KalmanFilter(springs, 1e-3 * np.eye(4), 0.1 * np.eye(2))
    rng = np.random.default_rng(1)
    start = before = Belief(np.full(4, 0.5), np.eye(4))
    feedback, u, own = OutputFeedback(tracker, kalman, start), np.zeros(1), None
    assert (feedback.targets == rest.states).all()
    seen = [rng.normal(size=2) for _ in range(6)]
    for k, y in enumerate(seen):
        belief = kalman.update(before, y, u)
        wanted = tracker.command(k, belief.x, own)
        np.testing.assert_array_equal(feedback.command(k, y), wanted.u)
        u, own, before = wanted.u, wanted.memory, kalman.predict(belief, wanted.u)
    feedback.reset()
    first = tracker.command(0, kalman.update(start, seen[0]).x)
    np.testing.assert_array_equal(feedback.command(0, seen[0]), first.u)


def test_a_part_of_a_step_has_that_part_of_its_noise(springs):
    """From a state that is known exactly."""
    W, still = np.diag([1e-3, 2e-3, 4e-3, 1e-3]), np.zeros((4, 4))
    kalman, tenth = KalmanFilter(springs, W, np.eye(2)), springs.with_step(springs.h / 10)
    belief = kalman.predict(Belief(np.ones(4), still), [0.3], tenth)
    np.testing.assert_allclose(belief.P, W / 10, rtol=1e-12)
    np.testing.assert_allclose(belief.x, tenth.step(np.ones(4), [0.3]))
    np.testing.assert_allclose(kalman.predict(Belief(np.ones(4), still), [0.3]).P, W)


def test_an_innovation_is_as_large_as_its_largest_number_in_deviations():
    S = np.array([[4.0, 0.1], [0.1, 0.25]])
    assert Innovation(np.array([1.0, -1.5]), np.eye(2), S).deviation == pytest.approx(3.0)
    assert Innovation(np.array([-5.0, 0.5]), np.eye(2), S).deviation == pytest.approx(2.5)


# Smoothing ---------------------------------------------------------------------------------------


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
