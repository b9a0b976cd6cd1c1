"""Model predictive tracking: LQR's commands without limits, within limits and constraints where
LQR leaves them, pure, with LQR's command where no plan is found.
"""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from optimal_cases import springs_system
from refusals import refusal

import nh_control as nh
from nh_control.control.optimal.transcription import Transcription
from nh_control.runs.simulation import closed_loop
from nh_control.systems import cart_pole, pendulum

UP = np.array([0.0, np.pi, 0.0, 0.0])
OFF = UP + np.array([0.0, 0.25, 0.0, 0.0])
WEIGHTS = np.diag([10.0, 10.0, 1.0, 1.0]), 0.01 * np.eye(1)


@cache
def upright(steps=150):
    """The cart-pole and its rest on top."""
    dsys = nh.midpoint(cart_pole(), 0.02)
    states, inputs = np.tile(UP, (steps + 1, 1)), np.zeros((steps, 1))
    return dsys, nh.Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs)


def tracker(**options):
    dsys, rest = upright()
    given = dict(horizon_s=1.0, hold=True, limits={"force": (-8.0, 8.0)}) | options
    return nh.MpcTracker(dsys, rest, *WEIGHTS, **given)


@pytest.mark.parametrize("hold", [True, False], ids=["hold", "end"])
def test_without_limits_its_commands_are_those_of_lqr(hold):
    """On a linear system, whether the reference is held at its end or not."""
    dsys = nh.midpoint(springs_system(), 0.1)
    rest = nh.Trajectory(0.1, np.zeros((31, 4)), np.zeros((30, 1)), dsys.state_names, dsys.inputs)
    Q, R = np.diag([3.0, 1.0, 2.0, 1.0]), 0.5 * np.eye(1)
    ends = {"hold": True} if hold else {"Qf": 50 * Q}
    lqr = nh.LqrTracker(dsys, rest, Q, R, **ends)
    mpc = nh.MpcTracker(dsys, rest, Q, R, horizon_s=0.5, **ends)
    x, memory = np.array([0.4, -0.2, 0.5, 0.1]), None
    for k in range(5 if hold else 26):
        command = mpc.command(k, x, memory)
        np.testing.assert_allclose(command.u, lqr.command(k, x).u, atol=1e-8)
        np.testing.assert_array_equal(command.error, lqr.command(k, x).error)
        x, memory = dsys.step(x, command.u + 0.1), command.memory


def test_it_keeps_limits_and_constraints_and_is_pure():
    """Real-time iterations stay near whole solutions, and repeat to the bit."""
    dsys, rest = upright()
    track = nh.Constraint("track", lambda x, u, w: x[0], -0.32, 0.32, weight=1e3)
    free, kept = tracker(), tracker(constraints=[track])
    runs = [nh.rollout(dsys, OFF, controller, steps=150) for controller in (free, kept)]
    assert all(not run.failures for run in runs)
    assert np.abs(runs[0].states[0, :, 0]).max() > 0.329
    assert np.abs(runs[1].states[0, :, 0]).max() < 0.321
    for run in runs:
        assert 7.99 < np.abs(run.inputs).max() < 8 and run.saturated.any()
        np.testing.assert_allclose(run.states[0, -1], UP, atol=0.02)
    again = nh.rollout(dsys, np.array([OFF, OFF]), kept, steps=150)
    looped = closed_loop(dsys, kept, OFF, 150)
    for states in (*again.states, looped.trajectory.states):
        np.testing.assert_array_equal(states, runs[1].states[0])
    x, memory = OFF, None
    for k in range(40):
        command = kept.command(k, x, memory)
        assert abs(command.u - kept.command(k, x).u)[0] < 0.2
        x, memory = dsys.step(x, command.u), command.memory
    assert memory.k == 39 and memory.states.shape == (51, 4) and memory.gains.shape == (50, 1, 4)


