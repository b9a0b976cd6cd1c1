"""The satellite with reaction wheels: its equations, its slews, and what nodes take from it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from transforms3d.quaternions import axangle2quat, qconjugate, qmult, quat2mat

from nh_control.integrators import midpoint
from nh_control.runs.experiment import Experiment
from nh_control.scenarios.satellite import (
    MANEUVERS,
    NOMINAL,
    SATELLITE,
    SHARE,
    SatellitePerturbation,
    Slew,
    maneuver,
    margins,
    momentum_split,
    perturbed,
)
from nh_control.systems.satellite import SatelliteParameters, axles, satellite


def wheels(n):
    """Parameters of a satellite with n wheels, no two alike."""
    return SatelliteParameters(wheel_inertias=tuple(0.002 + 0.0005 * np.arange(n)))


def angle(a, b):
    """Angle of the rotation between unit quaternions."""
    return 2 * np.arcsin(min(1.0, np.linalg.norm(qmult(qconjugate(a), b)[1:])))


def total_momentum(states):
    """Total angular momentum (N, 3) in the world's axes at states (N, nx)."""
    n = (states.shape[1] - 7) // 2
    return np.array([quat2mat(x[:4]) @ x[4 + n : 7 + n] for x in states])


@pytest.fixture(scope="module")
def nominal():
    return SATELLITE.model()


def test_a_step_solves_eulers_equations_with_wheels():
    """`J Omega' = (J Omega + A h) x Omega - A u, h' = u` to SciPy's accuracy, error O(h^2)."""
    p, rng = wheels(4), np.random.default_rng(2)
    J, A = momentum_split(p)[0], np.asarray(axles(p))
    u = rng.uniform(-0.1, 0.1, 4)
    omega, h0 = 0.5 * rng.normal(size=3), rng.uniform(-0.3, 0.3, 4)

    def rate(t, y):
        q, w, h = y[:4], y[4:7], y[7:]
        w_dot = np.linalg.solve(J, np.cross(J @ w + A @ h, w) - A @ u)
        return np.r_[qmult(q, [0, *w]) / 2, w_dot, u]

    exact = solve_ivp(rate, (0, 2), [1, 0, 0, 0, *omega, *h0], rtol=1e-12, atol=1e-13).y[:, -1]
    misses = []
    for steps in (50, 100):
        dsys = midpoint(satellite(p), 2 / steps)
        rates = h0 / p.wheel_inertias - A.T @ omega
        x = dsys.state(dsys.system.space.origin, [*omega, *rates])
        np.testing.assert_allclose(x[-4:], h0, rtol=1e-12)
        end = dsys.simulate(x, np.tile(u, (steps, 1))).states[-1]
        w = dsys.velocity(end)[:3]
        misses.append([angle(exact[:4], end[:4]), np.linalg.norm(exact[4:7] - w)])
    assert np.max(misses[1]) < 2e-3
    np.testing.assert_allclose(np.log2(np.divide(*misses)), 2, atol=0.1)


@pytest.mark.parametrize("name", MANEUVERS)
def test_slews_end_at_rest_where_they_are_to_end_within_their_share_of_the_torque(name, nominal):
    wanted = np.array([1.0, 0.0, 0.0, 0.0])
    for slew in MANEUVERS[name]:
        wanted = qmult(wanted, axangle2quat(slew.axis, slew.angle))
    missed = []
    for h in (0.02, 0.04):
        dsys = nominal.with_step(h)
        reference = SATELLITE.reference(dsys, name)
        used = np.abs(reference.inputs).max() / dsys.system.parameters.torque_limit
        assert 0.97 * SHARE < used < SHARE == 0.5  # the other half is for feedback
        assert np.abs(dsys.velocity(reference.states[-1])).max() < 1e-11
        assert np.abs(total_momentum(reference.states)).max() < 1e-13
        missed.append(angle(wanted, reference.states[-1][:4]))
    assert missed[0] < 2e-5 and missed[0] < 0.3 * missed[1] + 1e-12


