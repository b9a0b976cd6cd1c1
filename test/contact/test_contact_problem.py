"""The contact problem alone: random points of a rigid body."""

import numpy as np
import pytest
from native_equations import Impulses

from nh_control.numerics.contact_problem import blocks


def problem(rng, smoothing):
    """Up to eight points of a body of 1 kg that moves into its ground, with friction 0.5."""
    points = rng.choice([-0.1, 0.1], size=(rng.integers(1, 9), 3))
    rows = []
    for x, y, z in points:
        lever = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        rows.append(np.hstack([np.eye(3), lever])[[2, 0, 1]])
    rows, mass = np.vstack(rows), np.diag([1.0] * 3 + [1 / 150] * 3)
    velocity = rng.normal(size=6) * rng.choice([1e-3, 1.0, 10.0])
    velocity[2] = -abs(velocity[2])
    count = len(points)
    shapes = blocks([(True, 2)] * count)
    G, b = rows @ np.linalg.solve(mass, rows.T), rows @ velocity
    return shapes, (G, b, np.full(count, 0.5), np.zeros(count), smoothing)


@pytest.mark.parametrize("smoothing", [1e-3, 1e-6, 1e-9])
def test_solutions_lie_on_the_central_path(smoothing):
    rng = np.random.default_rng(0)
    for _ in range(40):
        shapes, given = problem(rng, smoothing)
        found = Impulses(shapes)
        assert found.find(*given)
        G, b, mu, *_ = given
        assert found.w == pytest.approx(G @ found.x + b, abs=1e-9 * (1 + np.abs(b).max()))
        for i, (n, t, k, j) in enumerate(shapes):
            beta, g = mu[i] * found.x[n], found.x[t : t + k]
            psi, s = found.psi[j], found.w[t : t + k]
            assert found.x[n] > 0 and found.w[n] > 0
            assert np.linalg.norm(g) < beta and np.linalg.norm(s) < psi
            allowed = 1e-3 * smoothing + 1e-12 * beta * psi
            assert abs(found.x[n] * found.w[n] - smoothing) < allowed
            assert abs(beta * psi + g @ s - smoothing) < allowed
            assert np.abs(beta * s + psi * g).max() < allowed


def test_a_friction_with_a_given_bound_is_one_without_a_normal():
    (shape,) = shapes = blocks([(False, 2)])
    found = Impulses(shapes)
    G, b = np.eye(2), np.array([3.0, 4.0])
    assert shape.normal == -1
    assert found.find(G, b, np.zeros(1), np.array([2.0]), 1e-9)
    assert found.x == pytest.approx([-1.2, -1.6], abs=1e-8)  # opposite to the slip, of size 2
    assert found.find(G, b, np.zeros(1), np.array([6.0]), 1e-9)
    assert found.x == pytest.approx([-3, -4], abs=1e-8)  # enough to stop
