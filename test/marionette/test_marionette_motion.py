"""The marionette's published motion: its discrete equations, exact derivatives, LQR through the
strings, perturbed runs.
"""

import casadi as ca
import numpy as np
import published
import pytest
from differences import derivative, second_derivative

from nh_control.control import lqr
from nh_control.discrete.conditioning import require_regular
from nh_control.discrete.plant_steps import advance, convert
from nh_control.integrators import midpoint
from nh_control.mechanics.consistent_states import minimize_potential_energy
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlanarPerturbation, PlantOptions
from nh_control.scenarios.marionette import MARIONETTE, WEIGHTS, perturbed
from nh_control.systems.marionette import initial_configuration, marionette
from nh_control.systems.marionette_motion import PUBLISHED, released, tensions

DYNAMIC, STATES = 22, 80


pytestmark = pytest.mark.slow
"""The model takes long to compile, once."""


@pytest.fixture(scope="module")
def dsys():
    return midpoint(marionette(), published.H, "left")


@pytest.fixture(scope="module")
def reference(dsys):
    return PUBLISHED.reference(dsys)


@pytest.fixture(scope="module")
def tracker(dsys, reference):
    return MARIONETTE.tracker(dsys, reference)


@pytest.fixture(scope="module")
def constraint(dsys):
    q = ca.SX.sym("q", 40)
    h = ca.Function("h", [q], [dsys.system.holonomic_constraint(q)])
    return lambda states: np.array([np.asarray(h(x[:40]))[:, 0] for x in states])


def test_the_start_and_the_inputs_are_the_published_ones(reference):
    q0 = np.array(published.DATA["initial_configuration"]["q0"])
    np.testing.assert_array_equal(reference.states[0, :40], q0)
    np.testing.assert_allclose(
        reference.states[0, 40:62], np.real(published.first_momentum(q0)), rtol=0, atol=1e-14
    )
    assert not reference.states[0, 62:].any()
    assert (len(reference), reference.h) == (
        published.DATA["simulation"]["n_steps"],
        published.H,
    ) and len(reference.states[0]) == STATES
    expected = [published.string_targets(k) for k in range(len(reference))]
    np.testing.assert_allclose(reference.inputs, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("first", [0, 600])
def test_steps_solve_the_published_discrete_equations(reference, first):
    for k in range(first, first + 3):
        (q1, p1), (q2, p2) = ((x[:40], x[40:62]) for x in reference.states[k : k + 2])
        for equation in published.left_out(q1, p1, q2, p2):
            assert np.abs(equation).max() <= 1e-12
        np.testing.assert_allclose(
            reference.states[k + 1, 62:], (q2 - q1)[DYNAMIC:] / published.H, rtol=0, atol=1e-12
        )


def test_strings_stay_taut(reference, constraint):
    assert np.abs(constraint(reference.states)).max() <= 1e-14


def test_no_step_is_close_to_singular(dsys, reference):
    worst = require_regular(dsys, reference)
    assert worst.mass < 1e4 and worst.constraint < 1e3


def test_second_derivatives_are_exact(dsys, reference):
    """Contracted with a random adjoint, against differences of the exact first derivatives and of
    the step itself; symmetric.
    """
    draw, k = np.random.default_rng(2), 400
    x, u, lam = (
        reference.states[k],
        reference.inputs[k],
        np.random.default_rng(3).normal(size=STATES),
    )
    hessian = dsys.hessian(x, u, lam)
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-12 * np.abs(hessian).max())
    for _ in range(4):
        d = draw.normal(size=98)
        d /= np.linalg.norm(d)
        numeric = derivative(
            lambda t, d=d: (
                lam @ np.hstack(tuple(dsys.linearize(x + t * d[:STATES], u + t * d[STATES:])))
            ),
            1e-3,
        )
        np.testing.assert_allclose(
            hessian @ d, numeric, rtol=1e-7, atol=1e-8 * np.abs(hessian @ d).max()
        )
        curvature = second_derivative(
            lambda t, d=d: lam @ dsys.step(x + t * d[:STATES], u + t * d[STATES:]), 2e-2
        )
        assert d @ hessian @ d == pytest.approx(curvature, rel=1e-5)


