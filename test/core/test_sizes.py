"""The sizes of a step's terms, on which the tolerance of Newton's method rests: those of the text
of `numerics.newton`, by differences, with Lagrangians that are written out and that are called.
"""

import numpy as np
import pytest
from cases import discrete, random_point
from differences import jacobian
from native_equations import equations_of

from nh_control.discrete.equations import StepEquations
from nh_control.mechanics import lagrangian
from nh_control.numerics import newton

PAIRS = [("pendulum", "midpoint"), ("sleigh", "dla"), ("snakeboard", "rdp-cay-exact-0.5")]


def equations(pair, large, monkeypatch):
    """The equations of a pair at h = 0.1, and a point (x, u, p)."""
    if large:
        monkeypatch.setattr(lagrangian, "LARGE", 0)
    dsys = discrete(*pair, 0.1)
    found = StepEquations(dsys.system, dsys.method, "sizes")
    assert found._derivatives.called == large
    x, u = random_point(dsys, np.random.default_rng(4))
    return found, x, u, dsys.parameter_values


def start(found, *at):
    """Sizes, r and r_z at z = 0."""
    s, r, r_z = found.step[0](*at)
    return np.array(s)[:, 0], np.array(r)[:, 0], np.array(r_z)


def balance(found, x, u, p):
    """r as a function of w = (x, u), at z = 0."""
    z = np.zeros(found.nz)
    return lambda w: np.array(found.step[1](w[: len(x)], w[len(x) :], z, p))[:, 0]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_size_is_the_change_under_a_relative_perturbation_of_the_arguments(pair, monkeypatch):
    """`s_i = sum_w |dr_i/dw| |w|` over w = (x, u), whatever the signs of slopes and arguments."""
    found, x, u, p = equations(pair, False, monkeypatch)
    rng = np.random.default_rng(5)
    for w in np.concatenate([x, u]) * rng.uniform(-1, 1, (6, len(x) + len(u))):
        r = balance(found, w[: len(x)], w[len(x) :], p)
        slope = jacobian(lambda e: r(w + e), len(w), 1e-2)
        s, r0, _ = start(found, w[: len(x)], w[len(x) :], p)
        np.testing.assert_allclose(s, np.abs(slope) @ np.abs(w), rtol=1e-7)
        np.testing.assert_allclose(r0, r(w), rtol=1e-13)


def test_the_unknowns_add_to_the_sizes():
    """Every row by its own unknown, however small it is beside the other: the numbers that are
    accepted lie on either side of TARGET times the size.
    """
    r_z, scale = np.diag([2.0, 3.0]), np.array([5e4, 0.0])
    z = np.array([1e4, 1.0])
    sizes = scale + np.abs(r_z) @ z
    for factor, iterations in ((0.8, {0}), (1.25, {1, 2})):
        for row in range(2):
            off = np.zeros(2)
            off[row] = factor * newton.TARGET * sizes[row] / r_z[row, row]
            found = z + off
            r = lambda y: r_z @ (y - z)  # noqa: E731
            equation = equations_of(r, lambda y: r_z, 2, scale)
            assert equation.solve(found) == newton.CONVERGED
            assert equation.work.info[0] in iterations
            np.testing.assert_allclose(equation.work.z, z, rtol=1e-15)
