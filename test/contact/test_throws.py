"""Bodies thrown at random: no step fails, nothing goes into the ground, none gains energy beyond
the barrier's.
"""

from dataclasses import replace

import numpy as np
import pytest
from bodies import ball, body, box, heights_of_corners, thrown

import nh_control as nh

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


def test_redundant_contacts_share_the_weight():
    dsys = box()
    x = dsys.state([1, 0, 0, 0, 0, 0, 0.1 + 4e-9], np.zeros(6))
    x = dsys.simulate(x, steps=5).states[-1]
    forces = nh.contact_forces(dsys, x)
    bottom = sorted(force.normal for force in forces.values())[4:]
    assert len(forces) == 8 and sum(bottom) == pytest.approx(9.81, rel=1e-6)
    assert bottom == pytest.approx([9.81 / 4] * 4, rel=1e-3)
