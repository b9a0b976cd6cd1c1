"""The bicycle: steady turns, lane changes and falls of its references, the energy of riding
without a rider's torques, and that feedback catches it where it would fall.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.discrete.trajectory import Trajectory
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import PlantOptions, disturbance
from nh_control.scenarios.bicycle import (
    FALLEN,
    LANE_M,
    RADIUS,
    SPEED,
    TIGHT,
    BicyclePerturbation,
    Rolling,
    steady_turn,
)

BICYCLE = scenarios.get("bicycle")
MODEL = BICYCLE.model()
NAMES = MODEL.state_names
LEAN, STEER, Y = (NAMES.index(name) for name in ("lean", "steer", "contact_y"))


def riderless(x: np.ndarray, seconds: float) -> Trajectory:
    return MODEL.simulate(x, np.zeros((round(seconds / MODEL.h), MODEL.nu)))


@pytest.mark.parametrize(
    ("lean", "peak"), [pytest.param(0.02, 2e-7, marks=pytest.mark.slow), (0.2, 2e-5)]
)
def test_energy_stays_over_100_s_without_torques(lean, peak):
    """While weave swings it varies by terms of the order of h^2, and returns."""
    energies = riderless(Rolling(MODEL)(contact_v_forward=SPEED, lean=lean), 100.0).energies
    assert np.abs(energies / energies[0] - 1).max() < peak
    assert abs(energies[-1] / energies[0] - 1) < peak / 10


@pytest.mark.parametrize(
    ("h", "radius", "speed"), [(0.02, RADIUS, SPEED), (0.02, -8.0, SPEED), (0.01, 15.0, 7.0)]
)
def test_a_steady_turn_stays_one_without_a_torque_on_the_wheel(h, radius, speed):
    """Lean, steering and the circle of the rear contact, once around."""
    model = MODEL.with_step(h)
    x, u = steady_turn(model, speed, radius)
    v = model.velocity(x)
    assert v[1] / v[0] == pytest.approx(radius) and v[1] == pytest.approx(speed, rel=1e-4)
    assert abs(u[1]) < 1e-9 < abs(u[0])
    steps = round(2 * np.pi * abs(radius) / speed / h)
    states = model.simulate(x, np.tile(u, (steps, 1))).states
    np.testing.assert_allclose(states[:, [LEAN, STEER]] - x[[LEAN, STEER]], 0.0, atol=1e-10)
    center = np.array([0.0, radius])
    from_center = np.hypot(*(states[:, [Y - 1, Y]] - center).T)
    np.testing.assert_allclose(from_center, abs(radius), rtol=20 * h**2)


def test_a_change_of_lanes_begins_to_the_other_side_and_ends_straight_on():
    motion = BICYCLE.reference(MODEL, "lane_change").states
    begun = motion[np.abs(motion[:, STEER]) > 0.01][0]
    assert begun[STEER] < 0 and motion[:, Y].min() < -0.02
    assert motion[-1, Y] == pytest.approx(LANE_M, abs=0.2)
    np.testing.assert_allclose(motion[-1, [0, LEAN, STEER]], 0.0, atol=0.005)
    assert np.abs(motion[:, STEER]).max() > TIGHT


def test_the_circle_is_entered_from_straight_on_and_becomes_the_steady_turn():
    motion = BICYCLE.reference(MODEL, "circle").states
    turn, _ = steady_turn(MODEL, SPEED, RADIUS)
    np.testing.assert_allclose(motion[0, [LEAN, STEER]], 0.0, atol=1e-12)
    np.testing.assert_allclose(motion[-1, [LEAN, STEER]], turn[[LEAN, STEER]], atol=2e-3)
    assert motion[-1, 0] > 2 * np.pi


def test_without_torques_it_weaves_rides_or_capsizes_by_its_speed():
    """Swinging more and more below 4.29 m/s, over to one side above 6.02 m/s."""
    leans = {
        speed: BICYCLE.reference(MODEL, f"riderless_{speed}").states[:, LEAN]
        for speed in (3, 4, 5, 10)
    }
    crossings = {speed: np.diff(np.sign(lean)).astype(bool).sum() for speed, lean in leans.items()}
    assert len(leans[3]) < len(leans[4]) and crossings[3] >= 1
    assert crossings[4] >= 4 and np.abs(leans[4][-100:]).max() > 5 * abs(leans[4][0])
    assert np.abs(leans[5][-100:]).max() < 0.3 * leans[5][0]
    assert crossings[10] == 0 and leans[10][-1] > 2 * leans[10][0]


@pytest.mark.parametrize("lean", [0.3, pytest.param(-0.3, marks=pytest.mark.slow)])
def test_feedback_catches_a_lean_of_which_it_would_fall(lean):
    """At 4 m/s, where weave grows."""
    error = BicyclePerturbation(lean=lean)
    experiment = Experiment.make(BICYCLE, "slow", perturbation=error)
    run = experiment.run()
    leans = run.trajectory.states[:, LEAN]
    assert run.failure is None and leans[0] == pytest.approx(-lean)
    assert np.abs(leans).max() < 0.31 and np.abs(leans[-100:]).max() < 2e-3
    falling = riderless(run.trajectory.states[0], 3.0).states
    assert np.abs(falling[:, [LEAN, STEER]]).max() > FALLEN


@pytest.mark.slow
def test_a_push_at_the_saddle_is_ridden_out():
    push = PlantOptions(
        disturbances=(disturbance.parse("saddle:gust:0,150,0,start=1,duration=0.2"),)
    )
    none = BICYCLE.no_perturbation
    run = Experiment.make(BICYCLE, "straight", options=push, perturbation=none).run()
    states = run.trajectory.states
    assert run.failure is None and np.abs(states[:50]).max(axis=0)[LEAN] < 1e-9
    assert np.abs(states[:, LEAN]).max() > 0.02 and abs(states[-1, LEAN]) < 2e-3


@pytest.mark.parametrize("heading", [0.0, np.arccos(-0.25), np.pi / 2, 3.0])
def test_derivatives_of_riding_straight_on_do_not_depend_on_the_heading(heading):
    """Of two states that differ by round-off both are in the same basis."""
    model = MODEL.with_step(0.01)
    x = Rolling(model)(contact_v_forward=6.0, contact_theta=heading)
    modes = np.linalg.eigvals(model.linearize(x, np.zeros(2)).A)
    rates = np.log(modes[np.abs(modes) > 1e-6] + 0j) / model.h
    capsize = rates[np.argmin(np.abs(rates + 4.07e-3))]
    assert capsize == pytest.approx(-4.07e-3, abs=2e-5)
