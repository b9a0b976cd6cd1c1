"""The scenarios of wheels and skates: what their references do, and how LQR tracks them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control.joint_reference import InfeasibleTrajectory
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import (
    Constant,
    Disturbance,
    PlantOptions,
    differential_drive,
    rolling_disk,
)
from nh_control.scenarios.driving import figure_eight, slalom, trajectory_with_velocity
from nh_control.scenarios.vehicle_guidance import VehicleGuidance

NAMES = ("differential_drive", "car", "chaplygin_sleigh", "rolling_disk")
REFERENCES = [
    (name, one)
    for name in NAMES
    for one in scenarios.get(name).references
    if one != "standstill"  # where lateral errors cannot be corrected
]
QUICK = (
    ("differential_drive", "delivery"),
    ("car", "parking"),
    ("car", "lane_change"),
    ("chaplygin_sleigh", "slalom"),
    ("chaplygin_sleigh", "turn_round"),
    ("rolling_disk", "circle"),
)
"""References of few steps, one of every kind."""
SLEIGH_FIRST = [
    name if name == "chaplygin_sleigh" else pytest.param(name, marks=pytest.mark.slow)
    for name in NAMES
]
"""The least system, whose courses are followed in the fewest steps."""


def quick_first(pairs, quick=QUICK):
    """The pairs of scenario and reference; those that are not quick run with the long studies."""
    return [
        pytest.param(*pair, marks=[] if pair in quick else [pytest.mark.slow]) for pair in pairs
    ]


@cache
def model(name):
    return scenarios.get(name).model()


@cache
def reference(name, one):
    return scenarios.get(name).reference(model(name), one)


def velocities(name, one):
    return np.array([model(name).velocity(x) for x in reference(name, one).states])


def column(name, what):
    return model(name).system.space.names.index(what)


@pytest.mark.parametrize("name, one", quick_first(REFERENCES))
def test_references_are_motions_that_leave_torque_for_feedback(name, one):
    dsys, motion = model(name), reference(name, one)
    for k in range(0, len(motion), 25):
        reached = dsys.step(motion.states[k], motion.inputs[k])
        assert np.abs(dsys.local(reached, motion.states[k + 1])).max() <= 1e-9
    assert (np.abs(motion.inputs) <= 0.75 * dsys.system.input_bounds[:, 1]).all()


@pytest.mark.parametrize("name", SLEIGH_FIRST)
def test_the_figure_of_eight_follows_geronos_curve(name):
    """The pose's point, of the sleigh the skate, but for the error of the steps."""
    scenario, motion = scenarios.get(name), reference(name, "figure_eight")
    theta, x, y = motion.states[:, column(name, "theta") :][:, :3].T
    if name == "chaplygin_sleigh":
        a = scenario.parameters.a
        x, y = x - a * np.cos(theta), y - a * np.sin(theta)
    half_length, half_width = np.abs(x).max(), np.abs(y).max()
    s, c = x / half_length, y / half_width
    assert np.abs(c**2 - 4 * s**2 * (1 - s**2)).max() <= 0.02
    assert np.hypot(x[-1], y[-1]) <= 0.01 * half_length and half_length > 1.9


def test_parking_goes_back_into_the_gap_and_forth_in_it():
    motion = reference("car", "parking")
    theta, x, y = motion.states[:, 2:5].T
    forward = velocities("car", "parking")[:, 3]
    steering = motion.states[:, 1]
    assert (y[0], x[0]) == pytest.approx((2.5, 8.0), abs=1e-6)
    assert abs(y[-1]) <= 1e-3 and abs(theta[-1]) <= 1e-3 and x[-1] == pytest.approx(0.8, abs=1e-2)
    assert x.min() == pytest.approx(0.0, abs=1e-2) and 0.6 <= np.abs(steering).max() <= 0.7
    assert (forward[1:450] < 0).all() and (forward[451:-1] > 0).all()


def test_the_sleigh_turns_round_by_itself():
    motion = reference("chaplygin_sleigh", "turn_round")
    rates = velocities("chaplygin_sleigh", "turn_round")
    assert not motion.inputs.any()
    assert rates[0, 1] == -1.0 and rates[-1, 1] == pytest.approx(1.0, abs=1e-3)
    assert abs(rates[-1, 0]) < 1e-2 < 0.6 < np.abs(rates[:, 0]).max()


def test_the_disk_circles_by_itself():
    motion = reference("rolling_disk", "circle")
    assert not motion.inputs.any()
    assert np.abs(motion.states[:, 4:] - motion.states[0, 4:]).max() <= 1e-12
    from_center = np.hypot(motion.states[:, 2], motion.states[:, 3] - 2.0)
    assert np.abs(from_center - 2.0).max() <= 2e-3  # of the order of m v^2 h^2 / J_theta


def test_delivery_turns_on_the_spot():
    motion = reference("differential_drive", "delivery")
    theta, x, y = motion.states[:, 2:5].T
    assert theta[-1] == pytest.approx(np.pi, abs=1e-6) and abs(x[-1]) <= 1e-6
    assert np.ptp(x[300:601]) <= 1e-6 and x[450] == pytest.approx(1.5, abs=1e-6)


