"""Momenta from configurations alone."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.integrators import midpoint
from nh_control.loop.hardware_estimate import MeasuredState
from nh_control.loop.state_estimate import StateEstimate
from nh_control.systems.spherical_pendulum import spherical_pendulum

SHORT = {"snakeboard": "parking", "quadrotor_payload": "parabola"}


@pytest.fixture(scope="module", params=SHORT)
def scenario(request):
    return scenarios.get(request.param)


@pytest.fixture(scope="module")
def model(scenario):
    return scenario.model()


@pytest.fixture(scope="module")
def reference(scenario, model):
    return scenario.reference(model, SHORT[scenario.name])


def distance(model, states, others):
    """Largest local coordinate between states."""
    return max(np.abs(model.local(x, y)).max() for x, y in zip(states, others, strict=True))


def run(estimate, model, reference, steps, velocities):
    """States estimated along the reference."""
    out = []
    for k in steps:
        x = reference.states[k]
        v = model.velocity(x) if velocities else None
        out.append(
            estimate.state(
                k, model.configuration(x), v, reference.inputs[k - 1], reference.states[k]
            )
        )
    return np.array(out)


def test_with_velocities_the_state_is_exact(model, reference):
    states = run(StateEstimate(model), model, reference, range(50), velocities=True)
    assert distance(model, states, reference.states[:50]) < 1e-12


def test_without_velocities_the_momentum_is_that_of_the_step(model, reference):
    estimate = StateEstimate(model)
    states = run(estimate, model, reference, range(50), velocities=False)
    assert distance(model, states, reference.states[:50]) < 1e-9
    assert estimate.approximated == 0


def test_a_mean_velocity_is_had_at_the_last_measurement():
    """On the sphere, where that at the one before has another direction."""
    dsys = midpoint(spherical_pendulum(retraction="exp"), 0.1)
    space, expected = dsys.system.space, dsys.state_space.origin
    estimate, before = MeasuredState(dsys), space.retract(space.origin, np.array([0.9, 0.2]))
    here = space.retract(before, np.array([0.3, -0.4]))
    estimate.state(0, before, None, (), expected)
    x = estimate.state(200_000_000, here, None, (), expected)
    along = (here * np.cos(0.5) - before) / np.sin(0.5)
    np.testing.assert_allclose(dsys.velocity(x), along * 0.5 / 0.2, atol=1e-12)


def test_gaps_are_bridged_and_counted(model, reference):
    estimate = StateEstimate(model)
    states = run(estimate, model, reference, range(0, 60, 3), velocities=False)
    assert estimate.approximated == 19
    assert distance(model, states, reference.states[0:60:3]) < 0.3


def test_a_new_start_is_recognized(model, reference):
    estimate = StateEstimate(model)
    run(estimate, model, reference, range(10), velocities=False)
    estimate.reset()
    (state,) = run(estimate, model, reference, [0], velocities=False)
    assert distance(model, [state], reference.states[:1]) < 1e-9
    assert estimate.approximated == 0
