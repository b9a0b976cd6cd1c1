"""A, B and the contracted Hessian of symplectic and Lie-Poisson methods against differences of the
step itself.
"""

from __future__ import annotations

import lie_cases
import numpy as np
import pytest
import symplectic_cases as cases
from lie_differences import jacobian, second_along
from test_lie_derivatives import moved_step

THETAS = ("slgi_0", "slgi_half", "slgi_1")


DERIVED = [("planar_body", "lie_midpoint"), ("heavy_top", "slgi_half")]
DERIVED_SLOWLY = [
    *((name, m) for name in ("pendulum_1", "rigid_body", "top_on_a_joint") for m in THETAS),
    ("payload", "slgi_half"),
    ("floating_body_cay", "slgi_half"),
    ("floating_body_cay", "slgi_1"),
    *(("planar_body", m) for m in THETAS),
    *((name, "lie_midpoint") for name in ("heavy_top", "floating_body_cay")),
    *((name, "lie_mean_value") for name in ("heavy_top", "floating_body_cay")),
]


@pytest.mark.parametrize(
    "name, method",
    DERIVED + [pytest.param(*case, marks=pytest.mark.slow) for case in DERIVED_SLOWLY],
)
def test_derivatives_are_those_of_the_step(name, method):
    """A and B, and the contracted Hessian along random directions."""
    dsys, rng = cases.discrete(name, method, 0.05), np.random.default_rng(8)
    x, u = lie_cases.random_point(dsys, rng)
    if dsys.system.n_holonomic_constraints:
        x = dsys.state(*cases.on_the_joint(x[:4], rng.normal(size=3)))
    f, n = moved_step(dsys, x, u), dsys.ndx + dsys.nu
    lin, lam = dsys.linearize(x, u), rng.normal(size=dsys.ndx)
    expected = jacobian(f, n, 0.02)
    np.testing.assert_allclose(np.hstack([lin.A, lin.B]), expected, rtol=1e-9, atol=1e-9)
    hessian = dsys.hessian(x, u, lam)
    for d in rng.normal(size=(4, n)) / np.sqrt(n):
        wanted = second_along(lambda s, d=d: lam @ f(s * d), 0.02)
        assert abs(d @ hessian @ d - wanted) <= 1e-6 * np.abs(hessian).max()
