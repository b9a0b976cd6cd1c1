"""Scenarios whose references are optimized: they begin and end at rest, within limits, and are
tracked by a plant that is not the model.
"""

import numpy as np
import pytest
from optimal_cases import optimized

from nh_control.control import lqr
from nh_control.discrete.plant_steps import convert
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlantOptions, acrobot, get

SWING_UPS = ("pendulum_swing_up", "cart_pole")


def run(name, parameters, perturbation=None, integral=False, reference="", more=0):
    scenario, model, target = optimized(name, reference)
    plant = scenario.plant(model, PlantOptions(parameters=parameters))
    start = scenario.perturb(model, target.states[0], perturbation or scenario.no_perturbation)
    x0 = convert(start, model, plant)
    return closed_loop(plant, scenario.tracker(model, target, integral), x0, len(target) + more)


@pytest.mark.parametrize(
    ("name", "step_s"),
    [
        *((name, step_s) for name in SWING_UPS for step_s in (0.0, 0.05)),
        *(
            pytest.param("acrobot", step_s, marks=() if step_s == 0.02 else pytest.mark.slow)
            for step_s in (0.01, 0.02, 0.05)
        ),
    ],
)
def test_swing_ups_lead_from_hanging_to_standing_at_rest(name, step_s):
    _, model, reference = optimized(name, step_s=step_s)
    lqr.linearize_along(model, reference)
    angle = model.state_names.index("shoulder" if name == "acrobot" else "theta")
    standing = np.where(np.arange(model.nx) == angle, np.pi, 0.0)
    np.testing.assert_array_equal(reference.states[0], np.zeros(model.nx))
    np.testing.assert_allclose(reference.states[-1], standing, atol=1e-15)
    assert model.step(standing, np.zeros(1)) == pytest.approx(standing, abs=1e-12)
    limits = model.system.input_bounds
    assert (limits[:, 0] < reference.inputs.min(axis=0)).all() and (
        reference.inputs.max(axis=0) < limits[:, 1]
    ).all()


def test_the_cart_stays_on_its_track_and_swings_more_than_once():
    """The force cannot lift the pole at once: the cart turns around on the way."""
    _, _, reference = optimized("cart_pole")
    speed = np.diff(reference.states[:, 0])
    assert np.abs(reference.states[:, 0]).max() < 1 and np.abs(reference.inputs).max() <= 9 + 1e-6
    assert np.count_nonzero(np.diff(np.sign(speed[np.abs(speed) > 1e-4]))) >= 3


def test_the_acrobot_s_elbow_goes_to_its_stop_within_the_torque_limit():
    """The links swing to and fro before they stand."""
    _, model, reference = optimized("acrobot", step_s=0.02)
    assert np.abs(reference.states[:, 1]).max() == pytest.approx(acrobot.ELBOW, abs=1e-6)
    torque = reference.inputs[:, 0]
    assert np.abs(torque).max() <= 0.6 * model.system.parameters.torque_limit
    assert np.count_nonzero(np.diff(np.sign(torque[np.abs(torque) > 0.1]))) >= 5
    # guesses that differ by 1e-9 to 1e-3 lead to three optima, with 15.26, 17.57 and 17.64
    assert model.h / 2 * np.sum(torque**2) < 17.65


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("pendulum_swing_up", {"m": 1.1}),
        ("cart_pole", {"m_pole": 0.33}),
        pytest.param("cart_pole", {"m_cart": 1.1}, marks=pytest.mark.slow),
    ],
)
def test_swing_ups_succeed_and_hold_with_a_wrong_model_and_start(name, parameters):
    loop = run(name, parameters, get(name).perturbation, more=300)
    assert loop.failure is None and not loop.saturated.any()
    assert np.abs(loop.errors[-1]).max() < 2e-3 < np.abs(loop.errors).max()


@pytest.mark.parametrize(
    ("integrator", "step_s"),
    [
        ("midpoint", 0.05),
        *(
            pytest.param(i, 0.01, marks=pytest.mark.slow)
            for i in ("midpoint", "rdp_exp", "rdp_cay")
        ),
    ],
)
def test_parking_is_exact_in_the_model(integrator, step_s):
    _, model, reference = optimized("snakeboard", "parking_optimal", integrator, step_s)
    np.testing.assert_array_equal(reference.states[0], np.zeros(8))
    end = model.simulate(reference.states[0], reference.inputs).states[-1]
    assert np.abs(end[1:] - [0, 0, 0, 1, 0, 0, 0]).max() < 1e-10
    assert np.abs(reference.states[:, 1]).max() <= 0.8 + 1e-6
    assert model.h / 2 * np.sum(reference.inputs**2) == pytest.approx(43.9, abs=0.1)
