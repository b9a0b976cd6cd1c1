"""A, B and the contracted Hessian are the derivatives of the step, for methods that the laws of
test/laws leave out: reduced d'Alembert-Pontryagin and one-sided forcing.

A and B agree to 1e-9 of the largest entry of their row (rows have different units), plus the
round-off of the differences where a whole row is tiny, as of the side displacement by the inputs,
which is of third order in h.
"""

import casadi as ca
import numpy as np
import pytest
from cases import discrete, random_point
from differences import hessian, jacobian

import nh_control as nh
from nh_control.discrete.method import Method, no_residual
from nh_control.systems import pendulum

H = 0.1
SPACING, SPACING_2 = 0.02, 0.05
CASES = [
    ("pendulum", "midpoint-left"),
    ("snakeboard", "dla-left"),
    ("sleigh", "rdp-ccsk-truncated-0.3"),
    ("snakeboard", "rdp-cay-exact-0.3"),
    pytest.param("snakeboard", "rdp-sccsk-truncated-0.5", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("system, method", CASES)
def test_linearization_and_hessian_are_the_derivatives_of_the_step(system, method):
    dsys, rng = discrete(system, method, H), np.random.default_rng(100)
    x, u = random_point(dsys, rng)
    lin, lam, n = dsys.linearize(x, u), rng.normal(size=dsys.ndx), dsys.ndx
    assert np.array_equal(lin.x1, dsys.step(x, u))
    step = lambda w: dsys.local(lin.x1, dsys.step(dsys.retract(x, w[:n]), u + w[n:]))
    expected = jacobian(step, n + dsys.nu, SPACING)
    round_off = 8 * np.finfo(float).eps * max(1.0, np.abs(x).max()) / SPACING
    for got, want in ((lin.A, expected[:, :n]), (lin.B, expected[:, n:])):
        row = np.abs(want).max(axis=1, keepdims=True, initial=0.0)
        assert (np.abs(got - want) <= 1e-9 * row + round_off).all()
    bend = hessian(lambda w: lam @ step(w), n + dsys.nu, SPACING_2)
    assert np.abs(dsys.hessian(x, u, lam) - bend).max() <= 1e-6 * np.abs(bend).max()


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
    """And order two."""
    d, u = heun(pendulum(), 0.05), [0.1]
    x, lam = d.state([0.4], [0.3]), np.array([1.0, 2.0])
    step = lambda w: d.step(x + w, u)
    np.testing.assert_allclose(d.linearize(x, u).A, jacobian(step, 2, 0.02), atol=1e-9)
    bend = hessian(lambda w: lam @ step(w), 2, 0.05)
    np.testing.assert_allclose(d.hessian(x, u, lam)[:2, :2], bend, atol=1e-7)
    found = nh.convergence(pendulum(), heun, (200, 400), q=[0.4], v=[0.3], u=u, duration=1.0)
    assert found.orders["heun"] == pytest.approx(2.0, abs=0.05)
