"""A run says when something turns by half a turn or more in one step, which no step can tell."""

import logging

import casadi as ca
import numpy as np
import pytest

from nh_control.discrete.results import StepFailed
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.loop.plant_report import RotationMonitor
from nh_control.mechanics.states import rotation_angles, turned_far
from nh_control.mechanics.system import System
from nh_control.numerics import newton

H = 0.1
UNTURNED = [1.0, 0.0, 0.0, 0.0]


@pytest.fixture(scope="module")
def wheel():
    """A sliding body of inertia 2 about its first axis, with a torque about it."""

    def lagrangian(q, v):
        return v[0] ** 2 / 2 + ca.dot(ca.DM([2.0, 3.0, 4.0]), v[1:] ** 2) / 2

    space = Product(Rn("z"), SO3("r"))
    return midpoint(
        System(
            "wheel",
            space,
            lagrangian,
            inputs=("torque",),
            force=lambda q, v, u: ca.vertcat(0, u, 0, 0),
        ),
        H,
    )


def start(wheel, rate):
    return wheel.state([0.0, *UNTURNED], [1e3, rate, 0.0, 0.0])


def test_every_rotation_and_direction_counts_by_its_own_rates():
    space = Product(SO3("a"), Rn("z"), S2("b"), SE3("c"))
    for at, angle in ((1, 0.2), (3, 0.0), (4, 0.2), (7, 0.2), (10, 0.0)):
        v = np.zeros(space.nw)
        v[at] = 2.0
        assert rotation_angles(space, np.array([v]), 0.1)[0] == pytest.approx(angle, abs=1e-15)


def test_only_nodes_that_turn_far_within_a_step_are_checked():
    """Angles of a quaternion, in both signs, and of a direction, against FAR = 0.5 rad."""
    space, angles = Product(SO3("a"), Rn("z"), S2("b")), [0.0, 0.4, 1.0, 1.4]
    for turned, pointed, far in (
        (angles, [0.0] * 4, [False, True, False]),
        ([0.0] * 4, angles, [False, True, False]),
    ):
        rows = [
            [np.cos(a / 2), 0.0, np.sin(a / 2), 0.0, 1e3 * k, np.cos(b), np.sin(b), 0.0]
            for k, (a, b) in enumerate(zip(turned, pointed))
        ]
        table = np.array(rows)
        table[2, :4] *= -1
        assert turned_far(space, table).tolist() == far


@pytest.mark.parametrize("every, told", [(1, 8), (2, 8), (5, 10)])
def test_a_trajectory_tells_the_first_kept_state_that_spins_too_fast(wheel, caplog, every, told):
    """From 27.5 rad/s by 0.5 rad/s a step: after 8 steps 31.5 rad/s, the first beyond pi / h."""
    with caplog.at_level(logging.WARNING):
        run = wheel.simulate(start(wheel, 27.5), [10.0], steps=20, every=every)
    assert wheel.rotation_angles(run.states)[told // every] == pytest.approx(2.75 + 0.05 * told)
    (record,) = caplog.records
    assert f"wheel by midpoint, h = 0.1 s: at step {told} " in record.message
    assert f"rotates by {2.75 + 0.05 * told:.3g} rad in one step" in record.message
    assert "choose h < " in record.message


def test_a_trajectory_below_half_a_turn_says_nothing(wheel, caplog):
    with caplog.at_level(logging.WARNING):
        wheel.simulate(start(wheel, 31.0), [0.0], steps=20)
        wheel.with_step(0.01).simulate(start(wheel, 31.0), [10.0], steps=100)
    assert not caplog.records


@pytest.mark.parametrize("method", ["lie_euler", "lie_euler_heun", "cf3", "rkmk3"])
def test_an_explicit_step_that_blows_up_says_so(method):
    """A free body of 3 rad a step: its momenta grew to 1e116 in six steps, without a word."""
    body = System("body", SO3(), lambda q, v: ca.dot(ca.DM([1.0, 2.0, 3.0]), v**2) / 2)
    dsys = INTEGRATORS[method].make(body, H)
    x = dsys.state(UNTURNED, [15.0, 20.0, 16.0])
    with pytest.raises(
        StepFailed, match="by half a turn or more, which is ambiguous.*reduce h"
    ) as caught:
        for _ in range(3):
            x = dsys.step(x)
    assert (
        caught.value.reason == newton.REASONS[newton.HALF_TURN]
        and dsys.rotation_angles([x])[0] < np.pi
    )
    fine = dsys.with_step(H / 100)
    end = fine.simulate(fine.state(UNTURNED, [15.0, 20.0, 16.0]), 100).states[-1]
    assert np.linalg.norm(end[4:]) == pytest.approx(np.hypot(15, np.hypot(40, 48)), rel=0.2)


def test_the_plant_tells_the_largest_turn_since_its_last_report():
    monitor = RotationMonitor(Product(Rn("x"), SO3("a"), SO3("b")), H)
    assert monitor.report() == ({"turn_per_step_rad": 0.0}, "")
    for first, second in ((1.0, 2.0), (3.0, 40.0), (5.0, 6.0)):
        monitor.observe(np.array([1e6, first, 0.0, 0.0, 0.0, second, 0.0]))
    values, warning = monitor.report()
    assert values == {"turn_per_step_rad": pytest.approx(4.0)}
    assert "40 rad/s rotates by 4 rad in one step" in warning and "h < 0.079 s" in warning
    monitor.observe(np.array([0.0, 3.0, 0.0, 4.0, 0.0, 0.0, 0.0]))
    assert monitor.report() == ({"turn_per_step_rad": pytest.approx(0.5)}, "")
    flat = RotationMonitor(Rn("x", "y", "z"), H)
    flat.observe(np.full(3, 1e6))
    assert flat.report() == ({}, "")
