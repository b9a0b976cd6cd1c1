"""Gauss, Lobatto and geometric nonholonomic methods with velocity constraints, on a system with a
unit vector and on one with a holonomic constraint: order, exact derivatives, reversibility.
"""

import numpy as np
import pytest
from differences import jacobian
from energy_cases import INPUT, discrete, slopes, start, system

from nh_control.integrators import INTEGRATORS

STEPS = {2: (16, 24, 36, 54), 4: (8, 12, 18, 26), 6: (5, 7, 10, 14)}
SPHERES = ("nonholonomic_gauss_2", "spark_2", "nprk_2", "gni_implicit", "gni_midpoint", "si_dla")
SURFACES = ("nonholonomic_gauss_1", "nonholonomic_gauss_2", "spark_2", "spark_3_d", "gni_implicit")
SLOW_SPHERES = ("nonholonomic_gauss_1", "nonholonomic_gauss_3", "spark_3", "spark_3_d", "spark_4")
SLOW_SPHERES += ("nprk_3",)
SLOW_SURFACES = ("nonholonomic_gauss_3", "spark_2_d", "spark_3", "spark_4", "gni_midpoint")
QUICK = [("hung", method) for method in SPHERES] + [("tied", method) for method in SURFACES]
SLOW = [("hung", m) for m in SLOW_SPHERES] + [("tied", m) for m in SLOW_SURFACES]
CASES = [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
SYMMETRIC = [
    pytest.param(name, method, marks=pytest.mark.slow if (name, method) in SLOW else ())
    for name, method in [*QUICK, *(case for case in SLOW if case[0] == "tied")]
    if INTEGRATORS[method].symmetric
]
DIFFERENCES = {"hung": (0.02, 1e-10), "tied": (0.005, 1e-9)}
"""Spacing and error of differences: steps bend more off a surface."""


@pytest.mark.parametrize("name, method", CASES)
def test_order(name, method):
    """Under damping and constant inputs, over four step sizes, in configuration and velocity."""
    order = INTEGRATORS[method].order
    found = slopes(name, method, STEPS[order], 0.1)
    assert np.abs(found - order).max() <= 0.06 * order, found


@pytest.mark.parametrize("name, method", CASES)
def test_the_linearization_is_the_derivative_of_the_step(name, method):
    dsys, (spacing, error) = discrete(name, method), DIFFERENCES[name]
    x, n = dsys.state(*start(name), INPUT), dsys.ndx
    lin = dsys.linearize(x, INPUT)
    moved = lambda w: dsys.local(lin.x1, dsys.step(dsys.retract(x, w[:n]), INPUT + w[n:]))
    expected = jacobian(moved, n + dsys.nu, spacing)
    assert np.abs(np.hstack([lin.A, lin.B]) - expected).max() <= error


@pytest.mark.parametrize("name, method", SYMMETRIC)
def test_steps_are_reversible(name, method):
    """Without the term linear in the velocities; sigma of `gni` stays when the momenta turn."""
    dsys = discrete(name, method).with_parameters(field=0.0)
    x, memory = dsys.state(*start(name), INPUT), len(dsys.method.memory)
    flip = np.where(np.arange(dsys.nx) < system(name).space.nq, 1, -1)
    flip[dsys.nx - memory :] = 1
    assert np.abs(flip * dsys.step(flip * dsys.step(x, INPUT), INPUT) - x).max() <= 1e-14
