"""Wrenches on bodies, by the linear-time kernel of trees and by generated equations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import (
    JOINTS,
    assert_derivatives,
    assert_the_same,
    body,
    both_ways,
    random_motion,
    random_tree,
    with_wrenches,
)
from test_tree_parameters import assert_the_same_slopes, parametrized

from nh_control.integrators import midpoint
from nh_control.multibody import Multibody, Wrench, revolute
from nh_control.multibody.tree_engine import TreeEngine


@settings(max_examples=2, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([0, 1]), min_size=1, max_size=2),
    wrenches=st.integers(1, 2),
    seed=st.integers(0, 2**16),
    forcing=st.sampled_from(["symmetric", "left"]),
)
def test_random_wrenches_step_as_generated(kinds, wrenches, seed, forcing):
    rng = np.random.default_rng(seed)
    model = with_wrenches(random_tree(kinds, rng), wrenches, rng)
    assert_the_same(*both_ways(model, forcing=forcing), rng)


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(2, len(JOINTS)))
def test_wrenches_on_what_joints_of_several_coordinates_carry(kind):
    rng = np.random.default_rng(kind)
    model = with_wrenches(random_tree([kind, 0], rng), 2, rng)
    assert_the_same(*both_ways(model, forcing=["symmetric", "left"][kind % 2]), rng)


def test_wrenches_many_times_the_weight_of_what_they_act_on():
    rng = np.random.default_rng(1)
    tree, generated = both_ways(with_wrenches(random_tree([0, 1], rng), 2, rng))
    x, u = random_motion(generated, rng)
    expected = generated.step(x, 300 * u)
    np.testing.assert_allclose(
        tree.step(x, 300 * u), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )


def test_derivatives_of_a_large_tree_with_wrenches_by_differences():
    rng = np.random.default_rng(2)
    model = with_wrenches(random_tree([5, *rng.integers(0, 2, 12)], rng), 3, rng)
    dsys = midpoint(model.system, 0.02)
    assert isinstance(dsys.engine, TreeEngine)
    assert_derivatives(dsys, *random_motion(dsys, rng), rng, 1e-3)


def test_a_wrench_on_the_world_is_generated():
    model = Multibody("pushed", [revolute("a")], [body("a", np.random.default_rng(3))])
    still = replace(model, inputs=[Wrench("push", "world")])
    assert not isinstance(midpoint(still.system, 0.01).engine, TreeEngine)


def test_parameters_of_trees_with_wrenches_have_exact_derivatives():
    rng = np.random.default_rng(0)
    model = with_wrenches(random_tree([0, 1], rng), 1, rng)
    assert_the_same_slopes(parametrized(model), rng)
