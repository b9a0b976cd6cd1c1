"""What small parts of controllers promise, on models that can be worked out by hand."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control.control import equilibrium
from nh_control.control.collocation import _history
from nh_control.control.damping import damping_input, damping_or_idle
from nh_control.control.equilibrium import NoEquilibrium
from nh_control.control.estimation import Belief, Innovation, OutputFeedback
from nh_control.control.optimize import Iteration
from nh_control.control.tracking import Command
from nh_control.systems import pendulum

MASS = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 1.5]])
PUSHED = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 2.0]])


def carts(limit=np.inf):
    """Three coupled masses without a force but two inputs, and a point that is moved at will."""
    return nh.System(
        name="carts",
        space=nh.Rn("a", "b", "c", "point"),
        prescribed=("point",),
        inputs=("push", "pull"),
        input_limits=[[-limit, limit]] * 2,
        lagrangian=lambda q, v: ca.bilin(ca.DM(MASS), v[:3], v[:3]) / 2,
        force=lambda q, v, u: ca.vertcat(ca.DM(PUSHED) @ u, 0),
    )


@pytest.mark.parametrize(("time_s", "part"), [(0.5, 0.2), (0.1, 1.0), (0.01, 1.0)])
def test_damping_takes_away_the_part_of_the_kinetic_energy_that_inputs_reach(time_s, part):
    """In a step of 0.1 s the momenta change by h PUSHED u: least energy of what remains, of which
    a part is taken, at most all.
    """
    dsys = nh.midpoint(carts(), 0.1)
    v, point = np.array([0.4, -0.3, 0.7]), 0.25
    x = dsys.state([0.1, 0.2, 0.3, point], [*v, 0.0])
    change = np.linalg.solve(np.linalg.cholesky(MASS), 0.1 * PUSHED)
    momenta = np.linalg.solve(np.linalg.cholesky(MASS), MASS @ v)
    best = np.linalg.lstsq(change, momenta, rcond=None)[0]
    u = damping_input(dsys, x, time_s)
    np.testing.assert_allclose(u, [*(-part * best), point], rtol=1e-9)
    energies = dsys.energy(x), dsys.energy(dsys.step(x, u))
    assert energies[1] < energies[0]


def test_external_forces_do_not_damp():
    """The last forces are not ours: the others do what they can alone."""
    dsys = nh.midpoint(carts(), 0.1)
    v = np.array([0.4, -0.3, 0.7])
    x = dsys.state([0.1, 0.2, 0.3, 0.25], [*v, 0.0])
    root = np.linalg.cholesky(MASS)
    change, momenta = np.linalg.solve(root, 0.1 * PUSHED[:, :1]), np.linalg.solve(root, MASS @ v)
    best = np.linalg.lstsq(change, momenta, rcond=None)[0]
    u = damping_input(dsys, x, 0.1, external=1)
    np.testing.assert_allclose(u, [-best[0], 0.0, 0.25], rtol=1e-9)
    np.testing.assert_array_equal(damping_or_idle(dsys, x, 0.1, 1), u)
    assert abs(u[0] - damping_input(dsys, x, 0.1)[0]) > 0.1


def test_damping_keeps_the_limits_and_needs_a_time():
    dsys = nh.midpoint(carts(0.05), 0.1)
    x = dsys.state([0.0, 0.0, 0.0, 0.25], [0.4, -0.3, 0.7, 0.0])
    u = damping_input(dsys, x, 0.5)
    assert np.abs(u[:2]).max() == 0.05 and u[2] == 0.25
    for time_s in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="damping needs a time > 0"):
            damping_input(dsys, x, time_s)


@pytest.mark.parametrize("error", [np.linalg.LinAlgError, nh.StepFailed])
def test_where_there_is_no_damping_points_stay_where_they_are(error, monkeypatch):
    dsys = nh.midpoint(carts(), 0.1)
    x = dsys.state([0.0, 0.0, 0.0, 0.25], [0.4, -0.3, 0.7, 0.0])
    np.testing.assert_array_equal(damping_or_idle(dsys, x, 0.5), damping_input(dsys, x, 0.5))

    def fails(*_):
        raise error.__new__(error)

    monkeypatch.setattr(type(dsys), "linearize", fails)
    assert damping_or_idle(dsys, x, 0.5).tolist() == [0.0, 0.0, 0.25]


def test_fixed_coordinates_keep_their_guess_in_an_equilibrium():
    """A pendulum's torque for an angle, its angle for a torque, and neither of both."""
    dsys = nh.midpoint(pendulum(), 0.05)
    weight = 9.8 * np.sin(0.3)
    x, u = equilibrium(dsys, [0.3, 0.0], [0.0], fixed=("theta",))
    np.testing.assert_allclose([*x, *u], [0.3, 0.0, weight], atol=1e-9)
    x, u = equilibrium(dsys, [0.2, 0.5], [weight], fixed=("torque",))
    np.testing.assert_allclose([*x, *u], [0.3, 0.0, weight], atol=1e-9)
    for angle in (-0.3, 0.3):  # what moves most moves backwards in one of them
        with pytest.raises(NoEquilibrium, match=r"fix less than \['theta', 'torque'\]") as found:
            equilibrium(dsys, [angle, 0.0], [0.0], fixed=("theta", "torque"))
        nearest = found.value
        np.testing.assert_array_equal([nearest.x[0], *nearest.u], [angle, 0.0])
        np.testing.assert_array_equal(
            nearest.motion, dsys.local(nearest.x, dsys.step(nearest.x, nearest.u))
        )
        worst = int(np.argmax(np.abs(nearest.motion)))
        name = dsys.state_space.tangent_names[worst]
        assert f"still moves {name} by {nearest.motion[worst]:.1e}" in str(nearest)
    with pytest.raises(ValueError, match=r"cannot fix \['phi'\], choose of \['theta', 'p_theta"):
        equilibrium(dsys, [0.3, 0.0], [0.0], fixed=("theta", "phi"))


