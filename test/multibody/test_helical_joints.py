"""Helical joints: the linear-time kernel against generated equations, and a nut on a screw."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import (
    assert_the_same,
    both_ways,
    random_tree,
    with_followers,
    with_wrenches,
)
from test_tree_constraints import assert_steps_as_generated, constrained_model
from test_tree_parameters import assert_the_same_slopes, parametrized

from nh_control.integrators import midpoint
from nh_control.multibody import (
    Body,
    Damper,
    Multibody,
    Point,
    Spring,
    floating,
    helical,
    revolute,
)
from nh_control.multibody.joint_types import Helical, Revolute
from nh_control.multibody.tree_engine import TreeEngine

PITCH, MASS, INERTIA, H = 0.3, 2.0, 0.05, 0.01


def with_screws(model, rng):
    """The model with helical joints in the place of its revolute ones."""
    frames = [
        replace(frame, joint=Helical(frame.joint.axis, rng.uniform(-0.5, 0.5)))
        if isinstance(frame.joint, Revolute)
        else frame
        for frame in model.frames
    ]
    return replace(model, frames=frames)


def screw(pitch, gravity=(0.0, 0.0, -9.81)):
    """A nut that slides down a fixed screw."""
    body = Body("nut", MASS, inertia=(INERTIA, INERTIA, INERTIA))
    return Multibody("screw", [helical("nut", pitch=pitch)], [body], gravity=gravity)


@settings(max_examples=3, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([0, 1, 5]), min_size=1, max_size=2),
    seed=st.integers(0, 2**16),
    forcing=st.sampled_from(["symmetric", "left"]),
)
def test_random_trees_with_helical_joints_step_as_generated(kinds, seed, forcing):
    """Step, A, B and second derivatives, with joint springs, dampers and inputs."""
    rng = np.random.default_rng(seed)
    model = with_screws(random_tree([0, *kinds], rng), rng)
    assert_the_same(*both_ways(model, forcing=forcing), rng)


def test_helical_joints_that_follow_others_and_prescribed_ones_step_as_generated():
    """With wrenches on the bodies that they carry."""
    rng = np.random.default_rng(1)
    model = with_followers(random_tree([0, 1, 0], rng, prescribed=("b0",)), 2, rng)
    assert_the_same(*both_ways(with_screws(with_wrenches(model, 2, rng), rng)), rng)


def test_helical_joints_with_springs_and_dampers_between_points_step_as_generated():
    rng = np.random.default_rng(2)
    model = with_screws(random_tree([0, 0], rng), rng)
    ends = Point("b1", (0.1, 0.2, -0.1)), Point("world", (1.0, -0.5, 0.7))
    elements = (*model.elements, Spring(*ends, 20.0, 0.3), Damper(*ends, 0.4))
    assert_the_same(*both_ways(replace(model, elements=elements)), rng)


@pytest.mark.parametrize("seed", [3, 8])
def test_helical_joints_in_a_closed_loop_step_as_generated(seed):
    """In draws where no constraints are nearly dependent."""
    rng = np.random.default_rng(seed)
    model, q = constrained_model(with_screws(random_tree([0] * 4, rng), rng), ["coincident"], rng)
    assert_steps_as_generated(model, 0.002, q, rng)


def test_derivatives_by_parameters_are_the_generated_ones():
    rng = np.random.default_rng(4)
    model = with_screws(random_tree([0, 1, 0], rng, prescribed=("b1",)), rng)
    assert_the_same_slopes(parametrized(model), rng)


def test_without_pitch_it_is_a_revolute_joint_to_the_bit():
    body = Body("nut", MASS, (0.1, 0.2, 0.3), (INERTIA, INERTIA, INERTIA))
    frames = helical("nut", axis="y", pitch=0.0), revolute("nut", axis="y")
    ours, theirs = (midpoint(Multibody("a", [f], [body]).system, H) for f in frames)
    x = theirs.state([0.4], [1.5])
    np.testing.assert_array_equal(ours.step(x, []), theirs.step(x, []))
    for a, b in zip(ours.linearize(x, []), theirs.linearize(x, [])):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("pitch", [PITCH, -PITCH])
def test_a_nut_falls_down_a_screw_with_constant_acceleration(pitch):
    """(J + m pitch^2) q'' = -m g pitch, of which the midpoint rule is exact, and keeps energy."""
    model = screw(pitch)
    dsys = midpoint(model.system, H)
    assert isinstance(dsys.engine, TreeEngine)
    states = dsys.simulate(dsys.state([0.2], [0.5]), steps=200).states
    t, a = H * np.arange(201), -MASS * 9.81 * pitch / (INERTIA + MASS * pitch**2)
    q = 0.2 + 0.5 * t + a * t**2 / 2
    np.testing.assert_allclose(states[:, 0], q, rtol=1e-12, atol=1e-12)
    height = [model.point([angle], "nut")[2] for angle in q[::50]]
    np.testing.assert_allclose(height, pitch * q[::50], rtol=1e-12, atol=1e-14)
    energy = [dsys.energy(x) for x in states]
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-10)


def test_momentum_of_a_free_tree_with_a_screw_is_kept_to_round_off():
    frames = [
        floating("base", space="SO3xR3"),
        helical("arm", "base", "x", (0.1, 0.2, 0.3), pitch=PITCH),
    ]
    bodies = [Body(name, 1.0, (0.1, 0.2, -0.1), (0.1, 0.12, 0.15)) for name in ("base", "arm")]
    dsys = midpoint(Multibody("free", frames, bodies, gravity=(0, 0, 0)).system, H)
    rng = np.random.default_rng(5)
    x = dsys.state(dsys.system.space.origin, rng.normal(size=7))
    states = dsys.simulate(x, steps=2000).states
    linear = states[:, -4:-1]
    assert np.abs(linear - linear[0]).max() <= 1e-12 * np.abs(linear[0]).max()
    energy = np.array([dsys.energy(x) for x in states[::10]])
    assert np.abs(energy - energy[0]).max() <= 2e-3 * abs(energy[0])
    assert abs(energy[-50:].mean() - energy[:50].mean()) <= 5e-4 * abs(energy[0])  # no drift


def test_a_pitch_must_be_finite():
    with pytest.raises(ValueError, match="'nut': pitch must be finite"):
        helical("nut", pitch=np.nan)
