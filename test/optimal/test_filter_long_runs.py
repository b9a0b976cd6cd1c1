"""What a Kalman filter carries from step to step over long runs: the textbook's numbers, a
covariance that stays one, innovations that are white.
"""

import casadi as ca
import numpy as np
import pytest
from optimal_cases import springs_system
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from nh_control.control.estimation import Belief, KalmanFilter
from nh_control.geometry.rotations import SO3
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System

LONG = 10_000
W = np.diag([1e-8, 1e-8, 4e-6, 1e-6])
V = np.array([[4e-4, 1e-4], [1e-4, 9e-4]])
C = np.eye(4)[:2]
INERTIA = np.array([1.0, 2.0, 3.0])


@pytest.fixture(scope="module")
def springs():
    return midpoint(springs_system(), 0.1)


@pytest.fixture
def body():
    """A free rigid body."""
    lagrangian = lambda q, v: ca.dot(ca.DM(INERTIA), v * v) / 2  # noqa: E731
    return midpoint(System("body", SO3("r"), lagrangian), 0.05)


def noise(rng, covariance, rows):
    return rng.multivariate_normal(np.zeros(len(covariance)), covariance, rows, method="cholesky")


def drawn(rng, values, rows):
    """Rows of independent numbers with these variances, zeros among them."""
    return np.sqrt(values) * rng.normal(size=(rows, len(values)))


@pytest.fixture(scope="module", params=[1_000, pytest.param(LONG, marks=pytest.mark.slow)])
def measured(request, springs):
    """Inputs, true states and measurements of a run with noise."""
    rng, lin, n = np.random.default_rng(11), springs.linearize(np.zeros(4), [0.0]), request.param
    inputs, pushed = rng.normal(size=(n, 1)), drawn(rng, np.diag(W), n)
    states = np.empty((n, 4))
    states[0] = 0.1 * rng.normal(size=4)
    for k in range(n - 1):
        states[k + 1] = lin.A @ states[k] + lin.B @ inputs[k] + pushed[k]
    return inputs, states, states @ C.T + noise(rng, V, n)


@pytest.fixture(scope="module")
def beliefs(springs, measured):
    """Beliefs before and after every measurement."""
    inputs, _, y = measured
    kalman, belief, found = KalmanFilter(springs, W, V), Belief(np.zeros(4), np.eye(4)), []
    for k in range(len(y)):
        after = kalman.update(belief, y[k])
        found.append((belief, after))
        belief = kalman.predict(after, inputs[k])
    return found


def test_over_a_long_run_it_is_the_information_filter(springs, measured, beliefs):
    """The textbook's other form, in which inverses of covariances are added; nothing of it is
    shared but A and B.
    """
    inputs, _, y = measured
    lin, weight = springs.linearize(np.zeros(4), np.zeros(1)), C.T @ np.linalg.inv(V)
    information, x = np.eye(4), np.zeros(4)
    for k, (_, after) in enumerate(beliefs):
        information = information + weight @ C
        P = np.linalg.inv(information)
        x = x + P @ (weight @ (y[k] - C @ x))
        np.testing.assert_allclose(after.x, x, rtol=0, atol=1e-10)
        np.testing.assert_allclose(after.P, P, rtol=0, atol=1e-9 * P.max())
        x = lin.A @ x + lin.B @ inputs[k]
        information = np.linalg.inv(lin.A @ P @ lin.A.T + W)


def test_covariances_stay_symmetric_and_positive(beliefs):
    after = np.array([belief.P for _, belief in beliefs])
    before = np.array([belief.P for belief, _ in beliefs])
    np.testing.assert_array_equal(after, np.swapaxes(after, 1, 2))
    np.testing.assert_allclose(before, np.swapaxes(before, 1, 2), rtol=0, atol=1e-16)
    for P in (before, after):
        smallest = np.linalg.eigvalsh(P)[:, 0]
        assert smallest.min() > 0 and smallest[-1] == pytest.approx(
            smallest[len(P) // 2], rel=1e-9
        )
    assert np.linalg.eigvalsh(before - after)[:, 0].min() > -1e-15  # a measurement tells more


def test_innovations_are_white_and_errors_match_their_covariance(measured, beliefs):
    """What a measurement tells beyond what is known has the covariance that is foretold, and says
    nothing of the next one; a filter with another memory makes them depend on each other.
    """
    _, states, y = measured
    news = np.array(
        [
            np.linalg.solve(np.linalg.cholesky(C @ belief.P @ C.T + V), row - C @ belief.x)
            for (belief, _), row in zip(beliefs, y)
        ]
    )[200:]
    n = len(news)
    assert np.abs(news.mean(axis=0)).max() < 4 / np.sqrt(n)
    np.testing.assert_allclose(news.T @ news / n, np.eye(2), atol=4 * np.sqrt(2 / n))
    for lag in (1, 2, 3, 5, 10):
        assert np.abs(news[lag:].T @ news[:-lag] / n).max() < 4 / np.sqrt(n)
    errors = states - np.array([after.x for _, after in beliefs])
    squares = [e @ np.linalg.solve(b.P, e) for e, (_, b) in zip(errors, beliefs)][200::50]
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 4 * len(squares))
    assert low < sum(squares) < high


# --- On rotations --------------------------------------------------------------------------------


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
    """One measurement and one step of the multiplicative extended Kalman filter on SciPy's
    rotations, with all derivatives by differences; the belief after each.
    """
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
    """From an error of one radian: the first corrections are so large that the covariance must be
    turned with the estimate.
    """
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


@pytest.mark.slow
def test_a_tumbling_body_is_followed_for_long(body):
    states, measured = attitudes(body, LONG // 4, 6)
    kalman = KalmanFilter(body, np.diag(W_BODY), np.diag(V_BODY))
    belief = Belief(plus(states[0], np.full(6, 0.1)), 0.02 * np.eye(6))
    squares, smallest = [], []
    for x, y in zip(states, measured):
        belief = kalman.update(belief, y)
        np.testing.assert_array_equal(belief.P, belief.P.T)
        smallest.append(np.linalg.eigvalsh(belief.P)[0])
        e = minus(belief.x, x)
        squares.append(e @ np.linalg.solve(belief.P, e))
        belief = kalman.predict(belief, ())
    assert min(smallest) > 0
    apart = squares[100::50]
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 6 * len(apart))
    assert low < sum(apart) < high
