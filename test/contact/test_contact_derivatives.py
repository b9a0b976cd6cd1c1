"""A, B, second derivatives and derivatives by parameters through contact are those of the step."""

from dataclasses import replace

import numpy as np
import pytest
from bodies import HALF, G, ball, box
from differences import hessian, jacobian

import nh_control as nh


def spacing(smoothing):
    """A step of differences that is short beside the gap at rest, smoothing / weight."""
    return smoothing / 500


def relative(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def impact(dsys, smoothing):
    return dsys.state([0, 0.11, 0], [1.0, -3.0, 0])


def slide(dsys, smoothing, speed=0.5):
    return dsys.state([0, HALF + smoothing / G, 0], [speed, 0, 1.0])


def roll(dsys, smoothing):
    return slide(dsys, smoothing, speed=0.1)


@pytest.mark.parametrize("motion", [impact, slide, roll])
@pytest.mark.parametrize("smoothing", [1e-4, 1e-8])
def test_a_is_the_derivative_at_every_smoothing(motion, smoothing):
    dsys = ball(0.3, 0.3).with_smoothing(smoothing)
    x = motion(dsys, smoothing)
    lin = dsys.linearize(x)
    expected = jacobian(
        lambda dx: dsys.local(lin.x1, dsys.step(dsys.retract(x, dx))), 6, spacing(smoothing)
    )
    assert relative(lin.A, expected) < 1e-6


def test_second_derivatives_are_exact():
    dsys = ball(0.3, 0.3).with_smoothing(1e-3)
    x, lam = impact(dsys, 1e-3), np.array([0.3, -0.5, 0.2, 0.7, 0.1, -0.4])
    x1 = dsys.step(x)
    expected = hessian(lambda dx: lam @ dsys.local(x1, dsys.step(dsys.retract(x, dx))), 6, 2e-4)
    assert relative(dsys.hessian(x, (), lam), expected) < 1e-5


@pytest.mark.slow
def test_derivatives_by_friction_restitution_and_smoothing_are_exact():
    dsys = box(parameters=("body_friction", "body_restitution"), smoothing=1e-5, restitution=0.3)
    names = ("body_friction", "body_restitution", "smoothing")
    q = dsys.system.space.retract([1, 0, 0, 0, 0, 0, 0.16], [0.6, 0.4, 0.2, 0, 0, 0])
    x = dsys.state(q, [1, 2, 0.5, 6, 3, -2])  # a corner hits the ground and slides
    lin = dsys.linearize(x, parameters=names)

    def stepped(changes):
        friction, restitution, smoothing = changes
        changed = dsys.with_parameters(
            body_friction=0.5 + friction, body_restitution=0.3 + restitution
        ).with_smoothing(1e-5 * (1 + 100 * smoothing))
        return dsys.local(lin.x1, changed.step(x))

    expected = jacobian(stepped, 3, 1e-4) / [1, 1, 1e-3]
    assert np.abs(lin.P).max(axis=0).all()
    for column in range(3):
        assert relative(lin.P[:, column], expected[:, column]) < 1e-6


# Energy ------------------------------------------------------------------------------------------


def no_inputs(states):
    return np.zeros((len(states), 0))


def test_a_body_at_rest_has_no_velocity_halfway_through_the_impulse():
    dsys = ball()
    x = dsys.simulate(dsys.state([0, HALF + 1e-13, 0], np.zeros(3)), steps=3).states
    halfway = nh.ContactReadout(dsys).velocities(x[-1:], no_inputs(x[-1:]))
    assert dsys.velocity(x[-1])[1] == pytest.approx(-G * dsys.h / 2, rel=1e-6)
    assert halfway == pytest.approx(np.zeros((1, 3)), abs=1e-9)


def test_a_body_that_slides_has_the_velocity_of_its_positions():
    """Between two steps, `(q1 - q_-1) / 2h`; in the air it is that of the state."""
    dsys = ball(friction=0.3)
    run = dsys.simulate(dsys.state([0, HALF + 1e-13, 0], [2, 0, 0]), steps=10)
    found = nh.ContactReadout(dsys).velocities(run.states[4:6], no_inputs(run.states[4:6]))
    between = (run.states[5:7, :3] - run.states[3:5, :3]) / (2 * dsys.h)
    assert found == pytest.approx(between, abs=1e-9)
    flying = dsys.state([0, 5.0, 0], [1, 2, 3])
    assert nh.ContactReadout(dsys).velocities([flying], [[]])[0] == pytest.approx([1, 2, 3])


def test_a_step_is_the_impulses_at_its_start_and_a_free_step():
    """So its gain of energy is their work and the error of the free step."""
    dsys = box()
    free = nh.midpoint(replace(dsys.system, contacts=()), dsys.h)
    x = dsys.state([1.0, 0, 0, 0, 0, 0, HALF + 1e-3], [3.0, 1, 0, 0.5, 0, -1])
    halfway = nh.ContactReadout(dsys).velocities([x], [[]])[0]
    after = dsys.state(x[:7], 2 * halfway - dsys.velocity(x))
    assert np.abs(after - x).max() > 0.1
    assert free.step(after) == pytest.approx(dsys.step(x), abs=1e-12)


def largest_change(dsys):
    """The largest change of energy in a step of a box that tips about an edge for 0.1 s."""
    tilt, h = 0.3, dsys.h
    q = [np.cos(tilt / 2), np.sin(tilt / 2), 0, 0, 0, 0, HALF * (np.cos(tilt) + np.sin(tilt))]
    run = dsys.simulate(dsys.state(q, [1.0, 0, 0, 0, 0, 0]), steps=round(0.1 / h))
    return np.abs(np.diff(run.energies)[round(0.02 / h) :]).max()


@pytest.mark.parametrize("friction", [2.0, pytest.param(0.0, marks=pytest.mark.slow)])
def test_while_a_contact_persists_energy_changes_by_the_third_order_of_the_step(friction):
    """As that of a pendulum under the midpoint rule, with friction that sticks and without."""
    dsys = box(friction=friction, smoothing=1e-10)
    changes = [largest_change(dsys.with_step(h)) for h in (0.005, 0.0025)]
    assert changes[0] / changes[1] == pytest.approx(8, rel=0.1)
