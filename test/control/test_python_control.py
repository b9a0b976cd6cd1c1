"""Systems of python-control are the package's own: frequency responses, simulation, designs."""

from dataclasses import replace

import casadi as ca
import control
import numpy as np
import pytest

import nh_control as nh
from nh_control import scenarios
from nh_control.mechanics.outputs import Output
from nh_control.systems.cart_pole import cart_pole
from nh_control.systems.pendulum import PendulumParameters, pendulum


def at_rest(name):
    """Model, state and input of a scenario at rest or in hover."""
    scenario = scenarios.get(name)
    model = scenario.model()
    if name == "snakeboard":
        space = model.system.space
        return model, model.state(space.origin, np.zeros(space.nw)), np.zeros(model.nu)
    reference = scenario.reference(model, "hover")
    return model, reference.states[0], reference.inputs[0]


@pytest.fixture(params=["snakeboard", "quadrotor_payload"])
def case(request):
    return at_rest(request.param)


def test_a_linearization_has_names_step_and_frequency_response(case):
    """The response at a frequency is that of `C (z I - A)^{-1} B`."""
    model, x, u = case
    sys, lin = nh.to_control(model, x, u), model.linearize(x, u)
    assert sys.dt == model.h and tuple(sys.input_labels) == model.inputs
    assert tuple(sys.state_labels) == tuple(sys.output_labels) == model.state_space.tangent_names
    np.testing.assert_array_equal(sys.A, lin.A)
    z = np.exp(1j * 3.0 * model.h)
    expected = np.linalg.solve(z * np.eye(model.ndx) - lin.A, lin.B)
    np.testing.assert_allclose(sys(z), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_a_loop_of_python_control_is_the_loop_of_the_tracker(case):
    """An LQR design by `control.dlqr`, closed by both, from a small error."""
    model, x, u = case
    Q, R = np.eye(model.ndx), np.eye(model.nu)
    sys = nh.to_control(model, x, u)
    if model.nu > 2:
        K = control.dlqr(sys, Q, R)[0]
    else:  # a snakeboard at rest cannot be stabilized: a proportional gain on what it drives
        K = np.zeros((model.nu, model.ndx))
        K[0, 0] = K[1, 1] = 2.0
    steps, small = 50, 1e-5 * np.sin(np.arange(model.ndx))
    still = nh.Trajectory(model.h, np.tile(x, (steps + 1, 1)), np.tile(u, (steps, 1)))
    tracker = nh.LqrTracker(model, still, Q, R).with_gains(K)
    run = nh.rollout(model, model.retract(x, small), tracker).trajectory(0)
    closed = control.ss(sys.A - sys.B @ K, sys.B, np.eye(model.ndx), 0, model.h)
    expected = control.initial_response(closed, np.arange(steps + 1) * model.h, small)
    errors = model.local(x, run.states)
    np.testing.assert_allclose(errors, expected.states.T, atol=2e-8)
    assert np.abs(errors[-1] - errors[0]).max() > 1e-6


def test_the_frequency_response_is_that_of_a_small_sine():
    """Of a damped pendulum, after the transient, as the package simulates it."""
    model = nh.midpoint(pendulum(PendulumParameters()), 0.05)
    x = model.state([0.0], [0.0])
    K, small, steps, w = np.array([[0.5, 2.0]]), 1e-5, 4000, 2 * np.pi / (80 * model.h)
    sine = small * np.sin(w * model.h * np.arange(steps))
    states = [x]
    for push in sine:
        states.append(model.step(states[-1], -K @ model.local(x, states[-1]) + push))
    last = np.array(states)[-81:-1, 0]
    phase = np.exp(-1j * w * model.h * np.arange(steps - 80, steps))
    measured = 2j / 80 * (last @ phase) / small
    sys = nh.to_control(model, x, [0.0], ["theta"])
    full = nh.to_control(model, x, [0.0])
    closed = control.ss(full.A - full.B @ K, full.B, sys.C, 0, model.h)
    magnitude, angle, _ = control.frequency_response(closed, [w])
    assert measured == pytest.approx(np.squeeze(magnitude * np.exp(1j * angle)), rel=1e-4)


def test_bode_of_one_input_is_that_of_the_linearization():
    """From the first input of the payload to its first coordinate."""
    model, x, u = at_rest("quadrotor_payload")
    sys = nh.to_control(model, x, u)
    magnitude, phase, omega = control.frequency_response(sys[0, 0], [0.5, 5.0])
    lin = model.linearize(x, u)
    for m, angle, w in zip(magnitude, phase, omega):
        z = np.exp(1j * w * model.h)
        value = np.linalg.solve(z * np.eye(model.ndx) - lin.A, lin.B)[0, 0]
        np.testing.assert_allclose(m * np.exp(1j * angle), value, rtol=1e-8, atol=1e-12)


def test_the_step_simulates_in_python_control():
    """In local coordinates about a state on a manifold, under inputs that change."""
    model, x, u = at_rest("quadrotor_payload")
    rows = u + 0.1 * np.sin(np.arange(20))[:, None]
    run = model.simulate(x, rows)
    io, times = nh.to_iosys(model, x), model.h * np.arange(20)
    response = control.input_output_response(io, times, rows.T, np.zeros(model.ndx))
    np.testing.assert_allclose(response.states.T, model.local(x, run.states[:20]), atol=1e-11)
    assert io.isdtime(strict=True) and tuple(io.input_labels) == model.inputs


def test_a_nonlinear_loop_is_interconnected_by_python_control():
    """A cart-pole balanced by a gain of `control.dlqr`, as by the tracker."""
    model = nh.midpoint(cart_pole(), 0.02)
    x, u = model.state([0.0, np.pi], [0.0, 0.0]), np.zeros(1)
    K, _, E = control.dlqr(nh.to_control(model, x, u), np.eye(4), np.eye(1))
    assert np.abs(E).max() < 1
    plant = nh.to_iosys(model, x)
    law = control.ss([], [], [], -K, model.h, inputs=plant.output_labels, outputs=model.inputs)
    loop = control.interconnect([plant, law], outputs=plant.output_labels)
    start = np.array([0.1, 0.05, 0.0, 0.0])
    response = control.input_output_response(loop, model.h * np.arange(101), 0, start)
    still = nh.Trajectory(model.h, np.tile(x, (101, 1)), np.tile(u, (100, 1)))
    tracker = nh.LqrTracker(model, still, np.eye(4), np.eye(1), limits=[[-np.inf, np.inf]])
    run = nh.rollout(model, model.retract(x, start), tracker.with_gains(K)).trajectory(0)
    np.testing.assert_allclose(response.states.T, model.local(x, run.states), atol=1e-10)


def test_outputs_are_names_or_rows():
    model = nh.midpoint(cart_pole(), 0.02)
    x = model.state([0.0, 0.0], [0.0, 0.0])
    assert nh.to_control(model, x, [0.0], ["theta"]).C.tolist() == [[0.0, 1.0, 0.0, 0.0]]
    tip = nh.to_control(model, x, [0.0], {"tip": [1.0, 0.5, 0.0, 0.0]})
    assert tip.output_labels == ["tip"] and tip.C.tolist() == [[1.0, 0.5, 0.0, 0.0]]
    with pytest.raises(ValueError, match=r"unknown outputs \['angle'\], choose of"):
        nh.to_control(model, x, [0.0], ["angle"])
    with pytest.raises(ValueError, match="'tip' must be a row of 4 numbers"):
        nh.to_control(model, x, [0.0], {"tip": [1.0]})
    with pytest.raises(ValueError, match="shape"):
        nh.to_iosys(model, [0.0, 1.0])


def test_gains_fit_the_tracker_and_stay_on_another_reference():
    model = nh.midpoint(cart_pole(), 0.02)
    x, u = model.state([0.0, np.pi], [0.0, 0.0]), np.zeros(1)
    still = nh.Trajectory(model.h, np.tile(x, (6, 1)), np.tile(u, (5, 1)))
    tracker = nh.LqrTracker(model, still, np.eye(4), np.eye(1))
    K = np.array([[1.0, 2.0, 3.0, 4.0]])
    given = tracker.with_gains(K)
    assert given.gains.K.tolist() == [K.tolist()] * 5 and (tracker.gains.K != K).any()
    assert given.with_reference(still).gains.K.tolist() == [K.tolist()] * 5
    error = model.retract(x, [1e-3, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(given.command(0, error).u, u - K @ [1e-3, 0, 0, 0], atol=1e-12)
    with pytest.raises(ValueError, match=r"must be finite and have shape \(1, 4\) or \(5, 1, 4\)"):
        tracker.with_gains(K.T)
    integral = nh.LqrTracker(model, still, np.eye(4), np.eye(1), disturbance_gain=0.2)
    with pytest.raises(ValueError, match="without disturbance_gain"):
        integral.with_gains(K)


def test_declared_outputs_have_their_exact_rows():
    height = Output("height", lambda q, v, u, p: -p.l * ca.cos(q[0]), units="m")
    power = Output("power", lambda q, v, u, p: u[0] * v[0], units="W")
    d = nh.midpoint(replace(pendulum(), outputs=(height, power)), 0.01)
    x, u = d.state([0.3], [2.0]), [1.5]
    sys = nh.to_control(d, x, u, outputs=["p_theta", "power", "height"])
    assert sys.output_labels == ["p_theta", "power", "height"]
    C, D = d.outputs("power", "height").linearize(x, u)
    assert pytest.approx(np.vstack([[0.0, 1.0], C])) == sys.C
    assert pytest.approx(np.vstack([[0.0], D])) == sys.D
    with pytest.raises(ValueError, match=r"unknown outputs \['hight'\].*'height', 'power'"):
        nh.to_control(d, x, u, outputs=["hight"])
