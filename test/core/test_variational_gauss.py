"""Variational Gauss integrators on R^n, rotations and spheres: order, symplectic form, momenta."""

from dataclasses import replace

import numpy as np
import pytest
from energy_cases import VARIATIONAL, H, start, system, turning
from numpy.polynomial.legendre import leggauss

from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.integrators.variational_gauss import variational_gauss
from nh_control.numerics.quadrature import gauss, integrals, lagrange
from nh_control.systems import snakeboard

NAMES = ("double_pendulum", "body")
QUICK = [("double_pendulum", method) for method in VARIATIONAL]
QUICK += [("body", VARIATIONAL[0]), ("swinging", VARIATIONAL[0])]


def test_quadrature_is_that_of_gauss():
    """Points and weights, and the integrals of the points' polynomials."""
    c, b = gauss(3)
    assert np.allclose(c, (1 + leggauss(3)[0]) / 2) and abs(b.sum() - 1) <= 1e-15
    assert np.allclose([p(c) for p in lagrange(c)], np.eye(3), atol=1e-14)
    a = integrals(c, np.array([*c, 1.0]))
    assert np.allclose(a[-1], b) and np.allclose(a @ c**2, np.array([*c, 1.0]) ** 3 / 3)
    root = np.sqrt(15)
    assert np.allclose(a[0], [5 / 36, 2 / 9 - root / 15, 5 / 36 - root / 30])


@pytest.mark.parametrize("name", NAMES)
def test_one_stage_is_the_midpoint_method(name):
    """Without forces, on R^n and with the exponential of rotations, whose half steps add up.
    (Forces act by their virtual work at the middle, which `midpoint` splits between the ends.)
    """
    body = replace(turning(False, retraction="exp"), inputs=(), force=None)
    one = body if name == "body" else system(name, forced=False)
    dsys = variational_gauss(one, H, stages=1)
    x = dsys.state(*start(name))
    assert np.abs(dsys.step(x) - midpoint(one, H).step(x)).max() <= 1e-14


def test_systems_that_do_not_fit_are_refused_by_name():
    on_surface = replace(system("tied"), velocity_constraint=None)
    for bad, reason in (
        (snakeboard(), "velocity constraints"),
        (on_surface, "holonomic constraints"),
    ):
        for method in VARIATIONAL:
            assert reason in INTEGRATORS[method].refuses(bad)
        with pytest.raises(ValueError, match=reason):
            variational_gauss(bad, H)
    with pytest.raises(ValueError, match="stages must be at least 1"):
        variational_gauss(system("body"), H, stages=0)
