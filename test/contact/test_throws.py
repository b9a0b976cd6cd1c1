"""Bodies thrown at random: no step fails, nothing goes into the ground, none gains energy beyond
the barrier's.
"""

from dataclasses import replace

import numpy as np
import pytest
from bodies import HALF, G, ball, body, box, heights_of_corners, point, thrown, walker

import nh_control as nh
from nh_control.control import equilibrium
from nh_control.control.equilibrium import NoEquilibrium

SHAPES = {"sphere": (nh.Sphere(0.1), 0.1), "capsule": (nh.Capsule(0.05, 0.2, axis="x"), 0.05)}
"""Shapes, and how low their centers can be (m)."""


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_boxes_come_to_rest_above_the_ground(count):
    dsys, rng = box(), np.random.default_rng(0)
    for _ in range(count):
        run = dsys.simulate(thrown(dsys, rng), steps=200)
        assert heights_of_corners(run.states).min() > 0
        # a sticking corner of a body that turns slips at the node by h |omega|^2 r
        assert np.diff(run.energies).max() < 1e-4
        assert run.velocities[-1] == pytest.approx([0, 0, 0, 0, 0, -9.81 * dsys.h / 2], abs=1e-3)


def test_a_first_iteration_is_confirmed_by_a_second_one():
    """A corner of this box was 1.4e-10 m in the ground after a step with one iteration."""
    dsys = box()
    run = dsys.simulate(thrown(dsys, np.random.default_rng(23959)), steps=200)
    assert heights_of_corners(run.states).min() > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_round_bodies_stay_above_the_ground_and_lose_energy(shape):
    round_body, lowest = SHAPES[shape]
    dsys, rng = body(round_body, inertia=(0.002, 0.004, 0.003)), np.random.default_rng(0)
    for _ in range(5):
        run = dsys.simulate(thrown(dsys, rng), steps=200)
        assert run.energies[-1] < run.energies[0]
        assert run.states[:, 6].min() > lowest


def test_a_coin_rolls_in_a_circle_above_the_ground():
    """A disc that leans and rolls turns towards the side that it leans to."""
    dsys = body(nh.Disc(0.1, axis="y"), friction=1.0, inertia=(0.0025, 0.005, 0.0025))
    lean = 0.2
    q = [np.cos(lean / 2), np.sin(lean / 2), 0, 0, 0, 0, 0.1 * np.cos(lean) + 1e-7]
    run = dsys.simulate(dsys.state(q, [0, 20, 0, 2, 0, 0]), steps=60)
    assert run.states[-1, 5] < -0.02  # to its right, where it leans
    energies = run.energies[1:]  # a state of zero speed downwards stores half an impulse
    assert np.ptp(energies) < 1e-3 * energies[0]


def test_a_body_in_the_air_moves_as_one_without_contacts():
    dsys = ball(smoothing=1e-14)
    free = nh.midpoint(replace(dsys.system, contacts=()), dsys.h)
    x = dsys.state([0, 50.0, 0], [3, 1, 2])
    runs = [one.simulate(x, steps=20).states for one in (dsys, free)]
    assert runs[0] == pytest.approx(runs[1], abs=1e-11)


# Bodies that stand -------------------------------------------------------------------------------


LYING = [1, 0, 0, 0, 0, 0]


@pytest.fixture(scope="module")
def standing():
    dsys = box(smoothing=1e-6)
    x, _ = equilibrium(dsys, dsys.state([*LYING, HALF + 1e-7], np.zeros(6)), ())
    return dsys, x


def test_a_body_at_rest_steps_whatever_its_round_off(standing):
    """The motion is then nothing but round-off, to which changes are not to be compared."""
    dsys, x = standing
    rng = np.random.default_rng(0)
    for size in (0, 1e-17, 1e-15, 1e-14):
        moved = dsys.retract(x, size * rng.normal(size=12))
        assert np.abs(dsys.local(x, dsys.step(moved))).max() < 1e-11


