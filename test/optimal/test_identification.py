"""Physical parameters from measured configurations: what they are, how sure, and what cannot be
known.
"""

from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control.identification import identify, segments
from nh_control.control.input_history import predict
from nh_control.control.parameter_fit import (
    MotionSegment,
    NotIdentifiable,
    ParameterFit,
    with_values,
)
from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.runs.identification import of_robot
from nh_control.runs.measurements import Measurements
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
    found = identify(model, NAMES, segments(*data))
    np.testing.assert_allclose(found.values, TRUTH, rtol=1e-6)
    np.testing.assert_array_equal(found.start, [1.0, 0.3, 0.5])
    assert found.rms < 1e-8 < 1e-3 < found.rms_before and found.count == 120


def test_the_states_of_all_pieces_count_as_estimated(model):
    """Of short pieces little noise remains; what is said of it is its size all the same."""
    data = motion(with_values(model, NAMES, TRUTH), np.random.default_rng(4), 1e-4, n=60)
    pieces = segments(*data, length_s=0.05)
    assert len(pieces) > 12 and max(len(piece.values) for piece in pieces) < 6
    found = identify(model, NAMES, pieces)
    assert np.sqrt(np.mean(np.square([*found.noise.values()]))) == pytest.approx(1e-4, rel=0.2)
    fit = ParameterFit(model, NAMES, pieces)
    fit.set_noise(np.full(2, 1e-4))
    _, J = fit.linearized(found.values / found.start)
    r, unit = found.correlation, np.linalg.inv(J.T @ J) * np.outer(found.start, found.start)
    np.testing.assert_allclose(np.diag(found.covariance / unit) * (1 - r) / (1 + r), 1, rtol=0.4)
    assert found.rms < 0.75e-4


def test_quantities_count_by_their_own_noise(model):
    """The cart is measured 300 times as well as the pole."""
    rest = with_values(model, NAMES[1:], TRUTH[1:])
    data = motion(with_values(model, NAMES, TRUTH), np.random.default_rng(5), 0.0, n=120)
    noise = np.array([3e-5, 1e-2]) * np.random.default_rng(6).normal(size=data[1].shape)
    found = identify(rest, ("m_cart",), segments(data[0], data[1] + noise, data[2]))
    assert [*found.noise.values()] == pytest.approx([3e-5, 1e-2], rel=0.25)
    assert abs(found.values[0] - 1.1) < 3 * found.deviations[0] < 4.5e-3


def test_hidden_coordinates_are_guessed_from_the_piece_before(model):
    """The pole swings through from 2.8 rad, nearly upright; only the cart is measured, exactly."""
    true = with_values(model, NAMES, TRUTH)
    times, q, inputs = motion(true, np.random.default_rng(7), 0.0, n=140, x=(0.0, 2.8))
    assert np.ptp(q[:, 1]) > 4
    pieces = segments(times, q[:, :1], inputs)
    start = true.state([0.0, 2.8], [0.0, 0.0])
    fit = ParameterFit(true, ("l",), pieces, ("x",), start)
    assert np.abs(fit.linearized(fit.start)[0]).max() < 1e-7


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
    """A delay of 10 ms that is taken for 0 moves the masses by many times their deviations."""
    names, ratios, wrong, delays = ("m_cart", "m_pole"), [], [], []
    true = with_values(model, names, TRUTH[:2])
    for seed in range(8):
        delay_s = (-1) ** seed * 0.01
        robot = recorded(true, np.random.default_rng(seed), delay_s)
        pieces = partial(of_robot(model, robot).pieces, model, 0.5)
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

    def fitted(relative):
        return ParameterFit(model, NAMES, segments(*data)).linearized(relative)

    def squares(relative):
        return np.sum(fitted(relative)[0] ** 2) / 2

    r, J = fitted(at)
    slopes = [(squares(at + e * d) - squares(at - e * d)) / (2 * e) for d in np.eye(3)]
    np.testing.assert_allclose(J.T @ r, slopes, rtol=1e-4)


