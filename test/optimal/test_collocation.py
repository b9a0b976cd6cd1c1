"""Direct collocation: it satisfies the discrete equations, agrees with the projection operator,
keeps bounds and end conditions.
"""

import signal

import casadi as ca
import numpy as np
import pytest
from optimal_cases import mass, pushed_ball, wandering
from refusals import refusal

from nh_control.control import collocation, lqr
from nh_control.control.collocation import collocate, resample
from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, quadratic_cost
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint
from nh_control.papers import johnson2014
from nh_control.systems import pendulum

EFFORT = Cost(lambda x, u, w: ca.sumsqr(u))


def test_it_agrees_with_the_projection_operator_on_the_paper_s_swing_up(capfd):
    dsys, hanging = johnson2014.model(), Trajectory(0.1, np.zeros((101, 2)), np.zeros((100, 1)))
    result = collocate(
        dsys,
        quadratic_cost(dsys, johnson2014.infeasible_reference(), johnson2014.Q, johnson2014.R),
        hanging,
    )
    projected = johnson2014.swing_up("newton")
    assert result.converged and "Solve_Succeeded" in result.reason
    assert result.cost == pytest.approx(projected.cost, rel=1e-11)
    np.testing.assert_allclose(result.trajectory.states, projected.trajectory.states, atol=1e-6)
    lqr.linearize_along(dsys, result.trajectory, gap=1e-8)
    assert result.history[-1].descent < 1e-8
    assert capfd.readouterr() == ("", "")


def test_end_conditions_hold_in_the_coordinates_that_are_fixed():
    dsys = midpoint(pushed_ball(), 0.1)
    start = wandering(dsys, 20, np.random.default_rng(6))
    end = dsys.retract(start.states[0], np.array([0.4, -0.3, 0.0, 0.0]))
    whole = collocate(dsys, EFFORT, start, end)
    part = collocate(dsys, EFFORT, start, end, fixed=dsys.state_space.tangent_names[:2])
    assert whole.converged and part.converged and part.cost < whole.cost
    np.testing.assert_allclose(dsys.local(end, whole.trajectory.states[-1]), 0, atol=1e-9)
    left = dsys.local(end, part.trajectory.states[-1])
    assert np.abs(left[:2]).max() < 1e-9 and np.abs(left[2:]).max() > 1e-3


def test_what_cannot_be_reached_is_said():
    dsys, rest = midpoint(pendulum(), 0.1), Trajectory(0.1, np.zeros((6, 2)), np.zeros((5, 1)))
    result = collocate(dsys, EFFORT, rest, end=[np.pi, 0.0], limits={"torque": (-0.1, 0.1)})
    assert not result.converged and "Infeasible" in result.reason
    ball = midpoint(pushed_ball(), 0.1)
    there = ball.simulate(ball.state([0.0, 0.0, 1.0], np.zeros(3)), np.zeros((3, 2)))
    opposite = collocate(ball, EFFORT, there, ball.state([0.0, 0.0, -1.0], np.zeros(3)))
    assert opposite.converged or opposite.reason.startswith("IPOPT: ")
    nowhere = there.states.copy()
    nowhere[2] = 0.0
    with pytest.raises(ValueError, match="node 2 of the guess is too far from the manifold"):
        collocate(ball, EFFORT, Trajectory(0.1, nowhere, there.inputs))


def test_problems_that_do_not_fit_are_refused(snapshot):
    dsys, rest = midpoint(pendulum(), 0.1), Trajectory(0.1, np.zeros((6, 2)), np.zeros((5, 1)))
    cost, told = quadratic_cost(dsys, rest, np.eye(2), np.eye(1)), []
    for (h, nx, steps), options in (
        ((0.1, 2, 5), {"end": [0.0]}),
        ((0.1, 2, 5), {"end": [0.0, 0.0], "fixed": ["phi"]}),
        ((0.1, 2, 5), {"limits": {"phi": (0, 1)}}),
        ((0.1, 2, 5), {"solver": "snopt"}),
        ((0.1, 3, 5), {}),
        ((0.2, 2, 5), {}),
        ((0.1, 2, 4), {}),
    ):
        guess = Trajectory(h, np.zeros((steps + 1, nx)), np.zeros((steps, 1)))
        told.append(refusal(lambda: collocate(dsys, cost, guess, **options)))
    assert told == snapshot


class Interrupting(ca.Callback):
    """IPOPT calls it after every iteration; SIGINT comes in the third."""

    def __init__(self, problem):
        ca.Callback.__init__(self)
        self._sizes = {"x": problem["x"].numel(), "g": problem["g"].numel(), "f": 1}
        self.iterations = 0
        self.construct("interrupting", {})

    def get_n_in(self):
        return ca.nlpsol_n_out()

    def get_n_out(self):
        return 1

    def get_sparsity_in(self, i):
        name = ca.nlpsol_out(i).removeprefix("lam_")
        return ca.Sparsity.dense(self._sizes.get(name, 0), 1)

    def eval(self, _):
        self.iterations += 1
        if self.iterations == 3:
            signal.raise_signal(signal.SIGINT)
        return [0]


class Leave(BaseException):
    """What a handler of one's own may raise."""


