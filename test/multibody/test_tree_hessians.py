"""Second derivatives of trees: first ones of the kernel, and the equations where it ended."""

import numpy as np
import pytest
from random_trees import (
    both_ways,
    by_equations,
    not_worth_compiling,
    random_motion,
    random_tree,
    with_followers,
    with_wrenches,
)
from test_tree_constraints import constrained_tree, motion
from test_tree_parameters import parametrized
from test_tree_springs import with_bonds

from nh_control.integrators import midpoint
from nh_control.multibody.tree_engine import TreeEngine
from nh_control.numerics import compiled


def everything(rng):
    """A tree with followers, wrenches, springs and a prescribed joint."""
    tree = with_followers(random_tree([0, 1], rng, prescribed=("b0",)), 1, rng)
    return with_bonds(with_wrenches(tree, 1, rng), 1, rng)


TREES = {
    "free": lambda rng: random_tree([0, 1, 0], rng),
    "ball": lambda rng: random_tree([3, 0], rng),
    "everything": everything,
}
SLOW = {f"kind {k}": lambda rng, k=k: random_tree([k, 1, k], rng) for k in (2, 3, 4, 6, 7, 8)}
SLOW["floating"] = lambda rng: random_tree([5, 0], rng)


@pytest.mark.parametrize(
    "make, forcing",
    [
        *(pytest.param(make, "symmetric", id=name) for name, make in TREES.items()),
        *(
            pytest.param(make, forcing, id=f"{name}, {forcing}", marks=pytest.mark.slow)
            for forcing, trees in (("symmetric", SLOW), ("left", TREES))
            for name, make in trees.items()
        ),
    ],
)
def test_second_derivatives_equal_generated_ones(make, forcing):
    rng = np.random.default_rng(3)
    tree, generated = both_ways(make(rng), forcing=forcing)
    x, u = random_motion(generated, rng)
    adjoint = rng.normal(size=tree.ndx)
    found, wanted = (dsys.hessian(x, u, adjoint) for dsys in (tree, generated))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "kinds, constraints",
    [([0, 0, 1], ["string"]), pytest.param([5, 0], ["reeled", "plane"], marks=pytest.mark.slow)],
)
def test_second_derivatives_of_multipliers_equal_generated_ones(kinds, constraints):
    rng = np.random.default_rng(4)
    model, q = constrained_tree(kinds, constraints, rng)
    tree, generated = midpoint(model.system, 0.01), None
    generated = by_equations(model.system, 0.01)
    x, u = motion(generated, q, rng)
    adjoints = rng.normal(size=tree.ndx), rng.normal(size=tree.system.n_holonomic_constraints)
    wanted = generated.hessian(x, u, *adjoints)
    assert isinstance(tree.engine, TreeEngine)
    found = tree.hessian(x, u, *adjoints)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
    assert np.abs(found - tree.hessian(x, u, adjoints[0])).max() > 1e-3 * np.abs(wanted).max()


def test_second_derivatives_by_parameters_equal_generated_ones():
    rng = np.random.default_rng(5)
    tree, generated = both_ways(parametrized(random_tree([0, 1], rng)))
    x, u = random_motion(generated, rng)
    adjoint, names = rng.normal(size=tree.ndx), tree.parameter_names
    found = tree.hessian(x, u, adjoint, parameters=names)
    wanted = generated.hessian(x, u, adjoint, parameters=names)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("n", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_second_derivatives_of_a_large_tree_start_at_once(n, monkeypatch):
    """Without a compilation; where the state space is a vector space, `lam . [A B]` is the
    gradient of lam . x1.
    """
    rng = np.random.default_rng(6)
    dsys = not_worth_compiling(midpoint(random_tree([0, 1] * (n // 2), rng).system, 0.005))
    assert isinstance(dsys.engine, TreeEngine)
    x, u = random_motion(dsys, rng)
    dsys.linearize(x, u)
    monkeypatch.setattr(compiled, "_compile", lambda *_: pytest.fail("something is compiled"))
    adjoint, way = rng.normal(size=dsys.ndx), rng.normal(size=dsys.ndx + dsys.nu)
    found = dsys.hessian(x, u, adjoint)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-12 * np.abs(found).max())

    def gradient(s):
        linear = dsys.linearize(x + s * way[: dsys.ndx], u + s * way[dsys.ndx :])
        return adjoint @ np.hstack([linear.A, linear.B])

    e = 1e-4
    wanted = (8 * (gradient(e) - gradient(-e)) - gradient(2 * e) + gradient(-2 * e)) / (12 * e)
    np.testing.assert_allclose(found @ way, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_second_derivatives_report_a_failed_step():
    rng = np.random.default_rng(7)
    dsys = not_worth_compiling(midpoint(random_tree([0, 1], rng).system, 0.01))
    x, u = random_motion(dsys, rng)
    with pytest.raises(ValueError, match="must be finite"):
        dsys.hessian(x * np.nan, u, np.ones(dsys.ndx))