def test_a_step_is_prepared_before_its_state_is_there():
    """To the bit as in one call; states that were not answered move the plan on."""
    dsys, _ = upright()
    mpc, x = tracker(disturbance_gain=0.3), UP + np.array([0.0, 0.2, 0.0, 0.0])
    memory = mpc.command(0, x).memory
    for k in range(1, 6):
        x = dsys.step(x, memory.inputs[memory.age] + 0.3)
        prepared, unused = mpc.prepare(memory), mpc.prepare(memory)
        whole = mpc.command(k, x, memory)
        for command in (mpc.feedback(prepared, x), mpc.feedback(prepared, x)):
            np.testing.assert_array_equal(command.u, whole.u)
            np.testing.assert_array_equal(command.memory.gains, whole.memory.gains)
            np.testing.assert_array_equal(command.memory.predicted, whole.memory.predicted)
        assert prepared.k == unused.k == k and whole.memory.age == 0
        memory = whole.memory
    x = dsys.step(dsys.step(x, memory.inputs[0]), memory.inputs[1])
    skipped = mpc.command(7, x, memory)
    anew = mpc.command(7, x, replace(memory.without_plan(), predicted=None))
    np.testing.assert_allclose(skipped.u, anew.u, atol=0.05)
    assert skipped.memory.k == 7
    with pytest.raises(ValueError, match="state at step 8 is not finite"):
        mpc.feedback(mpc.prepare(skipped.memory), [0, np.nan, 0, 0])


def test_solvers_are_used_again():
    """Those of a preparation without feedback, and of a tracker that is no longer used."""
    mpc = tracker()
    (solver,) = mpc._idle
    memory = mpc.command(0, OFF).memory
    prepared = mpc.prepare(memory)
    assert prepared.solver == [solver]
    del prepared
    assert mpc._idle == [solver]
    del mpc
    assert tracker()._idle == [solver]


def test_a_solver_whose_functions_were_compiled_meanwhile_is_replaced(monkeypatch):
    mpc = tracker()
    (before,) = mpc._idle
    monkeypatch.setattr(Transcription, "is_current", False)
    with mpc.solver() as after:
        assert after is not before
        np.testing.assert_array_equal(*(s.array("least_weight") for s in (before, after)))


def test_late_solves_use_the_last_plan_with_its_gain_and_then_lqr():
    dsys, rest = upright()
    mpc, lqr = tracker(horizon_s=0.4), nh.LqrTracker(dsys, rest, *WEIGHTS, hold=True)
    x, memory = UP + np.array([0.0, 0.2, 0.0, 0.0]), None
    memory = mpc.command(0, x).memory
    plan = memory
    for k in range(1, 13):
        x = dsys.step(x, memory.inputs[min(memory.age, 19)]) + 1e-3
        command = mpc.late(k, x, memory)
        memory = command.memory
        if k <= 10:
            wanted = plan.inputs[k] - plan.gains[k] @ dsys.local(plan.states[k], x)
            assert (memory.late, memory.age, memory.outdated) == (k, k, 0)
        else:
            wanted = lqr.command(k, x).u
            assert (memory.late, memory.outdated) == (10, k - 10)
            assert not len(memory.inputs)
            memory = replace(memory, arrays=plan.arrays, gains=plan.gains, age=k)
        np.testing.assert_allclose(command.u, wanted.clip(-8, 8), rtol=1e-13, atol=1e-13)
    again = mpc.command(13, dsys.step(x, command.u), command.memory)
    assert again.memory.age == 0 and again.memory.outdated == 2
    np.testing.assert_allclose(again.u, mpc.command(13, dsys.step(x, command.u)).u, atol=1e-2)


def test_a_constraint_without_a_value_leaves_lqr_to_command_and_is_named(caplog):
    """Nothing is raised: a robot that runs keeps its feedback, in the native loop as well."""
    dsys, rest = upright()
    root = nh.Constraint("root", lambda x, u, w: ca.sqrt(x[0] - 1.0), lower=0.0)
    mpc, x = tracker(constraints=[root]), UP + 0.01
    command = mpc.command(0, x)
    lqr = nh.LqrTracker(dsys, rest, *WEIGHTS, hold=True)
    np.testing.assert_array_equal(command.u, lqr.command(0, x).u.clip(-8.0, 8.0))
    assert command.memory.failures == 1
    assert "'root >= 0' is not finite at node 1" in caplog.text
    run, by_lqr = closed_loop(dsys, mpc, x, 20), closed_loop(dsys, lqr, x, 20)
    np.testing.assert_allclose(run.trajectory.states, by_lqr.trajectory.states, atol=1e-12)


