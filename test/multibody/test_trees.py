"""Trees in linear time against the equations that are generated from the Lagrangian."""

from dataclasses import dataclass, replace

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
    by_equations,
    random_motion,
    random_tree,
)

from nh_control.discrete.results import StepFailed
from nh_control.integrators import midpoint
from nh_control.multibody import (
    Body,
    JointSpring,
    Multibody,
    floating,
    planar,
    prismatic,
    revolute,
    spherical,
)
from nh_control.multibody.bodies import SpatialInertia
from nh_control.multibody.joint_inertia import moves_mass
from nh_control.multibody.tree_engine import TreeEngine


@settings(max_examples=3, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([0, 1, 5]), min_size=1, max_size=3),
    seed=st.integers(0, 2**16),
    forcing=st.sampled_from(["symmetric", "left"]),
)
def test_random_trees_step_as_generated(kinds, seed, forcing):
    rng = np.random.default_rng(seed)
    assert_the_same(*both_ways(random_tree(kinds, rng), forcing=forcing), rng)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(
    kinds=st.lists(st.integers(0, len(JOINTS) - 1), min_size=4, max_size=6),
    seed=st.integers(0, 2**16),
)
def test_larger_random_trees_step_as_generated(kinds, seed):
    """Of joints of all kinds."""
    rng = np.random.default_rng(seed)
    assert_the_same(*both_ways(random_tree(kinds, rng)), rng)


def test_prescribed_coordinates_step_as_generated():
    rng = np.random.default_rng(5)
    model = random_tree([0, 1, 0, 1], rng, prescribed=("b1", "b2"))
    assert_the_same(*both_ways(model), rng)


@pytest.mark.parametrize("ratio", [1e6, 1e-6])
def test_mass_ratios(ratio):
    rng = np.random.default_rng(1)
    frames = [revolute(f"b{i}", "world" if i == 0 else f"b{i - 1}", "xyz"[i]) for i in range(3)]
    bodies = [Body(f"b{i}", ratio**i, (0.1, 0.2, 0.3), 3 * (ratio**i,)) for i in range(3)]
    assert_the_same(*both_ways(Multibody("ratios", frames, bodies)), rng)


def test_derivatives_of_a_large_tree_by_differences():
    rng = np.random.default_rng(2)
    dsys = midpoint(random_tree([5, *rng.integers(0, 2, 12)], rng).system, 0.02)
    assert_derivatives(dsys, *random_motion(dsys, rng), rng, 1e-3)


def test_simulate_takes_the_same_steps_and_compositions_work():
    rng = np.random.default_rng(3)
    tree, generated = both_ways(random_tree([5, 0, 1], rng))
    x, u = random_motion(generated, rng)
    states = tree.simulate(x, u, steps=5).states
    for before, after in zip(states, states[1:]):
        np.testing.assert_array_equal(tree.step(before, u), after)
    parts = 1.2, -1.4, 1.2
    ours, theirs = (dsys.composed(parts, "composed") for dsys in (tree, generated))
    np.testing.assert_allclose(ours.step(x, u), theirs.step(x, u), rtol=0, atol=1e-12)
    for a, b in zip(ours.linearize(x, u), theirs.linearize(x, u)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * np.abs(b).max())


def test_momentum_about_the_vertical_is_kept():
    rng = np.random.default_rng(4)
    frames = [
        revolute(f"b{i}", "world" if i == 0 else f"b{rng.integers(i)}", rng.normal(size=3))
        for i in range(1, 12)
        for i in [i - 1]
    ]
    frames[0] = revolute("b0", axis="z")
    dsys = midpoint(Multibody("mobile", frames, [body(f.name, rng) for f in frames]).system, 0.005)
    x, _ = random_motion(dsys, rng)
    momenta = dsys.simulate(x, 2000).states[:, 11]
    assert np.abs(momenta - momenta[0]).max() <= 1e-12 * np.abs(x[11:]).max()


def test_numbers_too_large_to_calculate_with_have_no_velocity():
    frames = [floating("upper"), spherical("lower", "upper", position=(0.0, 0.0, -0.6))]
    bodies = [Body(name, 1.0, (0.1, 0.0, -0.3), np.diag([0.1, 0.2, 0.15])) for name in
              ("upper", "lower")]  # fmt: skip
    dsys = midpoint(Multibody("chain", frames, bodies).system, 0.01)
    x = dsys.state(dsys.system.space.origin, np.zeros(9))
    x[0] = 1e308
    with pytest.raises(np.linalg.LinAlgError, match="singular mass matrix"):
        dsys.velocity(x)


