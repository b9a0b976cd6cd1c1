"""The inner loop of joints: a critically damped motion, whatever the mechanism weighs."""

import numpy as np
import pytest
from scipy.linalg import expm

from nh_control import scenarios
from nh_control.control.joint_servo import JointServo, joint_servo

W = 8.0


def servo_of(name, kind="position"):
    scenario = scenarios.get(name)
    model = scenario.model()
    if name == "urdf":
        return model, JointServo(("shoulder", "elbow"), (0, 1), kind, W)
    coordinates = {"cart_pole": ("x",), "snakeboard": ("psi", "phi")}[name]
    return model, JointServo(coordinates, tuple(range(len(coordinates))), kind, W)


def run(model, servo, x, target, steps, substeps=1):
    states, inputs = [x], []
    for _ in range(steps):
        made = servo.advance(model, states[-1], target, np.zeros(model.nu), substeps)
        states.append(made.after)
        inputs.append(made.inputs)
    return np.array(states), np.array(inputs)


@pytest.mark.parametrize("name", ["cart_pole", "urdf", "snakeboard"])
def test_steps_of_positions_are_critically_damped(name):
    model, servo = servo_of(name)
    x = model.state(model.system.space.origin, np.zeros(model.system.space.nw))
    start = servo.rest(model, model.configuration(x))
    target = start + np.array([0.02, -0.03])[: len(start)]
    steps = round(1.2 / model.h)
    states, inputs = run(model, servo, x, target, steps)
    t = model.h * np.arange(steps + 1)[:, None]
    expected = target + (start - target) * (1 + W * t) * np.exp(-W * t)
    found = np.array([servo.rest(model, model.configuration(state)) for state in states])
    assert np.abs(found - expected).max() < 0.02 * np.abs(start - target).max()
    np.testing.assert_allclose(found[-1], target, atol=0.02 * np.abs(start - target).max())
    moved = np.sign(target - start) * np.diff(found, axis=0)
    assert moved.min() > -1e-3 * np.abs(moved).max()  # no overshoot
    bounds = model.system.input_bounds
    assert (inputs >= bounds[:, 0]).all() and (inputs <= bounds[:, 1]).all()


def test_the_rate_after_a_step_is_that_of_the_continuous_motion():
    model, servo = servo_of("urdf")
    x = model.state([0.3, -0.2], [0.5, -0.4])
    target, h = np.array([0.1, 0.4]), model.h
    made = servo.advance(model, x, target, np.zeros(2))
    e, v = np.array([0.3, -0.2]) - target, np.array([0.5, -0.4])
    # e'' + 2 w e' + w^2 e = 0 by the exponential of its matrix
    A = np.array([[0.0, 1.0], [-(W**2), -2 * W]])
    wanted = (expm(A * h) @ np.array([e, v]))[1]
    np.testing.assert_allclose(model.velocity(made.after), wanted, atol=1e-9)


def test_velocities_are_approached_exponentially_and_kept_against_gravity():
    model, servo = servo_of("urdf", "velocity")
    x = model.state([0.3, 0.2], [0.0, 0.0])
    states, _ = run(model, servo, x, np.array([0.2, -0.1]), 200)
    speeds = np.array([model.velocity(state) for state in states])
    t = model.h * np.arange(201)[:, None]
    wanted = np.array([0.2, -0.1]) * (1 - np.exp(-W * t))
    np.testing.assert_allclose(speeds, wanted, atol=1e-8)
    assert servo.rest(model, np.zeros(2)).tolist() == [0.0, 0.0]


def test_inputs_keep_their_limits_and_others_stay():
    model, servo = servo_of("urdf")
    bounds = model.system.input_bounds
    x = model.state([0.0, 0.0], [0.0, 0.0])
    made = servo.advance(model, x, np.array([40.0, -40.0]), np.zeros(2), 3)
    assert np.isclose(np.abs(made.inputs), bounds[:, 1]).any()
    assert (np.abs(made.inputs) <= bounds[:, 1]).all()
    # a smaller part of the same change of the rates
    change = model.velocity(made.after) - model.velocity(made.before)
    h, decay = model.h / 3, np.exp(-W * model.h / 3)
    e, v = model.configuration(made.before) - [40.0, -40.0], model.velocity(made.before)
    wanted = decay * (v - W * (v + W * e) * h) - v
    assert change[0] / wanted[0] == pytest.approx(change[1] / wanted[1], rel=0.01)
    assert 0 < change[0] / wanted[0] < 1
    one = JointServo(("elbow",), (1,), "position", W)
    made = one.advance(model, x, np.array([0.1]), np.array([0.7, 5.0]))
    assert made.inputs[0] == 0.7 and made.inputs[1] != 5.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: JointServo(("a",), (0,), "effort"), "position or velocity"),
        (lambda: JointServo(("a",), (0,), "position", 0.0), "bandwidth must be positive"),
        (lambda: JointServo(("a",), (0, 1)), "one input for each"),
        (lambda: joint_servo(scenarios.get("cart_pole").model(), [], "position", W, 1), "0 have"),
    ],
)
def test_servos_that_cannot_be_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
