"""Systems of python-control are the package's own: frequency responses, margins, simulation, and
designs, whose loops become unstable where the margin says.
"""

from dataclasses import replace

import casadi as ca
import control
import numpy as np
import pytest
from matplotlib.figure import Figure

import nh_control as nh
from nh_control import scenarios
from nh_control.mechanics.outputs import Output
from nh_control.systems.cart_pole import cart_pole
from nh_control.systems.pendulum import pendulum


def velocities(model, x):
    """Rows (nw, ndx) of the velocities of states near one at rest, where they are linear."""
    moved = (model.velocity(model.retract(x, dx)) for dx in np.eye(model.ndx))
    return np.array(list(moved)).T


def snakeboard():
    """At rest, where no law can hold the whole board: a spring and a damper on each joint."""
    model = scenarios.get("snakeboard").model()
    space = model.system.space
    x = model.state(space.origin, np.zeros(space.nw))
    place = [model.state_space.tangent_names.index(joint) for joint in ("psi", "phi")]
    K = 20.0 * np.eye(model.ndx)[place] + 4.0 * velocities(model, x)[place]
    return model, x, np.zeros(2), K


def payload():
    """In hover, by the gain that python-control finds."""
    scenario = scenarios.get("quadrotor_payload")
    model = scenario.model()
    hover = scenario.reference(model, "hover")
    x, u = hover.states[0], hover.inputs[0]
    return model, x, u, control.dlqr(nh.to_control(model, x, u), *scenario.weights[:2])[0]


@pytest.fixture(scope="module", params=[snakeboard, payload], ids=["snakeboard", "payload"])
def case(request):
    return request.param()


def test_a_linearization_has_names_step_and_frequency_response(case):
    """The response at a frequency is that of `C (z I - A)^{-1} B`."""
    model, x, u, _ = case
    sys, lin = nh.to_control(model, x, u), model.linearize(x, u)
    assert sys.dt == model.h and tuple(sys.input_labels) == model.inputs
    assert tuple(sys.state_labels) == tuple(sys.output_labels) == model.state_space.tangent_names
    np.testing.assert_array_equal(sys.A, lin.A)
    z = np.exp(1j * 3.0 * model.h)
    expected = np.linalg.solve(z * np.eye(model.ndx) - lin.A, lin.B)
    np.testing.assert_allclose(sys(z), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_the_step_simulates_in_python_control():
    """In local coordinates about a state on a manifold, under inputs that change."""
    model, x, u, _ = payload()
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
    with pytest.raises(ValueError, match=r"unknown outputs \['angle'\], choose from"):
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


# --- margins -------------------------------------------------------------------------------------


def opened(model, x, u, K):
    """From the first input to its late feedback; the loops of the other inputs are closed."""
    sys = nh.to_control(model, x, u, {f"feedback_{i}": row for i, row in enumerate(K)})
    rest = control.ss(sys.A - sys.B[:, 1:] @ K[1:], sys.B[:, :1], sys.C[:1], 0, model.h)
    return rest * control.ss(0, 1, 1, 0, model.h)


class Late:
    """The law u = u_d - K dx, whose first input is that of the step before."""

    def __init__(self, model, x, u, K, steps):
        self.model, self.u, self.K = model, u, K
        self.targets = np.tile(x, (steps + 1, 1))

    def reset(self):
        self.first = self.u[0]

    def command(self, k, x):
        u = self.u - self.K @ self.model.local(self.targets[0], x)
        late, self.first = np.append(self.first, u[1:]), u[0]
        return late


def response(model, x, u, K, omega):
    """Of the opened loop, by the derivatives of the step."""
    lin, identity, z = model.linearize(x, u), np.eye(model.ndx), np.exp(1j * omega * model.h)
    A, b = lin.A - lin.B[:, 1:] @ K[1:], lin.B[:, 0]
    return np.array([K[0] @ np.linalg.solve(s * identity - A, b) / s for s in z])


def margins(case):
    """Of python-control, from the response at many frequencies."""
    omega = np.geomspace(1.0, 0.999 * np.pi / case[0].h, 1000)
    return control.margin(control.frequency_response(opened(*case), omega))


def test_a_bode_plot_and_margins_are_those_of_the_derivatives(case):
    omega, axes = np.geomspace(1.0, 300.0, 100), Figure().subplots(2)
    lines = control.bode_plot(opened(*case), omega, ax=axes, deg=True, wrap_phase=True)
    expected = response(*case, omega)
    magnitude, phase = (lines.lines[row, 0][0].get_ydata() for row in (0, 1))
    drawn = magnitude * np.exp(1j * np.radians(phase))
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)
    margin, phase, at_180, at_1 = margins(case)
    ahead, around = response(*case, np.array([at_180, at_1]))
    assert ahead == pytest.approx(-1 / margin, rel=1e-3)
    assert around == pytest.approx(-np.exp(1j * np.radians(phase)), rel=1e-3)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_simulation_is_stable_up_to_the_gain_margin(case, factor):
    """Just below and above python-control's margin a small error vanishes, or grows."""
    model, x, u, K = case
    gain, _, _, _ = margins(case)
    assert 1.0 < gain < np.inf
    scaled, steps = K.copy(), 600
    scaled[0] *= factor * gain
    start = 1e-7 * K[0] / np.linalg.norm(K[0])
    run = nh.rollout(model, model.retract(x, start), Late(model, x, u, scaled, steps))
    feedback = run.errors[0] @ scaled[0]
    first, last = np.abs(feedback[:100]).max(), np.abs(feedback[-100:]).max()
    assert last > 3 * first if factor > 1 else last < first / 3
    loop = control.feedback(opened(model, x, u, scaled))  # whose first state is the late input
    expected = control.initial_response(loop, model.h * np.arange(100), [0.0, *start]).outputs
    np.testing.assert_allclose(feedback[:100], expected, atol=1e-4 * first)
