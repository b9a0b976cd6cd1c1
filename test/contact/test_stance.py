"""Feedback of robots that stand, in the directions that their feet leave free: the gains are those
of the robot whose feet are bolted to the ground.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from refusals import refusal

import nh_control as nh
from nh_control.control import lqr
from nh_control.control.stance import Stance
from nh_control.multibody import Body, JointInput, Multibody, fixed, floating, revolute
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios.urdf import at_rest, standing

H, HEIGHT, EFFORT = 0.005, 0.05, 20.0
WEIGHTS = np.array([25.0, 25.0, 1.0, 1.0]), 0.01 * np.eye(2)
"""Of angles and rates, and of torques."""


def stander(bolted=False, smoothing=1e-6):
    """A post on a foot of 20 cm times 10 cm, which motors pitch and roll."""
    foot = fixed("foot", position=(0, 0, HEIGHT)) if bolted else floating("foot", space="SO3xR3")
    frames = [
        foot,
        revolute("ankle", "foot", "y", (0.0, 0.0, 0.03), coordinate="pitch"),
        revolute("post", "ankle", "x", coordinate="roll"),
    ]
    bodies = [
        Body("foot", 1.0, inertia=(0.002, 0.004, 0.005)),
        Body("ankle", 0.2, inertia=(1e-4, 1e-4, 1e-4)),
        Body("post", 4.0, (0.0, 0.0, 0.3), (0.1, 0.1, 0.01)),
    ]
    motors = [JointInput("pitch", EFFORT), JointInput("roll", EFFORT)]
    sole = nh.Contact("foot", nh.BoxCorners((0.2, 0.1, 2 * HEIGHT)), 0.6)
    contacts = [] if bolted else [sole]
    return Multibody(
        "stander", frames, bodies, inputs=motors, contacts=contacts, smoothing=smoothing
    )


@cache
def stance():
    """Model, state and input of the post at rest on its foot, and its weights."""
    dsys = nh.midpoint(stander(), H)
    x, u = standing(dsys, stander().configuration(), ("pitch", "roll"))
    Q = np.zeros((16, 16))
    slow = np.linalg.inv(stander().mass_matrix(x[: dsys.system.space.nq]))[6:]
    Q[6:8, 6:8], Q[8:, 8:] = np.diag(WEIGHTS[0][:2]), slow.T @ np.diag(WEIGHTS[0][2:]) @ slow
    return dsys, x, u, Q


def test_projections_keep_what_the_foot_leaves_free():
    """No impulse of the contacts is left, and no motion of the foot."""
    dsys, x, u, _ = stance()
    (P,) = Stance(dsys).projections([x], [u])
    np.testing.assert_allclose(P @ P, P, atol=1e-12)
    assert np.linalg.matrix_rank(P, 1e-9) == 4
    np.testing.assert_allclose(P[:6], 0.0, atol=1e-12)
    # in a step the free directions do not move the foot
    np.testing.assert_allclose((dsys.linearize(x, u).A @ P)[:6], 0.0, atol=1e-5)
    # an impulse on the foot does not reach the post
    kick = np.zeros(16)
    kick[8:14] = 1.0
    np.testing.assert_allclose(P @ kick, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "smoothing, off", [(1e-6, 3e-4), pytest.param(1e-8, 1e-5, marks=pytest.mark.slow)]
)
def test_gains_are_those_of_a_bolted_foot(smoothing, off):
    dsys, x, u, Q = stance()
    dsys = dsys.with_smoothing(smoothing)
    x, u = standing(dsys, x[:9], ("pitch", "roll"))
    bolted = nh.midpoint(stander(bolted=True), H)
    rest = bolted.state(np.zeros(2), np.zeros(2))
    Q_b = nh.lqr.velocity_weights(bolted, np.zeros(2), WEIGHTS[0])
    ideal = nh.lqr.infinite_horizon(bolted, rest, np.zeros(2), Q_b, WEIGHTS[1])
    found = nh.lqr.infinite_horizon(dsys, x, u, Q, WEIGHTS[1], 1e-6, stance=True)
    (P,) = Stance(dsys).projections([x], [u])
    # the bolted post's (dq, dp) as directions of the post on its foot
    basis = P[:, [6, 7, 14, 15]]
    np.testing.assert_allclose(found.K @ basis, ideal.K, atol=off * np.abs(ideal.K).max())
    poles = [np.sort(np.abs(one.poles))[-4:] for one in (found, ideal)]
    assert poles[0].max() < 1
    np.testing.assert_allclose(*poles, atol=off)


def test_without_the_stance_feet_are_out_of_reach():
    dsys, x, u, Q = stance()
    with pytest.raises(lqr.NotStabilizable):
        nh.lqr.infinite_horizon(dsys, x, u, Q, WEIGHTS[1], 1e-6)


def leaning(tracker, x, angle, steps=600):
    """The states from a lean of the post in both directions."""
    lean = np.zeros(16)
    lean[[6, 7]] = angle
    loop = closed_loop(tracker.dsys, tracker, tracker.dsys.retract(x, lean), steps)
    return loop.failure, loop.trajectory.states


@pytest.mark.slow
def test_a_post_that_leans_is_raised_and_its_foot_stays():
    dsys, x, u, Q = stance()
    tracker = nh.LqrTracker(dsys, at_rest(dsys, x, u), Q, WEIGHTS[1], hold=True, stance=True)
    failure, states = leaning(tracker, x, 0.02)
    assert failure is None
    assert np.abs(dsys.local(x, states[-1])[6:8]).max() < 1e-4
    assert np.abs(states[:, :7] - x[:7]).max() < 1e-4
    wrong = tracker.with_gains(-tracker.gains.K[0])
    failure, states = leaning(wrong, x, 0.02)
    assert failure is not None or np.abs(states[-1, 7:9]).max() > 1.0


@pytest.mark.slow
def test_along_a_motion_the_gains_follow_the_posture():
    """The post bows and rises: the projection at every state, of what carries a load there."""
    dsys, x, u, Q = stance()
    angles = 0.03 * np.sin(np.pi * np.arange(201) / 200) ** 2
    held = [
        standing(dsys, stander().configuration({"pitch": a}), ("pitch",)) for a in angles[::50]
    ]
    assert np.abs(held[2][1]).max() > 0.3
    states = np.array([dsys.retract(x, [0] * 6 + [a] + [0] * 9) for a in angles])
    torque = np.interp(angles, [0.0, angles.max()], [0.0, held[2][1][0]])
    inputs = np.column_stack([torque, np.zeros(201)])[:-1]
    bow = nh.Trajectory(H, states, inputs, dsys=dsys)
    motion = nh.project_trajectory(dsys, bow, Q, WEIGHTS[1], stance=True)
    assert motion.states[:, 7].max() == pytest.approx(0.03, abs=0.01)
    assert np.abs(motion.states[:, :7] - x[:7]).max() < 1e-4
    projections = Stance(dsys).projections(motion.states[:-1], motion.inputs)
    assert np.linalg.norm(projections[100] - projections[0]) > 1e-3
    np.testing.assert_array_equal(
        projections[7], Stance(dsys).projections([motion.states[7]], [motion.inputs[7]])[0]
    )


def test_a_contact_that_carries_nothing_holds_nothing():
    """In the air all directions are free, and those along the ground while the foot slides."""
    dsys, x, u, _ = stance()
    up = x.copy()
    up[6] += 0.01
    (P,) = Stance(dsys).projections([up], [u])
    np.testing.assert_allclose(P, np.eye(16), atol=1e-12)
    slid = dsys.state(x[:9], [0, 0, 0, 1.0, 0, 0, 0, 0])
    (P,) = Stance(dsys).projections([slid], [u])
    assert np.linalg.matrix_rank(P, 1e-9) == 16 - 6  # height, pitch and roll


def test_systems_that_cannot_stand_are_refused(snapshot):
    sled = nh.System(
        "sled",
        nh.Rn("x", "y", "z"),
        lambda q, v: ca.sumsqr(v) / 2 - 9.81 * q[2],
        velocity_constraint=lambda q: ca.horzcat(0, 1, 0),
        contacts=(nh.UnilateralConstraint("floor", gap=lambda q: q[2]),),
    )
    dsys, x, u, Q = stance()
    learning, rest = {"disturbance_gain": 0.2, "stance": True}, at_rest(dsys, x, u)
    calls = (
        lambda: Stance(nh.midpoint(stander(bolted=True), H)),
        lambda: Stance(nh.nonholonomic_midpoint(sled, 0.01)),
        lambda: nh.LqrTracker(dsys, rest, Q, WEIGHTS[1], **learning),
    )
    assert [refusal(call) for call in calls] == snapshot
