"""Trees in linear time against the equations that are generated from the Lagrangian: one table of
models, of which steps, first and second derivatives and those by parameters are compared. Random
trees are those of test/laws.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from differences import jacobian
from random_trees import (
    JOINTS,
    assert_derivatives,
    assert_the_same,
    body,
    both_ways,
    by_equations,
    constrained_model,
    random_motion,
    random_tree,
    with_followers,
    with_wrenches,
)
from tree_models import constrained_tree, kernel, motion, parametrized, with_bonds, with_screws

from nh_control import multibody as mb
from nh_control.discrete.results import StepFailed
from nh_control.integrators import midpoint
from nh_control.multibody.bodies import SpatialInertia
from nh_control.multibody.joint_functions import JointFunctions
from nh_control.multibody.joint_inertia import moves_mass
from nh_control.multibody.joint_types import Floating, Spherical
from nh_control.multibody.rotation_joints import functions_of
from nh_control.multibody.tree_engine import TreeEngine
from nh_control.numerics import newton
from nh_control.numerics.spline import Spline

FORCE = Spline(
    [-2.0, -0.9, -0.3, 0.1, 0.8, 1.7],
    [-30.0, -6.0, -2.0, 0.4, 9.0, 40.0],
    slopes=[9.0, *[np.nan] * 5],
)


def gripper(_):
    """Whose leader comes last, and whose follower carries nothing: alone it moves no mass."""
    frames = [
        mb.prismatic("left", axis="y", mimic=mb.Mimic("right", -2.0, 0.1)),
        mb.prismatic("right", axis="y"),
        mb.revolute("knob", "right", "x", mimic=mb.Mimic("right", 3.0)),
    ]
    return mb.Multibody("gripper", frames, [mb.Body("right", 0.3)])


def mass_ratios(ratio):
    frames = [mb.revolute(f"b{i}", "world" if i == 0 else f"b{i - 1}", "xyz"[i]) for i in range(3)]
    bodies = [mb.Body(f"b{i}", ratio**i, (0.1, 0.2, 0.3), 3 * (ratio**i,)) for i in range(3)]
    return mb.Multibody("ratios", frames, bodies)


def bent_springs(kinds, rng, scale, offset):
    """Nonlinear springs beside linear ones, with a follower of the joint."""
    free = with_followers(random_tree(kinds, rng), 1, rng)
    return replace(
        free, elements=[mb.NonlinearJointSpring("b0", FORCE, scale, offset), *free.elements]
    )


def constant_wrenches(rng, frames, axes=("body", "world")):
    return [
        mb.ConstantWrench(
            mb.Point(frame, rng.normal(size=3) / 3), *rng.normal(size=(2, 3)), axes=a
        )
        for frame in frames
        for a in axes
    ]


def pulled(kinds, rng, axes=("body", "world")):
    """Constant wrenches beside those that are inputs, on followers and on a fixed frame."""
    free = with_followers(random_tree(kinds, rng), 1, rng)
    elements = [*constant_wrenches(rng, ["b0", "m0"], axes), *free.elements]
    push = mb.Wrench("w", "b1", components=("force_x",))
    return replace(free, elements=elements, inputs=[push, *free.inputs])


def screws_with_bonds(rng):
    model = with_screws(random_tree([0, 0], rng), rng)
    ends = mb.Point("b1", (0.1, 0.2, -0.1)), mb.Point("world", (1.0, -0.5, 0.7))
    elements = (*model.elements, mb.Spring(*ends, 20.0, 0.3), mb.Damper(*ends, 0.4))
    return replace(model, elements=elements)


def led(kinds, rng, prescribed=()):
    """A tree with followers, and perhaps prescribed joints."""
    return with_followers(random_tree(kinds, rng, prescribed=prescribed), 2, rng)


def everything(rng):
    """A tree with followers, wrenches, springs and a prescribed joint."""
    tree = with_followers(random_tree([0, 1], rng, prescribed=("b0",)), 1, rng)
    return with_bonds(with_wrenches(tree, 1, rng), 1, rng)


TREES = {
    "hinges": lambda rng: random_tree([0, 1, 0], rng),
    "a ball": lambda rng: random_tree([3, 0], rng),
    "in a plane": lambda rng: random_tree([2, 1], rng),
    "prescribed": lambda rng: random_tree([0, 1, 0, 1], rng, prescribed=("b1", "b2")),
    "heavy last": lambda rng: mass_ratios(1e6),
    "light last": lambda rng: mass_ratios(1e-6),
    "a gripper": gripper,
    "followers": lambda rng: led([1, 0], rng),
    "wrenches": lambda rng: with_wrenches(random_tree([0, 1], rng), 2, rng),
    "wrenches on followers": lambda rng: with_wrenches(led([0, 1], rng, ("b0",)), 2, rng),
    "bonds on followers": lambda rng: with_bonds(led([0, 1], rng, ("b0",)), 2, rng),
    "everything": everything,
    "screws": lambda rng: with_screws(random_tree([0, 1, 0], rng, prescribed=("b1",)), rng),
    "led screws": lambda rng: with_screws(with_wrenches(led([0, 1], rng, ("b0",)), 2, rng), rng),
    "screws with bonds": screws_with_bonds,
    "a bent spring": lambda rng: bent_springs([0], rng, 1.0, 0.0),
    "a scaled bent spring": lambda rng: bent_springs([1, 0], rng, -1.6, 0.2),
    "constant wrenches": lambda rng: pulled([0, 1], rng),
}
"""Their forcing is symmetric and left in turns."""
KIND = {f"kind {k}": lambda rng, k=k: random_tree([k, 1, k], rng) for k in range(2, len(JOINTS))}
SLOW = {
    **KIND,
    "bent springs on a plane": lambda rng: bent_springs([1, 2], rng, 0.4, 0.0),
    "constant wrenches on a ball": lambda rng: pulled([4, 0], rng, ("body",)),
    "led floating": lambda rng: with_followers(
        random_tree([5, 0, 1], rng, prescribed=("b1",)), 4, rng
    ),
    **{
        f"bonds and wrenches on kind {k}": lambda rng, k=k: with_wrenches(
            with_bonds(random_tree([k, 0], rng), 1, rng), 2, rng
        )
        for k in range(2, len(JOINTS))
    },
}
BOTH = {**TREES, **SLOW}
FORCING = {name: ("symmetric", "left")[i % 2] for i, name in enumerate(BOTH)}


def named(*names, slow=()):
    return [*names, *(pytest.param(name, marks=pytest.mark.slow) for name in slow)]


@cache
def pair(name):
    """The discrete system by the kernel and by generated equations."""
    return both_ways(BOTH[name](np.random.default_rng(1)), forcing=FORCING[name])


def assert_the_same_states(tree, generated, rng):
    space = generated.system.space
    q = space.retract(space.origin, rng.normal(size=space.nv))
    v = rng.normal(size=space.nw)
    x = generated.measured_state(q, v)
    size = max(1.0, np.abs(x).max())
    np.testing.assert_allclose(tree.measured_state(q, v), x, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(tree.velocity(x), v, rtol=0, atol=1e-12 * size)
    assert tree.energy(x) == pytest.approx(generated.energy(x), rel=1e-12)


@pytest.mark.parametrize("name", named(*TREES, slow=SLOW))
def test_trees_step_as_generated(name):
    """Step, A, B, and what a state is made of and read as."""
    rng = np.random.default_rng(1)
    assert_the_same(*pair(name), rng)
    assert_the_same_states(*pair(name), rng)


SECOND = ["everything", "a bent spring", "a scaled bent spring", "screws"]


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_equal_generated_ones(name):
    rng = np.random.default_rng(3)
    tree, generated = pair(name)
    x, u = random_motion(generated, rng)
    adjoint = rng.normal(size=tree.ndx)
    found, wanted = (dsys.hessian(x, u, adjoint) for dsys in (tree, generated))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


PARAMETERS = ["hinges", "screws", "followers", "wrenches", "kind 3"]


@pytest.mark.parametrize(
    "name", named(*PARAMETERS, slow=[kind for kind in KIND if kind not in PARAMETERS])
)
def test_derivatives_by_all_numbers_and_the_step_are_the_generated_ones(name):
    rng = np.random.default_rng(4)
    tree, generated = both_ways(parametrized(BOTH[name](rng)), forcing=FORCING[name])
    names, (x, u) = tree.parameter_names, random_motion(tree, rng)
    ours, theirs = tree.linearize(x, u, names), generated.linearize(x, u, names)
    for part in "PAB":
        a, b = getattr(ours, part), getattr(theirs, part)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(b).max(initial=0.0))
    if name == "hinges":
        lam = rng.normal(size=tree.ndx)
        found, wanted = (d.hessian(x, u, lam, parameters=names) for d in (tree, generated))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


def bent_and_pulled(rng):
    free, names = random_tree([5, *rng.integers(0, 2, 6)], rng), ["b1", "b3", "b6"]
    springs = [mb.NonlinearJointSpring(name, FORCE, 1.0 + k, 0.1) for k, name in enumerate(names)]
    return replace(free, elements=[*springs, *constant_wrenches(rng, names), *free.elements])


def held(constraints, rng):
    """With springs, dampers, wrenches, followers and closed loops."""
    free = with_followers(random_tree([5, *rng.integers(0, 2, 6)], rng), 2, rng)
    return constrained_model(with_wrenches(with_bonds(free, 4, rng), 2, rng), constraints, rng)


LARGE = {
    "wrenches": (
        lambda rng: with_wrenches(random_tree([5, *rng.integers(0, 2, 12)], rng), 3, rng),
        *(2, 0.02, 1e-3),
    ),
    "elements": (bent_and_pulled, 2, 0.01, 1e-4),
    "a loop": (lambda rng: held(["coincident"], rng), 2, 0.01, 1e-4),
    "two loops": (lambda rng: held(["reeled", "coincident"], rng), 1, 0.01, 1e-4),
    "two loops by a plane": (lambda rng: held(["plane", "coincident"], rng), 3, 0.01, 1e-4),
    "a held ball": (lambda rng: constrained_tree([3, 1, 2], ["coincident"], rng), 3, 0.02, 1e-3),
}


@pytest.mark.parametrize("name", LARGE)
def test_derivatives_of_large_trees_by_differences(name):
    make, seed, h, spacing = LARGE[name]
    rng = np.random.default_rng(seed)
    made = make(rng)
    model, q = made if isinstance(made, tuple) else (made, None)
    dsys = kernel(model, h)
    if q is None:
        q = model.space.retract(model.space.origin, rng.normal(size=model.space.nv) / 3)
    assert_derivatives(dsys, *motion(dsys, q, rng), rng, spacing)


def test_derivatives_of_a_large_tree_by_single_numbers_by_differences():
    rng = np.random.default_rng(3)
    model = random_tree(rng.integers(0, 2, 12), rng)
    assert any(frame.is_fixed for frame in model.frames)
    dsys = kernel(parametrized(model), 0.02)
    x, u = random_motion(dsys, rng)
    names, values = dsys.system.parameter_names, vars(dsys.system.parameters)
    linear = dsys.linearize(x, u, names)
    fields = [name for name in model.constants.locations if "inertia" not in name]

    def stepped(name, by):
        value = values[name]
        moved = (value[0] + by, *value[1:]) if isinstance(value, tuple) else value + by
        return dsys.with_parameters(**{name: moved}).step(x, u)

    for name in rng.choice(fields, 4, replace=False):
        found = jacobian(lambda s, name=name: stepped(name, s[0]), 1, 1e-3)[:, 0]
        entry = f"{name}[0]" if isinstance(values[name], tuple) else name
        column = linear.P[:, names.index(entry)]
        np.testing.assert_allclose(column, found, rtol=0, atol=1e-8 * np.abs(linear.P).max())


def test_steps_with_springs_between_floating_bodies_do_not_depend_on_earlier_ones():
    rng = np.random.default_rng(4)
    dsys = kernel(with_bonds(random_tree([8, 7, 4], rng), 2, rng))
    motions = [random_motion(dsys, rng) for _ in range(2)]
    first, *again = [dsys.step(x, u) for x, u in 2 * motions[::-1] + motions]
    np.testing.assert_array_equal(again[1], first)
    np.testing.assert_array_equal(again[-1], first)


def test_derivatives_by_numbers_are_the_same_after_those_without():
    rng = np.random.default_rng(7)
    model = parametrized(random_tree([0, 1, 0], rng))
    first, second = kernel(model, 0.02), kernel(model, 0.02)
    names, (x, u) = first.parameter_names, random_motion(first, rng)
    second.linearize(x, u)
    np.testing.assert_array_equal(second.linearize(x, u, names).P, first.linearize(x, u, names).P)


def test_other_values_step_as_a_model_that_has_them():
    rng = np.random.default_rng(2)
    model = parametrized(random_tree([0, 1, 0, 1, 0, 1], rng))
    dsys = midpoint(model.system, 0.02)
    changes = {
        "b1_mass": 7.0,
        "b2_center": (0.1, 0.2, 0.3),
        "b3_inertia": (0.3, 0.4, 0.5, 0.01, 0.02, 0.03),
        "b3_position": (1.0, 0.0, 0.5),
        "b5_damping": 2.0,
        "b5_rest": 1.0,
    }
    before = model.mass_matrix(model.space.origin)
    other = dsys.with_parameters(**changes)
    assert isinstance(other.engine, TreeEngine) and other.engine is dsys.engine
    changed = model.constants.model_with(vars(other.system.parameters))
    fresh = midpoint(changed.system, 0.02)
    x, u = random_motion(fresh, rng)
    np.testing.assert_array_equal(other.step(x, u), fresh.step(x, u))
    assert other.energy(x) == fresh.energy(x) != dsys.energy(x)
    assert np.abs(dsys.step(x, u) - fresh.step(x, u)).max() > 1e-3
    assert np.trace(changed.mass_matrix(model.space.origin)) > 1.01 * np.trace(before)
    np.testing.assert_array_equal(model.mass_matrix(model.space.origin), before)


def test_a_model_of_one_parameter_steps_with_its_present_value():
    system = replace(
        random_tree([0, 1, 0], np.random.default_rng(2)), parameters=("b0_mass",)
    ).system
    dsys, ends = midpoint(system, 0.02), []
    x, u = random_motion(dsys, np.random.default_rng(0))
    for mass in (1.0, 9.0):
        expected = by_equations(system.with_parameters(b0_mass=mass)).step(x, u)
        ends.append(dsys.with_parameters(b0_mass=mass).step(x, u))
        np.testing.assert_allclose(ends[-1], expected, rtol=1e-10, atol=1e-12)
    assert np.abs(ends[1] - ends[0]).max() > 1e-6


def test_parameters_that_cannot_be_are_refused_and_repeated_names_get_numbers():
    model = random_tree([0, 1], np.random.default_rng(4))
    with pytest.raises(ValueError, match=r"no constants .*b0_color.*choose from.*b0_mass"):
        replace(model, parameters=("b0_color",)).system  # noqa: B018
    system = replace(model, parameters=("b0_mass", "b0_inertia")).system
    for wrong, words in (
        ({"b0_mass": -1.0}, "mass must be positive"),
        ({"b0_inertia": (1.0, 1.0, 9.0, 0.0, 0.0, 0.0)}, "triangle"),
    ):
        with pytest.raises(ValueError, match=words):
            system.with_parameters(**wrong)
    assert {"b0_stiffness", "b0_stiffness_2"} <= set(model.constants.locations)


@pytest.mark.parametrize("n", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_second_derivatives_of_a_large_tree_are_slopes_of_the_first(n):
    """Where the state space is a vector space, `lam . [A B]` is the gradient of lam . x1."""
    rng = np.random.default_rng(6)
    dsys = kernel(random_tree([0, 1] * (n // 2), rng), 0.005)
    x, u = random_motion(dsys, rng)
    adjoint, way = rng.normal(size=dsys.ndx), rng.normal(size=dsys.ndx + dsys.nu)
    found = dsys.hessian(x, u, adjoint)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-12 * np.abs(found).max())

    def gradient(s):
        linear = dsys.linearize(x + s * way[: dsys.ndx], u + s * way[dsys.ndx :])
        return adjoint @ np.hstack([linear.A, linear.B])

    e = 1e-4
    wanted = (8 * (gradient(e) - gradient(-e)) - gradient(2 * e) + gradient(-2 * e)) / (12 * e)
    np.testing.assert_allclose(found @ way, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())
    with pytest.raises(ValueError, match="must be finite"):
        dsys.hessian(x * np.nan, u, adjoint)


def test_compositions_of_a_tree_are_those_of_generated_equations():
    rng = np.random.default_rng(3)
    both = both_ways(random_tree([5, 0, 1], rng))
    x, u = random_motion(both[1], rng)
    ours, theirs = (dsys.composed((1.2, -1.4, 1.2), "composed") for dsys in both)
    np.testing.assert_allclose(ours.step(x, u), theirs.step(x, u), rtol=0, atol=1e-12)
    for a, b in zip(ours.linearize(x, u), theirs.linearize(x, u)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * np.abs(b).max())


def test_wrenches_many_times_the_weight_of_what_they_act_on():
    rng = np.random.default_rng(1)
    tree, generated = pair("wrenches")
    x, u = random_motion(generated, rng)
    expected = generated.step(x, 300 * u)
    atol = 1e-12 * np.abs(expected).max()
    np.testing.assert_allclose(tree.step(x, 300 * u), expected, rtol=0, atol=atol)


@pytest.mark.parametrize(
    "kinds, stiffness, damping",
    [
        ([0, 1], 1e6, 0.0),
        pytest.param([4, 0], 1e6, 0.0, marks=pytest.mark.slow),
        pytest.param([4, 0], 0.0, 1e5, marks=pytest.mark.slow),
    ],
)
def test_stiff_springs_and_strong_dampers_step_as_generated(kinds, stiffness, damping):
    """From where the springs are at rest; both are many times the inertia over h, or h^2. Rows are
    solved to TOLERANCE of their terms, of which the impulses of springs of 1 m are the largest.
    """
    rng = np.random.default_rng(3)
    free = random_tree(kinds, rng)
    bound = with_bonds(free, 2, rng, stiffness, damping)
    q = free.space.retract(free.space.origin, rng.normal(size=free.space.nv))
    elements = [
        replace(e, rest_length=np.linalg.norm(free.point(q, e.a) - free.point(q, e.b)))
        if isinstance(e, mb.Spring)
        else e
        for e in bound.elements
    ]
    tree, generated = both_ways(replace(bound, elements=elements))
    x, u = generated.measured_state(q, rng.normal(size=free.space.nw)), np.ones(free.system.nu)
    expected = generated.step(x, u)
    terms = np.abs(expected).max() + stiffness * generated.h + damping
    np.testing.assert_allclose(tree.step(x, u), expected, rtol=0, atol=newton.TOLERANCE * terms)
    assert tree.newton_iterations(x, u) <= generated.newton_iterations(x, u) + 3


ARM = {"axis": "x", "position": (0.1, 0.2, 0.3)}


@pytest.mark.parametrize(
    "arm, steps, near",
    [
        (mb.revolute("arm", "base", **ARM), 20_000, 1e-13),
        (mb.helical("arm", "base", **ARM, pitch=0.3), 2000, 1e-12),
    ],
)
def test_momentum_of_a_free_tree_is_kept_to_round_off(arm, steps, near):
    """A bias of a tenth of a unit in the last place would give 4e-13 in the longer run."""
    frames = [mb.floating("base", space="SO3xR3"), arm]
    bodies = [mb.Body(f.name, 1.0, (0.1, 0.2, -0.1), (0.1, 0.12, 0.15)) for f in frames]
    dsys = midpoint(mb.Multibody("free", frames, bodies, gravity=(0, 0, 0)).system, 0.01)
    x = dsys.state(dsys.system.space.origin, [1.0, -0.6, 0.8, 0.3, 0.9, -0.4, 0.7])
    states = dsys.simulate(x, steps).states[:: steps // 10]
    momenta = states[:, 11:14]
    np.testing.assert_allclose(momenta, [momenta[0]] * 11, atol=near * np.abs(momenta[0]).max())
    energies = dsys.energies(states)
    assert np.ptp(energies) < 2e-3 * energies[0]


def test_a_screw_without_pitch_is_a_hinge_to_the_bit():
    nut = mb.Body("nut", 2.0, (0.1, 0.2, 0.3), (0.05, 0.05, 0.05))
    frames = mb.helical("nut", axis="y", pitch=0.0), mb.revolute("nut", axis="y")
    ours, theirs = (midpoint(mb.Multibody("a", [f], [nut]).system, 0.01) for f in frames)
    x = theirs.state([0.4], [1.5])
    for a, b in zip(ours.linearize(x, []), theirs.linearize(x, [])):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("pitch", [0.3, -0.3])
def test_a_nut_falls_down_a_screw_with_constant_acceleration(pitch):
    """(J + m pitch^2) q'' = -m g pitch, of which the midpoint rule is exact, and keeps energy."""
    mass, inertia = 2.0, 0.05
    model = mb.Multibody(
        "screw", [mb.helical("nut", pitch=pitch)], [mb.Body("nut", mass, inertia=3 * (inertia,))]
    )
    dsys = kernel(model)
    states = dsys.simulate(dsys.state([0.2], [0.5]), steps=200).states
    t, a = dsys.h * np.arange(201), -mass * 9.81 * pitch / (inertia + mass * pitch**2)
    q = 0.2 + 0.5 * t + a * t**2 / 2
    np.testing.assert_allclose(states[:, 0], q, rtol=1e-12, atol=1e-12)
    height = [model.point([angle], "nut")[2] for angle in q[::50]]
    np.testing.assert_allclose(height, pitch * q[::50], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(dsys.energies(states), dsys.energy(states[0]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kinds, h, most", [([0] * 12, 1e-4, 2), ([5, 0, 2, 1], 0.01, 3)])
def test_the_first_correction_with_the_mass_matrix_leads_close_to_the_end(kinds, h, most):
    rng = np.random.default_rng(1)
    dsys = midpoint(random_tree(kinds, rng).system, h)
    assert dsys.newton_iterations(*random_motion(dsys, rng)) <= most


@pytest.mark.parametrize("seed", [277, 2228, 2481])
def test_fast_tumbling_steps_that_newton_from_zero_does_not_find(seed):
    """Found from the velocity; the midpoint rule is symmetric: a step back leads to the start."""
    masses, rng = np.random.default_rng(0), np.random.default_rng(seed)
    frames = [
        mb.floating("a"),
        mb.revolute("b", "a", "x", position=(0.2, 0, 0.1)),
        mb.revolute("c", "b", "y", position=(0, 0.3, 0)),
    ]
    model = mb.Multibody("tumbling", frames, [body(f.name, masses) for f in frames])
    dsys = midpoint(model.system, 0.02)
    q = model.space.retract(model.space.origin, rng.normal(size=8))
    x = dsys.measured_state(q, 30 * rng.normal(size=8))
    turned = np.r_[np.ones(9), -np.ones(8)]
    back = turned * dsys.step(turned * dsys.step(x))
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-12 * np.abs(x).max())


def test_numbers_too_large_to_calculate_with_have_no_velocity():
    frames = [mb.floating("upper"), mb.spherical("lower", "upper", position=(0.0, 0.0, -0.6))]
    bodies = [mb.Body(f.name, 1.0, (0.1, 0.0, -0.3), (0.1, 0.2, 0.15)) for f in frames]
    dsys = midpoint(mb.Multibody("chain", frames, bodies).system, 0.01)
    x = dsys.state(dsys.system.space.origin, np.zeros(9))
    x[0] = 1e308
    with pytest.raises(np.linalg.LinAlgError, match="mass matrix is singular"):
        dsys.velocity(x)


def test_a_failed_step_says_how_singular_it_is():
    model = mb.Multibody("fast", [mb.spherical("b")], [body("b", np.random.default_rng(0))])
    with pytest.raises(StepFailed) as failure:
        midpoint(model.system, 1.0).step([1, 0, 0, 0, 1e3, 2e3, 1e3])
    assert failure.value.condition > 1


def test_a_step_out_of_a_users_own_domain_fails():
    """The model knows nothing of the domain: neither its steps nor its masses are the system's."""
    model = mb.Multibody("rod", [mb.revolute("a")], [body("a", np.random.default_rng(0))])
    limited = replace(model.system, domain=lambda q: 0.5 - q[0])
    assert model.system.model is model and limited.model is None
    for own in (model, model.system):
        assert isinstance(midpoint(own, 0.1).engine, TreeEngine)
    dsys = midpoint(limited, 0.1)
    assert not isinstance(dsys.engine, TreeEngine)
    assert dsys.step(dsys.state([0.0], [4.0]))[0] == pytest.approx(0.4, abs=0.01)
    with pytest.raises(StepFailed, match="leaves the domain"):
        dsys.step(dsys.state([0.0], [6.0]))


