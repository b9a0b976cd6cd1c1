"""A snake on passive wheels and a body on a rolling ball: what their models and references do, and
how LQR tracks them.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from transforms3d.quaternions import quat2mat

from nh_control import scenarios
from nh_control.integrators import nonholonomic_midpoint
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios.ballbot import BallPath
from nh_control.scenarios.snake import CREEP, GAITS, Gait
from nh_control.systems.ballbot import ballbot
from nh_control.systems.snake import following, snake

SHRINK = {
    ("snake", "serpentine"): 10,
    ("snake", "turning"): 30,
    ("snake_kinematic", "creep"): 2,
    ("ballbot", "move"): 1e3,
    ("ballbot", "circle"): 1e4,
    ("ballbot", "stand"): 1e3,
}
"""By how much the scenario's own initial error becomes smaller, a few times less than measured."""


@cache
def model(name):
    return scenarios.get(name).model()


@cache
def reference(name, one):
    return scenarios.get(name).reference(model(name), one)


def test_every_reference_is_tracked_below():
    assert {
        (n, one)
        for n in ("snake", "snake_kinematic", "ballbot")
        for one in scenarios.get(n).references
    } == {*SHRINK}


QUICK = "ballbot", "stand"


@pytest.mark.parametrize(
    "name, one",
    [pytest.param(*case, marks=() if case == QUICK else pytest.mark.slow) for case in SHRINK],
)
def test_references_are_motions_that_leave_torque_and_the_initial_error_is_removed(name, one):
    dsys, motion = model(name), reference(name, one)
    for k in range(0, len(motion), 25):
        reached = dsys.step(motion.states[k], motion.inputs[k])
        assert np.abs(dsys.local(reached, motion.states[k + 1])).max() <= 1e-9
    if name != "snake_kinematic":
        assert (np.abs(motion.inputs) <= 0.75 * dsys.system.input_bounds[:, 1]).all()
    experiment = Experiment.make(scenarios.get(name), one)
    run = experiment.run()
    error = Result(experiment, run, None, 0.0).configuration_error()
    assert error[0] > 0.1 and error[-1] <= error[0] / SHRINK[name, one]
    assert not run.saturated.any()


@pytest.mark.slow
@pytest.mark.parametrize("make", [snake, ballbot])
def test_the_kernel_moves_them_as_their_lagrangian_does(make):
    system = make()
    one, other = (
        nonholonomic_midpoint(s, 0.01) for s in (system, replace(system, name="generated"))
    )
    rng = np.random.default_rng(3)
    q = system.space.retract(system.space.origin, 0.3 * rng.normal(size=8))
    x, u = one.state(q, rng.normal(size=8)), 0.5 * rng.normal(size=one.nu)
    ours, theirs = one.linearize(x, u), other.linearize(x, u)
    for a, b in zip((ours.x1, ours.A, ours.B), (theirs.x1, theirs.A, theirs.B)):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("make", [snake, ballbot])
def test_the_kernel_linearizes_the_step_where_momenta_are_projected(make):
    """A was that about angles after the step, because the projection had left them there."""
    dsys = nonholonomic_midpoint(make(), 0.01)
    rng = np.random.default_rng(4)
    q = dsys.system.space.retract(dsys.system.space.origin, 0.3 * rng.normal(size=8))
    x, u, h = dsys.state(q, rng.normal(size=8)), 0.5 * rng.normal(size=dsys.nu), 1e-6
    x1 = dsys.step(x, u)

    def moved(d):
        return dsys.local(x1, dsys.step(dsys.retract(x, d[: dsys.ndx]), u + d[dsys.ndx :]))

    slopes = [(moved(h * d) - moved(-h * d)) / (2 * h) for d in np.eye(dsys.ndx + dsys.nu)]
    lin = dsys.linearize(x, u)
    np.testing.assert_allclose(np.hstack([lin.A, lin.B]), np.transpose(slopes), atol=1e-7)


# --- the snake -----------------------------------------------------------------------------------


def test_the_links_follow_the_head_as_their_wheels_have_it():
    q = np.array([0.4, 1.0, 2.0, 0.5, -0.3, 0.2, 0.6, -0.7])
    v = following(0.15, q, 0.8, -1.1)
    rows = snake().value(snake().constraint_matrix(snake().symbols[0]), q)
    np.testing.assert_allclose(rows @ v, 0.0, atol=1e-12)
    assert np.linalg.matrix_rank(rows) == 6


def test_a_serpentine_runs_along_its_curve_from_rest_to_rest():
    """Its head ends `waves` waves on, by the mean of cos(swing sin) over a wave, to the error of
    the steps, with the joints as they were.
    """
    gait, dsys = replace(GAITS["serpentine"], waves=1, duration=3.0), model("snake")
    motion = gait.reference(dsys)
    phase = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    ahead = gait.waves * gait.wave * np.cos(gait.swing * np.sin(phase)).mean()
    np.testing.assert_allclose(motion.states[-1][:3], [0.0, ahead, 0.0], atol=2e-3)
    np.testing.assert_allclose(motion.states[-1][3:8], motion.states[0][3:8], atol=0.02)
    for x in (motion.states[0], motion.states[-1]):
        np.testing.assert_allclose(dsys.velocity(x), 0.0, atol=1e-9)


@pytest.mark.parametrize("gait", [Gait(0.0, 0.9, 1, 3.0), Gait(0.0, 0.9, 1, 3.0, turn=1.5)])
def test_a_straight_snake_and_one_along_an_arc_are_refused(gait):
    with pytest.raises(ValueError, match="axles meet in one point.*larger swing"):
        gait.reference(model("snake"))


def test_waves_about_a_straight_snake_do_not_determine_its_motion():
    with pytest.raises(ValueError, match="axles of the wheels meet.*larger bend"):
        replace(CREEP, bend=(0.0,) * 5).reference(model("snake_kinematic"))


# --- the ballbot ---------------------------------------------------------------------------------


def test_a_ball_rolls_as_far_as_the_drives_and_the_body_turn_it():
    """Its spin about the vertical is zero, `v = omega x r n` at its center."""
    dsys, r = model("ballbot"), scenarios.get("ballbot").parameters.r
    start = reference("ballbot", "stand").states[0]
    for x in dsys.simulate(start, np.tile([0.2, -0.1, 0.1], (60, 1))).states[20::10]:
        q, v = dsys.configuration(x), dsys.velocity(x)
        rate, omega = v[3:5], quat2mat(q[:4]) @ (v[:3] + v[5:])
        np.testing.assert_allclose(omega, [-rate[1] / r, rate[0] / r, 0.0], atol=1e-9)


def test_a_ballbot_leans_forwards_to_start_and_its_pitch_torque_rolls_it_forwards():
    dsys = model("ballbot")
    x = dsys.simulate(reference("ballbot", "stand").states[0], np.tile([0, 0.1, 0], (5, 1)))
    q = dsys.configuration(x.states[-1])
    assert q[4] > 0 and q[2] < 0  # the reaction leans it back
    move = BallPath(lambda s: (0.8 * s, 0.6 * s), 2.0).reference(dsys)
    lean = quat2mat(dsys.configuration(move.states[25])[:4])[:2, 2]
    assert lean @ [0.8, 0.6] > 0.02 and abs(lean @ [-0.6, 0.8]) < 1e-6
