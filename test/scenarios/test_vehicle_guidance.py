"""References of vehicles along velocity commands and to goals."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control.joint_reference import InfeasibleTrajectory
from nh_control.scenarios.vehicle_guidance import VehicleGuidance

VEHICLES = ("differential_drive", "car", "chaplygin_sleigh", "rolling_disk")
GOALS = {name: (0.9, 3.0, 2.0) for name in VEHICLES} | {"car": (0.5, 9.0, 2.5)}


def standing(name):
    """Model, guidance and a state at rest."""
    scenario = scenarios.get(name)
    model = scenario.model()
    reference = scenario.reference(model, "standstill")
    return model, VehicleGuidance(model, scenario.drive), reference.states[-1]


def rates(model, trajectory):
    """Forward speed and yaw rate of all states."""
    v = np.array([model.velocity(x) for x in trajectory.states])
    return v[:, [-2, -3]]


@pytest.mark.parametrize("name", VEHICLES)
def test_a_command_is_reached_kept_and_followed_by_rest(name):
    model, guidance, x = standing(name)
    command = np.array([0.8, 0.15])
    made = guidance.with_command(x, command, hold_s=2.0)
    again = model.simulate(made.states[0], made.inputs)
    np.testing.assert_allclose(again.states, made.states, atol=1e-9)
    driven, h = rates(model, made), model.h
    np.testing.assert_allclose(driven[round(2.0 / h)], command, atol=2e-3)
    np.testing.assert_allclose(driven[-1], 0.0, atol=1e-12)
    acceleration = guidance.drive.accelerations[0]
    assert np.abs(np.diff(driven[:, 0])).max() <= acceleration * h * (1 + 1e-6)
    # v = a t up to the command, and back to rest
    assert np.argmax(driven[:, 0] >= 0.8 - 1e-9) == round(0.8 / acceleration / h)
    bounds = model.system.input_bounds
    assert (made.inputs >= bounds[:, 0]).all() and (made.inputs <= bounds[:, 1]).all()


def test_commands_join_and_keep_to_speeds():
    model, guidance, x = standing("differential_drive")
    first = guidance.with_command(x, (5.0, -9.0), hold_s=2.0)
    assert np.abs(rates(model, first)).max(0) == pytest.approx(guidance.drive.speeds)
    second = guidance.with_command(first.states[120], (-0.5, 0.0), hold_s=0.5)
    joined = np.concatenate([rates(model, first)[:121], rates(model, second)[1:]])
    steps = np.abs(np.diff(joined, axis=0)).max(0)
    assert (steps <= np.array(guidance.drive.accelerations) * model.h * (1 + 1e-6)).all()
    slow = guidance.limited((0.25, 0.0))
    assert slow.drive.accelerations == (0.25, guidance.drive.accelerations[1])


@pytest.mark.parametrize("name", VEHICLES)
def test_a_goal_is_reached_from_a_motion(name):
    model, guidance, x = standing(name)
    moving = guidance.with_command(x, (0.5, 0.2), hold_s=0.5).states[20]
    made = guidance.to_goal(moving, GOALS[name])
    np.testing.assert_allclose(made.states[0], moving)
    end = model.configuration(made.states[-1])[-3:]
    np.testing.assert_allclose(end, GOALS[name], atol=1e-3 if name == "car" else 1e-6)
    np.testing.assert_allclose(model.velocity(made.states[-1]), 0.0, atol=1e-9)
    if name == "car":
        angles = [model.configuration(state)[1] for state in made.states]
        assert np.abs(angles).max() < 0.6


def test_a_car_parks_beside_itself_and_stands_without_a_command():
    model, guidance, x = standing("car")
    made = guidance.to_goal(x, (0.0, -1.0, 2.0))
    end = model.configuration(made.states[-1])[-3:]
    np.testing.assert_allclose(end, (0.0, -1.0, 2.0), atol=2e-3)
    still = guidance.with_command(x, (0.0, 1.0), hold_s=0.5)
    np.testing.assert_allclose(still.states, np.tile(x, (len(still) + 1, 1)), atol=1e-12)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda one, x: one.with_command(x, (np.nan, 0.0), 0.5), "finite"),
        (lambda one, x: one.with_command(x, (1.0,), 0.5), "two finite numbers"),
        (lambda one, x: one.limited((9.0, 0)).with_command(x, (9, 0), 1), "drive_torque"),
        (lambda one, x: one.to_goal(x, (np.pi, 0.0, 1.0)), "set a goal on the way"),
        (lambda one, x: one.with_command(x, (0.1, 0.0), 400.0), "longer than 300 s"),
    ],
)
def test_commands_and_goals_that_cannot_be_followed_are_refused(ask, words):
    _, guidance, x = standing("car")
    with pytest.raises(InfeasibleTrajectory, match=words):
        ask(guidance, x)
