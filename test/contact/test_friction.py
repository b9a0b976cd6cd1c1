"""Analytic answers of contacts with Coulomb friction."""

import casadi as ca
import numpy as np
import pytest
from bodies import HALF, G, ball, body, box, gripped_snakeboard, point

import nh_control as nh

MU = 0.5


@pytest.mark.parametrize("off", [-1e-4, 1e-4])
def test_a_point_slides_where_the_slope_exceeds_the_angle_of_friction(off):
    """From rest, after 1 s: `g (sin a - mu cos a) t^2 / 2`, or nothing."""
    slope = np.arctan(MU * (1 + off))
    dsys = point(slope, MU)
    state = dsys.state([0, 1e-12 / (G * np.cos(slope))], [0, 0])
    x = dsys.simulate(state, steps=100).states[-1]
    moved = G * (np.sin(slope) - MU * np.cos(slope)) / 2 if off > 0 else 0.0
    assert x[0] == pytest.approx(moved, abs=1e-6)


@pytest.mark.parametrize("smoothing", [1e-4, 1e-8, 1e-12])
def test_a_point_that_sticks_creeps_as_the_barrier_says(smoothing):
    """`kappa t / (beta (1 - t^2))` at the load t = tan(slope) / mu, kappa at run time."""
    slope = np.arctan(MU / 2)
    dsys = point(slope, MU).with_smoothing(smoothing)
    weight = G * np.cos(slope)
    x = dsys.simulate(dsys.state([0, smoothing / weight], [0, 0]), steps=50).states
    creep, beta = (x[-1, 0] - x[-2, 0]) / dsys.h, MU * weight * dsys.h
    assert creep == pytest.approx(smoothing * 0.5 / (beta * 0.75), rel=1e-6)
    assert x[-1, 1] == pytest.approx(smoothing / weight, rel=1e-6)


@pytest.mark.parametrize("shape", ["plane", "sphere"])
def test_a_ball_that_slides_rolls_at_five_sevenths_of_its_speed(shape):
    if shape == "plane":
        dsys = ball()
        start = dsys.state([0, HALF + 1e-13, 0], [2, 0, 0])
        speed = dsys.simulate(start, steps=100).velocities[-1, 0]
    else:
        dsys = body(nh.Sphere(HALF), friction=0.2, smoothing=1e-12)
        start = dsys.state([1, 0, 0, 0, 0, 0, HALF + 1e-13], [0, 0, 0, 2, 0, 0])
        speed = dsys.simulate(start, steps=100).velocities[-1, 3]
    assert speed == pytest.approx(10 / 7, abs=1e-10)


@pytest.mark.parametrize("off", [-1e-3, 1e-3])
def test_a_ball_rolls_down_slopes_below_seven_halves_of_the_friction(off):
    """It slips where `tan a > 3.5 mu`."""
    friction, slope = 0.2, np.arctan(0.7 * (1 + off))
    dsys = ball(slope, friction)
    x = dsys.simulate(dsys.state([0, HALF + 1e-13, 0], [0, 0, 0]), steps=100).states[-1]
    slipped = x[0] - HALF * x[2]
    if off < 0:
        assert abs(slipped) < 1e-7
        assert x[0] == pytest.approx(G * np.sin(slope) * 5 / 14, rel=1e-6)
    else:
        moved = G * (np.sin(slope) - friction * np.cos(slope)) / 2
        assert x[0] == pytest.approx(moved, rel=1e-6) and slipped > 1e-4


def test_a_box_stops_after_its_speed_squared_over_two_mu_g():
    dsys = box()
    q = [1, 0, 0, 0, 0, 0, HALF + 4e-9]
    x = dsys.simulate(dsys.state(q, [0, 0, 0, 2, 0.5, 0]), steps=60).states[-1]
    distance = (2**2 + 0.5**2) / (2 * MU * G)
    # the last step, in which it stops, is of first order
    assert np.hypot(*x[4:6]) == pytest.approx(distance, rel=5e-3)
    assert x[4] / x[5] == pytest.approx(4, rel=1e-3)


def test_a_ball_turns_on_a_conveyor_and_moves_with_two_sevenths_of_its_speed():
    dsys = ball(surface_velocity=(0.7,))
    run = dsys.simulate(dsys.state([0, HALF + 1e-13, 0], np.zeros(3)), steps=50)
    assert run.velocities[-1, 0] == pytest.approx(0.2, abs=1e-9)
    assert run.velocities[-1, 0] - HALF * run.velocities[-1, 2] == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize("restitution", [0.8, 0.5])
def test_a_ball_bounces_to_the_square_of_its_restitution(restitution):
    dsys = ball(restitution=restitution, h=1e-3, smoothing=1e-10)
    run = dsys.simulate(dsys.state([0, 0.5 + HALF, 0], [0, 0, 0]), steps=1300)
    z = run.states[:, 1] - HALF
    inner = z[1:-1]
    tops = inner[(inner > z[:-2]) & (inner >= z[2:]) & (inner > 0.01)]
    expected = 0.5 * restitution ** (2.0 * np.arange(1, 1 + len(tops)))
    assert len(tops) >= 1 and tops == pytest.approx(expected, rel=0.05)
    assert z.min() > 0 and np.diff(run.energies).max() < 1e-9


