"""Sensors of a scenario: rate, delay, bias and noise of what they measure, and the state that a
filter makes of them.
"""

from dataclasses import replace

import numpy as np
import pytest
from refusals import said
from scipy.stats import chi2

import nh_control as nh
from nh_control import scenarios
from nh_control.geometry.spaces import Rn
from nh_control.loop.sensed_state import SensedState
from nh_control.loop.sensing import SensorFilter, Sensors, first_belief
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.mechanics.outputs import Output
from nh_control.runs.local_run import LocalRun
from nh_control.scenarios import SensingOptions, Sensor
from nh_control.systems import pendulum

ANGLE = Output("angle", lambda q, v, u, p: q[0], units="rad")
SPEED = Output("speed", lambda q, v, u, p: v[0], units="rad/s")


def watched():
    return nh.midpoint(replace(pendulum(), outputs=(ANGLE, SPEED)), 0.01)


def measured(sensor, steps, u=0.0):
    """Steps at which measurements come and were made, and values, at rest at 0.3 rad."""
    d = watched()
    made = Sensors([sensor], d, d.h)
    q, v, force = np.array([0.3]), np.array([0.0]), np.array([u])
    rows = [(k, m.step, m.values[0]) for k in range(steps) for m in made.measure(k, q, v, force)]
    return np.array(rows).T


def test_a_sensor_measures_at_its_rate_and_late():
    come, made, values = measured(Sensor("a", "angle", 0.0, rate_hz=20.0, delay_s=0.02), 23)
    assert made.tolist() == [0, 5, 10, 15, 20] and come.tolist() == [2, 7, 12, 17, 22]
    assert values.tolist() == [0.3] * 5


def test_noise_and_bias_are_those_declared_for_each_number():
    """Mean and variance of 4000 values, within what is likely at 1e-6."""
    both = Output("both", lambda q, v, u, p: [q[0], v[0]], space=Rn("a", "b"))
    d, truth = nh.midpoint(replace(pendulum(), outputs=(both,)), 0.01), np.array([0.3, -0.2])
    n, deviations, bias = 4000, np.array([0.02, 0.05]), 0.1
    made = Sensors([Sensor("a", "both", tuple(deviations), bias=bias)], d, d.h)
    at = truth[:1], truth[1:], np.zeros(1)
    errors = np.array([made.measure(k, *at)[0].values for k in range(n)]) - truth
    assert (np.abs(errors.mean(axis=0) - bias) < 5 * deviations / np.sqrt(n)).all()
    spread = (n - 1) * errors.var(axis=0, ddof=1) / deviations**2
    assert (chi2.ppf(5e-7, n - 1) < spread).all() and (spread < chi2.ppf(1 - 5e-7, n - 1)).all()
    correlations = np.corrcoef(errors[1:].T, errors[:-1].T)
    assert np.abs(correlations - np.eye(4)).max() < 5 / np.sqrt(n)


def run(filter_of, sensors, steps, late=True, seed=1):
    """Errors (steps, 2) of a filter on a swinging pendulum, and the filter."""
    d, u = watched(), np.array([0.2])
    truth = d.state([1.0], [0.0])
    made = Sensors(sensors, d, d.h, seed)
    found = filter_of(d)
    errors = []
    for k in range(steps):
        at = d.configuration(truth), d.velocity(truth), u
        belief = found.update(made.measure(k, *at))
        errors.append(d.local(truth, belief.x))
        truth = d.step(truth, u)
        found.predict(u)
    return np.array(errors), found


def started(sensors, outlier=0.0):
    def made(d):
        start = first_belief(d, d.state([1.3], [0.5]), 0.5, 1.0)
        return SensorFilter(d, sensors, start, 0.05, outlier)

    return made


def test_late_measurements_of_some_sensors_make_the_state():
    """The angle at 20 Hz and 30 ms late, the speed at once: better than the sensors."""
    sensors = (
        Sensor("angle", "angle", 0.02, rate_hz=20.0, delay_s=0.03),
        Sensor("gyro", "speed", 0.05),
    )
    errors, found = run(started(sensors), sensors, 300)
    assert np.abs(errors[0, 0]) > 0.2
    assert np.sqrt(np.mean(errors[150:, 0] ** 2)) < 0.01
    for watch in found.watches.values():
        assert watch.refused == 0 and 0.5 < watch.fit < 1.5
    assert found.warning == ""


