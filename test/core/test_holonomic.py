"""Holonomic constraints and prescribed coordinates in the midpoint integrator: against the same motion in other coordinates."""

import casadi as ca
import numpy as np
import pytest
from differences import jacobian
from nh_control.integrators import midpoint
from nh_control.spaces import Rn
from nh_control.system import System

LENGTH, G, H = 0.7, 9.8, 0.01


def rod() -> System:
    """A unit mass in the plane at a distance LENGTH from the origin, pushed along x."""
    return System(
        name="rod",
        space=Rn("x", "z"),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2 - G * q[1],
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u, 0),
        holonomic_constraint=lambda q: ca.sumsqr(q) - LENGTH**2,
    )


def crane() -> System:
    """A pendulum whose pivot is moved at will along x."""
    return System(
        name="crane",
        space=Rn("theta", "pivot"),
        lagrangian=lambda q, v: (LENGTH**2 * v[0] ** 2 + v[1] ** 2) / 2 + LENGTH * ca.cos(q[0]) * v[0] * v[1] + G * LENGTH * ca.cos(q[0]),
        prescribed=("pivot",),
    )


@pytest.fixture(scope="module")
def constrained():
    return midpoint(rod(), H)


def hanging(theta, omega):
    return np.array([LENGTH * np.sin(theta), -LENGTH * np.cos(theta), LENGTH * omega * np.cos(theta), LENGTH * omega * np.sin(theta)])


def test_the_constraint_holds_and_the_motion_is_that_of_the_angle_at_second_order(constrained):
    errors = []
    for h in (0.02, 0.01, 0.005, 0.0025):
        dsys, angle = midpoint(rod(), h), midpoint(System("angle", Rn("t"), lambda q, v: v[0] ** 2 / 2 + G / LENGTH * ca.cos(q[0])), h / 16)
        steps = round(1.0 / h)
        motion = dsys.simulate(hanging(0.9, 0.5), np.zeros((steps, 1)))
        assert np.abs(np.sum(motion.states[:, :2] ** 2, axis=1) - LENGTH**2).max() <= 1e-14
        theta = angle.simulate([0.9, 0.5], 16 * steps).states[-1, 0]
        errors.append(np.abs(motion.states[-1, :2] - hanging(theta, 0)[:2]).max())
    slope = np.polyfit(np.log([0.02, 0.01, 0.005, 0.0025]), np.log(errors), 1)[0]
    assert slope == pytest.approx(2.0, abs=0.1)


def test_a_constrained_step_has_exact_derivatives(constrained):
    x, u = hanging(0.9, 0.5), np.array([0.3])
    lin, lam = constrained.linearize(x, u), np.array([0.3, -0.7, 1.1, 0.2])

    def f(w):
        return constrained.local(lin.x1, constrained.step(constrained.retract(x, w[:4]), u + w[4:]))

    def slope(w):
        at = constrained.linearize(constrained.retract(x, w[:4]), u + w[4:])
        return lam @ np.hstack([at.A, at.B])

    np.testing.assert_allclose(np.hstack([lin.A, lin.B]), jacobian(f, 5, 1e-2), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(constrained.hessian(x, u, lam), jacobian(slope, 5, 1e-2), rtol=1e-6, atol=1e-8)


def test_a_prescribed_pivot_is_an_input_and_its_velocity_a_state():
    dsys = midpoint(crane(), H)
    assert dsys.inputs == ("pivot",) and dsys.state_names == ("theta", "pivot", "p_theta", "v_pivot")
    x = dsys.state([0.2, 0.0], [0.0, 0.0])
    for k in range(100):
        x = dsys.step(x, [0.01 * (k + 1)])
    assert x[1] == pytest.approx(1.0, abs=1e-12) and x[3] == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(dsys.velocity(x)[1], 1.0, rtol=1e-9)
    lin = dsys.linearize(x, [1.0])
    differences = jacobian(lambda w: dsys.step(x + w[:4], [1.0 + w[4]]), 5, 1e-3)
    np.testing.assert_allclose(np.hstack([lin.A, lin.B]), differences, rtol=1e-9, atol=1e-9)


def test_a_pivot_at_constant_speed_changes_nothing_but_the_frame():
    """Galilei: the pendulum does not notice, at the order of the method."""
    noticed = []
    for h in (0.02, 0.01, 0.005):
        dsys = midpoint(crane(), h)
        still, moving = dsys.state([0.4, 0.0], [0.0, 0.0]), dsys.state([0.4, 0.0], [0.0, 2.0])
        for k in range(round(2.0 / h)):
            still, moving = dsys.step(still, [0.0]), dsys.step(moving, [2.0 * h * (k + 1)])
        noticed.append(abs(moving[0] - still[0]))
    np.testing.assert_allclose(np.log2(np.divide(noticed[:-1], noticed[1:])), 2.0, atol=0.1)


def test_what_cannot_be_combined_is_refused():
    with pytest.raises(ValueError, match="last ones"):
        System("wrong", Rn("a", "b"), lambda q, v: ca.sumsqr(v), prescribed=("a",))
    with pytest.raises(ValueError, match="not supported together"):
        System(
            "wrong",
            Rn("a", "b"),
            lambda q, v: ca.sumsqr(v),
            velocity_constraint=lambda q: ca.horzcat(1, 0),
            holonomic_constraint=lambda q: q[0],
        )
