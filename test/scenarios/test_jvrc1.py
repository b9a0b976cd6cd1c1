"""JVRC-1, a humanoid with 34 motors, stands on its soles, is pushed, and squats, under LQR by the
derivatives of the step through contact.
"""

import numpy as np
import pytest
from own_scenarios import of_robot, pushed

from nh_control.runs.simulation import closed_loop

pytestmark = pytest.mark.slow
HEIGHT = 6
"""Index of the height of the base."""


@pytest.fixture(scope="module")
def jvrc1():
    return of_robot("jvrc1", "jvrc_description")


def held(result, slip):
    """Whether soles do not slip further than this (m), no corner is below the ground, and efforts
    stay within the limits of the robot.
    """
    places, limits = result.contacts.position, result.experiment.tracker.limits
    inputs = result.loop.trajectory.inputs[:, : len(limits)]
    assert np.abs(places - places[0]).max() < slip
    assert result.contacts.gap.min() > 0
    assert (inputs >= limits[:, 0]).all() and (inputs <= limits[:, 1]).all()


@pytest.mark.parametrize("force", ["100,0,0", "0,-60,0"])
def test_it_withstands_a_push(jvrc1, force):
    """Of 0.1 s at its pelvis; it does not step."""
    result = pushed(jvrc1, "stand", f"base_link:gust:{force},start=1,duration=0.1")
    error = result.configuration_error()
    assert error.max() > 0.005 and error[-1] < 1e-4
    held(result, slip=1e-3)


def test_it_squats_and_stands_up_and_is_pushed_meanwhile(jvrc1):
    result = pushed(jvrc1, "squat", "base_link:gust:0,60,0,start=2.2,duration=0.1")
    height = result.experiment.tracker.reference.states[:, HEIGHT]
    assert height.min() < height[0] - 0.25
    assert height[-1] == pytest.approx(height[0], abs=1e-6)
    error = result.configuration_error()
    assert error.max() > 0.005 and error[-1] < 1e-3
    held(result, slip=2e-3)
    # the ground carries what the motion down and up asks for
    forces = result.contacts.normal.sum(axis=1)
    assert forces[-1] == pytest.approx(forces[0], rel=1e-3)
    assert forces.min() < 0.99 * forces[0] < 1.01 * forces[0] < forces.max()


def test_with_the_wrong_sign_it_falls(jvrc1):
    model = jvrc1.model()
    tracker = jvrc1.tracker(model, jvrc1.reference(model, "stand"))
    wrong = tracker.with_gains(-tracker.gains.K[0])
    x = tracker.reference.states[0]
    leaning = model.retract(x, np.eye(model.ndx)[1] * 0.02)
    loop = closed_loop(model, wrong, leaning, 400)
    assert loop.failure or loop.trajectory.states[-1, HEIGHT] < 0.7 * x[HEIGHT]
