"""Inputs that bring a motion to rest, on masses that can be worked out by hand."""

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control.control.damping import damping_input, damping_or_idle

MASS = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 1.5]])


PUSHED = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 2.0]])


def carts(limit=np.inf):
    """Three coupled masses without a force but two inputs, and a point that is moved at will."""
    return nh.System(
        name="carts",
        space=nh.Rn("a", "b", "c", "point"),
        prescribed=("point",),
        inputs=("push", "pull"),
        input_limits=[[-limit, limit]] * 2,
        lagrangian=lambda q, v: ca.bilin(ca.DM(MASS), v[:3], v[:3]) / 2,
        force=lambda q, v, u: ca.vertcat(ca.DM(PUSHED) @ u, 0),
    )


@pytest.mark.parametrize(("time_s", "part"), [(0.5, 0.2), (0.1, 1.0), (0.01, 1.0)])
def test_damping_takes_away_the_part_of_the_kinetic_energy_that_inputs_reach(time_s, part):
    """In 0.1 s momenta change by 0.1 PUSHED u: least energy of what remains."""
    dsys = nh.midpoint(carts(), 0.1)
    v, point = np.array([0.4, -0.3, 0.7]), 0.25
    x = dsys.state([0.1, 0.2, 0.3, point], [*v, 0.0])
    change = np.linalg.solve(np.linalg.cholesky(MASS), 0.1 * PUSHED)
    momenta = np.linalg.solve(np.linalg.cholesky(MASS), MASS @ v)
    best = np.linalg.lstsq(change, momenta, rcond=None)[0]
    u = damping_input(dsys, x, time_s)
    np.testing.assert_allclose(u, [*(-part * best), point], rtol=1e-9)
    energies = dsys.energy(x), dsys.energy(dsys.step(x, u))
    assert energies[1] < energies[0]


def test_external_forces_do_not_damp():
    """The last forces are not ours: the others do what they can alone."""
    dsys = nh.midpoint(carts(), 0.1)
    v = np.array([0.4, -0.3, 0.7])
    x = dsys.state([0.1, 0.2, 0.3, 0.25], [*v, 0.0])
    root = np.linalg.cholesky(MASS)
    change, momenta = np.linalg.solve(root, 0.1 * PUSHED[:, :1]), np.linalg.solve(root, MASS @ v)
    best = np.linalg.lstsq(change, momenta, rcond=None)[0]
    u = damping_input(dsys, x, 0.1, external=1)
    np.testing.assert_allclose(u, [-best[0], 0.0, 0.25], rtol=1e-9)
    np.testing.assert_array_equal(damping_or_idle(dsys, x, 0.1, 1), u)
    assert abs(u[0] - damping_input(dsys, x, 0.1)[0]) > 0.1


def test_damping_keeps_the_limits_and_needs_a_time():
    dsys = nh.midpoint(carts(0.05), 0.1)
    x = dsys.state([0.0, 0.0, 0.0, 0.25], [0.4, -0.3, 0.7, 0.0])
    u = damping_input(dsys, x, 0.5)
    assert np.abs(u[:2]).max() == 0.05 and u[2] == 0.25
    for time_s in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="damping needs a time > 0"):
            damping_input(dsys, x, time_s)


@pytest.mark.parametrize("error", [np.linalg.LinAlgError, nh.StepFailed])
def test_where_there_is_no_damping_points_stay_where_they_are(error, monkeypatch):
    dsys = nh.midpoint(carts(), 0.1)
    x = dsys.state([0.0, 0.0, 0.0, 0.25], [0.4, -0.3, 0.7, 0.0])
    np.testing.assert_array_equal(damping_or_idle(dsys, x, 0.5), damping_input(dsys, x, 0.5))

    def fails(*_):
        raise error.__new__(error)

    monkeypatch.setattr(type(dsys), "linearize", fails)
    assert damping_or_idle(dsys, x, 0.5).tolist() == [0.0, 0.0, 0.25]