def test_a_parameter_without_effect_keeps_its_value_with_a_warning(model):
    data = motion(model, np.random.default_rng(2), 1e-3, n=40)
    pieces = segments(*data)
    found = identify(model, ("m_cart", "force_limit"), pieces)
    assert (found.names, found.undetermined) == (("m_cart",), ("force_limit",))
    assert found.warnings[0].startswith(
        "force_limit has no effect on this motion and keeps the value "
    )
    assert found.values == pytest.approx(identify(model, ("m_cart",), pieces).values, rel=1e-6)
    with pytest.raises(ValueError, match=r"no parameters \['mass'\], choose from m_cart, m_pole"):
        identify(model, ("mass",), pieces)
    still = np.tile(data[1][:1], (len(data[1]), 1))
    with pytest.raises(NotIdentifiable, match="m_cart has no effect"):
        idle = [[(np.zeros(1), 0.01)]] * (len(still) - 1)
        identify(model, ("m_cart",), segments(data[0], 0 * still, idle))


def swinging(free, n=100, noise=0.0):
    """Pieces of a pendulum that swings without forces."""
    x, q = free.state([1.0], [0.0]), []
    for _ in range(n):
        q.append(free.configuration(x))
        x = free.step(x, np.zeros(free.nu))
    q = np.array(q) + noise * np.random.default_rng(0).normal(size=(n, 1))
    return segments(np.arange(n) * 10_000_000, q, [[(np.zeros(free.nu), 0.01)]] * (n - 1))


def test_of_a_free_pendulum_only_a_combination_is_known():
    """Its motion depends on g / l alone, which the warning says; one of them keeps its value."""
    free = midpoint(pendulum(), 0.01)
    assert {"l", "g"} <= set(free.system.parameter_names)
    found = identify(free, ("l", "g"), swinging(free))
    assert found.undetermined == ("g",) or found.undetermined == ("l",)
    assert "do not determine l and g separately, but only a combination" in found.warnings[0]
    assert "near these values l * g^-1;" in found.warnings[0]
    kept = free.with_parameters(l=1.1 * free.system.parameters.l)
    ratio = identify(kept, ("l", "g"), swinging(free)).parameters
    true = free.system.parameters
    moved = {"l": kept.system.parameters.l, "g": true.g} | ratio
    assert moved["g"] / moved["l"] == pytest.approx(true.g / true.l, rel=1e-6)
    assert identify(free, ("l",), swinging(free)).values[0] == pytest.approx(true.l, rel=1e-6)


def test_parameters_that_the_data_hardly_tell_apart_are_named_with_what_is_known(model):
    """The pole's angle alone tells of its mass and length little but a product."""
    data = motion(with_values(model, NAMES, TRUTH), np.random.default_rng(0), 1e-3, n=140)
    pieces = segments(data[0], data[1][:, 1:], data[2])
    found = identify(model, NAMES, pieces, ("theta",))
    (warning,) = found.warnings
    assert "the data hardly distinguish m_pole and l (correlation 0.9" in warning
    assert "m_pole * l^" in warning and "is known to 0." in warning
    assert (np.abs(found.values - TRUTH) < 3 * found.deviations).all()


def test_a_parameter_hidden_by_noise_is_reported(model):
    rng = np.random.default_rng(3)
    data = motion(model, rng, 0.05, n=12)
    found = identify(model, ("m_pole",), segments(*data))
    assert found.warnings[0].startswith("noise hides m_pole = ")


def test_too_few_measurements_are_reported(model):
    with pytest.raises(ValueError, match="2 measurements are too few"):
        segments(np.array([0, 1]), np.zeros((2, 2)), [[]])
    with pytest.raises(ValueError, match="no piece of 0.001 s contains three measurements"):
        segments(np.arange(5) * 10_000_000, np.zeros((5, 2)), [[]] * 4, 0.001)