def test_trajectories_have_the_given_velocities():
    dsys, course = model("car"), slalom(speed=3.0, amplitude=0.5, wavelength=12.0, waves=1)
    p = dsys.system.parameters

    def velocity(t, q):
        speed, steering = 3 + np.sin(t), 0.2 * np.cos(t)
        return np.array([speed / p.r, steering, np.tan(q[1]) / p.l * speed, speed, 0.0])

    motion = trajectory_with_velocity(dsys, np.zeros(5), velocity, course.duration)
    for k, x in enumerate(motion.states):
        want = velocity(k * dsys.h, x[:5])
        assert np.abs(dsys.velocity(x) - want).max() <= 1e-8 * np.abs(want).max()


@pytest.mark.parametrize("scenario", [differential_drive, rolling_disk])
def test_a_drive_and_a_disk_roll_along_their_courses(scenario):
    """The first 0.3 s of a slalom, at every 10th node."""
    name, course = scenario.__name__.rpartition(".")[2], slalom(1.5, 0.5, 4.0, 3)
    motion = scenario.course_trajectory(replace(course, duration=0.3), model(name))
    for x, t in zip(motion.states[::10], motion.times[::10], strict=True):
        theta, *position = x[column(name, "theta") :][:3]
        wanted = np.asarray(course._pose(t))[:, 0]
        assert np.abs(np.array([theta, *position]) - wanted).max() <= 2e-4
        rates, v = course.rates(t), model(name).velocity(x)
        assert v[-2] == pytest.approx(rates.speed, rel=1e-6)
        assert v[-3] == pytest.approx(rates.yaw_rate, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("course", [figure_eight(4, 2, 10), slalom(1.0, 0.3, 2.0, 2)])
@pytest.mark.parametrize("t", [1.0, 3.2])
def test_rates_of_a_course_equal_finite_differences(course, t):
    step, times = 1e-4, t + 1e-4 * np.array([-1, 0, 1])
    poses = np.array([np.asarray(course._pose(at))[:, 0] for at in times])
    rate = (poses[2] - poses[0]) / (2 * step)
    rates = course.rates(t)
    assert rates.speed == pytest.approx(np.hypot(rate[1], rate[2]), rel=1e-6)
    assert rates.yaw_rate == pytest.approx(rate[0], rel=1e-5)
    assert rates.curvature == pytest.approx(rates.yaw_rate / rates.speed, rel=1e-12)
    ahead, behind = course.rates(t + step).curvature, course.rates(t - step).curvature
    assert rates.curvature_rate == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)


def errors(name, one, options=PlantOptions(), integral=False, perturbation=None):
    """Distance from the reference's poses (N + 1), m and rad, and the run itself."""
    scenario = replace(scenarios.get(name), references={one: lambda _: reference(name, one)})
    start = perturbation or scenario.perturbation
    experiment = Experiment.make(scenario, one, "", 0.0, options, start, integral)
    run = experiment.run()
    assert run.failure is None
    at = column(name, "theta")
    return np.linalg.norm(run.errors[:, at : at + 3], axis=1), run


SHRINK = {
    ("differential_drive", "figure_eight"): 1e9,
    ("differential_drive", "slalom"): 1e5,
    ("differential_drive", "delivery"): 1e4,
    ("car", "parking"): 500,
    ("car", "tight_parking"): 500,
    ("car", "lane_change"): 500,
    ("car", "figure_eight"): 1e9,
    ("chaplygin_sleigh", "figure_eight"): 1e9,
    ("chaplygin_sleigh", "slalom"): 1e6,
    ("chaplygin_sleigh", "turn_round"): 1e6,
    ("rolling_disk", "figure_eight"): 1e9,
    ("rolling_disk", "slalom"): 1e6,
    ("rolling_disk", "circle"): 1e9,
}
"""By how much the scenario's own initial error becomes smaller, a few times less than measured."""


def test_every_reference_is_tracked_below():
    assert sorted(SHRINK) == sorted(REFERENCES)


@pytest.mark.parametrize(
    "name, one", quick_first(SHRINK, [pair for pair in QUICK if pair != ("car", "parking")])
)
def test_the_initial_error_is_removed(name, one):
    error, run = errors(name, one)
    assert error[0] > 0.14 and error[-1] <= error[0] / SHRINK[name, one]
    assert run.saturated.mean() <= 0.03


@pytest.mark.parametrize("name", SLEIGH_FIRST)
def test_a_push_from_outside_is_withstood(name):
    """A constant force of 5 % of the weight's size at the body; integral action leaves less."""
    mass = sum(
        getattr(scenarios.get(name).parameters, each, 0.0) for each in ("m", "m_body", "m_wheel")
    )
    push = Disturbance("base_link", Constant(force=(0.05 * 9.81 * mass, 0.0)))
    options = PlantOptions(disturbances=(push,))
    undisturbed = scenarios.get(name).no_perturbation
    plain, integral = (
        errors(name, "figure_eight", options, integral=on, perturbation=undisturbed)[0]
        for on in (False, True)
    )
    assert 1e-4 < integral.max() < plain.max()


# --- References of vehicles along velocity commands and to goals ---


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
        (lambda one, x: one.to_goal(x, (np.pi, 0.0, 1.0)), "set an intermediate goal"),
        (lambda one, x: one.with_command(x, (0.1, 0.0), 400.0), "longer than 300 s"),
    ],
)
def test_commands_and_goals_that_cannot_be_followed_are_refused(ask, words):
    _, guidance, x = standing("car")
    with pytest.raises(InfeasibleTrajectory, match=words):
        ask(guidance, x)