def test_directions_off_the_constraints_decay_in_a_step_and_get_no_gain(dsys, reference, tracker):
    """Impulses of the strings change nothing; whatever the state, the next one keeps the
    constraints to first order.
    """
    q = ca.SX.sym("q", 40)
    m = dsys.system.mechanics
    slope = ca.Function("slope", [q], [m.holonomic_jacobian(q) @ m.admissible_tangents(q)])
    for k in (0, 300, 1000):
        lin = dsys.linearize(reference.states[k], reference.inputs[k])
        before, after = (np.asarray(slope(x[:40])) for x in reference.states[k : k + 2])
        impulses = np.vstack([np.zeros((40, 6)), before.T, np.zeros((18, 6))])
        assert np.abs(lin.A @ impulses).max() <= 1e-12
        assert (
            np.abs(tracker.gains.K[k] @ impulses).max() <= 1e-12 * np.abs(tracker.gains.K[k]).max()
        )
        assert np.abs(after @ lin.A[:DYNAMIC]).max() <= 1e-9


def test_the_gains_solve_the_riccati_equation_of_the_published_weights(dsys, reference, tracker):
    Q, R, _ = WEIGHTS
    assert (np.diag(Q) == [100.0] * 40 + [1.0] * 40).all() and (np.diag(R) == 1).all()
    A, B = dsys.linearize(reference.states[-2], reference.inputs[-1])
    gain = np.linalg.solve(R + B.T @ Q @ B, B.T @ Q @ A)
    np.testing.assert_allclose(tracker.gains.K[-1], gain, rtol=1e-9, atol=1e-12)
    assert (
        np.linalg.eigvalsh(tracker.gains.P[0])[0] >= 1 - 1e-9
        and np.isfinite(tracker.gains.K).all()
    )


def test_the_perturbation_turns_the_torso_and_keeps_the_strings_taut(dsys, reference, constraint):
    x = perturbed(dsys, reference.states[0], PlanarPerturbation(heading=0.1))
    change = x - reference.states[0]
    assert change[dsys.state_names.index("torso_rz")] == pytest.approx(0.1, abs=1e-15)
    assert np.abs(constraint([x])).max() <= 1e-12 and not change[DYNAMIC:].any()
    assert np.abs(change[: dsys.state_names.index("torso_rz")]).max() < 1e-3


def test_feedback_through_the_strings_returns_a_perturbed_marionette_and_open_loop_does_not(
    dsys, reference, tracker, constraint
):
    """[johnson2014 Figs. 6, 7]."""
    x0 = perturbed(dsys, reference.states[0], PlanarPerturbation(heading=0.1))
    closed, opened = (
        closed_loop(dsys, tracker, x0, len(reference), feedback=feedback)
        for feedback in (True, False)
    )
    assert closed.failure is None and opened.failure is None
    error, left = (np.linalg.norm(run.errors[:, :DYNAMIC], axis=1) for run in (closed, opened))
    assert error[0] == left[0] == pytest.approx(0.1, rel=1e-3)
    assert error[-1] < 0.02 * error[0] and left[-1] > 0.2 * left[0]
    assert error.sum() < left.sum() / 4
    torso = dsys.state_names.index("torso_rz")
    assert (
        np.abs(closed.errors[500:, torso]).max() < 1e-3
        and np.abs(opened.errors[500:, torso]).max() > 1e-2
    )
    for run in (closed, opened):
        assert np.abs(constraint(run.trajectory.states)).max() <= 1e-10


def test_it_hangs_still_in_its_equilibrium(dsys):
    q = minimize_potential_energy(dsys.system, initial_configuration())
    assert (q[DYNAMIC:] == initial_configuration()[DYNAMIC:]).all()
    x = released(dsys, q)
    moved = dsys.step(x, q[DYNAMIC:]) - x
    assert np.abs(moved[:40]).max() <= 1e-12


