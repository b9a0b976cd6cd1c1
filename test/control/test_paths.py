"""Paths: where they begin and end, how they come to rest, and that their derivatives are such."""

import casadi as ca
import numpy as np
import pytest

from nh_control.control import paths

ORDER = 6


def values(expression, times):
    t = ca.SX.sym("t")
    f = ca.Function("f", [t], [expression(t)])
    return np.array([float(f(time)) for time in times])


def test_a_smooth_step_is_the_integral_of_a_bell_that_is_flat_at_its_ends():
    t = ca.SX.sym("t")
    slopes = [paths.smoothstep(t)]
    for _ in range(ORDER):
        slopes.append(ca.jacobian(slopes[-1], t))
    f = ca.Function("f", [t], slopes)
    for s, end in ((1e-9, 0.0), (1 - 1e-9, 1.0)):
        found = np.array(f(s)).ravel()
        assert found[0] == pytest.approx(end, abs=1e-12)
        np.testing.assert_allclose(found[1:], 0.0, atol=0.2)  # times 1e-9 of a slope of 1e7
    middle = np.array(f(0.5)).ravel()
    assert middle[0] == pytest.approx(0.5, abs=1e-12) and middle[1] > 2.5
    assert (np.diff(values(paths.smoothstep, np.linspace(0, 1, 50))) > 0).all()


@pytest.mark.parametrize(("from_rest", "length"), [(True, 3.0), (False, 3.5)])
def test_a_cruise_runs_at_rate_one_between_its_ramps_and_stays_at_its_end(from_rest, length):
    duration, ramp, dt = 4.0, 1.0, 1e-5
    run = lambda t: paths.cruise(t, duration, ramp, from_rest)  # noqa: E731
    at = np.array([0.5, 1.5, 2.5, 3.5])
    rates = (values(run, at + dt) - values(run, at - dt)) / (2 * dt)
    step = values(paths.smoothstep, [0.5])[0]
    np.testing.assert_allclose(rates, [step if from_rest else 1.0, 1.0, 1.0, 1 - step], atol=1e-8)
    np.testing.assert_allclose(values(run, [0.0, duration, 9.0]), [0.0, length, length])
    ends = (values(run, [dt, duration - dt]) - values(run, [0.0, duration])) / dt
    np.testing.assert_allclose(ends, [0.0 if from_rest else 1.0, 0.0], atol=1e-9)


@pytest.mark.parametrize(
    ("path", "start", "end"),
    [
        (paths.point([1.0, 2.0, 3.0], 2.0), [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        (paths.line([0.0, 0.0, 1.0], [2.0, -1.0, 3.0], 2.0), [0.0, 0.0, 1.0], [2.0, -1.0, 3.0]),
    ],
    ids=["point", "line"],
)
def test_paths_to_a_point_begin_and_end_at_rest(path, start, end):
    jets = path.jets(np.array([0.0, path.duration]))
    np.testing.assert_allclose(jets[:, 0], [start, end], atol=1e-12)
    np.testing.assert_allclose(jets[:, 1:4], 0.0, atol=1e-6)


@pytest.mark.parametrize("path", [paths.parabola(), paths.circle(1.0, 1.0, 1.0, 1.0)])
def test_jets_are_derivatives_of_one_another(path):
    t, dt = 0.37 * path.duration, 1e-4
    before, here, after = path.jets(np.array([t - dt, t, t + dt]))
    slopes = (after[:-1] - before[:-1]) / (2 * dt)
    np.testing.assert_allclose(here[1:], slopes, atol=1e-5 * (1 + np.abs(here).max()))


def test_stopping_has_the_velocity_of_the_least_degree_which_its_conditions_determine():
    """Twelve of them: six derivatives at either end."""
    jet = np.random.default_rng(3).normal(size=(paths.ORDER + 1, 3))
    path, times = paths.stop(jet, 1.5), np.linspace(0, 1.5, 60)
    jets = path.jets(times)
    np.testing.assert_allclose(jets[0, : paths.ORDER + 1], jet, atol=1e-9)
    np.testing.assert_allclose(jets[-1, 1 : paths.ORDER + 1], 0.0, atol=1e-6)
    at = times / 0.75 - 1
    for velocity in jets[:, 1].T:
        fit = np.polynomial.chebyshev.chebfit(at, velocity, 12)
        assert abs(fit[12]) < 1e-9 < abs(fit[11])


def test_a_figure_of_eight_has_its_length_width_and_largest_speed():
    path = paths.figure_of_eight(4.0, 1.5, 0.8, 2.0, 1.0, height=0.3)
    jets = path.jets(np.linspace(0.0, path.duration, 2001))
    np.testing.assert_allclose(np.ptp(jets[:, 0], axis=0), [4.0, 1.5, 0.0], atol=1e-4)
    np.testing.assert_allclose(jets[[0, -1], 0], [[0.0, 0.0, 0.3]] * 2, atol=1e-9)
    speed, aside = np.linalg.norm(jets[:, 1], axis=1), np.abs(jets[:, 0, 0])
    assert speed.max() == pytest.approx(0.8, rel=1e-4) and aside[speed.argmax()] < 0.01


def test_jets_at_many_times_are_those_at_each():
    """To the bit: they come from one call."""
    path, times = paths.figure_of_eight(3.0, 2.0, 2.0, 2, 3.0, 1.0), np.linspace(-0.1, 25.0, 7)
    each = [path.jets([t])[0] for t in times]
    np.testing.assert_array_equal(path.jets(times), each)
    assert path.jets(times[:0]).shape == (0, paths.ORDER + 1, 3)
