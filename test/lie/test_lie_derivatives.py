"""A, B and the contracted Hessian on rotations and directions against differences of the step
itself, at random and at awkward states.
"""

from __future__ import annotations

import lie_cases
import numpy as np
import pytest
from lie_differences import jacobian, second_along

pytestmark = pytest.mark.slow

H = 0.05
SPREAD = 0.02
"""Step of the differences; their tenth-order error is far below the tolerances here."""

CASES = [
    *(
        (name, pose)
        for name in (
            "rigid_body",
            "rigid_body_exp",
            "heavy_top",
            "floating_body_exp",
            "floating_body_cay",
        )
        for pose in lie_cases.POSES
    ),
    *(
        (name, pose)
        for name in ("pendulum_1", "pendulum_2", "pendulum_2_exp", "pendulum_4", "payload")
        for pose in lie_cases.POSES
    ),
    ("fast_top", lie_cases.ANYHOW),
    ("pendulum_8", lie_cases.ANYHOW),
    ("pendulum_8", lie_cases.HORIZONTAL),
]
every_case = pytest.mark.parametrize(
    "name, pose",
    [c for c in CASES if c[1] != lie_cases.HORIZONTAL or "pendulum" in c[0] or "payload" in c[0]],
)


def moved_step(dsys, x, u):
    """`(dx, du) -> local(x1, f(retract(x, dx), u + du))`."""
    x1 = dsys.step(x, u)
    return lambda w: dsys.local(x1, dsys.step(dsys.retract(x, w[: dsys.ndx]), u + w[dsys.ndx :]))


def point(name, pose):
    dsys = lie_cases.discrete(name, H)
    rng = np.random.default_rng([lie_cases.POSES.index(pose), *name.encode()])
    return dsys, *lie_cases.random_point(dsys, rng, pose), rng


@every_case
def test_linearization(name, pose):
    dsys, x, u, _ = point(name, pose)
    lin = dsys.linearize(x, u)
    expected = jacobian(moved_step(dsys, x, u), dsys.ndx + dsys.nu, SPREAD)
    np.testing.assert_array_equal(lin.x1, dsys.step(x, u))
    for actual, block in ((lin.A, expected[:, : dsys.ndx]), (lin.B, expected[:, dsys.ndx :])):
        assert np.isfinite(actual).all()
        np.testing.assert_allclose(
            actual, block, rtol=1e-9, atol=1e-9 * np.abs(block).max(initial=0.0)
        )


@every_case
def test_contracted_hessian(name, pose):
    """Along every axis and along twice as many random directions, which no wrong entry escapes."""
    dsys, x, u, rng = point(name, pose)
    n, lam = dsys.ndx + dsys.nu, rng.normal(size=dsys.ndx)
    exact, f = dsys.hessian(x, u, lam), moved_step(dsys, x, u)
    np.testing.assert_allclose(exact, exact.T, rtol=0, atol=1e-12 * np.abs(exact).max())
    directions = np.vstack([np.eye(n), rng.normal(size=(2 * n, n)) / np.sqrt(n)])
    expected = [second_along(lambda s, v=v: lam @ f(s * v), SPREAD) for v in directions]
    actual = np.einsum("ki,ij,kj->k", directions, exact, directions)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6 * np.abs(actual).max())
