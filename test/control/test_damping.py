"""Inputs that bring a motion to rest."""

import numpy as np
import pytest

import nh_control as nh
from nh_control import scenarios
from nh_control.control.damping import damping_input
from nh_control.systems.pendulum import PendulumParameters, pendulum


def test_a_fully_actuated_motion_decays_with_the_given_time_constant():
    """Without gravity nothing else acts: v(t) = v(0) exp(-t / 0.5 s), up to the step."""
    free = pendulum(PendulumParameters(g=1e-12))
    dsys = nh.midpoint(free, 0.01)
    x = dsys.state([0.3], [2.0])
    for _ in range(50):
        x = dsys.step(x, damping_input(dsys, x, 0.5))
    np.testing.assert_allclose(dsys.velocity(x), 2.0 * (1 - 0.01 / 0.5) ** 50, rtol=1e-9)


def test_momenta_that_no_input_reaches_do_not_change():
    """Of the snakeboard's motion what remains is what its momenta at rest joints allow."""
    scenario = scenarios.get("snakeboard")
    dsys = scenario.model()
    reference = scenario.reference(dsys)
    x = reference.states[len(reference) // 3]
    before = dsys.energy(x)
    for _ in range(100):
        x = dsys.step(x, damping_input(dsys, x, 0.2))
    rotor, steering = np.abs(dsys.velocity(x)[:2])
    assert rotor < 0.05 and steering < 0.01 and 0 < dsys.energy(x) < 0.1 * before


def test_limits_hold_and_a_time_must_be_positive():
    scenario = scenarios.get("snakeboard")
    dsys = scenario.model()
    x = dsys.state(np.zeros(5), [50.0, 0.0, 0.0, 0.0, 0.0])
    limits = dsys.system.input_bounds
    u = damping_input(dsys, x, 1e-3)
    assert (u == limits[:, 0]).any() and (u >= limits[:, 0]).all() and (u <= limits[:, 1]).all()
    with pytest.raises(ValueError, match="time > 0, got 0"):
        damping_input(dsys, x, 0)