@pytest.mark.parametrize("reason", [KeyboardInterrupt, Leave])
def test_an_interruption_of_ipopt_is_not_lost(reason, monkeypatch):
    """IPOPT takes what the handler raises for a wish to stop, and says that it found nothing."""
    made, nlpsol, before = [], ca.nlpsol, signal.getsignal(signal.SIGINT)

    def watched(name, plugin, problem, options):
        made.append(Interrupting(problem))
        return nlpsol(name, plugin, problem, {**options, "iteration_callback": made[0]})

    def interrupt(*_):
        raise reason

    monkeypatch.setattr(collocation.ca, "nlpsol", watched)
    dsys, hanging = johnson2014.model(), Trajectory(0.1, np.zeros((101, 2)), np.zeros((100, 1)))
    cost = quadratic_cost(dsys, johnson2014.infeasible_reference(), johnson2014.Q, johnson2014.R)
    signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(reason):
            collocate(dsys, cost, hanging)
        assert signal.getsignal(signal.SIGINT) is interrupt and made[0].iterations == 3
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("limited", [False, True])
def test_fatrop_finds_the_same_optima(limited):
    dsys = midpoint(pendulum(), 0.1)
    wanted = Trajectory(0.1, np.tile([1.0, 0.0], (16, 1)), np.zeros((15, 1)))
    cost = quadratic_cost(dsys, wanted, np.diag([100.0, 1.0]), 0.1 * np.eye(1))
    options = {}
    if limited:
        power = Constraint("power", lambda x, u, w: u[0] * x[1], -np.inf, 4.0, weight=30.0)
        high = Constraint("high", lambda x, u, w: ca.sin(x[0]), -np.inf, 0.9)
        options = dict(limits={"torque": (-4.0, 9.0), "p_theta": (-2.0, 1.5)})
        options |= dict(constraints=[power, high], end=[0.9, 0.0], fixed=["theta"])
    guess = dsys.simulate([0.0, 0.0], np.zeros((15, 1)))
    by_ipopt, by_fatrop = (
        collocate(dsys, cost, guess, solver=solver, **options) for solver in ("ipopt", "fatrop")
    )
    assert by_fatrop.converged and by_fatrop.reason.startswith("FATROP")
    assert by_fatrop.cost == pytest.approx(by_ipopt.cost, rel=1e-7)
    a, b = by_ipopt.trajectory, by_fatrop.trajectory
    np.testing.assert_allclose(a.states, b.states, atol=1e-6)
    np.testing.assert_allclose(a.inputs, b.inputs, atol=1e-5)


def test_the_domain_of_a_model_is_kept_on_the_way():
    """Nothing but the domain keeps the cart from the other side."""
    dsys = midpoint(mass(end=1), 0.1)
    still = Trajectory(0.1, np.zeros((9, 2)), np.zeros((8, 1)))
    beyond = Cost(lambda x, u, w: 1e-3 * ca.sumsqr(u) + (x[0] - 3) ** 2, lambda x, w: 0 * x[0])
    found = collocate(dsys, beyond, still)
    middles = (found.trajectory.states[1:, 0] + found.trajectory.states[:-1, 0]) / 2
    assert found.converged and 0.9 < middles.max() < 1 + 1e-6
    past = Trajectory(0.1, np.vstack([[0.0, 0.0], *8 * [[1.5, 0.0]]]), still.inputs)
    again = collocate(dsys, beyond, past)  # from where no step is possible
    assert again.converged and again.cost == pytest.approx(found.cost, rel=1e-6)


def test_a_trajectory_is_resampled_to_a_step_that_does_not_divide_its_own():
    """States at their times, inputs those that act in the middle of each step, the end kept."""
    coarse = Trajectory(0.3, np.array([[0.0], [3.0], [9.0]]), np.array([[1.0], [2.0]]),
                        ("x",), ("push",), "a name")  # fmt: skip
    halves = resample(coarse, 0.15)
    np.testing.assert_allclose(halves.states[:, 0], [0.0, 1.5, 3.0, 6.0, 9.0])
    assert halves.inputs[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
    fine = resample(coarse, 0.2)
    np.testing.assert_allclose(fine.states[:, 0], [0.0, 2.0, 5.0, 9.0], atol=1e-12)
    assert fine.inputs[:, 0].tolist() == [1.0, 2.0, 2.0] and fine.h == 0.2
    assert (fine.name, fine.state_names, fine.input_names) == ("a name", ("x",), ("push",))
    longer = resample(coarse, 0.25)  # two steps are less, three more than 0.6 s
    assert len(longer) == 2 and longer.states[-1, 0] == pytest.approx(3.0 + 6 * 2 / 3)
    over = resample(coarse, 0.16)
    assert len(over) == 4 and over.states[-1, 0] == 9.0 and over.inputs[-1, 0] == 2.0


def test_a_cached_optimum_is_found_again_to_the_bit_and_a_long_search_is_announced(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path / "cache"))
    dsys, rest = midpoint(pendulum(), 0.1), Trajectory(0.1, np.zeros((31, 2)), np.zeros((30, 1)))
    solved, solve = [], collocation._solve
    monkeypatch.setattr(collocation, "_solve", lambda *a: solved.append(a) or solve(*a))
    monkeypatch.setattr(collocation, "LONG_S", 0.1)
    found = [collocate(dsys, EFFORT, rest, end=[end, 0.0], cached=True) for end in (3.0, 3.0, 2.9)]
    assert [len(solved), *(one.converged for one in found)] == [2, True, True, True]
    first, again, other = found
    np.testing.assert_array_equal(again.trajectory.states, first.trajectory.states)
    np.testing.assert_array_equal(again.trajectory.inputs, first.trajectory.inputs)
    assert (again.cost, again.reason, again.history) == (first.cost, first.reason, first.history)
    assert other.trajectory.states[-1, 0] == pytest.approx(2.9)
    assert caplog.text.count("optimizing a motion of 30 steps; this takes about 0 to 0 s") == 2
    limits = {"torque": (-8.0, 8.0)}  # bounds count as well
    collocate(dsys, EFFORT, rest, end=[3.0, 0.0], limits=limits, cached=True)
    assert len(solved) == 3
