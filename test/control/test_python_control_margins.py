"""Bode plots, margins and loops of python-control are those of the package's own step: of its
derivatives, and of its simulation, which becomes unstable where the margin says.
"""

import control
import numpy as np
import pytest
from matplotlib.figure import Figure

import nh_control as nh
from nh_control import scenarios
from nh_control.control.tracking import Command


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


def opened(model, x, u, K):
    """The loop from the first input to its feedback, one step late as of a computer that takes its
    time; the loops of the other inputs are closed.
    """
    sys = nh.to_control(model, x, u, {f"feedback_{i}": row for i, row in enumerate(K)})
    rest = control.ss(sys.A - sys.B[:, 1:] @ K[1:], sys.B[:, :1], sys.C[:1], 0, model.h)
    return rest * control.ss(0, 1, 1, 0, model.h)


class Late:
    """The law u = u_d - K dx, whose first input is that of the step before."""

    def __init__(self, model, x, u, K, steps):
        states, inputs = np.tile(x, (steps + 1, 1)), np.tile(u, (steps, 1))
        self.dsys, self.reference, self.K = model, nh.Trajectory(model.h, states, inputs), K

    def target(self, k):
        return self.reference.states[k]

    def command(self, k, x, memory=None):
        error = self.dsys.local(self.target(k), x)
        u = self.reference.inputs[0] - self.K @ error
        late = np.append(self.reference.inputs[0, 0] if memory is None else memory, u[1:])
        return Command(late, np.zeros(len(u), dtype=bool), error, u[0])


def response(model, x, u, K, omega):
    """Of the opened loop, by the derivatives of the step."""
    lin, identity, z = model.linearize(x, u), np.eye(model.ndx), np.exp(1j * omega * model.h)
    A, b = lin.A - lin.B[:, 1:] @ K[1:], lin.B[:, 0]
    return np.array([K[0] @ np.linalg.solve(s * identity - A, b) / s for s in z])


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


def margins(case):
    """Of python-control, from the response at many frequencies."""
    omega = np.geomspace(1.0, 0.999 * np.pi / case[0].h, 1000)
    return control.margin(control.frequency_response(opened(*case), omega))


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_simulation_is_stable_up_to_the_gain_margin(case, factor):
    """The package's own loop with a first gain just below and above python-control's margin: a
    small error vanishes, or grows, as its closed loop says.
    """
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
