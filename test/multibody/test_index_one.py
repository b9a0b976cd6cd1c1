"""Methods on index-1 equations: order, exact derivatives, what becomes of a violation."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from differences import jacobian

from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS
from nh_control.integrators.index_one import index_one, projected_index_one
from nh_control.mechanics.system import System
from nh_control.multibody import maximal_coordinates, maximal_state
from nh_control.systems import linkages, pendulum, snakeboard

METHODS = ("rkmk4_index_one", "rkmk4_baumgarte", "rkmk4_projected")
SPACES = {"upper": "SE3", "lower": "SO3xR3"}
DURATION = 0.2
START = np.array([4.0, 2.0, -3.0, 5.0, -2.0, 6.0])


@cache
def pendulum_on_both():
    """The double pendulum, its first body on SE(3), the other on SO(3) x R^3, and a start."""
    model = linkages.double_pendulum()
    maximal = maximal_coordinates(model, SPACES)
    return model, maximal, *maximal_state(model, model.configuration(), START, maximal)


@cache
def made(method):
    _, maximal, q, v = pendulum_on_both()
    dsys = INTEGRATORS[method].make(maximal.system, 0.1)
    return dsys, dsys.state(q, v)


def model_of(method, h):
    dsys, x = made(method)
    return dsys.with_step(h), x


@cache
def top(method):
    model = linkages.box_top()
    maximal = maximal_coordinates(model, "SO3xR3")
    dsys = INTEGRATORS[method].make(maximal.system, 0.02)
    return dsys, dsys.state(*maximal_state(model, model.configuration(), START[:3], maximal))


@cache
def rod(method):
    system = System(
        "rod",
        Rn("x", "y"),
        lambda q, v: ca.sumsqr(v) / 2 - 9.81 * q[1],
        holonomic_constraint=lambda q: ca.sumsqr(q) - 0.49,
    )
    dsys = INTEGRATORS[method].make(system, 0.02)
    return dsys, dsys.state([0.42, -0.56], [0.56, 0.42])


@pytest.mark.parametrize("made", [rod, top])
def test_derivatives_are_exact_off_the_constraints(made):
    dsys, x = made("rkmk4_projected")
    off = dsys.retract(x, 1e-2 * np.random.default_rng(0).normal(size=dsys.ndx))
    linear = dsys.linearize(off)
    differences = jacobian(
        lambda d: dsys.local(linear.x1, dsys.step(dsys.retract(off, d))), dsys.ndx, 2e-3
    )
    np.testing.assert_allclose(linear.A, differences, atol=1e-9 * np.abs(linear.A).max())


def test_a_step_with_the_velocity_turned_does_not_lead_back_so_they_are_not_called_symmetric():
    """A composition of them would not have its order."""
    dsys, x = top("rkmk4_projected")
    end = dsys.step(x)
    back = dsys.step(dsys.state(dsys.configuration(end), -dsys.velocity(end)))
    assert np.linalg.norm(dsys.velocity(back) + dsys.velocity(x)) > 1e-9
    assert not any(INTEGRATORS[method].symmetric for method in METHODS)


def violation(maximal, x):
    """h and its rate at a state."""
    system = maximal.system
    h = np.concatenate(list(maximal.constraint_residuals(x[:14]).values()))
    slope = system.value(system.mechanics.holonomic_jacobian(system.symbols[0]), x[:14])
    return h, slope @ np.linalg.solve(maximal.mass_matrix(x[:14]), x[14:])


@pytest.mark.parametrize(("method", "rate"), [("rkmk4_index_one", 0.0), ("rkmk4_baumgarte", 10.0)])
def test_a_violation_obeys_its_equation(method, rate):
    """`h'' + 2 rate h' + rate^2 h = 0` along the motion."""
    maximal = pendulum_on_both()[1]
    dsys, x = model_of(method, DURATION / 100)
    rng = np.random.default_rng(0)
    x = dsys.retract(x, 1e-3 * rng.normal(size=dsys.ndx))
    h0, rate0 = violation(maximal, x)
    h1, rate1 = violation(maximal, dsys.simulate(x, 100).states[-1])
    decay, slope = np.exp(-rate * DURATION), rate0 + rate * h0
    assert np.abs(h0).min() > 1e-5 and np.abs(rate0).min() > 1e-5
    np.testing.assert_allclose(h1, decay * (h0 + slope * DURATION), atol=1e-6)
    expected = decay * (slope - rate * (h0 + slope * DURATION))
    np.testing.assert_allclose(rate1, expected, atol=1e-5)


def test_a_projection_keeps_poses_and_velocities():
    """Onto the nearest: what it takes off the momentum is an impulse of the constraints."""
    maximal = pendulum_on_both()[1]
    dsys, x = model_of("rkmk4_projected", 2e-3)
    free, _ = model_of("rkmk4_index_one", 2e-3)
    off = dsys.retract(x, 1e-4 * np.random.default_rng(1).normal(size=dsys.ndx))
    assert np.abs(violation(maximal, dsys.step(off))).max() < 1e-13
    states = dsys.simulate(x, 100).states
    assert max(np.abs(violation(maximal, x)[0]).max() for x in states[::20]) < 1e-15
    assert max(np.abs(violation(maximal, x)[1]).max() for x in states[::20]) < 1e-13
    plain, kept = free.step(off), dsys.step(off)
    system = maximal.system
    slope = system.value(system.mechanics.holonomic_jacobian(system.symbols[0]), kept[:14])
    change = kept[14:] - plain[14:]
    impulse = np.linalg.lstsq(slope.T, change, rcond=None)[0]
    assert np.linalg.norm(change) > 1e-5
    np.testing.assert_allclose(slope.T @ impulse, change, atol=1e-14)


@pytest.mark.slow
def test_baumgartes_rates_are_the_users():
    maximal, q, v = pendulum_on_both()[1:]
    dsys = index_one(maximal.system, 2e-3, baumgarte=(40.0, 50.0), name="fast")
    x = dsys.retract(dsys.state(q, v), 1e-3 * np.ones(dsys.ndx))
    h0, h1 = (violation(maximal, s)[0] for s in dsys.simulate(x, 200).states[[0, -1]])
    assert np.abs(h1).max() < 1e-4 * np.abs(h0).max()


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (pendulum, "pendulum has no holonomic constraints; use midpoint, or rkmk4"),
        (snakeboard, "snakeboard has velocity constraints"),
    ],
)
def test_other_systems_are_refused(system, message):
    for make in (index_one, projected_index_one):
        with pytest.raises(ValueError, match=message):
            make(system(), 0.1)
