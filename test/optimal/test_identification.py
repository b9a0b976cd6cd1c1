"""Physical parameters from measured configurations: what they are, how sure, and what cannot be
known.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.command.identify_parameters import of_robot
from nh_control.control.identification import identify, segments
from nh_control.control.input_history import predict
from nh_control.control.parameter_fit import NotIdentifiable, ParameterFit, with_values
from nh_control.integrators import midpoint
from nh_control.runs.decoding import StateDecoder
from nh_control.runs.measurements import Measurements, _spread_s
from nh_control.systems.pendulum import pendulum

NAMES = ("m_cart", "m_pole", "l")
TRUTH = np.array([1.1, 0.33, 0.48])


@pytest.fixture(scope="module")
def model():
    return scenarios.get("cart_pole").model()


def motion(dsys, rng, noise, n=120, x=(0.0, 0.4)):
    """Times (ns), noisy configurations and the inputs between them, at irregular times."""
    x, space = dsys.state(np.array(x), np.zeros(len(x))), dsys.system.space
    times, q, inputs = [0], [], []
    for k in range(n):
        q.append(space.retract(dsys.configuration(x), noise * rng.normal(size=space.nv)))
        u = 6 * np.sin(0.31 * k + np.arange(dsys.nu))
        duration_s = round(rng.uniform(0.004, 0.024), 9)
        inputs.append([(u, duration_s / 4), (-u, duration_s * 3 / 4)])
        x = predict(dsys, x, inputs[-1])
        times.append(times[-1] + round(duration_s * 1e9))
    return np.array(times[:-1]), np.array(q), inputs[:-1]


def test_without_noise_the_parameters_are_found(model):
    data = motion(with_values(model, NAMES, TRUTH), np.random.default_rng(0), 0.0, n=60)
    found = identify(model, NAMES, segments(model, *data))
    np.testing.assert_allclose(found.values, TRUTH, rtol=1e-6)
    np.testing.assert_array_equal(found.start, [1.0, 0.3, 0.5])
    assert found.rms < 1e-8 < 1e-3 < found.rms_before and found.count == 120


@pytest.mark.slow
def test_with_noise_the_parameters_have_the_stated_deviations(model):
    """The mean of the squared errors over their variances is that of 1."""
    true, ratios = with_values(model, NAMES, TRUTH), []
    for seed in range(6):
        data = motion(true, np.random.default_rng(seed), 1e-3)
        found = identify(model, NAMES, segments(model, *data))
        error = found.values - TRUTH
        ratios.append(error @ np.linalg.solve(found.covariance, error) / len(NAMES))
        assert abs(found.rms - 1e-3) < 3e-4
    assert 0.4 < np.mean(ratios) < 2.0  # 18 degrees of freedom: 0.4 and 2.0 are 1 % away


def test_the_states_of_all_pieces_count_as_estimated(model):
    """Of pieces with hardly more numbers than a state has, little of the noise remains; what is
    said of it is its size all the same.
    """
    data = motion(with_values(model, NAMES, TRUTH), np.random.default_rng(4), 1e-4, n=60)
    pieces = segments(model, *data, length_s=0.05)
    assert len(pieces) > 12 and max(len(piece.q) for piece in pieces) < 6
    found = identify(model, NAMES, pieces)
    _, J = ParameterFit(model, NAMES, pieces).linearized(found.values / found.start)
    r, unit = found.correlation, np.linalg.inv(J.T @ J) * np.outer(found.start, found.start)
    said = np.sqrt(found.covariance / unit * (1 - r) / (1 + r))
    np.testing.assert_allclose(said, 1e-4, rtol=0.2)
    assert found.rms < 0.75e-4


def recorded(dsys, rng, delay_s, n=100):
    """A robot's recording of a motion, whose commands are noted `delay_s` before they act."""
    x, times, q, sent, u = dsys.state([0.0, 0.4], np.zeros(2)), [0], [], [], []
    for k in range(n):
        q.append(dsys.configuration(x) + 1e-3 * rng.normal(size=2))
        duration_s, force = round(rng.uniform(0.008, 0.012), 9), np.array([8 * np.sin(0.06 * k)])
        sent.append(times[-1] - round(delay_s * 1e9))
        u.append(force)
        x = predict(dsys, x, [(force, duration_s)])
        times.append(times[-1] + round(duration_s * 1e9))
    times = np.array(times[:-1])
    q, u, sent = (np.array(each) for each in (q, u, sent))
    return Measurements(times, times, q, np.nan * q, u, sent, sent)