def test_wheels_with_much_grip_roll_as_nonholonomic_ones():
    rolling, gripping = (
        nh.nonholonomic_midpoint(nh.systems.snakeboard(), 0.02),
        gripped_snakeboard(load=1000.0),
    )
    q, inputs = np.zeros(5), 0.3 * np.random.default_rng(0).normal(size=(50, 2))
    v = rolling.velocity(rolling.state(q, [0.3, -0.2, 0.1, 0.5, 0.2]))
    runs = [dsys.simulate(dsys.state(q, v), inputs) for dsys in (rolling, gripping)]
    assert runs[0].states[:, :5] == pytest.approx(runs[1].states[:, :5], abs=1e-9)


def test_wheels_with_little_grip_skid_and_lose_the_work_of_friction():
    load, friction = 0.05, 0.8
    dsys = gripped_snakeboard(load, friction, smoothing=1e-10)
    state, lost = dsys.state(np.zeros(5), [0.3, -0.2, 0.1, 0.5, 0.2]), 0.0
    x = state
    for _ in range(50):
        forces, after = nh.contact_forces(dsys, x, [0, 0]), dsys.step(x, [0, 0])
        rows = dsys.system.value(dsys.system.constraint_rows(dsys.system.symbols[0]), x[:5])
        slip = rows @ (dsys.velocity(after) + dsys.velocity(x)) / 2
        lost += dsys.h * sum(force.friction[0] * s for force, s in zip(forces.values(), slip))
        assert all(abs(f.friction[0]) <= load * friction for f in forces.values())
        x = after
    gained = dsys.energy(x) - dsys.energy(state)
    assert gained < -1e-3 and gained == pytest.approx(lost, rel=0.03)


def test_the_surface_of_a_plane_slides_along_its_tangents():
    plane = nh.Plane((0, 0, 2), surface_velocity=(0.3, 0.4, 0))
    assert np.hypot(*plane.sliding) == pytest.approx(0.5)
    assert nh.Plane().sliding == nh.HeightField(lambda x, y: 0).sliding == ()
    law = box(ground=plane).system.contacts[0]
    assert law.surface_velocity == plane.sliding


# Painleve's rod ----------------------------------------------------------------------------------


TILT = 1.0
"""Angle (rad) between rod and ground."""
CRITICAL = (1 + 3 * np.cos(TILT) ** 2) / (3 * np.sin(TILT) * np.cos(TILT))
"""Friction beyond which sliding on has no solution, where the normal force would have to pull."""


def rod(friction, h, smoothing=1e-10):
    """A uniform rod of 1 kg and half length 1 m, q = (x, z, angle) of its middle."""

    def lagrangian(q, v):
        return (ca.sumsqr(v[:2]) + v[2] ** 2 / 3) / 2 - 9.81 * q[1]

    tip = nh.UnilateralConstraint(
        "tip",
        gap=lambda q: q[1] - ca.sin(q[2]),
        point=lambda q: q[0] - ca.cos(q[2]),
        friction=friction,
    )
    system = nh.System(
        "rod", nh.Rn("x", "z", "angle"), lagrangian, contacts=(tip,), smoothing=smoothing
    )
    return nh.midpoint(system, h)


def slid(friction, h, steps):
    dsys = rod(friction, h)
    x = dsys.state([0, np.sin(TILT) + 1e-9, TILT], [-3.0, 0, 0])
    return dsys.simulate(x, steps=steps), nh.ContactReadout(dsys)


@pytest.mark.parametrize("factor", [1.01, 1.5, 2.2])
def test_beyond_the_critical_friction_the_tip_stops_in_one_step(factor):
    """By an impulse that does not depend on h; then the rod turns about the tip."""
    impulses = []
    for h in (1e-3, 1e-4):
        run, readout = slid(factor * CRITICAL, h, 20)
        table = readout.table(run.states[:-1], np.zeros((20, 0)))
        impulses.append(table.normal[0, 0] * h)
        assert table.normal[1:].max() < 10 and np.diff(run.energies)[0] < -1
        assert np.abs(table.slip[1:]).max() < 1e-6 and table.gap.min() > 0
        assert np.diff(run.energies)[1:].max() < 1e-6
    assert impulses[0] == pytest.approx(impulses[1], rel=5e-3) and impulses[0] > 1


def test_below_it_the_tip_slides_on_against_the_rods_sliding_friction():
    """Of a rod that slides and does not turn yet, `N (1 + 3 cos^2 a - 3 mu sin a cos a) = m g`."""
    friction = 0.5
    run, readout = slid(friction, 1e-4, 5)
    table = readout.table(run.states[:-1], np.zeros((5, 0)))
    s, c = np.sin(TILT), np.cos(TILT)
    expected = 9.81 / (1 + 3 * c**2 - 3 * friction * s * c)
    assert table.normal[2, 0] == pytest.approx(expected, rel=1e-3)
    assert table.friction[2, 0, 0] == pytest.approx(friction * expected, rel=1e-3)
