"""The projection-operator optimizer: its optimum satisfies the first-order conditions, its Newton
model is the second derivative, its limits hold.
"""

from functools import cache

import casadi as ca
import differences
import numpy as np
import pytest
from optimal_cases import entangled, pushed_ball, wandering
from refusals import refusal

from nh_control.control import lqr
from nh_control.control.collocation import collocate
from nh_control.control.costs import Cost, compile_cost, quadratic_cost
from nh_control.control.optimize import optimize
from nh_control.control.projected_descent import METHODS, _Descent
from nh_control.control.projection import follow_with_gains, project_trajectory
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint, nonholonomic_midpoint
from nh_control.systems import pendulum, snakeboard


def multiplier_defect(dsys, cost, trajectory):
    """Largest `l_u + B^T lam'`, with `lam = l_x + A^T lam'`: zero at a stationary point."""
    A, B = lqr.linearize_along(dsys, trajectory)
    model, worst = compile_cost(dsys, cost).expand(trajectory.states, trajectory.inputs), 0.0
    lam = model.end_gradient
    for k in reversed(range(len(trajectory))):
        worst = max(worst, np.abs(model.gradients[k, dsys.ndx :] + B[k].T @ lam).max())
        lam = model.gradients[k, : dsys.ndx] + A[k].T @ lam
    return worst


CASES = {
    "pendulum": lambda: midpoint(pendulum(), 0.1),
    "snakeboard": lambda: nonholonomic_midpoint(snakeboard(), 0.1),
    "pushed_ball": lambda: midpoint(pushed_ball(), 0.05),
}


@cache
def made(name):
    return CASES[name]()


@pytest.fixture(params=CASES)
def dsys(request):
    return made(request.param)


def test_newton_meets_the_first_order_conditions_and_converges_quadratically(dsys):
    desired = wandering(dsys, 12, np.random.default_rng(4))
    start = wandering(dsys, 12, np.random.default_rng(5))
    guess = Trajectory(dsys.h, np.vstack([start.states[:1], desired.states[1:]]), desired.inputs)
    cost = quadratic_cost(dsys, desired, np.eye(dsys.ndx), 0.1 * np.eye(dsys.nu)) + Cost(
        lambda x, u, w: 0.1 * ca.sumsqr(u) ** 2
    )
    weights = np.eye(dsys.ndx), np.eye(dsys.nu)
    result = optimize(dsys, cost, guess, *weights, "newton", tolerance=1e-12)
    assert result.converged and "below" in result.reason
    np.testing.assert_array_equal(result.trajectory.states[0], guess.states[0])
    lqr.linearize_along(dsys, result.trajectory, gap=1e-9)
    assert multiplier_defect(dsys, cost, result.trajectory) < 1e-5
    kinds = [i.kind for i in result.history]
    assert kinds[-2] == "newton" and result.history[-2].step == 1.0
    assert result.history[-1].descent < 1e-3 * result.history[-2].descent
    total = compile_cost(dsys, cost)(result.trajectory.states, result.trajectory.inputs)
    assert result.cost == pytest.approx(total, rel=1e-14)
    assert (np.diff([i.cost for i in result.history]) < 0).all()


UNIT = np.eye(2), np.eye(1)


def near(dsys, desired):
    """The cost of a pendulum's way from a desired one."""
    return quadratic_cost(dsys, desired, *UNIT)


def test_the_model_of_newton_is_the_second_derivative_of_the_projected_cost(dsys):
    """Slope and curvature of `t -> J(P(xi + t zeta))` along random tangents, for a cost in which
    all is coupled; in steps so long that the dynamics bend within one, or the adjoint's terms are
    lost beside the cost's.
    """
    dsys, rng = dsys.with_step(3 * dsys.h), np.random.default_rng(7)
    trajectory, cost = wandering(dsys, 6, rng), compile_cost(dsys, entangled(dsys))
    A, B = lqr.linearize_along(dsys, trajectory)
    Q, R = np.eye(dsys.ndx), np.eye(dsys.nu)
    K, model = lqr.riccati(A, B, Q, R, Q).K, cost.expand(trajectory.states, trajectory.inputs)
    curvature = _Descent(dsys, Q, R, METHODS, 0.0, 1, print)._curvature(trajectory, A, B, K, model)
    for _ in range(3):
        v = 0.3 * rng.normal(size=(6, dsys.nu))
        z = np.zeros((7, dsys.ndx))
        for k in range(6):
            z[k + 1] = A[k] @ z[k] + B[k] @ v[k]

        def projected(t, z=z, v=v):
            states = np.array([dsys.retract(x, t * dx) for x, dx in zip(trajectory.states, z)])
            run = follow_with_gains(dsys, Trajectory(dsys.h, states, trajectory.inputs + t * v), K)
            return cost(run.states, run.inputs)

        y = np.hstack([z[:-1], v])
        assert model.slope(z, v) == pytest.approx(
            differences.derivative(projected, 0.02), rel=1e-8, abs=1e-8
        )
        bent = (
            np.einsum("ki,kij,kj->", y, model.hessians + curvature, y)
            + z[-1] @ model.end_hessian @ z[-1]
        )
        assert bent == pytest.approx(
            differences.second_derivative(projected, 0.02), rel=1e-6, abs=1e-6
        )


