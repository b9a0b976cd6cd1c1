"""Parameters of trees in linear time: values at run time, and derivatives by them."""

from dataclasses import replace

import numpy as np
import pytest
from differences import jacobian
from random_trees import by_equations, random_motion, random_tree

from nh_control.integrators import midpoint
from nh_control.multibody import JointDamper, Multibody
from nh_control.multibody.tree_engine import TreeEngine


def parametrized(model: Multibody) -> Multibody:
    return replace(model, parameters=tuple(model.constants.locations))


def assert_the_same_slopes(model, rng, forcing="symmetric"):
    tree = midpoint(model.system, 0.02, forcing)
    assert isinstance(tree.engine, TreeEngine)
    names, (x, u) = tree.parameter_names, random_motion(tree, rng)
    ours = tree.linearize(x, u, names)
    generated = by_equations(model.system, 0.02, forcing)
    theirs = generated.linearize(x, u, names)
    for a, b in ((ours.P, theirs.P), (ours.A, theirs.A), (ours.B, theirs.B)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(b).max(initial=0.0))


@pytest.mark.parametrize("forcing", ["symmetric", pytest.param("left", marks=pytest.mark.slow)])
def test_derivatives_by_all_numbers_and_the_step_are_the_generated_ones(forcing):
    rng = np.random.default_rng(1)
    model = parametrized(random_tree([0, 1, 0], rng, prescribed=("b1",)))
    assert_the_same_slopes(model, rng, forcing)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [2, 4, 5, 8])
def test_derivatives_of_joints_of_all_kinds(kind):
    rng = np.random.default_rng(kind)
    assert_the_same_slopes(parametrized(random_tree([kind, 1], rng)), rng)


@pytest.mark.parametrize(
    "kinds, forcing",
    [pytest.param((5, 0, 2), "symmetric", marks=pytest.mark.slow), ((3, 1), "left")],
)
def test_derivatives_of_joints_of_several_coordinates_by_differences(kinds, forcing):
    """Along directions in which all numbers change at once, and by the step."""
    rng = np.random.default_rng(sum(kinds))
    model = parametrized(random_tree(kinds, rng))
    dsys = midpoint(model.system, 0.05, forcing)
    assert isinstance(dsys.engine, TreeEngine)
    x, u = random_motion(dsys, rng)
    linear, values = dsys.linearize(x, u, dsys.parameter_names), vars(model.constants.parameters)
    parts = {name: rng.normal(size=np.size(value)) for name, value in values.items()}

    def stepped(by, longer):
        moved = {
            name: tuple(value + by * parts[name])
            if np.ndim(value)
            else value + by * parts[name][0]
            for name, value in values.items()
        }
        other = midpoint(model.system.with_parameters(**moved), 0.05 + longer, forcing)
        return dsys.local(linear.x1, other.step(x, u))

    found = jacobian(lambda s: stepped(s[0], 0.0), 1, 1e-3)[:, 0]
    expected = linear.P[:, :-1] @ np.concatenate([*parts.values()])
    np.testing.assert_allclose(expected, found, rtol=0, atol=1e-9 * np.abs(found).max())
    found = jacobian(lambda s: stepped(0.0, s[0]), 1, 1e-3)[:, 0]
    np.testing.assert_allclose(linear.P[:, -1], found, rtol=0, atol=1e-9 * np.abs(found).max())


def test_derivatives_by_numbers_are_the_same_after_those_without():
    rng = np.random.default_rng(7)
    model = parametrized(random_tree([0, 1, 0], rng))
    first, second = midpoint(model.system, 0.02), midpoint(model.system, 0.02)
    names, (x, u) = first.parameter_names, random_motion(first, rng)
    second.linearize(x, u)
    np.testing.assert_array_equal(second.linearize(x, u, names).P, first.linearize(x, u, names).P)


def test_a_model_with_other_values_keeps_nothing_that_follows_from_the_first_ones():
    model = parametrized(random_tree([0, 1, 0], np.random.default_rng(8)))
    q, values = model.space.origin, dict(vars(model.constants.parameters))
    before = model.mass_matrix(q)
    heavier = model.constants.model_with(values | {"b2_mass": 2 * values["b2_mass"]}).mass_matrix(
        q
    )
    assert np.trace(heavier) > 1.01 * np.trace(before)
    np.testing.assert_array_equal(model.mass_matrix(q), before)