def test_an_innovation_is_as_large_as_its_largest_number_in_deviations():
    S = np.array([[4.0, 0.1], [0.1, 0.25]])
    assert Innovation(np.array([1.0, -1.5]), np.eye(2), S).deviation == pytest.approx(3.0)
    assert Innovation(np.array([-5.0, 0.5]), np.eye(2), S).deviation == pytest.approx(2.5)


def test_output_feedback_returns_all_of_the_inner_command():
    """The estimate, its own memory, and what was saturated; the filter predicts under u."""
    told = []

    class Inner:
        dsys, reference = SimpleNamespace(nu=1), "reference"

        def target(self, k):
            return ("target", k)

        def command(self, k, x, memory=None):
            told.append((k, x.tolist(), memory))
            return Command(np.array([k + 0.5]), np.array([True]), x - 1, ("memory", k))

    kalman = SimpleNamespace(
        update=lambda belief, y, u: Belief(belief.x + y, belief.P),
        predict=lambda belief, u: Belief(belief.x + u, belief.P + 1),
    )
    feedback = OutputFeedback(Inner(), kalman, Belief(np.array([10.0]), np.zeros((1, 1))))
    assert (feedback.dsys, feedback.reference) == (Inner.dsys, "reference")
    assert feedback.target(3) == ("target", 3)
    first = feedback.command(0, np.array([1.0]))
    second = feedback.command(1, np.array([2.0]), first.memory)
    assert told == [(0, [11.0], None), (1, [13.5], ("memory", 0))]
    assert second.u == 1.5 and second.saturated.tolist() == [True] and second.error == 12.5
    assert second.memory[0].x == 15.0 and second.memory[0].P == 2
    assert second.memory[1] == 1.5 and second.memory[2] == ("memory", 1)


def test_the_history_of_ipopt_has_the_larger_infeasibility():
    table = {"obj": [3.0, 2.0], "inf_du": [1.0, 0.1], "inf_pr": [0.5, 0.2], "alpha_pr": [0.0, 1.0]}
    first, second = _history(table)
    assert (first.number, first.cost, first.descent, first.step) == (0, 3.0, 1.0, 0.0)
    assert (second.number, second.cost, second.descent, second.step) == (1, 2.0, 0.2, 1.0)
    assert _history(None) == ()


def test_an_iteration_says_what_step_was_taken():
    text = str(Iteration(7, 1.5, 2e-3, "newton", 0.49))
    assert text == "   7  cost 1.5  descent 2.00e-03  newton step 0.49"
    assert str(Iteration(12, 1.5, 0.0)).endswith("descent 0.00e+00  end")