def test_gaps_at_rest_balance_the_weight(standing):
    dsys, x = standing
    corners = sorted(nh.contact_forces(dsys, x).values(), key=lambda one: one.gap)
    assert sum(one.normal for one in corners) == pytest.approx(G, abs=1e-8)
    assert [one.gap for one in corners[:4]] == pytest.approx([1e-6 / (G / 4)] * 4, rel=1e-3)
    assert all(np.abs(one.slip).max() < 1e-12 for one in corners)
    assert x[-1] == pytest.approx(-dsys.h * G / 2)  # the momentum before the impulse


@pytest.mark.parametrize("above", [0.3, 0.0])
def test_bodies_are_put_down_from_a_guess_above_the_ground(above):
    dsys = ball(smoothing=1e-8)
    x, _ = equilibrium(dsys, dsys.state([0.3, HALF + 1e-6 + above, 0.2], np.zeros(3)), ())
    assert x[1] - HALF == pytest.approx(1e-8 / G, rel=1e-6)
    assert x[[0, 2]] == pytest.approx([0.3, 0.2], abs=1e-6)


@pytest.mark.slow
def test_a_body_has_no_equilibrium_where_it_slides():
    dsys = slope(0.2)
    with pytest.raises(NoEquilibrium, match="still moves p_x"):
        equilibrium(dsys, dsys.state([0, 1e-12 / G], np.zeros(2)), ())


def slope(friction):
    return point(np.arctan(0.3), friction, smoothing=1e-12)


# Failures ----------------------------------------------------------------------------------------


FLAT = [np.sqrt(0.5), np.sqrt(0.5), 0, 0, 0, 0, 0.02]
COIN = (0.0025, 0.005, 0.0025)


def coin():
    return body(nh.Disc(0.1, axis="y"), inertia=COIN)


def test_a_disc_that_lies_flat_is_named_with_the_remedy():
    dsys = coin()
    with pytest.raises(
        nh.StepFailed, match="contact 'body' has no gap.*replace it by an Ellipsoid"
    ) as one:
        dsys.step(dsys.state(FLAT, np.zeros(6)))
    assert one.value.contact == "body" and one.value.step is None


def test_a_disc_that_falls_onto_its_side_is_named_with_the_step():
    dsys = coin()
    leaning = [np.cos(0.78), np.sin(0.78), 0, 0, 0, 0, 0.02]
    found = r"at step \d+ .*contact 'body', .* has the gap .* m and opens at -.* m/s.*reduce h"
    with pytest.raises(nh.StepFailed, match=found) as one:
        dsys.simulate(dsys.state(leaning, np.zeros(6)), steps=100)
    later = one.value.at_step(3)
    assert one.value.contact == later.contact == "body" and later.step == 3


def test_of_several_contacts_the_one_at_fault_is_named():
    model = coin().system.model
    ball = nh.Contact("body", nh.Sphere(0.005), name="ball")
    dsys = nh.midpoint(replace(model, contacts=(ball, *model.contacts)), 0.01)
    with pytest.raises(nh.StepFailed) as one:
        dsys.step(dsys.state(FLAT, np.zeros(6)))
    assert one.value.contact == "body"


def test_a_walker_that_stands_keeps_standing(caplog):
    """It lay down: all joints moved, and the trunk turned; later it went 500 m away."""
    dsys, q = walker()
    x, u = found = equilibrium(dsys, dsys.state(q - [0, 0, 1e-3, 0, 0, 0, 0], [0] * 7), [0] * 4)
    np.testing.assert_allclose(dsys.configuration(x), q, atol=1e-4)
    assert np.abs(dsys.local(x, dsys.step(x, u))).max() < 1e-9
    forces = nh.contact_forces(dsys, x, u).values()
    assert sum(force.normal for force in forces) == pytest.approx(15.16 * G, rel=1e-6)
    assert np.abs(found.moved).max() < 2e-3 and "far from the guess" not in caplog.text


def test_an_equilibrium_far_from_the_guess_is_told(caplog):
    found = equilibrium(dsys := point(0.0, 0.5), dsys.state([0, 0.4], [0, 0]), ())
    np.testing.assert_allclose(found.moved, [0, -0.4], atol=1e-9)
    assert "is far from the guess: it moved z by -0.4; use a guess" in caplog.text
