"""Products with A and B and their transposes, against the dense matrices."""

import tracemalloc

import numpy as np
import pytest
from random_trees import JOINTS, random_motion, random_tree, with_followers, with_wrenches
from tree_models import constrained_tree, kernel, motion, with_bonds, with_screws

from nh_control import StepFailed
from nh_control import multibody as mb
from nh_control.integrators import midpoint
from nh_control.numerics.library import library
from nh_control.systems.cart_pole import cart_pole


def followers(kinds, rng, prescribed=()):
    return with_followers(random_tree(kinds, rng, prescribed), 4, rng)


def folded_chain(rng, links=9):
    """Links in a plane, one of which moves another, and one of which is prescribed."""
    at = {"position": (0, 0, -1)}
    frames = [mb.revolute("q0", axis="y"), mb.prismatic("q1", "q0", "z", **at)]
    frames += [mb.revolute(f"q{i}", f"q{i - 1}", "y", **at) for i in range(2, links)]
    frames.append(mb.revolute("last", "q2", "y", mimic=mb.Mimic("q3", -1.5, 0.2), **at))
    bodies = [mb.Body(frame.name, 1.0, (0.1, 0, -1)) for frame in frames]
    elements = [mb.JointSpring("q3", 3.0), mb.JointDamper("q4", 0.3)]
    inputs = [mb.JointInput("q5"), mb.JointInput("q3")]
    return mb.Multibody("folded", frames, bodies, elements, inputs, prescribed=("q4",))


TREES = {
    "hinges and slides": lambda rng: random_tree([0, 1, 0, 1, 1, 0], rng),
    **{
        f"kind {k}": lambda rng, k=k: random_tree([k, 1, k, 0], rng) for k in range(2, len(JOINTS))
    },
    "prescribed": lambda rng: random_tree([5, 0, 1, 0, 1], rng, prescribed=("b1", "b4")),
    "followers": lambda rng: followers([0, 1, 0], rng),
    "followers of prescribed joints": lambda rng: followers([3, 0, 1], rng, ("b1", "b2")),
    "screws": lambda rng: with_screws(followers([0, 1, 0], rng), rng),
    "a plane": folded_chain,
}


def assert_products(dsys, x, u, rng):
    """Compare blocks of vectors and single ones, with A, B and their transposes."""
    linear, operators = dsys.linearize(x, u), dsys.linearize_operator(x, u)
    np.testing.assert_array_equal(operators.x1, linear.x1)
    for matrix, operator in zip(linear, operators):
        assert operator.shape == matrix.shape
        v, w = (rng.normal(size=(n, 6)) for n in reversed(matrix.shape))
        near = {"rtol": 0, "atol": 1e-12 * max(1.0, np.abs(matrix).max(initial=0.0))}
        np.testing.assert_allclose(operator @ v, matrix @ v, **near)
        np.testing.assert_allclose(operator.T @ w, matrix.T @ w, **near)
        np.testing.assert_allclose(operator.matvec(v[:, 0]), matrix @ v[:, 0], **near)
        np.testing.assert_allclose(operator.rmatvec(w[:, 0]), matrix.T @ w[:, 0], **near)
        np.testing.assert_allclose(w.T @ (operator @ v), (operator.T @ w).T @ v, **near)
        both = v[:, 0] + 1j * v[:, 1]
        np.testing.assert_allclose(operator @ both, matrix @ both, **near)


@pytest.mark.parametrize("forcing", ["symmetric", "left"])
@pytest.mark.parametrize("name", TREES)
def test_products_are_those_of_the_matrices(name, forcing):
    rng = np.random.default_rng(5)
    dsys = kernel(TREES[name](rng), 0.02, forcing)
    assert dsys.engine.products is not None
    assert_products(dsys, *random_motion(dsys, rng), rng)


@pytest.mark.parametrize("seed", range(4))
def test_products_of_random_trees(seed):
    rng = np.random.default_rng(seed)
    dsys = kernel(random_tree(rng.integers(0, len(JOINTS), 8), rng), 0.01)
    assert_products(dsys, *random_motion(dsys, rng), rng)


def test_products_of_a_composition():
    rng = np.random.default_rng(3)
    dsys = kernel(random_tree([5, 0, 1], rng), 0.02).composed((1.2, -1.4, 1.2), "composed")
    assert dsys.engine.products is not None
    assert_products(dsys, *random_motion(dsys, rng), rng)