def test_a_late_measurement_gives_what_it_would_have_given_in_time():
    """Two filters with the same measurements, late and in time, agree once all have come."""
    late = (Sensor("angle", "angle", 0.02, delay_s=0.05),)
    _, one = run(started(late), late, 40)
    prompt = (Sensor("angle", "angle", 0.02),)
    errors, _ = run(started(prompt), prompt, 40)
    d, u, made = watched(), np.array([0.2]), Sensors(prompt, watched(), 0.01, 1)
    truth, again = d.state([1.0], [0.0]), started(late)(d)
    for k in range(40):
        at = d.configuration(truth), d.velocity(truth), u
        if k < 35:  # those that have come to the other by its end
            again.update(made.measure(k, *at))
        truth = d.step(truth, u)
        again.predict(u)
    assert one.belief.x == pytest.approx(again.belief.x, abs=1e-12)
    assert pytest.approx(again.belief.P, abs=1e-12) == one.belief.P
    assert np.abs(errors[-1]).max() < 0.1


def test_innovations_beyond_their_bounds_are_left_out_and_told():
    sensors = (Sensor("angle", "angle", 0.01), Sensor("gyro", "speed", 0.02))
    d = watched()
    found = SensorFilter(d, sensors, first_belief(d, d.state([1.0], [0.0]), 0.01, 0.01), 0.05, 6.0)
    made = Sensors(sensors, d, d.h)
    first = made.measure(0, np.array([1.0]), np.array([0.0]), np.zeros(1))
    wrong = [replace(first[0], values=first[0].values + 0.5), first[1]]
    belief = found.update(wrong)
    assert d.configuration(belief.x)[0] == pytest.approx(1.0, abs=0.03)
    assert found.watches["angle"].refused == 1 and found.watches["gyro"].refused == 0
    assert "1 of 1 measurements of angle left out, the last innovation 3" in found.warning


def test_a_measurement_from_before_all_that_is_known_is_left_out():
    sensors = (Sensor("angle", "angle", 0.01),)
    errors, found = run(started(sensors), sensors, 20)
    made = Sensors(sensors, watched(), 0.01)
    (old,) = made.measure(3, np.array([1.0]), np.array([0.0]), np.zeros(1))
    before = found.belief
    assert found.update([old]) is before and found.watches["angle"].refused == 1


def sensed_run():
    """Errors (N + 1) of the angle of a pendulum held by a late encoder, and the filter."""
    sensors = (Sensor("encoder", "angle", 0.002, rate_hz=50.0, delay_s=0.03),)
    model = watched()
    rest = model.state([np.pi], [0.0])
    still = nh.Trajectory(model.h, np.tile(rest, (2, 1)), np.zeros((1, 1)))
    tracker = nh.LqrTracker(model, still, np.diag([10.0, 1.0]), np.eye(1), hold=True)
    options = SensingOptions(acceleration=0.5, start_error=0.2)
    sensed = SensedState(sensors, options, model)
    x0, measuring = model.state([np.pi - 0.1], [0.0]), Sensors(sensors, model, model.h)
    plant = SimulatedPlant(model, x0, sensors=measuring)
    run = LocalRun(plant, tracker, 300, sensed=sensed).run()
    return run.trajectory.states[:, 0] - np.pi, sensed


def test_a_tracker_balances_a_pendulum_by_a_late_encoder_alone():
    error, sensed = sensed_run()
    assert abs(error[0]) == pytest.approx(0.1) and np.abs(error[150:]).max() < 0.02
    values = sensed.values()
    assert values["sensor encoder: measurements"] == 149 and sensed.warning == ""
    assert np.array_equal(sensed_run()[0], error)


def on_a_pendulum(*sensors):
    scenario = scenarios.get("pendulum_swing_up")
    make = lambda p: replace(scenario.make_system(p), outputs=(ANGLE, SPEED))  # noqa: E731
    return replace(scenario, make_system=make, sensors=sensors).model()


def without_sensors():
    d = watched()
    SensorFilter(d, (), first_belief(d, d.state([0.0], [0.0]), 0.1, 0.1), 1.0)


WRONG = [
    lambda: on_a_pendulum(Sensor("a", "angle", -0.1)),
    lambda: on_a_pendulum(Sensor("a", "angle", np.nan)),
    lambda: on_a_pendulum(Sensor("a", "angle", (0.1, 0.2))),
    lambda: on_a_pendulum(Sensor("a", "angel", 0.1)),
    lambda: on_a_pendulum(Sensor("a", "angle", 0.1), Sensor("a", "speed", 0.1)),
    lambda: Sensors([Sensor("a", "angle", 0.1, rate_hz=1000.0)], watched(), 0.01),
    lambda: SensingOptions(acceleration=0.0),
    without_sensors,
]


def test_what_does_not_fit_is_refused(snapshot):
    assert said(WRONG) == snapshot