def chain_system():
    @dataclass(frozen=True)
    class Springs(Parameters):
        stiffness: tuple[float, ...] = parameter((1.0, 2.0), "N/m", "of both springs")
        damping: float = parameter(0.0, "N s/m", "of the first", at_least=0.0)
        offset: float = parameter(0.0, "N", "of the second", above=-np.inf)

    def force(q, v, u, p):
        return ca.vertcat(
            -p.stiffness[0] * q[0] - p.damping * v[0], p.offset - p.stiffness[1] * q[1]
        )

    return System(
        name="springs",
        space=Rn("a", "b"),
        parameters=Springs(),
        lagrangian=lambda q, v, p: (v[0] ** 2 + v[1] ** 2) / 2,
        force=force,
    )


def measured(dsys, n=40):
    run = dsys.simulate([0.5, -0.4, 0.0, 0.3], (), steps=n)
    idle = [[(np.zeros(0), dsys.h)]] * n
    return segments(
        np.arange(n + 1) * round(dsys.h * 1e9), run.states[:, :2], idle, length_s=20 * dsys.h
    )


def test_pieces_have_their_length_and_their_inputs():
    times = np.array([0, 100, 200, 300, 400, 500, 900, 1000]) * 1_000_000
    q = np.column_stack([np.arange(8.0), -2 * np.arange(8.0)])
    inputs = [[(np.array([k]), 0.1)] for k in range(7)]
    found = segments(times, q, inputs, length_s=0.3)
    assert [piece.values[:, 0].tolist() for piece in found] == [[0, 1, 2], [3, 4, 5]]
    assert [[int(i[0][0][0]) for i in piece.inputs] for piece in found] == [[0, 1], [3, 4]]
    assert isinstance(found[0], MotionSegment)
    later = segments(times + 7, q, inputs, length_s=0.3)
    assert [piece.values[:, 0].tolist() for piece in later] == [[0, 1, 2], [3, 4, 5]]


def test_as_many_numbers_as_unknowns_are_too_few():
    """Two of the springs' parameters and a state of four, from three measurements of two."""
    dsys = midpoint(chain_system(), 0.5)
    pieces = measured(dsys, n=2)
    names = ("stiffness[0]", "stiffness[1]")
    with pytest.raises(ValueError, match=r"6 measured numbers are too few for \['stiffness\[0\]"):
        identify(dsys, names, pieces)
    fit = ParameterFit(dsys, names, pieces)
    assert np.isfinite(fit.residuals(fit.start)).all()


def test_parameters_stay_within_the_bounds_that_they_declare():
    """A motion that grows is nearest to one without any damping."""
    dsys = midpoint(chain_system(), 0.05)
    fit = ParameterFit(dsys, ("stiffness[0]", "damping", "offset"), measured(dsys))
    lower, upper = fit.bounds()
    assert lower.tolist() == [0.0, 0.0, -np.inf] and np.isinf(upper).all()
    quiet = with_values(dsys, ("damping",), [0.3])
    delayed = ParameterFit(quiet, ("stiffness[1]", "damping"), lambda delay_s: measured(dsys))
    assert delayed.bounds()[0].tolist() == [0.0, 0.0, -np.inf]
    assert delayed.scale.tolist() == [2.0, 0.3, 0.05] and delayed.start.tolist() == [1.0, 1.0, 0.0]


def test_entries_of_tuples_and_numbers_that_are_zero_can_be_identified():
    """An entry keeps the others; a parameter of 0 is counted in its own unit."""
    dsys = midpoint(chain_system(), 0.05)
    names = ("stiffness[1]", "offset", "stiffness[0]")
    changed = with_values(dsys, names, [3.0, 0.2, 1.5]).system.parameters
    assert (changed.stiffness, changed.offset) == ((1.5, 3.0), 0.2)
    single = with_values(dsys, ("stiffness[1]",), [3.0]).system.parameters
    assert single.stiffness == (1.0, 3.0)
    fit = ParameterFit(dsys, names, measured(dsys))
    assert (fit.scale.tolist(), fit.start.tolist()) == ([2.0, 1.0, 1.0], [1.0, 0.0, 1.0])
