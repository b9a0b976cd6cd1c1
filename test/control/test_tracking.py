"""The snakeboard under LQR: convergence, robustness to another integrator and other masses,
integral action, saturation.
"""

import casadi as ca
import numpy as np
import pytest

from nh_control.control import LqrTracker
from nh_control.control.damping import DAMPING_S, damping_input
from nh_control.discrete.plant_steps import convert
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import SNAKEBOARD, PlanarPerturbation, PlantOptions, UnknownName
from nh_control.scenarios.snakeboard import GAITS

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
@pytest.mark.parametrize(
    "integrator", ["rdp_cay", pytest.param("rdp_exp_truncated", marks=pytest.mark.slow)]
)
def test_error_falls_tenfold_with_another_integrator_and_a_finer_step(
    model, trackers, name, integrator
):
    error = configuration_error(
        run(model, trackers[name][False], PlantOptions(integrator, substeps=4))
    )
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


@pytest.mark.parametrize("name", REFERENCES)
def test_open_loop_error_grows(model, trackers, name):
    error = configuration_error(run(model, trackers[name][False], feedback=False))
    assert error[-1] > 10 * error[0]


def test_without_error_the_reference_is_followed_exactly(model, trackers):
    result = run(model, trackers["parking"][True], perturbation=PlanarPerturbation())
    np.testing.assert_allclose(
        result.trajectory.states, trackers["parking"][True].reference.states, atol=1e-9
    )
    np.testing.assert_allclose(
        result.trajectory.inputs, trackers["parking"][True].reference.inputs, atol=1e-8
    )


def test_commands_stay_within_the_actuators_limits_and_say_so(model, trackers):
    tracker = trackers["forward"][False]
    far = model.retract(
        tracker.reference.states[0], np.array([5.0, 0.5, 1.0, 5.0, 5.0, 5.0, 5.0, 0.0])
    )
    command = tracker.command(0, far)
    limits = model.system.input_bounds
    assert command.saturated.any()
    assert (limits[:, 0] <= command.u).all() and (command.u <= limits[:, 1]).all()


def test_past_the_end_of_a_reference_in_motion_it_is_damped_and_longer_runs_refused(
    model, trackers
):
    tracker = trackers["forward"][True]
    command = tracker.command(len(tracker.reference), tracker.reference.states[-1])
    damped = damping_input(model, tracker.reference.states[-1], DAMPING_S)
    assert (command.u == damped).all() and command.memory is None
    np.testing.assert_allclose(command.error, 0, atol=1e-12)
    assert (
        tracker.steps() == tracker.steps(12.0) == len(tracker.reference)
        and tracker.steps(3.0) == 300
    )
    with pytest.raises(
        ValueError,
        match=r"'forward' ends in motion.* 12 s.* not 30 s",
    ):
        tracker.steps(30.0)
    rest = Trajectory(model.h, np.zeros((11, model.nx)), np.zeros((10, model.nu)))
    assert LqrTracker(model, rest, *SNAKEBOARD.weights).steps(30.0) == 3000


def test_prescribed_coordinates_have_no_limits_and_a_pendulum_is_kept_upright_by_its_pivot():
    """The disturbance estimate finds the torque: gravity on the lean that balances it, at a pivot
    that follows.
    """
    h, torque = 0.02, 0.4
    space, lagrangian = (
        Rn("theta", "pivot"),
        lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2 - ca.cos(q[0]) * v[0] * v[1] - 9.8 * ca.cos(q[0]),
    )
    crane = midpoint(System("crane", space, lagrangian, prescribed=("pivot",)), h)
    pushed = midpoint(
        System(
            "pushed_crane",
            space,
            lagrangian,
            prescribed=("pivot",),
            inputs=("torque",),
            force=lambda q, v, u: ca.vertcat(u, 0),
        ),
        h,
    )
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


def test_disturbance_estimate_finds_a_constant_torque(model, trackers):
    """A plant with a constant extra rotor torque: the estimate settles at its momentum per
    step.
    """
    tracker, extra = trackers["parking"][True], np.array([0.3, 0.0])
    x, memory = tracker.reference.states[0], None
    for k in range(300):
        command = tracker.command(k, x, memory)
        memory = command.memory
        x = model.step(x, command.u + extra)
    np.testing.assert_allclose(memory.disturbance[:2], extra * model.h, rtol=0.02, atol=1e-5)


