"""The inner loop of joints: a critically damped motion, whatever the mechanism weighs."""

from functools import partial

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from nh_control import scenarios
from nh_control.control.joint_servo import JointServo, joint_servo
from nh_control.control.target_motion import Target
from nh_control.geometry.spaces import Rn
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.system import System

W = 8.0


def servo_of(name, kind="position"):
    scenario = scenarios.get(name)
    model = scenario.model()
    if name == "urdf":
        return model, JointServo(("shoulder", "elbow"), (0, 1), (kind, kind), W)
    coordinates = {"cart_pole": ("x",), "snakeboard": ("psi", "phi")}[name]
    n = len(coordinates)
    return model, JointServo(coordinates, tuple(range(n)), (kind,) * n, W)


def still(target):
    return lambda t: Target.at_rest(target)


def run(model, servo, x, target, steps, substeps=1):
    states, inputs = [x], []
    for _ in range(steps):
        made = servo.advance(model, states[-1], still(target), np.zeros(model.nu), substeps)
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
    made = servo.advance(model, x, still(target), np.zeros(2))
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


def test_moving_targets_of_positions_and_velocities_are_followed_without_lag():
    """A joint along a sine in position, the other one in velocity, from the targets' start."""
    model, _ = servo_of("urdf")
    servo = JointServo(("shoulder", "elbow"), (0, 1), ("position", "velocity"), W)

    def wave(t, n):
        """The n-th derivative of 0.2 sin(3 t)."""
        return 0.2 * 3**n * np.sin(3 * t + n * np.pi / 2)

    def target(k, t):
        t += k * model.h
        return Target(*(np.array([wave(t, n), wave(t, n + 1)]) for n in range(3)))

    x = model.state([0.0, 0.0], [wave(0.0, 1), wave(0.0, 1)])
    errors = []
    for k in range(200):
        x = servo.advance(model, x, partial(target, k), np.zeros(2), 1).after
        t = (k + 1) * model.h
        position, velocity = model.configuration(x)[0], model.velocity(x)[1]
        errors.append((abs(position - wave(t, 0)), abs(velocity - wave(t, 1))))
    position, velocity = np.max(errors, axis=0)
    # without rates of the targets: 0.15 rad and 0.2 rad/s
    assert position < 1e-3 and velocity < 2e-3


def test_wheels_of_one_axle_share_the_effort_that_they_cannot_use_alone():
    kinetic = lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2  # noqa: E731
    axle = System(
        "axle",
        Rn("left", "right"),
        kinetic,
        inputs=("a", "b"),
        force=lambda q, v, u: u,
        velocity_constraint=lambda q: ca.horzcat(1, -1),
    )
    model = nonholonomic_midpoint(axle, 0.01)
    servo = JointServo(("left", "right"), (0, 1), ("velocity", "velocity"), W)
    x = model.state([0.0, 0.0], [0.0, 0.0])
    made = servo.advance(model, x, still(np.array([2.0, 3.0])), np.zeros(2))
    rate = 2.5 * (1 - np.exp(-W * 0.01))  # that of least squares
    assert model.velocity(made.after) == pytest.approx([rate, rate])
    assert made.inputs == pytest.approx([rate / 0.01, rate / 0.01])


def test_inputs_keep_their_limits_and_others_stay():
    model, servo = servo_of("urdf")
    bounds = model.system.input_bounds
    x = model.state([0.0, 0.0], [0.0, 0.0])
    made = servo.advance(model, x, still(np.array([40.0, -40.0])), np.zeros(2), 3)
    assert np.isclose(np.abs(made.inputs), bounds[:, 1]).any()
    assert (np.abs(made.inputs) <= bounds[:, 1]).all()
    # a smaller part of the same change of the rates
    change = model.velocity(made.after) - model.velocity(made.before)
    h, decay = model.h / 3, np.exp(-W * model.h / 3)
    e, v = model.configuration(made.before) - [40.0, -40.0], model.velocity(made.before)
    wanted = decay * (v - W * (v + W * e) * h) - v
    assert change[0] / wanted[0] == pytest.approx(change[1] / wanted[1], rel=0.01)
    assert 0 < change[0] / wanted[0] < 1
    one = JointServo(("elbow",), (1,), ("position",), W)
    made = one.advance(model, x, still(np.array([0.1])), np.array([0.7, 5.0]))
    assert made.inputs[0] == 0.7 and made.inputs[1] != 5.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: JointServo(("a",), (0,), ("effort",)), "position or velocity"),
        (
            lambda: JointServo(("a",), (0,), ("position",), 0.0),
            "bandwidth of a servo must be positive",
        ),
        (lambda: JointServo(("a",), (0, 1), ("position",)), "one input and kind for each"),
        (
            lambda: joint_servo(scenarios.get("cart_pole").model(), [], (), W, 1),
            "only 0 of the 1 inputs",
        ),
    ],
)
def test_servos_that_cannot_be_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
