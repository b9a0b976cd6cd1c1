"""Controllers of a user's own: objects, classes and functions in closed loops, rollouts and
studies, and what is said of those that cannot be used.
"""

from __future__ import annotations

import numpy as np
import pytest

import nh_control as nh
from nh_control.control.controller import ControllerTracker, WrongCommand
from nh_control.systems import cart_pole

UP, STEPS = [0.0, np.pi, 0.0, 0.0], 40


@pytest.fixture(scope="module")
def cart():
    return nh.midpoint(cart_pole(), 0.02)


@pytest.fixture(scope="module")
def start(cart):
    return cart.state([0.1, 0.2], [0.0, 0.1])


class Counting:
    """The inputs 0, 1, 2, ... of a run, whose state only `reset` forgets."""

    def __init__(self, first=0.0):
        self.first, self.resets = first, 0
        self.reset()

    def reset(self):
        self.next, self.resets = self.first, self.resets + 1

    def command(self, k, x):
        self.next += 1
        return [self.next - 1]


class OfModel:
    """A proportional law that needs the model."""

    def __init__(self, model):
        self.model = model

    def command(self, k, x):
        return -3.0 * self.model.configuration(x)[:1]


def test_an_object_a_class_and_a_function_are_the_same_controller(cart, start):
    law = lambda k, x: -3.0 * cart.configuration(x)[0]  # noqa: E731
    runs = [nh.closed_loop(cart, one, start, STEPS) for one in (law, OfModel, OfModel(cart))]
    x = start
    for k in range(STEPS):
        u = [-3.0 * cart.configuration(x)[0]]
        for run in runs:
            assert run.trajectory.inputs[k] == u and (run.trajectory.states[k] == x).all()
        x = cart.step(x, u)
    assert np.isnan(runs[0].errors).all()  # without targets there is no error


def test_every_run_begins_with_reset(cart, start):
    counting = Counting()
    runs = nh.rollout(cart, np.tile(start, (3, 1)), counting, steps=5)
    assert runs.inputs[..., 0].tolist() == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 3
    assert counting.resets == 1 + 3
    table = nh.study(
        "cart_pole", {"perturb.angle": [0.0, 0.1, 0.2]}, {"duration": 0.1}, controller=counting
    )
    assert table["steps"].tolist() == [10] * 3 and counting.resets == 1 + 3 + 3


def test_targets_are_what_errors_are_about_and_how_long_a_run_is(cart, start):
    controller = Counting()
    controller.targets = np.linspace(start, cart.state([0.0, 0.0], [0.0, 0.0]), 8)
    run = nh.closed_loop(cart, controller, start)
    assert len(run.trajectory) == 7
    for target, x, error in zip(controller.targets, run.trajectory.states, run.errors):
        np.testing.assert_array_equal(error, cart.local(target, x))
    longer = nh.closed_loop(cart, controller, start, 9)
    last = cart.local(controller.targets[-1], longer.trajectory.states[-1])
    np.testing.assert_array_equal(longer.errors[-1], last)


def test_inputs_stay_within_the_limits(cart, start):
    tracker = ControllerTracker(cart, Counting(), limits=[[0.0, 2.0]], steps=5)
    run = nh.closed_loop(cart, tracker, start, 5)
    assert run.trajectory.inputs[:, 0].tolist() == [0.0, 1.0, 2.0, 2.0, 2.0]
    assert run.saturated[:, 0].tolist() == [True, False, True, True, True]


def test_the_state_is_a_copy(cart, start):
    def spoils(k, x):
        x[:] = 7.0
        return 0.0

    still = nh.closed_loop(cart, lambda k, x: 0.0, start, STEPS)
    run = nh.closed_loop(cart, spoils, start, STEPS)
    np.testing.assert_array_equal(run.trajectory.states, still.trajectory.states)


def test_a_plant_with_finer_steps_needs_the_controllers_model(cart, start):
    fine = cart.with_step(cart.h / 2)
    seen = []
    nh.rollout(fine, start, lambda k, x: seen.append(k) or 0.0, steps=3, substeps=2, model=cart)
    assert seen == [0, 1, 2]
    with pytest.raises(
        ValueError, match="2 substeps must be as long as a step of the tracker's model"
    ):
        nh.rollout(fine, start, lambda k, x: 0.0, steps=3, substeps=2)


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (None, r"command\(0, x\) must return 1 input \(force\), got None"),
        ([1.0, 2.0], r"must return 1 input \(force\), got \[1.0, 2.0\] of shape \(2,\)"),
        ([[1.0]], r"got \[\[1.0\]\] of shape \(1, 1\)"),
        ("left", "got 'left' of shape"),
    ],
)
def test_what_is_no_input_is_refused(returned, text, cart, start):
    with pytest.raises(WrongCommand, match=text):
        nh.rollout(cart, start, lambda k, x: returned, steps=3)


def test_a_start_of_another_length_is_refused(cart):
    text = r"the initial state must have 4 numbers \(x, theta, p_x, p_theta\), got shape \(2,\)"
    with pytest.raises(ValueError, match=text):
        nh.closed_loop(cart, lambda k, x: 0.0, [0.0, 0.1], 3)


def test_an_input_that_is_not_finite_ends_its_run_alone(cart, start):
    starts = np.array([start, cart.state([0.5, 0.0], [0.0, 0.0])])
    law = lambda k, x: np.nan if cart.configuration(x)[0] > 0.4 else 0.0  # noqa: E731
    runs = nh.rollout(cart, starts, law, steps=3)
    assert runs.succeeded.tolist() == [True, False] and "must be finite" in str(runs.failures[1])


def test_an_error_of_a_controller_is_raised_as_it_is(cart, start):
    def fails(k, x):
        return 1 / (k - 2)

    with pytest.raises(ZeroDivisionError) as raised:
        nh.rollout(cart, start, fails, steps=5)
    assert raised.traceback[-1].name == "fails"


def test_what_is_no_controller_is_refused(cart, start):
    class Needs:
        def __init__(self, model, gain):
            """Needs more than a model."""

    with pytest.raises(TypeError, match="class Needs must take the model or nothing, but needs"):
        nh.closed_loop(cart, Needs, start, 3)
    with pytest.raises(TypeError, match="expected inputs or a controller: an object with"):
        nh.closed_loop(cart, object(), start, 3)
    with pytest.raises(ValueError, match="without `targets` does not determine the length"):
        nh.rollout(cart, start, lambda k, x: 0.0)
    controller = Counting()
    controller.targets = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"targets must have shape \(steps \+ 1, 4\), got \(3, 2"):
        nh.closed_loop(cart, controller, start)