def test_perturbation_has_the_size_it_names_and_a_seed_repeats_it(model, trackers):
    x0 = trackers["parking"][False].reference.states[0]
    for seed in (-1, 3):
        moved = SNAKEBOARD.perturb(model, x0, PlanarPerturbation(0.2, 0.1, 0.05, seed))
        dx = model.local(x0, moved)
        assert abs(dx[2]) == pytest.approx(0.1)
        assert np.hypot(*dx[3:5]) == pytest.approx(0.2)
        np.testing.assert_allclose(np.abs(dx[5:]), 0.05 * np.abs(x0[5:]), atol=1e-12)
        np.testing.assert_array_equal(
            moved, SNAKEBOARD.perturb(model, x0, PlanarPerturbation(0.2, 0.1, 0.05, seed))
        )


def test_unknown_names_list_the_valid_ones(model):
    for call, text in (
        (lambda: SNAKEBOARD.reference(model, "nowhere"), "parking, forward, turning"),
        (lambda: SNAKEBOARD.model("euler"), "midpoint, rdp_exp"),
        (lambda: SNAKEBOARD.plant(model, PlantOptions("euler")), "midpoint, rdp_exp"),
        (lambda: SNAKEBOARD.plant(model, PlantOptions(parameters={"mass": 1.0})), "m, l, I, J"),
    ):
        with pytest.raises(UnknownName, match=text):
            call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: PlantOptions(substeps=0), "integer >= 1"),
        (lambda: PlanarPerturbation(position=np.nan), "position must be a finite number"),
        (lambda: SNAKEBOARD.model(step_s=-1.0), "positive"),
    ],
)
def test_bad_options_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_bad_weights_are_refused_with_and_without_the_disturbance_estimate(model, trackers):
    reference, Q = trackers["parking"][False].reference, SNAKEBOARD.weights[0]
    for gain in (0.0, 0.2):
        with pytest.raises(ValueError, match="R must be positive definite"):
            LqrTracker(model, reference, Q, np.zeros((2, 2)), disturbance_gain=gain)


def test_other_weights_are_those_of_a_tracker_made_with_them(model, trackers):
    Q, R, Qf = (weight.copy() for weight in SNAKEBOARD.weights)
    Q[2, 2], R[1, 1], Qf[2, 2] = 3 * Q[2, 2], 5 * R[1, 1], 3 * Qf[2, 2]
    Q[0, 0] += 2.0
    Qf[0, 0] *= Q[0, 0] / SNAKEBOARD.weights[0][0, 0]
    tracker = trackers["parking"][False]
    other = tracker.with_weights({2: Q[2, 2], 0: Q[0, 0]}, {1: R[1, 1]})
    expected = LqrTracker(model, tracker.reference, Q, R, Qf)
    np.testing.assert_allclose(other.gains.K, expected.gains.K, rtol=1e-9, atol=1e-9)
    assert not np.allclose(tracker.gains.K, expected.gains.K, rtol=1e-3)
    np.testing.assert_allclose(np.concatenate(other.diagonal_weights), [*np.diag(Q), *np.diag(R)])
    zero = tracker.with_weights({2: 0.0}, {}).with_weights({2: Q[2, 2]}, {})
    assert np.allclose(zero.diagonal_weights[0][2], Q[2, 2])


@pytest.mark.slow
def test_references_are_feasible_and_stay_regular(model):
    for name in SNAKEBOARD.references:
        reference = SNAKEBOARD.reference(model, name)
        for k in range(0, len(reference), 7):
            miss = np.abs(
                model.local(
                    reference.states[k + 1], model.step(reference.states[k], reference.inputs[k])
                )
            ).max()
            assert miss == 0 if name in GAITS else miss < 1e-9
        assert np.abs(reference.states[:, 1]).max() < 1.0
        assert (np.abs(reference.inputs) < model.system.input_bounds[:, 1]).all()


def test_parking_is_a_sideways_move_over_cusps_that_ends_at_rest(model):
    reference = SNAKEBOARD.reference(model, "parking")
    dx = model.local(reference.states[0], reference.states[-1])
    assert abs(dx[4]) > 4 and abs(dx[2]) < 1e-2 and abs(dx[3]) < 1e-2
    forward = np.array([model.velocity(x)[3] for x in reference.states])
    assert np.abs(forward[-1]) < 2e-2 < 1 < np.abs(forward).max()
    moving = forward[np.abs(forward) > 0.05]
    assert (np.diff(np.sign(moving)) != 0).sum() >= 3
