"""Springs and dampers between points, by the linear-time kernel of trees and by generated
equations.
"""

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
    not_worth_compiling,
    random_tree,
    with_followers,
    with_wrenches,
)
from test_tree_constraints import (
    KINDS,
    assert_constrained_model_steps_as_generated,
    constrained_model,
)

from nh_control.integrators import midpoint
from nh_control.multibody import Body, Damper, Multibody, Point, Spring, prismatic, spherical
from nh_control.multibody.tree_engine import TreeEngine


def with_bonds(model, count, rng, stiffness=20.0, damping=1.0):
    """The model with `count` springs, and as many dampers, between points of random frames, or of
    the world; every other spring has no rest length.
    """
    names = [frame.name for frame in model.frames]

    def ends():
        b = str(rng.choice(names))
        a = str(rng.choice(["world", *(name for name in names if name != b)]))
        return (Point(frame, rng.normal(size=3) / 2) for frame in (a, b))

    springs = [Spring(*ends(), stiffness, 0.3 * (k % 2)) for k in range(count)]
    dampers = [Damper(*ends(), damping) for _ in range(count)]
    return replace(model, elements=[*dampers, *model.elements, *springs])


@settings(max_examples=2, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([0, 1]), min_size=1, max_size=3),
    count=st.integers(1, 2),
    seed=st.integers(0, 2**16),
    forcing=st.sampled_from(["symmetric", "left"]),
)
def test_random_springs_and_dampers_step_as_generated(kinds, count, seed, forcing):
    rng = np.random.default_rng(seed)
    model = with_bonds(random_tree(kinds, rng), count, rng)
    assert_the_same(*both_ways(model, forcing=forcing), rng)


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(2, len(JOINTS)))
def test_springs_and_dampers_on_joints_of_several_coordinates(kind):
    rng = np.random.default_rng(kind)
    model = with_bonds(random_tree([kind, 0], rng), 1, rng)
    assert_the_same(*both_ways(model, forcing=["symmetric", "left"][kind % 2]), rng)


@pytest.mark.slow
@settings(max_examples=2, deadline=None)
@given(
    kinds=st.lists(st.integers(0, len(JOINTS) - 1), min_size=1, max_size=2),
    constraint=st.sampled_from(KINDS[:3]),
    seed=st.integers(0, 2**16),
)
def test_springs_with_wrenches_followers_and_constraints_step_as_generated(
    kinds, constraint, seed
):
    """On followers and prescribed joints, with wrenches and a constraint."""
    rng = np.random.default_rng(seed)
    free = with_followers(random_tree([0, *kinds], rng, prescribed=("b0",)), 1, rng)
    model = with_wrenches(with_bonds(free, 1, rng), 1, rng)
    assert_constrained_model_steps_as_generated(*constrained_model(model, [constraint], rng), rng)


def test_springs_on_followers_and_prescribed_joints_step_as_generated():
    rng = np.random.default_rng(1)
    free = with_followers(random_tree([0, 1], rng, prescribed=("b0",)), 1, rng)
    assert_the_same(*both_ways(with_bonds(free, 2, rng)), rng)


def test_derivatives_of_a_large_tree_by_differences():
    """With springs, dampers, wrenches, followers and a closed loop."""
    rng = np.random.default_rng(2)
    free = with_followers(random_tree([5, *rng.integers(0, 2, 6)], rng), 2, rng)
    pulled = with_wrenches(with_bonds(free, 4, rng), 2, rng)
    model, q = constrained_model(pulled, ["coincident"], rng)
    dsys = not_worth_compiling(midpoint(model.system, 0.01))
    assert isinstance(dsys.engine, TreeEngine)
    x = dsys.measured_state(q, rng.normal(size=model.space.nw) / 5)
    assert_derivatives(dsys, x, rng.normal(size=model.system.nu), rng, 1e-4)


