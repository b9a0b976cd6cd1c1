"""Painleve's rod: a tip that slides towards the rod, where friction presses it into the ground."""

import casadi as ca
import numpy as np
import pytest

import nh_control as nh

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
    """By an impulse that does not depend on h: an impact without a collision, which loses energy;
    then the rod turns about the tip.
    """
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
