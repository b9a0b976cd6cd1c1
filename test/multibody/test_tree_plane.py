"""Trees that stay in a plane, which the linear-time kernel knows, as it steps them in space."""

from dataclasses import replace

import numpy as np
import pytest
from random_trees import (
    not_worth_compiling,
    random_motion,
    random_tree,
    satisfied,
    with_followers,
    with_wrenches,
)
from tree_models import parametrized

from nh_control.integrators import midpoint
from nh_control.multibody import JointFriction, Multibody, Wrench, planar_frames
from nh_control.multibody.joint_types import Revolute
from nh_control.multibody.tree_model import TreeModel


def flat(model, rng):
    """The model with joints that turn about one axis of the world, or slide across it."""
    normal, turns, frames = rng.normal(size=3), {"world": np.eye(3)}, []
    for frame in model.frames:
        turns[frame.name] = turn = turns[frame.parent] @ np.array(frame.rotation)
        if not frame.is_fixed:
            turning = isinstance(frame.joint, Revolute)
            way = rng.choice([-1, 1]) * normal if turning else np.cross(normal, rng.normal(size=3))
            axis = turn.T @ way / np.linalg.norm(way)
            frame = replace(frame, joint=replace(frame.joint, axis=tuple(axis)))
        frames.append(frame)
    return replace(model, frames=frames)


def assert_the_same_in_space(model: Multibody, x, u):
    assert TreeModel(model).normals
    ours = everything(model, x, u)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planar_frames, "PARALLEL", -1.0)
        assert not TreeModel(model).normals
        theirs = everything(replace(model), x, u)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=4e-12 * np.abs(b).max(initial=0.0))


def everything(model, x, u):
    """What the kernel finds."""
    dsys = midpoint(model.system, 0.02, "symmetric")
    parts = (*model.constraints, *(entry for entry in model.inputs if isinstance(entry, Wrench)))
    linear = dsys.linearize(x, u, () if parts else dsys.parameter_names)
    states = [dsys.step(x, u), dsys.simulate(x, u, steps=4).states]
    if not model.prescribed:
        velocity = dsys.velocity(x)
        states += [velocity, dsys.state(dsys.configuration(x), velocity), dsys.energy(x)]
    return [*states, dsys.unknowns(x, u), linear.A, linear.B, linear.P]


@pytest.mark.parametrize(
    "kinds, prescribed", [([1, 0, 1, 0, 0], ()), ([0, 1, 0, 1], ("b1", "b2"))]
)
def test_steps_and_all_derivatives(kinds, prescribed):
    rng = np.random.default_rng(len(kinds))
    model = parametrized(flat(random_tree(kinds, rng, prescribed), rng))
    assert_the_same_in_space(model, *random_motion(midpoint(model.system, 0.02), rng))


def test_followers_and_wrenches():
    rng = np.random.default_rng(1)
    followed = flat(with_followers(random_tree([0, 1, 0], rng), 2, rng), rng)
    pushed = with_wrenches(flat(random_tree([0, 1, 0], rng), rng), 2, rng)
    for model in followed, pushed:
        assert_the_same_in_space(model, *random_motion(midpoint(model.system, 0.02), rng))


def test_constraints():
    """Without friction, whose curvature is seen in the multipliers."""
    rng = np.random.default_rng(6)
    rough = flat(random_tree([0, 1, 0], rng), rng)
    free = replace(rough, elements=[e for e in rough.elements if not isinstance(e, JointFriction)])
    q = rng.normal(size=3)
    model = replace(free, constraints=[satisfied("string", 0, free, q, rng)])
    dsys = not_worth_compiling(midpoint(model.system, 0.02))
    assert_the_same_in_space(model, dsys.measured_state(q, np.zeros(3)), rng.normal(size=dsys.nu))


@pytest.mark.parametrize("off, expected", [(0.0, True), (1e-9, False)])
def test_axes_must_be_parallel(off, expected):
    rng = np.random.default_rng(4)
    model = flat(random_tree([0, 1, 0], rng), rng)
    for frame in (frame for frame in model.frames if not frame.is_fixed):
        axis = np.array(frame.joint.axis) + off * rng.normal(size=3)
        tilted = replace(frame, joint=replace(frame.joint, axis=tuple(axis)))
        frames = [tilted if other is frame else other for other in model.frames]
        assert bool(TreeModel(replace(model, frames=frames)).normals) == expected
