"""Variational Gauss integrators on R^n, rotations and spheres: order, symplectic form, momenta."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from differences import hessian, jacobian
from energy_cases import INPUT, VARIATIONAL, H, discrete, slopes, start, system, turning
from numpy.polynomial.legendre import leggauss
from test_energy_on_manifolds import directed

from nh_control.geometry import quaternion
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.integrators.variational_gauss import variational_gauss
from nh_control.numerics.quadrature import gauss, integrals, lagrange
from nh_control.systems import snakeboard
from nh_control.systems.rigid_body import rigid_body
from nh_control.systems.spherical_pendulum import (
    SphericalPendulumParameters,
    spherical_pendulum,
)

STEPS = {4: (8, 12, 18, 26), 6: (5, 7, 10, 14)}
NAMES = ("double_pendulum", "body")
QUICK = [("double_pendulum", method) for method in VARIATIONAL]
QUICK += [("body", VARIATIONAL[0]), ("swinging", VARIATIONAL[0])]
LONG = [(name, VARIATIONAL[1]) for name in ("body", "swinging")]
PAIRS = [*QUICK, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in LONG)]


def test_quadrature_is_that_of_gauss():
    """Points and weights, and the integrals of the points' polynomials."""
    c, b = gauss(3)
    assert np.allclose(c, (1 + leggauss(3)[0]) / 2) and abs(b.sum() - 1) <= 1e-15
    assert np.allclose([p(c) for p in lagrange(c)], np.eye(3), atol=1e-14)
    a = integrals(c, np.array([*c, 1.0]))
    assert np.allclose(a[-1], b) and np.allclose(a @ c**2, np.array([*c, 1.0]) ** 3 / 3)
    root = np.sqrt(15)
    assert np.allclose(a[0], [5 / 36, 2 / 9 - root / 15, 5 / 36 - root / 30])


@pytest.mark.parametrize("name, method", PAIRS)
def test_order(name, method):
    """Under damping and constant inputs, in configuration and velocity."""
    order = INTEGRATORS[method].order
    found = slopes(name, method, STEPS[order], 0.1)
    assert np.abs(found - order).max() <= 0.06 * order, found


def test_linearization_is_the_derivative_of_the_step():
    """A and B by eighth-order differences, and the contracted Hessian."""
    dsys, rng = discrete("swinging", VARIATIONAL[0]), np.random.default_rng(2)
    x, n, lam = dsys.state(*start("swinging")), dsys.ndx, rng.normal(size=dsys.ndx)
    lin = dsys.linearize(x, INPUT)
    moved = lambda w: dsys.local(lin.x1, dsys.step(dsys.retract(x, w[:n]), INPUT + w[n:]))
    slope = jacobian(moved, n + dsys.nu, 0.02)
    assert np.abs(np.hstack([lin.A, lin.B]) - slope).max() <= 1e-10
    bend = hessian(lambda w: lam @ moved(w), n + dsys.nu, 0.05)
    assert np.abs(dsys.hessian(x, INPUT, lam) - bend).max() <= 1e-8 * np.abs(bend).max()


def test_a_free_body_keeps_its_angular_momentum_in_space():
    dsys = INTEGRATORS["variational_gauss_4"].make(rigid_body(), 0.2)
    x = dsys.state([1.0, 0, 0, 0], [1.0, 2.0, -1.5])
    states = dsys.simulate(x, np.zeros((100, 3))).states
    q, p = ca.SX.sym("q", 4), ca.SX.sym("p", 3)
    spatial = ca.Function("spatial", [q, p], [quaternion.rotate(q, p)])
    momenta = np.array([np.asarray(spatial(x[:4], x[4:]))[:, 0] for x in states])
    assert np.abs(momenta - momenta[0]).max() <= 1e-13


def test_a_chain_of_unit_vectors_keeps_its_angular_momentum_about_the_vertical():
    """The links turn over the pole and the equator; the energy swings and does not drift."""
    system = spherical_pendulum(SphericalPendulumParameters((1.0, 0.5), (1.0, 0.7)))
    dsys = INTEGRATORS["variational_gauss_4"].make(system, 0.02)
    x = dsys.state(*directed(system, 1.5, 1))
    states = dsys.simulate(x, [], steps=500).states
    turning = [np.cross(states[:, k : k + 3], states[:, k + 6 : k + 9])[:, 2] for k in (0, 3)]
    assert np.ptp(sum(turning)) <= 1e-13
    assert states[:, 2].min() < -0.9 and states[:, 2].max() > 0.7
    lengths = [np.linalg.norm(states[:, k : k + 3], axis=1) for k in (0, 3)]
    assert np.abs(np.array(lengths) - 1).max() <= 4e-16
    energies = dsys.energies(states)
    assert np.ptp(energies) <= 5e-4 * np.abs(energies).max()


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


def test_both_retractions_of_rotations_converge_to_one_motion():
    """Curves of the exponential and of the Cayley map differ by the error of the method."""
    ends = []
    by_exp = variational_gauss(turning(False, retraction="exp"), 0.05)
    for dsys in (by_exp, discrete("body", "variational_gauss_4", 0.05)):
        x = dsys.state(*start("body"))
        ends.append(dsys.simulate(x, np.tile(INPUT, (10, 1))).states[-1])
    assert 1e-12 <= np.abs(ends[0] - ends[1]).max() <= 1e-5


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