@pytest.mark.slow
def test_with_an_unknown_delay_the_parameters_have_the_stated_deviations(model):
    """Commands act 10 ms before or after they were recorded; a delay that is taken for known
    to be 0 moves the masses by many times what is then said of their deviations.
    """
    names, ratios, wrong, delays = ("m_cart", "m_pole"), [], [], []
    true = with_values(model, names, TRUTH[:2])
    for seed in range(8):
        delay_s = (-1) ** seed * 0.01
        robot = recorded(true, np.random.default_rng(seed), delay_s)
        pieces = partial(of_robot, model, robot, 0.5)
        found, known = (identify(model, names, given) for given in (pieces, pieces(0.0)))
        for one, all_ in ((found, ratios), (known, wrong)):
            error = one.values - TRUTH[:2]
            all_.append(error @ np.linalg.solve(one.covariance, error) / 2)
        delays.append((found.delay[0] - delay_s) / found.delay[1])
        assert known.delay is None and found.delay[1] < 4e-3
    assert 0.36 < np.mean(ratios) < 2.0  # 16 degrees of freedom: 0.36 and 2.0 are 1 % away
    assert 0.2 < np.mean(np.square(delays)) < 2.5
    assert np.mean(wrong) > 5


def test_the_jacobian_gives_the_gradient_of_the_squares_with_the_states_eliminated(model):
    data = motion(with_values(model, NAMES, TRUTH), np.random.default_rng(1), 1e-3, n=60)
    at, e = np.array([1.02, 0.97, 1.01]), 1e-5

    def squares(relative):
        return (
            np.sum(ParameterFit(model, NAMES, segments(model, *data)).linearized(relative)[0] ** 2)
            / 2
        )

    r, J = ParameterFit(model, NAMES, segments(model, *data)).linearized(at)
    slopes = [(squares(at + e * d) - squares(at - e * d)) / (2 * e) for d in np.eye(3)]
    np.testing.assert_allclose(J.T @ r, slopes, rtol=1e-4)


def test_a_parameter_that_is_not_identifiable_is_refused_by_name(model):
    data = motion(model, np.random.default_rng(2), 1e-3)
    pieces = segments(model, *data)
    with pytest.raises(NotIdentifiable, match=r"force_limit had no effect on this motion"):
        identify(model, ("m_cart", "force_limit"), pieces)
    with pytest.raises(ValueError, match=r"no parameters \['mass'\], choose of m_cart, m_pole"):
        identify(model, ("mass",), pieces)
    still = np.tile(data[1][:1], (len(data[1]), 1))
    with pytest.raises(NotIdentifiable, match="m_cart had no effect"):
        idle = [[(np.zeros(1), 0.01)]] * (len(still) - 1)
        identify(model, ("m_cart",), segments(model, data[0], 0 * still, idle))


def test_of_a_free_pendulum_only_a_combination_is_known():
    free = midpoint(pendulum(), 0.01)
    assert {"l", "g"} <= set(free.system.parameter_names)
    idle = [[(np.zeros(free.nu), 0.01)] for _ in range(99)]
    x, q = free.state([1.0], [0.0]), []
    for _ in range(100):
        q.append(free.configuration(x))
        x = free.step(x, np.zeros(free.nu))
    times = np.arange(100) * 10_000_000
    pieces = segments(free, times, np.array(q), idle)
    with pytest.raises(NotIdentifiable, match="determines only a combination of l, g; leave"):
        identify(free, ("l", "g"), pieces)
    assert identify(free, ("l",), pieces).values[0] == pytest.approx(
        free.system.parameters.l, rel=1e-6
    )


def test_a_parameter_hidden_by_noise_is_reported(model):
    rng = np.random.default_rng(3)
    data = motion(model, rng, 0.05, n=12)
    with pytest.raises(NotIdentifiable, match="noise hides m_pole = "):
        identify(model, ("m_pole",), segments(model, *data))


def test_too_few_measurements_are_reported(model):
    with pytest.raises(ValueError, match="2 measurements are too few"):
        segments(model, np.array([0, 1]), np.zeros((2, 2)), [[]])
    with pytest.raises(ValueError, match="no piece of 0.001 s has three measurements"):
        segments(model, np.arange(5) * 10_000_000, np.zeros((5, 2)), [[]] * 4, 0.001)


def test_parts_of_two_samples_are_never_put_together():
    """After a loss the other joint's next message comes a step later, which is too far away."""
    cart = scenarios.get("cart_pole")
    decoder = StateDecoder(cart, cart.model().system.space)

    def message(joint, ms):
        stamp = SimpleNamespace(sec=0, nanosec=ms * 1_000_000)
        return (
            "joint_states",
            SimpleNamespace(name=[joint], header=SimpleNamespace(stamp=stamp)),
            0,
        )

    every = [message(j, 10 * k) for k in range(9) for j in ("cart_joint", "pole_joint") if k != 4]
    assert _spread_s(decoder, every, 0.01) == 0.005
    slow = [message("cart_joint", 10 * k) for k in range(9)]
    slow += [message("pole_joint", 50 * k) for k in range(3)]
    assert _spread_s(decoder, slow, 0.01) == 0.01
    assert _spread_s(decoder, slow[:1], 0.01) == 0.01
