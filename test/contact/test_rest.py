"""Robots and boxes that stand: equilibria with contact forces, and steps from there."""

import numpy as np
import pytest
from bodies import HALF, G, ball, box, point

import nh_control as nh
from nh_control.control import equilibrium
from nh_control.control.equilibrium import NoEquilibrium

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
