"""The snakeboard under LQR: convergence, robustness to another integrator and other masses,
integral action, saturation.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control import LqrTracker
from nh_control.control.damping import DAMPING_S, damping_input
from nh_control.discrete.plant_steps import convert
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import SNAKEBOARD, PlanarPerturbation, PlantOptions

REFERENCES = ("parking", "forward", "turning")
ERROR = PlanarPerturbation(position=0.1, heading=0.1, momentum=0.1)
MASSES = [dict(m=1.1), dict(m=0.9), dict(m=1.1, I=1.1, J=1.32), dict(m=0.9, I=0.9, J=1.08)]


@pytest.fixture(scope="module")
def model():
    return SNAKEBOARD.model()


@pytest.fixture(scope="module")
def trackers(model):
    made = {}
    for name in REFERENCES:
        reference = SNAKEBOARD.reference(model, name)
        made[name] = {
            integral: SNAKEBOARD.tracker(model, reference, integral) for integral in (False, True)
        }
    return made


def run(model, tracker, options=PlantOptions(), perturbation=ERROR, feedback=True):
    plant = SNAKEBOARD.plant(model, options)
    x0 = convert(
        SNAKEBOARD.perturb(model, tracker.reference.states[0], perturbation), model, plant
    )
    return closed_loop(plant, tracker, x0, len(tracker.reference), options.substeps, feedback)


def configuration_error(result):
    return np.linalg.norm(result.errors[:, :5], axis=1)


def second_half(error):
    return np.sqrt(np.mean(error[len(error) // 2 :] ** 2))


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("seed", [-1, 0, 1, 2])
def test_error_falls_a_hundredfold_with_a_perfect_model(model, trackers, name, seed):
    result = run(
        model, trackers[name][False], perturbation=PlanarPerturbation(0.1, 0.1, 0.1, seed)
    )
    error = configuration_error(result)
    assert error[0] == pytest.approx(np.hypot(0.1, 0.1))
    assert error[-1] <= error[0] / 100
    assert np.linalg.norm(result.errors[-1]) <= np.linalg.norm(result.errors[0]) / 100
    assert np.abs(result.constraint).max() <= 1e-12
    assert not result.saturated.any()


@pytest.mark.parametrize("name", REFERENCES)
def test_error_falls_tenfold_with_another_integrator_and_a_finer_step(model, trackers, name):
    options = PlantOptions("rdp_cay", substeps=4)
    error = configuration_error(run(model, trackers[name][False], options))
    assert error[-1] <= error[0] / 10


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("masses", MASSES, ids=str)
def test_ten_percent_of_mass_stays_five_times_below_open_loop_and_integral_action_improves_it(
    model, trackers, name, masses
):
    options = PlantOptions(parameters=masses)
    closed = configuration_error(run(model, trackers[name][False], options))
    with_integral = configuration_error(run(model, trackers[name][True], options))
    opened = run(model, trackers[name][False], options, feedback=False)
    open_error = configuration_error(opened)
    assert closed.max() < 1.0
    assert second_half(closed) <= second_half(open_error) / 5
    assert second_half(with_integral) < second_half(closed)


def test_without_error_the_reference_is_followed_exactly(model, trackers):
    tracker = trackers["parking"][True]
    found = run(model, tracker, perturbation=PlanarPerturbation()).trajectory
    np.testing.assert_allclose(found.states, tracker.reference.states, atol=1e-9)
    np.testing.assert_allclose(found.inputs, tracker.reference.inputs, atol=1e-8)


def test_past_the_end_of_a_reference_in_motion_it_is_damped_and_longer_runs_refused(
    model, trackers
):
    tracker = trackers["forward"][True]
    command = tracker.command(len(tracker.reference), tracker.reference.states[-1])
    damped = damping_input(model, tracker.reference.states[-1], DAMPING_S)
    assert (command.u == damped).all() and command.memory is None
    np.testing.assert_allclose(command.error, 0, atol=1e-12)
    assert (tracker.steps(), tracker.steps(3.0)) == (len(tracker.reference), 300)
    with pytest.raises(ValueError, match=r"'forward' ends in motion.* 12 s.* not 30 s"):
        tracker.steps(30.0)


def test_prescribed_coordinates_have_no_limits_and_a_pendulum_is_kept_upright_by_its_pivot():
    """The estimate finds the torque: gravity on the lean that balances it."""
    h, torque = 0.02, 0.4
    system = System(
        "crane",
        Rn("theta", "pivot"),
        lambda q, v: ca.sumsqr(v) / 2 - ca.cos(q[0]) * (v[0] * v[1] + 9.8),
        prescribed=("pivot",),
    )
    crane = midpoint(system, h)
    torques = dict(inputs=("torque",), force=lambda q, v, u: ca.vertcat(u, 0))
    pushed = midpoint(replace(system, **torques), h)
    rest = Trajectory(h, np.zeros((401, crane.nx)), np.zeros((400, 1)))
    tracker = LqrTracker(
        crane, rest, np.diag([1.0, 0.1, 0.1, 0.01]), [[1.0]], disturbance_gain=0.3, hold=True
    )
    assert tracker.limits.shape == (1, 2) and np.isinf(tracker.limits).all()
    x, memory = np.array([0.1, 0.0, 0.0, 0.0]), None
    for k in range(400):
        command = tracker.command(k, x, memory)
        memory, x = command.memory, pushed.step(x, np.r_[0.0, command.u])
    np.testing.assert_allclose(x, 0, atol=1e-3)
    for k in range(400):
        command = tracker.command(400 + k, x, memory)
        memory, x = command.memory, pushed.step(x, np.r_[torque, command.u])
    np.testing.assert_allclose(memory.disturbance, [h * torque], rtol=0.05)


def test_parking_is_a_sideways_move_over_cusps_that_ends_at_rest(model):
    reference = SNAKEBOARD.reference(model, "parking")
    dx = model.local(reference.states[0], reference.states[-1])
    assert abs(dx[4]) > 4 and abs(dx[2]) < 1e-2 and abs(dx[3]) < 1e-2
    forward = np.array([model.velocity(x)[3] for x in reference.states])
    assert np.abs(forward[-1]) < 2e-2 < 1 < np.abs(forward).max()
    moving = forward[np.abs(forward) > 0.05]
    assert (np.diff(np.sign(moving)) != 0).sum() >= 3


# --- Runs that go on after their reference: the tracker holds its last state, or brin ---


MORE_S, OF_FAST_ONES_S = 20.0, {"wet_car": 40.0}
HELD, DAMPED = 1e-3, 1e-4
"""Largest error of a configuration that is held, and largest velocity of what is damped."""
STOPPED = {"snakeboard": slice(1, 2), "wet_snakeboard": slice(1, 2), "marionette": slice(0)}
"""Which of the velocities come to rest, where these are not all: a board coasts, limbs swing."""
CASES = [
    (name, reference)
    for name in scenarios.built_in()
    if name != "bicycle"  # it falls where it comes to rest
    for reference in scenarios.get(name).references
]
QUICK = {("car", "lane_change"), ("pendulum_swing_up", "swing_up")}
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
