"""Random trees with loops, screws, bonds between points and parameters, and how the linear-time
kernel is compared with generated equations where constraints act.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume
from random_trees import by_equations, constrained_model, not_worth_compiling, random_tree

from nh_control.discrete.results import StepFailed
from nh_control.integrators import midpoint
from nh_control.multibody import Body, Coincident, Damper, Multibody, Point, Spring, revolute
from nh_control.multibody.joint_types import Helical, Revolute
from nh_control.multibody.tree_engine import TreeEngine


def constrained_tree(kinds, constraints, rng):
    """A random tree under random constraints, and a configuration that satisfies them."""
    return constrained_model(random_tree(kinds, rng), constraints, rng)


def parametrized(model: Multibody) -> Multibody:
    """The model with all of its numbers as parameters."""
    return replace(model, parameters=tuple(model.constants.locations))


def with_bonds(model, count, rng, stiffness=20.0, damping=1.0):
    """The model with springs, every other one without rest length, and as many dampers."""
    names = [frame.name for frame in model.frames]

    def ends():
        b = str(rng.choice(names))
        a = str(rng.choice(["world", *(name for name in names if name != b)]))
        return (Point(frame, rng.normal(size=3) / 2) for frame in (a, b))

    springs = [Spring(*ends(), stiffness, 0.3 * (k % 2)) for k in range(count)]
    dampers = [Damper(*ends(), damping) for _ in range(count)]
    return replace(model, elements=[*dampers, *model.elements, *springs])


def with_screws(model, rng):
    """The model with helical joints in the place of its revolute ones."""
    frames = [
        replace(frame, joint=Helical(frame.joint.axis, rng.uniform(-0.5, 0.5)))
        if isinstance(frame.joint, Revolute)
        else frame
        for frame in model.frames
    ]
    return replace(model, frames=frames)


CRANK, COUPLER, ROCKER = (
    Body("crank", 1.0, (0.15, 0, 0), (0.01, 0.02, 0.02)),
    Body("coupler", 2.0, (0.45, 0, 0), (0.01, 0.2, 0.2)),
    Body("rocker", 1.5, (0, 0, 0.3), (0.05, 0.05, 0.01)),
)
PIN = Coincident("pin", Point("coupler", (0.9, 0, 0)), Point("rocker", (0, 0, 0.6)), "xz")


def four_bar(pin=PIN, elements=(), inputs=()):
    """A crank, a coupler and a rocker on the ground, 1 m between the ground's joints."""
    frames = [
        revolute("crank", axis="y"),
        revolute("coupler", "crank", "y", position=(0.3, 0, 0)),
        revolute("rocker", axis="y", position=(1, 0, 0)),
    ]
    return Multibody("four_bar", frames, [CRANK, COUPLER, ROCKER], elements, inputs, [pin])


def closed_angles(crank):
    """Crank, coupler and rocker with the pin in place."""
    joint = np.array([0.3 * np.cos(crank), -0.3 * np.sin(crank)])
    way = np.array([1.0, 0.0]) - joint
    d = np.linalg.norm(way)
    inner = np.arccos((0.9**2 + d**2 - 0.6**2) / (2 * 0.9 * d))
    along = np.arctan2(way[1], way[0]) + inner
    pin = joint + 0.9 * np.array([np.cos(along), np.sin(along)])
    return np.array([crank, -along - crank, np.arctan2(pin[0] - 1.0, pin[1])])


def kernel(model, h=0.01, forcing="symmetric"):
    """The discrete system, which the linear-time kernel steps."""
    dsys = not_worth_compiling(midpoint(model.system, h, forcing))
    assert isinstance(dsys.engine, TreeEngine)
    return dsys


def motion(dsys, q, rng):
    """A state in the configuration q that moves, and an input."""
    held = len(dsys.system.prescribed)
    not_worth_compiling(dsys)
    x = dsys.measured_state(q, rng.normal(size=dsys.system.space.nw) / 5)
    return x, np.concatenate([rng.normal(size=dsys.system.nu), q[len(q) - held :] + 0.003])


def assert_steps_as_generated(model, q, rng, h=0.002, worst=np.inf):
    """Compare step, derivatives, multipliers and conditions of a motion from q. With `worst`, an
    example of hypothesis whose constraints depend on each other, or whose condition number is
    larger, is left out: there round-off decides.
    """
    generated = by_equations(model.system, h)
    try:
        x, u = motion(generated, q, rng)
        expected, theirs = generated.step(x, u), generated.linearize(x, u)
    except (StepFailed, ValueError):
        if worst == np.inf:
            raise
        assume(False)
    # of r_z as it is: scaled rows hide constraints whose gradient is round-off
    condition = np.linalg.cond(generated.engine.last_jacobian(generated._arrays.work))
    if condition >= worst:
        assume(False)
    conditions = generated.conditioning(x, u)
    tree, size = kernel(model, h), max(1.0, np.abs(x).max())
    # round-off enters a step by the condition number of its equations: seed 280 of four joints
    # with two strings, of 3e5, differs by 1.4e-12
    near = max(1e-12, np.finfo(float).eps * condition)
    np.testing.assert_allclose(tree.step(x, u), expected, rtol=0, atol=near * size)
    ours, found = tree.linearize(x, u), tree.conditioning(x, u)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * np.abs(b).max(initial=0.0))
    for part in ("multipliers", "multipliers_x", "multipliers_u"):
        a, b = getattr(ours, part), getattr(theirs, part)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * np.abs(theirs.multipliers_x).max())
    for part in ("jacobian", "mass", "constraint"):
        assert getattr(found, part) == pytest.approx(getattr(conditions, part), rel=1e-5)
    v = generated.velocity(x)
    atol = 1e-11 * max(1.0, np.abs(v).max())
    np.testing.assert_allclose(tree.velocity(x), v, rtol=0, atol=atol)
    assert tree.energy(x) == pytest.approx(generated.energy(x), rel=1e-11)
