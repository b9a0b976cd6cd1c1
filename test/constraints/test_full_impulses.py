"""A state that is made of a configuration and a velocity is linearized with the whole force of its
holonomic constraints: with the eigenvalues of the motion, and the regulator that follows.
"""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import eigvals, solve_continuous_are

import nh_control as nh
from nh_control.integrators import INTEGRATORS

G, H = 9.81, 1e-3


def pendulum():
    """A unit mass at 1 m from the origin of the plane x, z, pushed along x."""
    return nh.System(
        "pendulum",
        nh.Rn("x", "z"),
        lambda q, v: ca.sumsqr(v) / 2 - G * q[1],
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u, 0),
        holonomic_constraint=lambda q: ca.sumsqr(q) - 1,
        nominal=(0, -1),
    )


PENDULUM = pendulum()
HELD = [G * np.tan(0.6)]
"""The push that holds the pendulum at 0.6 rad from the vertical."""


def at(angle):
    return np.array([np.sin(angle), -np.cos(angle)])


def frequency(A, h=H):
    """The largest frequency (rad/s) of a step's derivative A, without eigenvalues of zero."""
    values = np.linalg.eigvals(A)
    return np.abs(np.angle(values[np.abs(values) > 0.5])).max() / h


@pytest.mark.parametrize("method", [*INTEGRATORS.fitting(PENDULUM), "midpoint_left"])
def test_every_method_swings_at_the_frequency_of_the_pendulum(method):
    make = INTEGRATORS.get(method, lambda system, h: nh.midpoint(system, h, "left"))
    model = make(PENDULUM, H)
    hanging = model.state(at(0.0), [0.0, 0.0])
    assert frequency(model.linearize(hanging, [0.0]).A) == pytest.approx(np.sqrt(G), rel=1e-5)
    tilted = model.state(at(0.6), [0.0, 0.0], HELD)
    wanted = pytest.approx(np.sqrt(G / np.cos(0.6)), rel=1e-5)
    assert frequency(model.linearize(tilted, HELD).A) == wanted
    unpushed = model.state(at(0.6), [0.0, 0.0])
    assert frequency(nh.to_control(model, unpushed, HELD).A) == wanted


@pytest.mark.parametrize("method", ("midpoint", "nonholonomic_midpoint", "midpoint_order4"))
def test_a_regulator_at_a_state_that_was_made_without_its_input_is_that_of_the_angle(method):
    """Poles of the continuous regulator of `a'' = -G / cos(0.6) a + cos(0.6) push`."""
    h, cosine = 0.01, np.cos(0.6)
    model = INTEGRATORS[method](PENDULUM, h)
    x = model.state(at(0.6), [0.0, 0.0])
    gain = nh.lqr.infinite_horizon(model, x, HELD, np.diag([1e4, 1e4, 0, 0]), [[h]])
    slow = gain.poles[np.abs(gain.poles) > 0.1]
    a, b = np.array([[0, 1], [-G / cosine, 0]]), np.array([[0], [cosine]])
    P = solve_continuous_are(a, b, np.diag([1e4 / h, 0]), [[1.0]])
    wanted = np.sort_complex(eigvals(a - b @ b.T @ P))
    np.testing.assert_allclose(np.sort_complex(np.log(slow) / h), wanted, rtol=0.02)


def test_the_first_step_of_a_made_state_has_the_whole_force_of_the_rod():
    """m g cos(a) + m l rate^2, up to its change in a step."""
    model, rate = nh.midpoint(PENDULUM, H), 1.5
    v = rate * np.array([np.cos(0.9), np.sin(0.9)])
    x = model.state(at(0.9), v)
    np.testing.assert_allclose(model.velocity(x), v, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(model.configuration(x), at(0.9))
    force = 2 * model.multipliers(x, [0.0]) / H
    np.testing.assert_allclose(force, [G * np.cos(0.9) + rate**2], rtol=3 * H)
    table = model.state([at(0.9), at(0.6)], [v, [0, 0]], [[0.0], HELD])
    np.testing.assert_array_equal(table, [x, model.state(at(0.6), [0, 0], HELD)])
    bare = model.measured_state(at(0.9), v)
    np.testing.assert_array_equal(model.with_impulses_of_step(bare, [0.0]), x)
