"""Joints that follow others, by the linear-time kernel of trees and by generated equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import (
    assert_derivatives,
    assert_the_same,
    both_ways,
    random_motion,
    random_tree,
    with_followers,
)
from test_tree_parameters import assert_the_same_slopes, parametrized

from nh_control.integrators import midpoint
from nh_control.multibody import Body, Mimic, Multibody, prismatic, revolute
from nh_control.multibody.tree_engine import TreeEngine


@settings(max_examples=2, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([0, 1]), min_size=1, max_size=2),
    followers=st.integers(1, 2),
    seed=st.integers(0, 2**16),
    forcing=st.sampled_from(["symmetric", "left"]),
)
def test_random_followers_step_as_generated(kinds, followers, seed, forcing):
    rng = np.random.default_rng(seed)
    model = with_followers(random_tree(kinds, rng), followers, rng)
    assert_the_same(*both_ways(model, forcing=forcing), rng)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([0, 1]), min_size=1, max_size=3),
    followers=st.integers(1, 4),
    seed=st.integers(0, 2**16),
    prescribed=st.sampled_from([(), ("b1",)]),
)
def test_followers_on_a_floating_base_step_as_generated(kinds, followers, seed, prescribed):
    """Also of coordinates that are prescribed."""
    rng = np.random.default_rng(seed)
    model = random_tree([5, *kinds], rng, prescribed=prescribed)
    assert_the_same(*both_ways(with_followers(model, followers, rng)), rng)


def test_a_leader_may_come_last_and_followers_may_carry_nothing():
    """The follower's joint alone moves no mass; the two together do."""
    frames = [
        prismatic("left", axis="y", mimic=Mimic("right", -2.0, 0.1)),
        prismatic("right", axis="y"),
        revolute("knob", "right", "x", mimic=Mimic("right", 3.0)),
    ]
    model = Multibody("gripper", frames, [Body("right", 0.3)])
    tree, generated = both_ways(model)
    assert_the_same(tree, generated, np.random.default_rng(0))


def test_parameters_of_followers_have_exact_derivatives():
    rng = np.random.default_rng(1)
    model = with_followers(random_tree([0, 1], rng), 2, rng)
    assert_the_same_slopes(parametrized(model), rng)


@pytest.mark.slow
def test_derivatives_of_many_followers_by_differences():
    rng = np.random.default_rng(2)
    model = with_followers(random_tree([5, *rng.integers(0, 2, 12)], rng), 12, rng)
    dsys = midpoint(model.system, 0.02)
    assert isinstance(dsys.engine, TreeEngine)
    assert_derivatives(dsys, *random_motion(dsys, rng), rng, 1e-3)


def test_momenta_velocities_and_energies_of_followers_are_the_generated_ones():
    rng = np.random.default_rng(3)
    tree, generated = both_ways(with_followers(random_tree([1, 0], rng), 2, rng))
    q, v = rng.normal(size=(2, generated.system.space.nv))
    x = generated.measured_state(q, v)
    np.testing.assert_allclose(tree.measured_state(q, v), x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(tree.velocity(x), v, rtol=0, atol=1e-12)
    assert tree.energy(x) == pytest.approx(generated.energy(x), rel=1e-12)