def test_the_estimate_grows_towards_what_moves_the_state_and_only_after_the_step_before():
    """By the gain times what the momenta are beside the prediction."""
    dsys, _ = upright()
    mpc, x = tracker(disturbance_gain=0.3), UP + 0.01
    first = mpc.command(0, x)
    away = np.array([0.0, 0.0, 0.05, -0.02])
    beside = dsys.retract(first.memory.predicted, away)
    second = mpc.command(1, beside, first.memory)
    np.testing.assert_allclose(second.memory.disturbance, 0.3 * away[2:], atol=1e-12)
    moved = dsys.retract(dsys.step(beside, second.u), np.append([0.0, 0.0], 0.3 * away[2:]))
    np.testing.assert_allclose(second.memory.predicted, moved, atol=1e-12)
    later = mpc.command(2, beside, first.memory)
    np.testing.assert_array_equal(later.memory.disturbance, first.memory.disturbance)
    # the problem begins where the plan is, not at the state of a step that is past
    prepared = mpc.prepare(first.memory, 2)
    np.testing.assert_allclose(prepared.solver[0].array("x")[0], first.memory.states[2], atol=1e-9)


def test_constraints_are_told_the_force():
    """The force on the model is the momentum that a step adds over its h."""
    dsys, rest = upright()
    told = nh.Constraint("told", lambda x, u, w: u[0] + w[0] - 9.0, upper=0.0, disturbed=True)
    free, x = tracker(disturbance_gain=1.0, constraints=[told]), UP
    memory = replace(free.command(0, x).memory, disturbance=np.array([2.0 * dsys.h, 0.0]))
    prepared = free.prepare(memory)
    np.testing.assert_allclose(prepared.solver[0].array("w")[:, -2:], [[2.0, 0.0]] * 51)


MOVING = nh.Constraint("moving", lambda x, u, w: x[0] - w, 0, parameters=np.zeros((9, 1)))


def test_wrong_options_are_refused(snapshot):
    wrong = (
        {"horizon_s": 0.02},
        {"iterations": 0},
        {"hessian": "newton"},
        {"constraints": [MOVING]},
        {"limits": {"torque": (0, 1)}},
        {"threads": 0},
    )
    assert [refusal(lambda: tracker(**options)) for options in wrong] == snapshot


def test_parameters_of_constraints_move_along_the_reference():
    """A wall that comes closer pushes the cart back."""
    dsys, rest = upright()
    walls = np.linspace(0.5, -0.3, 151)[:, None]
    wall = nh.Constraint("wall", lambda x, u, w: w - x[0], 0, weight=1e3, parameters=walls)
    run = nh.rollout(dsys, UP, tracker(constraints=[wall]), steps=150)
    assert (run.states[0, :, 0] < walls[:, 0] + 5e-3).all() and run.states[0, -1, 0] < -0.25


def test_past_an_end_in_motion_it_damps_and_another_reference_can_be_had():
    dsys = nh.midpoint(pendulum(), 0.1)
    swing = dsys.simulate([0.5, 0.0], np.zeros((10, 1)))
    mpc = nh.MpcTracker(dsys, swing, np.eye(2), np.eye(1), horizon_s=0.5)
    lqr = nh.LqrTracker(dsys, swing, np.eye(2), np.eye(1))
    assert not mpc.is_following(10) and mpc.is_following(9)
    np.testing.assert_array_equal(mpc.command(10, [0.3, 1.0]).u, lqr.command(10, [0.3, 1.0]).u)
    np.testing.assert_array_equal(mpc.target(12), swing.states[-1])
    other = mpc.with_reference(dsys.simulate([0.2, 0.0], np.zeros((6, 1))))
    assert len(other.reference) == 6 and other.horizon == mpc.horizon
    with pytest.raises(ValueError, match="ends in motion"):
        mpc.steps(5.0)


