"""Direct collocation: it satisfies the discrete equations, agrees with the projection operator,
keeps bounds and end conditions.
"""

import signal

import casadi as ca
import numpy as np
import pytest
from optimal_cases import pushed_ball, wandering

from nh_control.control import collocation, lqr
from nh_control.control.collocation import collocate, resample
from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, quadratic_cost
from nh_control.control.optimize import optimize
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint, rdp
from nh_control.papers import johnson2014
from nh_control.systems import pendulum, snakeboard


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


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: midpoint(pushed_ball(), 0.05), marks=pytest.mark.slow),
        lambda: rdp(snakeboard(), 0.1, "cay"),
    ],
    ids=["sphere", "snakeboard by rdp"],
)
def test_it_agrees_with_the_projection_operator_on_manifolds(make):
    dsys = make()
    desired, start = (
        wandering(dsys, 15, np.random.default_rng(4)),
        wandering(dsys, 15, np.random.default_rng(5)),
    )
    guess = Trajectory(dsys.h, np.vstack([start.states[:1], desired.states[1:]]), desired.inputs)
    cost = quadratic_cost(dsys, desired, np.eye(dsys.ndx), 0.1 * np.eye(dsys.nu))
    projected, collocated = (
        optimize(dsys, cost, guess, np.eye(dsys.ndx), np.eye(dsys.nu), "newton"),
        collocate(dsys, cost, guess),
    )
    assert projected.converged and collocated.converged
    assert collocated.cost == pytest.approx(projected.cost, rel=1e-9)
    for x, y in zip(collocated.trajectory.states, projected.trajectory.states):
        np.testing.assert_allclose(dsys.local(x, y), 0, atol=1e-4)


def test_bounds_are_those_that_the_barrier_tends_to():
    dsys, steps = midpoint(pendulum(), 0.1), 30
    desired = Trajectory(dsys.h, np.tile([1.0, 0.0], (steps + 1, 1)), np.zeros((steps, 1)))
    rest = Trajectory(dsys.h, np.zeros((steps + 1, 2)), np.zeros((steps, 1)))
    cost, limits = (
        quadratic_cost(dsys, desired, np.diag([100.0, 1.0]), 0.1 * np.eye(1)),
        {"torque": (-4.0, 9.0), "p_theta": (-2.0, 1.5)},
    )
    bounded, walled = (
        collocate(dsys, cost, rest, limits=limits),
        optimize(dsys, cost, rest, np.eye(2), np.eye(1), "newton", limits=limits),
    )
    assert bounded.converged and walled.converged
    assert bounded.trajectory.inputs.max() == pytest.approx(
        9, abs=1e-6
    ) and bounded.trajectory.states[:, 1].max() == pytest.approx(1.5, abs=1e-6)
    assert 0 < walled.cost - bounded.cost < 1e-4 * bounded.cost
    np.testing.assert_allclose(walled.trajectory.states, bounded.trajectory.states, atol=1e-3)


def test_limits_hold_at_the_last_state_too():
    dsys = midpoint(pendulum(), 0.1)
    rest = Trajectory(dsys.h, np.zeros((6, 2)), np.zeros((5, 1)))
    raised = Trajectory(dsys.h, np.tile([1.0, 0.0], (6, 1)), np.zeros((5, 1)))
    only_the_end = quadratic_cost(
        dsys, raised, np.zeros((2, 2)), 0.01 * np.eye(1), 100 * np.eye(2)
    )
    found = collocate(dsys, only_the_end, rest, limits={"theta": (-np.inf, 0.3)})
    assert found.converged
    assert found.trajectory.states[-1, 0] == pytest.approx(0.3, abs=1e-6)


def test_end_conditions_hold_in_the_coordinates_that_are_fixed():
    dsys = midpoint(pushed_ball(), 0.1)
    start = wandering(dsys, 20, np.random.default_rng(6))
    effort, end = (
        Cost(lambda x, u, w: ca.sumsqr(u)),
        dsys.retract(start.states[0], np.array([0.4, -0.3, 0.0, 0.0])),
    )
    whole, part = (
        collocate(dsys, effort, start, end),
        collocate(dsys, effort, start, end, fixed=dsys.state_space.tangent_names[:2]),
    )
    assert whole.converged and part.converged and part.cost < whole.cost
    np.testing.assert_allclose(dsys.local(end, whole.trajectory.states[-1]), 0, atol=1e-9)
    left = dsys.local(end, part.trajectory.states[-1])
    assert np.abs(left[:2]).max() < 1e-9 and np.abs(left[2:]).max() > 1e-3


