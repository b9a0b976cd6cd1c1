"""The linear-time kernel where what its rows add up to is small beside the terms: joints at the
world's origin, bodies whose momenta cancel, springs held together; against the equations.
"""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import JOINTS, KINDS, by_equations, constrained_model, random_tree
from tree_models import COUPLER, CRANK, ROCKER, assert_steps_as_generated, closed_angles, kernel

from nh_control import multibody as mb

SPACES = ("SE3", "SO3xR3")
ELLIPSOID = (0.1, 0.12, 0.15)


def assert_moves_as_generated(model, q, v, h=0.01, steps=30):
    """Every step of a motion by the kernel is the one of the generated equations."""
    tree, generated = kernel(model, h), by_equations(model.system, h)
    states = [generated.measured_state(q, v)]
    u = np.zeros(generated.nu)
    for _ in range(steps):
        expected = generated.step(states[-1], u)
        found = tree.step(states[-1], u)
        size = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * size)
        states.append(found)
    return np.array(states)


def top(rng, position=(0.0, 0.0, 0.0)):
    """A body on a ball joint, and how it moves: in joint coordinates."""
    body = mb.Body("top", 1.0, rng.normal(size=3) / 5, ELLIPSOID)
    model = mb.Multibody("top", [mb.spherical("top", position=position)], [body])
    q = model.space.retract(model.space.origin, rng.normal(size=3))
    return model, q, rng.normal(size=3)


@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1, 10), marks=pytest.mark.slow)], ids=["one", "all"]
)
@pytest.mark.parametrize("space", SPACES)
def test_a_ball_joint_at_the_origin_holds(space, seeds):
    for seed in seeds:
        model, q, v = top(np.random.default_rng(seed))
        maximal = mb.maximal_coordinates(model, space)
        assert_moves_as_generated(maximal, *mb.maximal_state(model, q, v, maximal))


def test_a_body_turns_about_its_center_at_the_origin():
    """Where the joint holds a weight, and all terms of its rows are zero but for what it holds."""
    model = mb.Multibody(
        "wheel", [mb.spherical("wheel")], [mb.Body("wheel", 1.0, inertia=ELLIPSOID)]
    )
    maximal = mb.maximal_coordinates(model, "SO3xR3")
    start = mb.maximal_state(model, model.space.origin, [1.0, 2.0, 3.0], maximal)
    states = assert_moves_as_generated(maximal, *start)
    np.testing.assert_allclose(states[:, 4:7], 0, rtol=0, atol=1e-15)


def four_bar_cut_at_the_origin():
    """A crank, a coupler and a rocker, whose joint on the ground is the cut one."""
    frames = [
        mb.revolute("crank", axis="y", position=(-1.0, 0, 0)),
        mb.revolute("coupler", "crank", "y", position=(0.3, 0, 0)),
        mb.revolute("rocker", "coupler", "y", position=(0.9, 0, 0)),
    ]
    bodies = [CRANK, COUPLER, replace(ROCKER, center=(0, 0, -0.3))]
    cut = mb.Coincident("cut", mb.Point("rocker", (0, 0, -0.6)), "world", "xz")
    return mb.Multibody("four_bar", frames, bodies, constraints=[cut])


@pytest.mark.parametrize("angle", [0.4, 0.7, 1.3])
def test_a_four_bar_linkage_cut_at_the_origin_stays_closed(angle):
    model, (crank, coupler, rocker) = four_bar_cut_at_the_origin(), closed_angles(angle)
    q = np.array([crank, coupler, rocker - coupler - crank])
    states = assert_moves_as_generated(model, q, np.zeros(3))
    gaps = [model.constraint_residuals(x[:3])["cut"] for x in states]
    np.testing.assert_allclose(gaps, 0, rtol=0, atol=1e-15)
    assert np.ptp(states[:, 0]) > 0.1


def to_the_origin(model, end):
    """The model moved in the world so that a point lies at the origin, with its constraints."""

    def moved(part):
        at_world = isinstance(part, mb.Point) and part.frame == "world"
        return mb.Point("world", np.array(part.position) - end) if at_world else part

    frames = [
        replace(frame, position=tuple(np.array(frame.position) - end))
        if frame.parent == "world"
        else frame
        for frame in model.frames
    ]
    held = [
        replace(c, **{f.name: moved(getattr(c, f.name)) for f in fields(c)})
        for c in model.constraints
    ]
    return replace(model, frames=frames, constraints=held)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    kinds=st.lists(st.integers(0, len(JOINTS) - 1), min_size=2, max_size=3),
    constraint=st.sampled_from(KINDS),
    seed=st.integers(0, 2**16),
)
def test_random_constraints_at_the_origin_step_as_generated(kinds, constraint, seed):
    rng = np.random.default_rng(seed)
    model, q = constrained_model(random_tree(kinds, rng), [constraint], rng)
    held = model.constraints[0]
    end = held.point if constraint == "plane" else held.b
    model = to_the_origin(model, model.point(q, end))
    assert_steps_as_generated(model, q, rng, worst=1e7)


@pytest.mark.parametrize("space", SPACES)
def test_a_body_without_momentum_turns_about_its_center(space):
    """m v and m w x c cancel in every row, and there is no weight."""
    center, w = np.array([0.1, 0.2, 0.05]), np.array([0.0, 0.0, 1.7])
    body = mb.Body("body", 1.0, center, ELLIPSOID)
    model = mb.Multibody(
        "free", [mb.floating("body", space=space)], [body], gravity=(0.0, 0.0, 0.0)
    )
    v = np.concatenate([w, -np.cross(w, center)])
    assert_moves_as_generated(model, model.space.origin, v)


@pytest.mark.parametrize("space", SPACES)
def test_a_stiff_spring_holds_a_point_at_the_origin(space):
    at, w = np.array([0.3, 0.2, -0.4]), np.array([1e-3, 0.0, 0.0])
    body = mb.Body("body", 1.0, inertia=ELLIPSOID)
    spring = mb.Spring("world", mb.Point("body", at), 1e9)
    model = mb.Multibody(
        "hung", [mb.floating("body", space=space)], [body], [spring], gravity=(0.0, 0.0, 0.0)
    )
    names = model.space.names[4:]
    q = model.configuration(dict(zip(names, -at)))
    dsys = kernel(model, 1e-3)
    start = dsys.measured_state(q, np.concatenate([w, -np.cross(w, at)]))
    states = dsys.simulate(start, steps=30).states
    ends = [model.point(x[:7], mb.Point("body", at)) for x in states]
    np.testing.assert_allclose(ends, 0, rtol=0, atol=1e-12)
    assert dsys.energies(states) == pytest.approx(dsys.energy(start), rel=1e-6)


def test_thrusts_that_balance_the_weight_hold_a_body_in_the_air():
    points = (1.0, 0.1, 0.0), (-1.0, -0.1, 0.0), (0.0, 1.0, 0.1), (0.0, -1.0, -0.1)
    thrusts = [
        mb.Wrench(f"thrust{i}", mb.Point("body", at), "body") for i, at in enumerate(points)
    ]
    body = mb.Body("body", 1.0, inertia=ELLIPSOID)
    model = mb.Multibody("hover", [mb.floating("body")], [body], inputs=thrusts)
    dsys = kernel(model)
    u = np.array([9.81 / 4 * name.endswith("force_z") for name in dsys.system.inputs])
    states = dsys.simulate(dsys.state(model.space.origin, np.zeros(6)), [u] * 50).states
    np.testing.assert_allclose(states, [states[0]] * 51, rtol=0, atol=1e-14)