def test_other_values_step_as_a_model_that_has_them():
    rng = np.random.default_rng(2)
    model = random_tree([0, 1, 0, 1, 0, 1], rng)
    dsys = midpoint(parametrized(model).system, 0.02)
    changes = {
        "b1_mass": 7.0,
        "b2_center": (0.1, 0.2, 0.3),
        "b3_inertia": (0.3, 0.4, 0.5, 0.01, 0.02, 0.03),
        "b3_position": (1.0, 0.0, 0.5),
        "b5_damping": 2.0,
        "b5_rest": 1.0,
    }
    other = dsys.with_parameters(**changes)
    assert isinstance(other.engine, TreeEngine) and other.engine is dsys.engine
    fresh = midpoint(
        parametrized(model).constants.model_with(vars(other.system.parameters)).system, 0.02
    )
    x, u = random_motion(fresh, rng)
    np.testing.assert_array_equal(other.step(x, u), fresh.step(x, u))
    assert other.energy(x) == fresh.energy(x) != dsys.energy(x)
    assert np.abs(dsys.step(x, u) - fresh.step(x, u)).max() > 1e-3


def test_derivatives_of_a_large_tree_by_differences_of_steps_with_other_values():
    rng = np.random.default_rng(3)
    model = random_tree(rng.integers(0, 2, 12), rng)
    assert any(frame.is_fixed for frame in model.frames)
    dsys = midpoint(parametrized(model).system, 0.02)
    x, u = random_motion(dsys, rng)
    names = dsys.system.parameter_names
    linear = dsys.linearize(x, u, names)
    fields = [name for name in model.constants.locations if "inertia" not in name]
    values = vars(dsys.system.parameters)

    def stepped(name, by):
        value = values[name]
        moved = (value[0] + by, *value[1:]) if isinstance(value, tuple) else value + by
        return dsys.with_parameters(**{name: moved}).step(x, u)

    for name in rng.choice(fields, 4, replace=False):
        found = jacobian(lambda s, name=name: stepped(name, s[0]), 1, 1e-3)[:, 0]
        entry = f"{name}[0]" if isinstance(values[name], tuple) else name
        column = linear.P[:, names.index(entry)]
        np.testing.assert_allclose(column, found, rtol=0, atol=1e-8 * np.abs(linear.P).max())


def test_impossible_parameter_values_are_refused():
    model = random_tree([0, 1], np.random.default_rng(4))
    with pytest.raises(ValueError, match="no constants .*b0_color.*choose of.*b0_mass"):
        replace(model, parameters=("b0_color",)).system  # noqa: B018
    system = replace(model, parameters=("b0_mass", "b0_inertia")).system
    with pytest.raises(ValueError, match="mass must be positive"):
        system.with_parameters(b0_mass=-1.0)
    with pytest.raises(ValueError, match="triangle"):
        system.with_parameters(b0_inertia=(1.0, 1.0, 9.0, 0.0, 0.0, 0.0))


def test_repeated_parameter_names_get_numbers():
    model = random_tree([0], np.random.default_rng(5))
    twice = replace(model, elements=[*model.elements, JointDamper("b0", 0.1)])
    assert {"b0_damping", "b0_damping_2", "b0_stiffness_2"} <= set(twice.constants.locations)


def test_a_model_of_one_parameter_steps_with_its_present_value():
    model = random_tree([0, 1, 0], np.random.default_rng(2))
    system = replace(model, parameters=("b0_mass",)).system
    dsys = midpoint(system, 0.02)
    q, v = 0.3 * np.ones(system.space.nq), np.ones(system.space.nw)
    u = 0.5 * np.ones(dsys.nu)
    ends = []
    for mass in (1.0, 9.0):
        one = dsys.with_parameters(b0_mass=mass)
        other = by_equations(system.with_parameters(b0_mass=mass))
        ends.append(one.configuration(one.step(one.state(q, v), u)))
        expected = other.configuration(other.step(other.state(q, v), u))
        np.testing.assert_allclose(ends[-1], expected, rtol=1e-10, atol=1e-12)
    assert np.abs(ends[1] - ends[0]).max() > 1e-6