def test_strings_carry_the_weight_and_pull_unless_they_are_jerked(dsys, reference):
    """At rest the whole weight; the published motion starts with a jerk, its second step, for
    which two strings would have to push.
    """
    weight = published.DATA["counts"]["total_mass"] * -published.GRAVITY[2]
    sway = tensions(dsys, MARIONETTE.reference(dsys, "sway"))
    assert sway.min() > 1 and sway[1].sum() == pytest.approx(weight, rel=1e-4)
    assert np.flatnonzero(tensions(dsys, reference).min(axis=1) < 0).tolist() == [1]


@pytest.mark.parametrize("name", MARIONETTE.references)
def test_references_of_the_scenario_are_motions_of_its_model(dsys, name):
    motion = MARIONETTE.reference(dsys, name)
    lqr.linearize_along(dsys, motion)
    assert np.ptp(motion.states[:, :DYNAMIC], axis=0).max() > 0.1


def test_strings_are_drawn_in_their_lengths_and_limbs_between_their_joints(dsys, reference):
    visual, q = MARIONETTE.visual(MARIONETTE.parameters), reference.states[700, :40]
    poses = visual.poses(MARIONETTE.parameters, q)
    prescribed = dict(zip(dsys.system.prescribed, q[DYNAMIC:]))
    strings = [name.removesuffix("-length") for name in prescribed if name.endswith("-length")]
    assert len(strings) == 6
    for cable, string in zip(visual.cables, strings, strict=True):
        length = np.linalg.norm(poses[cable.start].position - poses[cable.end].position)
        assert (
            length == pytest.approx(prescribed[f"{string}-length"], abs=1e-12)
            and poses[cable.end].position[2] == 2.0
        )
    for shape in visual.shapes:
        if shape.kind == "cylinder" and f"{shape.frame}_end" in poses:
            ends = (poses[shape.frame].position + poses[f"{shape.frame}_end"].position) / 2
            np.testing.assert_allclose(
                poses[shape.frame].position + poses[shape.frame].rotation @ shape.offset,
                ends,
                atol=1e-12,
            )


def test_a_tracker_that_is_told_velocities_commands_what_one_that_knows_momenta_does(
    dsys, reference, tracker
):
    """The constraint impulses in the momentum, which no velocity tells, make no difference."""
    x = perturbed(dsys, reference.states[0], PlanarPerturbation(heading=0.1, position=0.05))
    for k in range(50):
        command = tracker.command(k, x)
        told = tracker.command(k, dsys.state(dsys.configuration(x), dsys.velocity(x)))
        np.testing.assert_allclose(told.u, command.u, rtol=0, atol=1e-12)
        np.testing.assert_allclose(told.error, command.error, rtol=0, atol=1e-11)
        x = dsys.step(x, command.u)


def test_strings_move_evenly_between_the_substeps_of_a_plant(dsys, reference, tracker):
    plant = MARIONETTE.plant(dsys, PlantOptions(substeps=4))
    run = closed_loop(plant, tracker, convert(reference.states[0], dsys, plant), 200, substeps=4)
    assert np.linalg.norm(run.errors[:, :DYNAMIC], axis=1).max() < 2e-3
    before, after = advance(
        plant, convert(reference.states[0], dsys, plant), reference.inputs[50], 4
    )
    start, end = reference.states[0, DYNAMIC:40], reference.inputs[50]
    np.testing.assert_allclose(
        before[DYNAMIC:40], start + 0.75 * (end - start), rtol=0, atol=1e-15
    )
    np.testing.assert_array_equal(after[DYNAMIC:40], end)


def test_wrong_masses_are_tracked_and_an_estimated_disturbance_helps(dsys, reference):
    plant, x0 = (
        MARIONETTE.plant(dsys, PlantOptions(parameters={"femur": 1.8, "tibia": 1.3})),
        reference.states[0],
    )
    errors = []
    for integral in (False, True):
        run = closed_loop(
            plant,
            MARIONETTE.tracker(dsys, reference, integral),
            convert(x0, dsys, plant),
            len(reference),
        )
        errors.append(np.linalg.norm(run.errors[500:, :DYNAMIC], axis=1).mean())
    assert errors[0] < 0.02 and errors[1] < errors[0]
