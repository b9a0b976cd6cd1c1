"""The claims of [mueller2013]: at reduced length, and the whole paper."""

import numpy as np
import pytest

from nh_control.papers import mueller2013_beyond as beyond
from nh_control.papers import mueller2013_figures as figures
from nh_control.papers import mueller2013_gravity as heavy
from nh_control.papers import mueller2013_joints as joints
from nh_control.papers.mueller2013_runs import SECOND_ORDER, motion, operations


def test_the_top_has_the_printed_energy():
    assert motion("top", "SE3", duration=0.01).energy[0] == pytest.approx(13972.39895, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "grounded", "between"),
    [
        ("pendulum", ("upper",), ("lower",)),
        pytest.param("top", ("box",), (), marks=pytest.mark.slow),
        pytest.param("pair", (), ("second",), marks=pytest.mark.slow),
    ],
)
def test_se3_satisfies_the_constraints_of_grounded_bodies_only(name, grounded, between):
    group, product = (motion(name, space, duration=0.25) for space in ("SE3", "SO3xR3"))
    for joint in grounded:
        assert group.largest(joint) < 1e-13
        assert product.largest(joint) > 1e-8
    for joint in between:
        assert group.largest(joint) > 1e-12
        assert 1 / 4 < product.largest(joint) / group.largest(joint) < 4
    energies = [np.abs(run.energy_error).max() for run in (group, product)]
    assert 1 / 4 < energies[1] / energies[0] < 4


def test_the_top_in_gravity_follows_euler_s_equations_on_both_spaces():
    for space, constraint, distance in (("SE3", 1e-13, 1e-7), ("SO3xR3", 1e-6, 1e-6)):
        run = motion("heavy top", space, duration=0.1)
        assert run.largest("box") < constraint
        assert heavy._distance(space, run).max() < distance
        assert np.abs(run.energy_error).max() < 1e-6
    assert run.largest("box") > 1e-8


@pytest.mark.slow
def test_a_method_of_order_2_has_the_published_energy_drift():
    """Two orders of magnitude as in the paper; a method of order 4 does not show them."""
    second, fourth = (
        {s: motion("top", s, method, duration=0.1) for s in ("SE3", "SO3xR3")}
        for method in (SECOND_ORDER, "rkmk4_index_one")
    )
    assert 50 < figures.energy_ratio(second, 0.1) < 80
    assert 2 < figures.energy_ratio(fourth, 0.1) < 4


def slow_but(*quick):
    return [
        kind if kind in quick else pytest.param(kind, marks=pytest.mark.slow)
        for kind in joints.GROUNDED
    ]


@pytest.mark.parametrize("kind", slow_but("helical"))
def test_motion_subgroups_are_kept(kind):
    for space, kept in joints.SUBGROUPS.items():
        largest = joints.grounded(kind, space, steps=50, h=4e-3).largest()
        assert (largest < 1e-13) == (kind in kept)
        assert kind in kept or largest > 1e-9


def test_a_screw_between_two_links_is_kept_by_neither_space():
    group, product = (joints.screws(space, steps=50, h=4e-3) for space in ("SE3", "SO3xR3"))
    assert group.largest("body") < 1e-13 and product.largest("body") > 1e-8
    assert group.largest("nut") > 1e-9
    assert 1 / 4 < product.largest("nut") / group.largest("nut") < 4


@pytest.mark.parametrize(
    ("alone", "between", "holds"),
    [
        ((5e-15, 1e-9), (1e-7, 2e-7), (True, True)),
        ((1e-10, 1e-9), (1e-7, 2e-7), (False, True)),
        ((5e-15, 1e-12), (1e-7, 2e-5), (False, False)),
        ((5e-15, 1e-9), (1e-14, 1e-14), (True, False)),
    ],
)
def test_claims_about_screws_hold_by_their_numbers(alone, between, holds):
    largest = {
        space: {"alone": a, "body": a, "nut": b}
        for space, a, b in zip(("SE3", "SO3xR3"), alone, between)
    }
    assert tuple(s.holds for s in joints._of_screws(largest)) == holds


def test_every_body_on_a_space_of_its_own():
    run = motion("pendulum", beyond.MIXED, duration=0.25)
    assert run.largest("upper") < 1e-14 < 1e-8 < run.largest("lower")


def test_a_step_takes_more_operations_on_se3():
    counts = [operations("top", space) for space in ("SE3", "SO3xR3")]
    assert 1.2 < counts[0] / counts[1] < 2