def test_a_slew_is_about_its_axis_all_the_way(nominal):
    axis = np.array([2.0, -1.0, 0.5])
    reference = maneuver(nominal, [Slew(tuple(axis), -1.0)])
    across = np.cross(reference.states[:, 1:4], axis)
    assert np.abs(across).max() < 1e-13 and np.ptp(reference.states[:, 1]) > 0.4


def test_wheels_that_turn_keep_their_momentum_through_a_slew(nominal):
    reference = SATELLITE.reference(nominal, "biased_slew")
    momentum = total_momentum(reference.states)
    assert np.ptp(momentum, axis=0).max() < 1e-12 and momentum[0, 2] > 0.4
    assert np.abs(nominal.velocity(reference.states[-1])[:3]).max() < 1e-5
    assert angle(reference.states[-1][:4], axangle2quat([1, 2, 2], 2 * np.pi / 3)) < 1e-4


SLOW = [
    pytest.param(name, marks=[] if name == "slew" else [pytest.mark.slow])
    for name in SATELLITE.references
]


@pytest.mark.parametrize("name", SLOW)
def test_the_tracker_brings_it_onto_its_reference(name):
    experiment = Experiment.make(SATELLITE, name)
    run, wanted = experiment.run(), experiment.tracker.reference.states
    assert run.failure is None
    first, last = (angle(run.trajectory.states[k][:4], wanted[k][:4]) for k in (0, -1))
    assert first == pytest.approx(0.3) and last < 0.02 * first


def test_it_is_held_past_the_end_with_momentum_that_its_wheels_have_to_carry():
    """Attitude errors turn the total momentum in the body: the gains know it."""
    experiment = Experiment.make(SATELLITE, "biased_slew", duration_s=60.0)
    run, wanted = experiment.run(), experiment.tracker.reference.states[-1]
    end = run.trajectory.states[-1]
    assert np.linalg.norm(total_momentum(end[None])) > 0.4
    assert angle(end[:4], wanted[:4]) < 1e-5
    assert np.abs(experiment.model.velocity(end)[:3]).max() < 1e-5


@pytest.mark.parametrize("seed", [-1, 0, 3])
def test_perturbation_has_the_sizes_it_names(nominal, seed):
    v = np.array([0.1, 0.2, -0.1, 5.0, 6.0, 7.0, 8.0])
    x = nominal.state([0.5, 0.5, 0.5, 0.5, 1.0, 2.0, 3.0, 4.0], v)
    moved = perturbed(nominal, x, SatellitePerturbation(2.5, 0.3, seed))
    assert angle(x[:4], moved[:4]) == pytest.approx(2.5)
    change = nominal.velocity(moved) - v
    assert np.linalg.norm(change[:3]) == pytest.approx(0.3)
    np.testing.assert_allclose(change[3:], 0, atol=1e-10)
    turn = qmult(qconjugate(x[:4]), moved[:4])[1:]
    np.testing.assert_allclose(np.cross(turn, change[:3]), 0, atol=1e-12)
    for half in (np.pi, -np.pi):
        with pytest.raises(ValueError, match="below half a turn"):
            perturbed(nominal, x, SatellitePerturbation(attitude=half))


def test_margins_are_those_of_the_wheels_speeds():
    fast = np.r_[np.zeros(3), -501.0, 500.0, 100.0, -20.0]
    np.testing.assert_allclose(margins(NOMINAL, np.zeros(8), fast, None, {}), [-1, 0, 400, 480])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"wheel_inertias": (0.002, 0.002)}, "three wheels or more.*got 2"),
        ({"elevation": 1.6}, "elevation below pi/2"),
        ({"Jx": 20.0}, "largest inertia 20"),
    ],
)
def test_satellites_that_cannot_be_are_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        SatelliteParameters(**parameters)