def test_a_substep_that_fails_fails_the_step_of_a_composition():
    rng = np.random.default_rng(3)
    dsys = kernel(random_tree([5, 0, 1], rng), 0.02).composed((1.2, -1.4, 1.2), "composed")
    x, u = random_motion(dsys, rng)
    x[dsys.system.space.nq :] *= 1e6  # momenta
    for linearize in (dsys.linearize, dsys.linearize_operator):
        with pytest.raises(StepFailed):
            linearize(x, u)


def test_trees_with_dense_systems_and_other_systems_multiply_by_their_matrices():
    rng = np.random.default_rng(4)
    model, q = constrained_tree([0, 1, 0], ["string"], rng)
    held = kernel(model)
    free = [with_bonds(random_tree([0, 1], rng), 1, rng)]
    free += [with_wrenches(random_tree([0, 1], rng), 1, rng)]
    systems = [*map(kernel, free), midpoint(cart_pole(), 0.02)]
    for dsys in (held, *systems):
        x, u = motion(dsys, q, rng) if dsys is held else random_motion(dsys, rng)
        assert dsys.engine.products is None
        assert_products(dsys, x, u, rng)


def test_products_form_no_matrix():
    """With the factors they take a part of the memory of A."""
    n = 600
    frames = [mb.revolute("q0", axis="y")]
    frames += [mb.revolute(f"q{i}", f"q{i // 2}", "x", position=(0, 0, -1)) for i in range(1, n)]
    tree = mb.Multibody("wide", frames, [mb.Body(f"q{i}", 1.0, (0, 0.1, -1)) for i in range(n)])
    dsys = midpoint(tree.system, 1e-3)
    dsys.linearize_operator(np.zeros(2 * n))  # imports and functions
    rng = np.random.default_rng(0)
    v, w = rng.normal(size=(2, 2 * n))
    tracemalloc.start()
    A, _ = dsys.linearize_operator(np.zeros(2 * n))
    products = A.matvec(v), A.rmatvec(w)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * (2 * n) ** 2 / 2
    assert w @ products[0] == pytest.approx(products[1] @ v, rel=1e-9)


def test_operators_do_not_change_with_later_steps():
    rng = np.random.default_rng(6)
    dsys = kernel(random_tree([3, 0, 1], rng), 0.02)
    x, u = random_motion(dsys, rng)
    A, B = dsys.linearize_operator(x, u)
    v, w = rng.normal(size=dsys.ndx), rng.normal(size=dsys.nu)
    before = A @ v, B @ w
    for _ in range(3):
        x = dsys.linearize_operator(x, u).x1
        dsys.linearize(x, u)
    np.testing.assert_array_equal(A @ v, before[0])
    np.testing.assert_array_equal(B @ w, before[1])


def test_wrong_shapes_and_numbers_are_refused():
    rng = np.random.default_rng(7)
    dsys = kernel(random_tree([0, 1], rng), 0.02)
    x, u = random_motion(dsys, rng)
    with pytest.raises(ValueError, match=r"state must have shape \(4,\), got \(3,\)"):
        dsys.linearize_operator(x[:3], u)
    with pytest.raises(ValueError, match=r"input must have shape \(2,\), got \(1,\)"):
        dsys.linearize_operator(x, u[:1])
    with pytest.raises(ValueError, match="finite"):
        dsys.linearize_operator(np.nan * x, u)
    A, B = dsys.linearize_operator(x, u)
    for call in (A.matvec, A.rmatvec, A.matmat, B.matvec, B.rmatvec):
        with pytest.raises(ValueError, match="(?i)dimension|shape"):
            call(np.ones((dsys.ndx + 1, 1)))


def test_factors_that_are_singular_are_reported(monkeypatch):
    """As by a step: no operators from factors that are not there."""
    rng = np.random.default_rng(8)
    dsys = kernel(random_tree([0, 1], rng), 0.02)
    x, u = random_motion(dsys, rng)
    monkeypatch.setattr(library(), "tree_factor_products", lambda _: 1)
    with pytest.raises(RuntimeError, match="singular"):
        dsys.linearize_operator(x, u)