def test_limits_hold_and_the_barrier_costs_little():
    """Nearly nothing against a solver for bounded problems."""
    dsys, steps = midpoint(pendulum(), 0.1), 30
    desired = Trajectory(dsys.h, np.tile([1.0, 0.0], (steps + 1, 1)), np.zeros((steps, 1)))
    rest = Trajectory(dsys.h, np.zeros((steps + 1, 2)), np.zeros((steps, 1)))
    cost = quadratic_cost(dsys, desired, np.diag([100.0, 1.0]), 0.1 * np.eye(1))
    free = optimize(dsys, cost, rest, *UNIT, "newton")
    limits = {"torque": (-4.0, 9.0), "p_theta": (-2.0, 1.5)}
    held = optimize(dsys, cost, rest, *UNIT, "newton", limits=limits)
    assert free.trajectory.inputs.max() > 9.5 and free.trajectory.states[:, 1].max() > 2.0
    assert held.converged and held.cost > free.cost
    assert held.trajectory.inputs.min() > -4 and 8.9 < held.trajectory.inputs.max() < 9
    assert 1.49 < held.trajectory.states[:, 1].max() < 1.5
    bounded = collocate(dsys, cost, rest, limits=limits)
    assert bounded.converged and 0 < held.cost - bounded.cost < 1e-4 * bounded.cost
    np.testing.assert_allclose(held.trajectory.states, bounded.trajectory.states, atol=1e-3)


def test_limits_that_cannot_hold_are_reported():
    dsys = midpoint(pendulum(), 0.1)
    falling = dsys.simulate([0.4, 0.0], np.zeros((5, 1)))
    limits = {"theta": (0.35, 0.5), "torque": (-0.1, 0.1)}
    result = optimize(dsys, near(dsys, falling), falling, *UNIT, "newton", limits=limits)
    assert not result.converged and "limits are exceeded" in result.reason


def ten_steps():
    """A pendulum, a cost and a guess beside its optimum."""
    dsys = midpoint(pendulum(), 0.1)
    desired = wandering(dsys, 10, np.random.default_rng(9))
    return dsys, near(dsys, desired), Trajectory(dsys.h, desired.states + 0.2, desired.inputs)


def test_a_saddle_is_not_reported_as_an_optimum():
    """Hanging at rest is stationary for a cost that rewards any swing, to either side."""
    dsys = midpoint(pendulum(), 0.1)
    rest = Trajectory(dsys.h, np.zeros((11, 2)), np.zeros((10, 1)))
    cost = Cost(lambda x, u, w: 1e-3 * ca.sumsqr(u) - ca.sin(x[0]) ** 2)
    stuck = optimize(dsys, cost, rest, *UNIT, "newton")
    assert stuck.converged and "may be a saddle" in stuck.reason
    beside = Trajectory(dsys.h, rest.states, rest.inputs + 0.1)
    left = optimize(dsys, cost, beside, *UNIT, "newton")
    assert left.converged and "saddle" not in left.reason and left.cost < stuck.cost - 1


def test_too_few_iterations_are_reported():
    few = dict(tolerance=1e-14, max_iterations=2)
    result = optimize(*ten_steps(), *UNIT, "steepest", **few)
    assert not result.converged and len(result.history) == 2
    assert result.reason == "no convergence in 2 iterations"
    walls = {"limits": {"torque": (-50.0, 50.0)}, "barrier_weights": (1.0, 0.1, 0.01)}
    limited = optimize(*ten_steps(), *UNIT, "steepest", **few, **walls)
    assert [i.number for i in limited.history] == list(range(6))  # two for each weight


def test_what_does_not_fit_is_refused(snapshot):
    dsys, cost, guess = ten_steps()
    short = Trajectory(dsys.h, guess.states[:10], guess.inputs[:9])
    calls = (
        lambda: optimize(dsys, cost, guess, *UNIT, "gauss"),
        lambda: optimize(dsys, cost, guess, *UNIT, "newton", barrier_weights=()),
        lambda: optimize(dsys, cost, guess, *UNIT, "newton", barrier_weights=(1.0, 0.0)),
        lambda: optimize(dsys, cost, short, *UNIT, "newton"),
    )
    assert [refusal(one) for one in calls] == snapshot


def test_a_projection_starts_where_it_is_asked_to_and_keeps_what_is_feasible():
    dsys = midpoint(pendulum(), 0.1)
    feasible = dsys.simulate([0.5, 0.2], np.linspace(0, 1, 6)[:, None])
    kept = project_trajectory(dsys, feasible, np.eye(2), np.eye(1))
    np.testing.assert_allclose(kept.states, feasible.states, atol=1e-12)
    wished = Trajectory(0.1, feasible.states + [[0.1, 0.0]], feasible.inputs, name="wished")
    near, far = (project_trajectory(dsys, wished, w * np.eye(2), np.eye(1)) for w in (100.0, 1e-6))
    for run in (near, far):
        assert run.name == "wished" and (run.states[0] == wished.states[0]).all()
        again = dsys.simulate(run.states[0], run.inputs)
        np.testing.assert_allclose(again.states, run.states, atol=1e-10)
    off = [np.abs(run.states - wished.states).max() for run in (near, far)]
    assert off[0] < 0.7 * off[1]


def test_all_methods_find_the_same_optimum():
    dsys = midpoint(pendulum(), 0.1)
    desired = wandering(dsys, 15, np.random.default_rng(6))
    guess, best = Trajectory(dsys.h, desired.states + 0.1, desired.inputs), None
    for method in reversed(METHODS):
        found = optimize(dsys, near(dsys, desired), guess, *UNIT, method, tolerance=1e-13)
        assert {i.kind for i in found.history[:-1]} == {method}
        best = best or found
        assert found.cost == pytest.approx(best.cost, rel=1e-12)
        np.testing.assert_allclose(found.trajectory.states, best.trajectory.states, atol=1e-6)