@pytest.mark.parametrize(
    "kinds, stiffness, damping",
    [
        ([0, 1], 1e6, 0.0),
        pytest.param([4, 0], 1e6, 0.0, marks=pytest.mark.slow),
        pytest.param([4, 0], 0.0, 1e5, marks=pytest.mark.slow),
    ],
)
def test_stiff_springs_and_strong_dampers_step_as_generated(kinds, stiffness, damping):
    """From where the springs are at rest; both are many times the inertia over h, or h^2."""
    rng = np.random.default_rng(3)
    free = random_tree(kinds, rng)
    pulled = with_bonds(free, 2, rng, stiffness, damping)
    q = free.space.retract(free.space.origin, rng.normal(size=free.space.nv))
    elements = [
        replace(e, rest_length=np.linalg.norm(free.point(q, e.a) - free.point(q, e.b)))
        if isinstance(e, Spring)
        else e
        for e in pulled.elements
    ]
    tree, generated = both_ways(replace(pulled, elements=elements))
    x, u = generated.measured_state(q, rng.normal(size=free.space.nw)), np.ones(free.system.nu)
    expected = generated.step(x, u)
    size = np.abs(expected).max()
    np.testing.assert_allclose(tree.step(x, u), expected, rtol=0, atol=1e-11 * size)
    assert tree.newton_iterations(x, u) <= generated.newton_iterations(x, u) + 3


def test_a_mass_on_a_damped_spring_without_rest_length_swings_through_its_anchor():
    """The midpoint rule of `m x'' = -k x - c x'` along a rail, through the point where spring and
    anchor meet.
    """
    m, k, h = 2.0, 50.0, 0.01
    mass = Body("cart", m)
    spring = Spring("world", "cart", k)
    rail = Multibody("rail", [prismatic("cart", axis="x")], [mass], [spring])
    dsys = midpoint(rail.system, h)
    assert isinstance(dsys.engine, TreeEngine)
    step = np.linalg.solve(
        [[1, -h / (2 * m)], [h * k / 2, 1]], [[1, h / (2 * m)], [-h * k / 2, 1]]
    )
    x = np.array([0.3, 0.0])
    states = dsys.simulate(x, steps=100).states
    expected = [x]
    for _ in range(100):
        expected.append(step @ expected[-1])
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-12)
    assert states[:, 0].min() < -0.25
    still = dsys.step([0.0, 0.0])
    np.testing.assert_array_equal(still, 0.0)


def test_a_tree_of_springs_keeps_its_energy_and_a_damper_takes_some():
    rng = np.random.default_rng(4)
    frames = [spherical("a"), spherical("b", "a", position=(0.3, 0.0, 0.2))]
    swing = Multibody("swing", frames, [body(name, rng) for name in "ab"])
    ends = Point("a", (0.1, 0.2, 0.0)), Point("b", (0.0, 0.4, 0.3))
    for damping, most in ((0.0, 1e-2), (2.0, np.inf)):
        elements = [Spring("world", ends[1], 30.0, 0.4), Damper(*ends, damping)]
        dsys = midpoint(replace(swing, elements=elements).system, 0.002)
        x = dsys.state(swing.space.origin, [1.0, -2.0, 0.5, 3.0, 0.2, 1.0])
        energies = dsys.energies(dsys.simulate(x, steps=500).states[::50])
        assert np.ptp(energies) < most * abs(energies[0])
        assert damping == 0.0 or (np.diff(energies) < 0).all()


@pytest.mark.parametrize("kind", [Spring, Damper])
def test_subclasses_of_springs_and_dampers_use_generated_code(kind):
    class Own(kind):
        pass

    rod = [spherical("a")], [body("a", np.random.default_rng(0))]
    bent = Multibody("rod", *rod, [Own("world", Point("a", (0.0, 0.1, 0.5)), 1.0)])
    assert not isinstance(midpoint(bent.system, 0.01).engine, TreeEngine)