@dataclass(frozen=True)
class Stiffening(mb.JointSpring):
    """`V = stiffness q^4 / 4`."""

    def potential(self, k):
        return self.stiffness / 4 * k.coordinate(self.coordinate) ** 4


def test_a_spring_of_a_user_class_acts_as_declared():
    """The rule's own equation, `p1 - p0 = -h V'(q_middle)`; nothing else acts on the joint."""
    rod = [mb.revolute("a")], [body("a", np.random.default_rng(0))]
    model = mb.Multibody("spring", *rod, [Stiffening("a", 3.0)], gravity=(0.0, 0.0, 0.0))
    dsys = midpoint(model.system, 0.02)
    before = dsys.state([0.8], [0.5])
    after = dsys.step(before)
    middle = (before[0] + after[0]) / 2
    assert after[1] - before[1] == pytest.approx(-0.02 * 3.0 * middle**3, rel=1e-9)


class OwnSpring(mb.Spring):
    pass


class OwnDamper(mb.Damper):
    pass


ROD = mb.Multibody("rod", [mb.revolute("a")], [body("a", np.random.default_rng(3))])
TOP = mb.Point("a", (0.0, 0.1, 0.5))


@pytest.mark.parametrize(
    "parts",
    [
        {"elements": [OwnSpring("world", TOP, 1.0)]},
        {"elements": [OwnDamper("world", TOP, 1.0)]},
        {"elements": [mb.NonlinearJointSpring("a", FORCE)] * 2},
        {"inputs": [mb.Wrench("push", "world")]},
    ],
)
def test_what_the_kernel_does_not_know_is_generated(parts):
    assert not isinstance(midpoint(replace(ROD, **parts).system, 0.01).engine, TreeEngine)


