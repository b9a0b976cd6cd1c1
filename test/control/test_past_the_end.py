"""Runs that go on after their reference: the tracker holds its last state, or brings the motion to
rest as far as it can.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.simulation import closed_loop

MORE_S, OF_FAST_ONES_S = 20.0, {"wet_car": 40.0}
HELD, DAMPED = 1e-3, 1e-4
"""Largest error of a configuration that is held, and largest velocity of what is damped."""
STOPPED = {
    "snakeboard": slice(1, 2),
    "wet_snakeboard": slice(1, 2),
    "marionette": slice(0),
}
"""Which of the velocities come to rest, where these are not all: a board coasts, limbs swing."""
CASES = [
    (name, reference)
    for name in scenarios.built_in()
    if name != "bicycle"  # it falls where it comes to rest
    for reference in scenarios.get(name).references
]
QUICK = {("snakeboard", "turning"), ("car", "lane_change"), ("pendulum_swing_up", "swing_up")}
LONG = {("marionette", "published"), ("marionette", "sway")}
"""As long as all others together; the marionette's `step` is one of these."""


def mark(case):
    if case in LONG:
        return pytest.mark.exhaustive
    return () if case in QUICK else pytest.mark.slow


def gone_on(scenario, model, reference, perturbation):
    """The state so long after the reference, and the tracker; no step fails."""
    tracker = scenario.tracker(model, reference)
    start = scenario.perturb(model, reference.states[0], perturbation)
    more_s = OF_FAST_ONES_S.get(scenario.name, MORE_S)
    run = closed_loop(model, tracker, start, len(reference) + round(more_s / model.h))
    assert run.failure is None
    return run.trajectory.states[-1], tracker


@pytest.mark.parametrize(
    ("name", "reference"),
    [pytest.param(*case, marks=mark(case), id="-".join(case)) for case in CASES],
)
def test_motion_after_the_reference_comes_to_rest(name, reference):
    """From the reference's start, and no step fails from where the nodes start as well."""
    scenario = scenarios.get(name)
    model = scenario.model()
    motion = scenario.reference(model, reference)
    x, tracker = gone_on(scenario, model, motion, scenario.no_perturbation)
    moving = np.abs(model.velocity(x))[STOPPED.get(name, slice(None))].max(initial=0.0)
    if scenario.hold:
        tracked = scenario.tracked(model.system.space)
        assert np.abs(tracker.error(len(motion), x)[: len(tracked)][tracked]).max() < HELD
    else:
        assert moving < DAMPED
    gone_on(scenario, model, motion, scenario.perturbation)


def test_a_steering_that_is_let_go_leaves_the_model_s_domain():
    """What would happen without damping: the inputs past the end are not those of no forces."""
    scenario = scenarios.get("snakeboard")
    model = scenario.model()
    motion = scenario.reference(model, "turning")
    command = scenario.tracker(model, motion).command(len(motion), motion.states[-1])
    assert (np.abs(command.u) > 1.0).all()
    assert (np.abs(command.u) <= model.system.input_bounds[:, 1]).all()