@pytest.mark.parametrize("kinds, h, most", [([0] * 12, 1e-4, 3), ([5, 0, 2, 1], 0.01, 4)])
def test_the_first_correction_with_the_mass_matrix_leads_close_to_the_end(kinds, h, most):
    rng = np.random.default_rng(1)
    dsys = midpoint(random_tree(kinds, rng).system, h)
    assert dsys.newton_iterations(*random_motion(dsys, rng)) <= most


def test_a_step_out_of_a_users_own_domain_fails():
    model = Multibody("rod", [revolute("a")], [body("a", np.random.default_rng(0))])
    system = replace(model.system, domain=lambda q: 0.5 - q[0])
    dsys = midpoint(system, 0.1)
    assert dsys.step(dsys.state([0.0], [4.0]))[0] == pytest.approx(0.4, abs=0.01)
    with pytest.raises(StepFailed, match="leaves the domain"):
        dsys.step(dsys.state([0.0], [6.0]))


@dataclass(frozen=True)
class Stiffening(JointSpring):
    """`V = stiffness q^4 / 4`."""

    def potential(self, k):
        return self.stiffness / 4 * k.coordinate(self.coordinate) ** 4


def test_a_spring_of_a_user_class_acts_as_declared():
    """The rule's own equation, `p1 - p0 = -h V'(q_middle)`; nothing else acts on the joint."""
    rod = [revolute("a")], [body("a", np.random.default_rng(0))]
    model = Multibody("spring", *rod, [Stiffening("a", 3.0)], gravity=(0.0, 0.0, 0.0))
    dsys = midpoint(model.system, 0.02)
    before = dsys.state([0.8], [0.5])
    after = dsys.step(before)
    middle = (before[0] + after[0]) / 2
    assert after[1] - before[1] == pytest.approx(-0.02 * 3.0 * middle**3, rel=1e-9)


def test_a_failed_step_says_how_singular_it_is():
    model = Multibody("fast", [spherical("b")], [body("b", np.random.default_rng(0))])
    dsys = midpoint(model.system, 1.0)
    with pytest.raises(StepFailed) as failure:
        dsys.step([1, 0, 0, 0, 1e3, 2e3, 1e3])
    assert failure.value.condition > 1


@pytest.mark.parametrize("seed", [277, 2228, 2481])
def test_fast_tumbling_steps_that_newton_from_zero_does_not_find(seed):
    """Found from the velocity; the midpoint rule is symmetric: a step back leads to the start."""
    masses, rng = np.random.default_rng(0), np.random.default_rng(seed)
    frames = [
        floating("a"),
        revolute("b", "a", "x", position=(0.2, 0, 0.1)),
        revolute("c", "b", "y", position=(0, 0.3, 0)),
    ]
    model = Multibody("tumbling", frames, [body(f.name, masses) for f in frames])
    dsys = midpoint(model.system, 0.02)
    q = model.space.retract(model.space.origin, rng.normal(size=8))
    x = dsys.measured_state(q, 30 * rng.normal(size=8))
    turned = np.r_[np.ones(9), -np.ones(8)]
    back = turned * dsys.step(turned * dsys.step(x))
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-12 * np.abs(x).max())


def test_momenta_velocities_and_energies_are_the_generated_ones():
    rng = np.random.default_rng(6)
    model = random_tree([5, 0, 1, 2, 3], rng)
    tree = midpoint(model.system, 0.02)
    assert isinstance(tree.engine, TreeEngine)
    generated = by_equations(model.system)
    q = model.space.retract(model.space.origin, rng.normal(size=model.space.nv))
    v = rng.normal(size=model.space.nw)
    x = generated.measured_state(q, v)
    np.testing.assert_allclose(tree.measured_state(q, v), x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(tree.velocity(x), v, rtol=0, atol=1e-12)
    assert tree.energy(x) == pytest.approx(generated.energy(x), rel=1e-12)


@pytest.mark.parametrize(("inertia", "moves"), [(0.0, False), (0.1, True)])
def test_a_point_that_turns_as_it_slides_is_no_inertia_of_both(inertia, moves):
    """Each motion alone has energy; together they may leave the point where it is."""
    part = SpatialInertia("a", 2.0, np.array([0.3, 0.4, 0.0]), inertia * np.eye(3))
    assert moves_mass(planar("a"), part) is moves
    assert moves_mass(revolute("a"), part) and moves_mass(prismatic("a"), part)