def test_a_changed_system_is_checked_again():
    with pytest.raises(ValueError, match="mass matrix"):
        replace(ROD.system, lagrangian=lambda q, v: q[0] + 0 * v[0])


def test_a_mass_on_a_damped_spring_without_rest_length_swings_through_its_anchor():
    """The midpoint rule of `m x'' = -k x - c x'`, through where spring and anchor meet."""
    m, k, h = 2.0, 50.0, 0.01
    spring = mb.Spring("world", "cart", k)
    rail = mb.Multibody("rail", [mb.prismatic("cart", axis="x")], [mb.Body("cart", m)], [spring])
    dsys = kernel(rail, h)
    step = np.linalg.solve(
        [[1, -h / (2 * m)], [h * k / 2, 1]], [[1, h / (2 * m)], [-h * k / 2, 1]]
    )
    expected = [np.array([0.3, 0.0])]
    for _ in range(100):
        expected.append(step @ expected[-1])
    states = dsys.simulate(expected[0], steps=100).states
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-12)
    assert states[:, 0].min() < -0.25
    np.testing.assert_array_equal(dsys.step([0.0, 0.0]), 0.0)


@pytest.mark.parametrize(("inertia", "moves"), [(0.0, False), (0.1, True)])
def test_a_point_that_turns_as_it_slides_is_no_inertia_of_both(inertia, moves):
    """Each motion alone has energy; together they may leave the point where it is."""
    part = SpatialInertia("a", 2.0, np.array([0.3, 0.4, 0.0]), inertia * np.eye(3))
    assert moves_mass(mb.planar("a"), part) is moves
    assert moves_mass(mb.revolute("a"), part) and moves_mass(mb.prismatic("a"), part)


@pytest.mark.parametrize(
    "joint",
    [
        Spherical("cay"),
        Floating(configuration_space="SO3xR3"),
        pytest.param(Spherical(), marks=pytest.mark.slow),
        pytest.param(Floating("cay", configuration_space="SO3xR3"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_short_functions_of_rotation_joints_equal_general_ones(joint):
    """Also without any turn, and for steps of four radians."""
    rng = np.random.default_rng(0)
    for general, short in zip(JointFunctions(joint), functions_of(joint)):
        for rate in (0.0, 1.0, 40.0):
            args = [rng.normal(size=short.size_in(k)[0]) for k in range(short.n_in())]
            args[0][:4] /= np.linalg.norm(args[0][:4])
            if len(args) > 1:
                args[1:3] = rate * args[1] / np.linalg.norm(args[1]), 0.1
            for one, other in zip(short.call(args), general.call(args), strict=True):
                atol = 1e-13 * (1.0 + np.abs(other).max())
                np.testing.assert_allclose(one, other, rtol=0, atol=atol)
