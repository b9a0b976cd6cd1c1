"""Followers, wrenches, prescribed joints and constraints of one tree in the linear-time kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import (
    JOINTS,
    assert_derivatives,
    assert_the_same,
    both_ways,
    random_tree,
    with_followers,
    with_wrenches,
)
from test_tree_constraints import (
    KINDS,
    assert_constrained_model_steps_as_generated,
    constrained_model,
    motion,
)

from nh_control.integrators import midpoint
from nh_control.multibody.tree_engine import TreeEngine


def tree_with_wrenches(kinds, rng, prescribed=()):
    """A random tree with followers, and wrenches on them and on what carries them."""
    tree = random_tree(kinds, rng, prescribed=prescribed)
    return with_wrenches(with_followers(tree, 2, rng), 2, rng)


@settings(max_examples=2, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([0, 1]), min_size=2, max_size=2),
    constraint=st.sampled_from(KINDS[:3]),
    seed=st.integers(0, 2**16),
)
def test_followers_with_wrenches_and_constraints_step_as_generated(kinds, constraint, seed):
    rng = np.random.default_rng(seed)
    model = tree_with_wrenches(kinds, rng)
    assert_constrained_model_steps_as_generated(*constrained_model(model, [constraint], rng), rng)


@pytest.mark.slow
@settings(max_examples=2, deadline=None)
@given(
    kinds=st.lists(st.integers(0, len(JOINTS) - 1), min_size=1, max_size=2),
    constraint=st.sampled_from(KINDS[:3]),
    seed=st.integers(0, 2**16),
)
def test_followers_wrenches_and_constraints_on_all_joints_step_as_generated(
    kinds, constraint, seed
):
    """And on one that is prescribed."""
    rng = np.random.default_rng(seed)
    model = tree_with_wrenches([0, *kinds], rng, prescribed=("b0",))
    assert_constrained_model_steps_as_generated(*constrained_model(model, [constraint], rng), rng)


@pytest.mark.parametrize("forcing", ["symmetric", pytest.param("left", marks=pytest.mark.slow)])
def test_wrenches_on_followers_and_prescribed_joints_step_as_generated(forcing):
    rng = np.random.default_rng(1)
    model = tree_with_wrenches([0, 1], rng, prescribed=("b0",))
    assert_the_same(*both_ways(model, forcing=forcing), rng)


def test_derivatives_of_a_large_tree_by_differences():
    """With followers, wrenches and a closed loop."""
    rng = np.random.default_rng(2)
    free = with_followers(random_tree([5, *rng.integers(0, 2, 6)], rng), 4, rng)
    model, q = constrained_model(with_wrenches(free, 3, rng), ["coincident"], rng)
    dsys = midpoint(model.system, 0.01)
    assert isinstance(dsys.engine, TreeEngine)
    assert_derivatives(dsys, *motion(dsys, q, rng), rng, 1e-4)