# Hard rows as penalties whose weights grow -------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_a_wall_in_the_guess_is_met_whatever_the_units_of_cost_and_wall_are(scale):
    """A cart that is asked to go 1 m stops at 0.3 m, with one multiplier in these units."""
    dsys, steps = nh.midpoint(cart_pole(), 0.02), 60
    wanted = np.zeros((steps + 1, 4))
    wanted[:, 0] = np.linspace(0, 1, steps + 1)
    guess = nh.Trajectory(dsys.h, wanted, np.zeros((steps, 1)))
    Q, end = np.diag([10.0, 1.0, 1.0, 1.0]), np.diag([100.0, 1.0, 1.0, 1.0])
    cost = nh.quadratic_cost(dsys, guess, scale * Q, scale * 0.1 * np.eye(1), scale * end)
    for unit in (1.0, 1e3):
        wall = nh.Constraint("wall", lambda x, u, w: unit * x[0], upper=unit * 0.3)
        found = nh.optimize(dsys, cost, guess, constraints=[wall])
        assert found.converged, found.reason
        assert found.trajectory.states[:, 0].max() == pytest.approx(0.3, abs=1e-6)
        most = found.multipliers.inequalities["wall <= 0.3" if unit == 1 else "wall <= 300"].max()
        assert most * unit / scale == pytest.approx(135.2, rel=1e-3)


@pytest.mark.parametrize("of_states", [False, True])
def test_a_tracker_keeps_hard_rows_by_weights_that_grow_and_shrink_again(of_states):
    """That of the side which the cart would leave grows a thousandfold, the other stays."""
    track = nh.Constraint("track", lambda x, u, w: x[0], -0.32, 0.32)
    limits = {"force": (-8.0, 8.0)} | ({"x": (-0.32, 0.32)} if of_states else {})
    dsys, _ = upright()
    kept = tracker(constraints=[] if of_states else [track], limits=limits)
    x, memory, weights = OFF, None, []
    for k in range(100):
        command = kept.command(k, x, memory)
        x, memory = dsys.step(x, command.u), command.memory
        weights.append(memory.arrays["weight"][2:])
        most = memory.arrays["lam"][1:, 2:].max(axis=0)
        assert (most < weights[-1]).all() and memory.failures == 0
        assert abs(x[0]) < 0.3205
    last, most = weights[-1], np.max(weights, axis=0)
    np.testing.assert_allclose(last, [0.3, 0.3])
    np.testing.assert_allclose(most, [300.0, 0.3])


def test_where_a_hard_row_cannot_be_met_there_are_plans_that_violate_it_little():
    """Of a wall that is out of reach for half a second; then the cart goes back to rest."""
    places = np.full((151, 1), 0.5)
    places[20:45] = -3.0
    wall = nh.Constraint("wall", lambda x, u, w: w - x[0], 0, parameters=places)
    dsys, rest = upright()
    kept, x, memory, seen = tracker(constraints=[wall]), UP, None, []
    for k in range(150):
        command = kept.command(k, x, memory)
        x, memory = dsys.step(x, command.u), command.memory
        seen.append((command.u[0], x[0], memory.arrays["weight"][2]))
    u, places, weights = np.array(seen).T
    assert memory.failures == 0 and weights.max() > 1e2 * weights[0]
    assert np.abs(u).max() > 7.9 and places.min() < -0.3
    assert weights[-1] == pytest.approx(0.3)
    np.testing.assert_allclose(x, UP, atol=0.1)


@pytest.mark.parametrize("aside", [0.0, 0.02])
def test_a_plan_that_stays_before_an_obstacle_is_told(aside, caplog):
    """A reference through its center leaves two equal ways; one beside it leaves the shorter."""
    system = nh.System(
        "mass",
        nh.Rn("x", "y"),
        lambda q, v: ca.sumsqr(v) / 2,
        ("fx", "fy"),
        lambda q, v, u: u,
        input_limits=[[-5, 5]] * 2,
    )
    d = nh.midpoint(system, 0.05)
    reference = d.simulate(d.state([-1.5, aside], [0.5, 0.0]), np.zeros((120, 2)))
    outside = nh.Constraint("outside", lambda x, u, w: ca.sumsqr(x[:2]) - 0.25, lower=0.0)
    weights = np.diag([10.0, 10.0, 1.0, 1.0]), 0.1 * np.eye(2)
    tracker = nh.MpcTracker(d, reference, *weights, horizon_s=1.0, constraints=[outside])
    x, memory = reference.states[0], None
    for k in range(120):
        command = tracker.command(k, x, memory)
        x, memory = d.step(x, command.u), command.memory
    told = [one for one in caplog.messages if "blocks the plan" in one]
    if aside:
        assert abs(x[0] - 1.5) < 0.01 and not told and not memory.blocked
    else:
        assert x[0] < -0.49 and memory.blocked == "outside >= 0"
        assert len(told) == 1 and "'outside >= 0' blocks the plan at a distance of 0.7" in told[0]
