"""Limits that hold unless others are given: a runaway is disarmed by them, a usual run is not."""

from dataclasses import replace

import numpy as np
import pytest
from bench import Desk, Ended, benches
from hardware_emulator import TOPICS, CartPole
from scipy.integrate import solve_ivp

from nh_control import scenarios
from nh_control.loop.arming import SafeRange, error_limit
from nh_control.ros.nodes import tracker
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import SafetyLimits

USUAL = 0.5
"""What share of its limits a usual run needs at most."""
PERIOD_S = 0.01
CASES = [
    (name, reference)
    for name in scenarios.built_in()
    for reference in scenarios.get(name).references
]
QUICK = {("cart_pole", "swing_up"), ("car", "lane_change"), ("snakeboard", "slalom")}


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow, id="-".join(case))
        for case in CASES
    ],
)
def test_usual_runs_stay_far_from_the_limits_of_their_scenario(name, reference):
    scenario = scenarios.get(name)
    loop = Experiment.make(scenario, reference, perturbation=scenario.perturbation).run()
    model = scenario.model()
    space, motion = model.system.space, scenario.reference(model, reference)
    tracked = scenario.tracked(space)
    errors = loop.errors[:, : space.nv][:, tracked]
    assert np.abs(errors).max() < USUAL * error_limit(scenario, model, motion)
    free = np.flatnonzero(~np.r_[False, loop.saturated.any(axis=1), False])
    assert np.diff(free).max() * model.h < USUAL * scenario.limits.saturation_s
    safe = SafeRange(scenario, space, scenario.limits.ranges)
    assert not any(safe.violation(model.configuration(x)) for x in loop.trajectory.states)


def run(sign, seconds, **given):
    """States (rows, 4) and log of a tracker on an emulated cart-pole until commands end."""
    given |= {"scenario": "cart_pole", "source": "hardware", "hardware.armed": True}
    given |= {"hardware.estimator": "none", "hardware.compensate_delay": False}
    robot, rng, rows = CartPole(), np.random.default_rng(0), [np.zeros(4)]
    with benches() as make:
        node, desk = make("tracker", **given), Desk()
        made = tracker.Tracker(node, desk, Ended())
        for k in range(1, round(seconds / PERIOD_S)):
            node.wall_ns = round(k * PERIOD_S * 1e9)
            before = len(node.sent("joint_commands"))
            for message in robot.messages(rows[-1], rng):
                desk.give(TOPICS[type(message)], message, node.wall_ns)
            commands = node.sent("joint_commands")
            if k > 2 and len(commands) == before:
                break
            u = sign * np.array(commands[-1].effort) if commands else np.zeros(1)
            rates = lambda _, s, u=u: robot.rates(s, u)
            solved = solve_ivp(rates, (0.0, PERIOD_S), rows[-1], rtol=1e-7, atol=1e-9)
            rows.append(solved.y[:, -1])
        made.close()
        return np.array(rows), node.logged


def test_a_runaway_by_a_wrong_sign_is_disarmed_soon_unless_limits_are_off():
    rows, logged = run(-1.0, 3.0)
    (text,) = (text for level, text in logged if level == "error")
    assert text.startswith("disarmed: ") and np.abs(rows[:, 0]).max() < 1.5
    off = {"disarm.error": 0.0, "disarm.range": [""], "disarm.saturation_s": 0.0}
    rows, _ = run(-1.0, 3.0, **off, **{"hardware.outlier": 0.0})
    assert np.abs(rows[:, 0]).max() > 5.0


def test_the_same_robot_with_the_right_sign_swings_up_and_is_not_disarmed():
    rows, logged = run(1.0, 5.0)
    assert len(rows) == 500 and abs(rows[-1, 1] - np.pi) < 0.05
    texts = [text for _, text in logged]
    (limits,) = (text for text in texts if text.startswith("disarm limits"))
    assert "an error of 1" in limits and "1 s of saturation" in limits
    assert "cart_joint:-1.2:1.2" in limits and not any("disarmed" in text for text in texts)


def test_limits_may_be_declared_and_must_be_ones():
    scenario = scenarios.get("cart_pole")
    assert SafetyLimits(error=0.3).error == 0.3
    for wrong in ({"error": -1.0}, {"saturation_s": 0.0}, {"saturation_s": np.inf}):
        with pytest.raises(ValueError, match="SafetyLimits"):
            SafetyLimits(**wrong)
    model = scenario.model()
    motion = scenario.reference(model)
    own = replace(scenario, limits=SafetyLimits(error=0.3))
    assert error_limit(own, model, motion) == 0.3
    small = replace(scenario, perturbation=type(scenario.perturbation)())
    assert error_limit(small, model, motion) == 0.5
