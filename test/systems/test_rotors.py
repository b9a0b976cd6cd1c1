"""Rotors before quadrotors: signs, thrusts, exact derivatives, and our controllers on them."""

from dataclasses import replace

import numpy as np
import pytest

from nh_control.control import LqrTracker
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint
from nh_control.runs.simulation import closed_loop
from nh_control.systems import Airframe, quadrotor, quadrotor_payload, with_rotors
from nh_control.systems.rate_commands import with_rate_commands

FRAME = Airframe.x(sag=0.1)


@pytest.mark.parametrize(
    ("frame", "rotor", "signs"),
    [  # roll right, nose down and turn left are positive
        (Airframe.x(), "front right", (-1, -1, 1)),
        (Airframe.x(), "rear left", (1, 1, 1)),
        (Airframe.x(), "front left", (1, -1, -1)),
        (Airframe.x(), "rear right", (-1, 1, -1)),
        (Airframe.plus(), "right", (-1, 0, 1)),
        (Airframe.plus(), "left", (1, 0, 1)),
        (Airframe.plus(), "front", (0, -1, -1)),
        (Airframe.plus(), "rear", (0, 1, -1)),
    ],
)
def test_torques_of_each_rotor(frame, rotor, signs):
    """A rotor that turns clockwise turns the body counter-clockwise: in an X these are front left
    and rear right (`RotorMixing`), in the order front right, rear left, front left, rear right.
    """
    order = {
        4: ["front right", "rear left", "front left", "rear right"],
        0: ["right", "left", "front", "rear"],
    }[0 if frame.positions[0][0] == 0 else 4]
    column = frame.matrix[:, order.index(rotor)]
    assert column[0] == 1
    expected = np.array(signs) * [1, 1, -1]
    np.testing.assert_array_equal(np.sign(np.round(column[1:], 9)), expected)


def test_thrusts_follow_their_equation():
    """The closed form of a step is the solution of the ODE of the system with rotors."""
    dsys = midpoint(with_rotors(quadrotor(), replace(FRAME, sag=0.0)), 5e-4)
    f, u = np.array([1.0, 2.0, 3.0, 0.0]), np.array([0.2, 0.9, 0.5, 1.0])
    x = dsys.state([*np.zeros(3), 1, 0, 0, 0, *f], np.zeros(10))
    mean = np.zeros(4)
    for _ in range(40):
        x1 = dsys.step(x, u)
        mean += (x[7:11] + x1[7:11]) / 80
        x = x1
    after, average = replace(FRAME, sag=0.0).advance(f, u, 0.02)
    np.testing.assert_allclose(dsys.configuration(x)[7:], after, atol=1e-4)
    np.testing.assert_allclose(mean, average, atol=1e-4)


def test_commands_hold_their_wrench():
    frame = FRAME.weakened(1, 0.8)
    wrench = np.array([9.81, 0.1, -0.05, 0.02])
    f = np.linalg.solve(frame.matrix, wrench)
    np.testing.assert_allclose(frame.targets(f, frame.commands(wrench)), f, rtol=1e-12)


def test_derivatives_of_a_step_are_exact():
    """The payload with 8 rotors under sag, off hover."""
    dsys = midpoint(with_rotors(quadrotor_payload(), replace(FRAME, max_thrust=10.0)), 0.01)
    draw = np.random.default_rng(3)
    x = dsys.retract(
        dsys.state(dsys.system.space.origin, np.zeros(dsys.system.space.nw)),
        0.3 * draw.standard_normal(dsys.ndx),
    )
    u = draw.uniform(0.3, 0.8, 8)
    step, eps = dsys.linearize(x, u), 1e-6
    for direction in np.eye(dsys.ndx)[::3]:
        ends = [dsys.step(dsys.retract(x, s * eps * direction), u) for s in (-1, 1)]
        slope = (dsys.local(step.x1, ends[1]) - dsys.local(step.x1, ends[0])) / (2 * eps)
        np.testing.assert_allclose(step.A @ direction, slope, atol=1e-7)
    for direction in np.eye(8)[:3]:
        ends = [dsys.step(x, u + s * eps * direction) for s in (-1, 1)]
        slope = (dsys.local(step.x1, ends[1]) - dsys.local(step.x1, ends[0])) / (2 * eps)
        np.testing.assert_allclose(step.B @ direction, slope, atol=1e-7)


@pytest.mark.parametrize("kind", ["lqr", "mpc"])
def test_our_controllers_fly_motor_commands(kind):
    """From 0.3 m and 0.3 rad off, LQR and MPC command motors and return to hover."""
    dsys = midpoint(with_rotors(quadrotor(), FRAME), 0.02)
    wrench = np.array([9.81, 0, 0, 0])
    f, u = np.linalg.solve(FRAME.matrix, wrench), FRAME.commands(wrench)
    rest = dsys.state([0, 0, 1, 1, 0, 0, 0, *f], np.zeros(10))
    np.testing.assert_allclose(dsys.step(rest, u), rest, atol=1e-9)
    reference = Trajectory(dsys.h, np.tile(rest, (151, 1)), np.tile(u, (150, 1)))
    Q = np.diag([20.0] * 3 + [5.0] * 3 + [0.01] * 4 + [2.0] * 3 + [50.0] * 3)
    R = 5 * np.eye(4)
    tracker = (
        LqrTracker(dsys, reference, Q, R, hold=True)
        if kind == "lqr"
        else MpcTracker(dsys, reference, Q, R, horizon_s=0.6, hold=True)
    )
    start = dsys.retract(rest, np.r_[0.3, 0, -0.2, 0.3, 0, 0.2, np.zeros(dsys.ndx - 6)])
    loop = closed_loop(dsys, tracker, start, 150)
    assert loop.failure is None
    assert np.linalg.norm(loop.errors[-1][:3]) < 0.02
    assert np.linalg.norm(loop.errors[0][:3]) > 0.3


def test_rate_commands_are_followed_with_their_time_constant():
    """One axis of a spinning quadrotor: `tau omega' = r - omega`, whatever the others do."""
    dsys = midpoint(with_rate_commands(quadrotor(), 0.05, 10.0), 1e-3)
    x = dsys.state([0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 1.0, -2.0, 3.0])
    for _ in range(50):
        x = dsys.step(x, np.array([9.81, 2.0, -2.0, 0.0]))
    expected = np.array([2 - np.exp(-1), -2.0, 3 * np.exp(-1)])
    np.testing.assert_allclose(dsys.velocity(x)[3:], expected, atol=1e-3)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"max_thrust": 0.0}, "max_thrust must be positive"),
        ({"curve": 1.5}, "curve must lie in"),
        ({"clockwise": (True, False)}, "for each rotor"),
        ({"clockwise": (True,) * 4}, "cannot turn the body"),
        ({"effectiveness": (1, 1, 1, 0)}, "effectiveness must lie in"),
    ],
)
def test_bad_airframes_are_refused(values, text):
    with pytest.raises(ValueError, match=text):
        Airframe(**{"positions": FRAME.positions, **values})


def test_rotors_need_thrusts_and_torques():
    with pytest.raises(ValueError, match="a thrust and three torques for each quadrotor"):
        with_rotors(quadrotor_payload(wind=True), FRAME)