@pytest.mark.slow
def test_it_converges_on_manifolds_from_guesses_that_end_elsewhere():
    """In the redundant coordinates of unit vectors IPOPT gave up on 5 of these 8."""
    dsys, effort = midpoint(pushed_ball(), 0.1), Cost(lambda x, u, w: ca.sumsqr(u))
    for seed in (1, 2, 4, 5):
        moved = wandering(dsys, 20, np.random.default_rng(seed))
        end = dsys.retract(moved.states[0], np.array([0.4, -0.3, 0.0, 0.0]))
        for guess in (moved, dsys.simulate(moved.states[0], np.zeros((20, dsys.nu)))):
            result = collocate(dsys, effort, guess, end)
            assert result.converged, (seed, result.reason)
            np.testing.assert_allclose(dsys.local(end, result.trajectory.states[-1]), 0, atol=1e-9)
            lqr.linearize_along(dsys, result.trajectory)


def test_a_guess_beside_the_manifold_is_projected_on_it():
    dsys, effort = midpoint(pushed_ball(), 0.1), Cost(lambda x, u, w: ca.sumsqr(u))
    guess = wandering(dsys, 10, np.random.default_rng(3))
    beside = Trajectory(
        dsys.h, np.vstack([guess.states[:1], 1.1 * guess.states[1:]]), guess.inputs
    )
    found = [collocate(dsys, effort, g, guess.states[-1]) for g in (guess, beside)]
    assert all(result.converged for result in found)
    np.testing.assert_allclose(
        np.linalg.norm(found[1].trajectory.states[:, :3], axis=1), 1, atol=1e-14
    )
    assert found[1].cost == pytest.approx(found[0].cost, rel=1e-9)


def test_what_cannot_be_is_said():
    dsys, rest = midpoint(pendulum(), 0.1), Trajectory(0.1, np.zeros((6, 2)), np.zeros((5, 1)))
    effort = Cost(lambda x, u, w: ca.sumsqr(u))
    result = collocate(dsys, effort, rest, end=[np.pi, 0.0], limits={"torque": (-0.1, 0.1)})
    assert not result.converged and "Infeasible" in result.reason
    for arguments, text in (
        ({"end": [0.0]}, r"end must be a state of shape \(2,\)"),
        ({"end": [0.0, 0.0], "fixed": ["phi"]}, "coordinates fixed among"),
        ({"limits": {"phi": (0, 1)}}, "no state or input 'phi'"),
    ):
        with pytest.raises(ValueError, match=text):
            collocate(dsys, effort, rest, **arguments)
    ball = midpoint(pushed_ball(), 0.1)
    there, nowhere = (
        ball.simulate(ball.state([0.0, 0.0, 1.0], np.zeros(3)), np.zeros((3, 2))),
        np.zeros((1, 6)),
    )
    through = Trajectory(
        0.1, np.vstack([there.states[:2], nowhere, there.states[3:]]), there.inputs
    )
    with pytest.raises(ValueError, match="node 2 of the guess is near no state"):
        collocate(ball, effort, through)
    opposite = collocate(ball, effort, there, ball.state([0.0, 0.0, -1.0], np.zeros(3)))
    assert opposite.converged or opposite.reason.startswith("IPOPT: ")
    with pytest.raises(ValueError, match="has 3 states"):
        collocate(dsys, effort, Trajectory(0.1, np.zeros((6, 3)), np.zeros((5, 1))))


def test_resampled_guesses_keep_times_and_held_inputs():
    coarse = Trajectory(0.1, np.arange(6.0)[:, None], np.arange(5.0)[:, None])
    fine = resample(coarse, 0.025)
    np.testing.assert_allclose(fine.states[:, 0], np.arange(21) / 4)
    np.testing.assert_array_equal(fine.inputs[:, 0], np.repeat(np.arange(5.0), 4))


class Interrupting(ca.Callback):
    """IPOPT calls it after every iteration; SIGINT comes in the third."""

    def __init__(self, problem):
        ca.Callback.__init__(self)
        self._sizes = {"x": problem["x"].numel(), "g": problem["g"].numel(), "f": 1}
        self.iterations = 0
        self.construct("interrupting", {})

    def get_n_in(self):
        """What a solver has found."""
        return ca.nlpsol_n_out()

    def get_n_out(self):
        """Whether to stop."""
        return 1

    def get_sparsity_in(self, i):
        """Sizes by names, multipliers as what they belong to."""
        name = ca.nlpsol_out(i).removeprefix("lam_")
        return ca.Sparsity.dense(self._sizes.get(name, 0), 1)

    def eval(self, _):
        """One more."""
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
    with pytest.raises(ValueError, match="unknown solver 'snopt'"):
        collocate(dsys, cost, guess, solver="snopt")
