"""A method of a user's own with stages at points that follow from earlier gradients."""

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control.discrete.method import Method, no_residual
from nh_control.systems.pendulum import pendulum


def heun(system, h):
    """Heun's method, whose second stage is at a point that follows from the first gradients."""

    def readout(s):
        def slope(q, p):
            one, none = (s.gradients(q, ca.SX([v]))[1] for v in (1.0, 0.0))
            v = p / (one - none)
            return v, s.gradients(q, v)[0] + s.u

        dq, dp = slope(s.q, s.rho)
        dq1, dp1 = slope(s.q + s.h * dq, s.rho + s.h * dp)
        return s.q + s.h / 2 * (dq + dq1), s.rho + s.h / 2 * (dp + dp1)

    return nh.DiscreteSystem(system, h, Method("heun", 0, no_residual, readout))


def test_an_explicit_method_of_two_stages_has_exact_derivatives():
    """By central differences, and its order is two."""
    d, u = heun(pendulum(), 0.05), [0.1]
    x, e = d.state([0.4], [0.3]), 1e-6
    columns = [(d.step(x + dx, u) - d.step(x - dx, u)) / (2 * e) for dx in e * np.eye(2)]
    np.testing.assert_allclose(d.linearize(x, u).A, np.transpose(columns), atol=1e-8)
    lam = np.array([1.0, 2.0])
    slopes = [
        lam @ (d.linearize(x + dx, u).A - d.linearize(x - dx, u).A) / (2 * e)
        for dx in e * np.eye(2)
    ]
    np.testing.assert_allclose(d.hessian(x, u, lam)[:2, :2], slopes, atol=1e-6)
    exact = nh.midpoint(pendulum(), 0.001).simulate(x, u, steps=1000).states[-1]
    errors = [
        np.abs(d.with_step(h).simulate(x, u, steps=round(1 / h)).states[-1] - exact).max()
        for h in (0.05, 0.025)
    ]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
