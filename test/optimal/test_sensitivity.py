"""Derivatives of optima by the factors of Newton's equation, against differences of whole
solutions.
"""

import casadi as ca
import differences
import numpy as np
import pytest
from optimal_cases import pushed_ball, wandering

import nh_control as nh
from nh_control.control.costs import quadratic_cost
from nh_control.mechanics import parametric
from nh_control.systems import cart_pole

TIGHT = dict(tolerance=1e-11)


def moved(guess, dsys, dx):
    """The guess from another first state."""
    first = dsys.retract(guess.states[0], dx)[None]
    return nh.Trajectory(dsys.h, np.vstack([first, guess.states[1:]]), guess.inputs)


def agree(dsys, cost, guess, by, **options):
    """Derivatives of states, inputs and cost are those of solutions to 1e-6 of their largest."""
    optimum = nh.optimize(dsys, cost, guess, **TIGHT, **options)
    found = nh.differentiate_optimum(dsys, cost, optimum, by, **options)
    names, at = dsys.state_space.tangent_names, optimum.trajectory
    for i, name in enumerate(by):

        def solution(t, name=name):
            dx, values = np.zeros(dsys.ndx), dsys.parameter_values.copy()
            if name in names:
                dx[names.index(name)] = t
            else:
                values[[*dsys.system.parameter_names, "h"].index(name)] += t
            fields = parametric.by_field(dsys.system.parameters, values[:-1])
            d = dsys.with_parameters(**fields).with_step(values[-1])
            again = nh.optimize(d, cost, moved(at, d, dx), warm_start=optimum, **TIGHT, **options)
            assert again.converged
            states = [dsys.local(x, y) for x, y in zip(at.states, again.trajectory.states)]
            return np.concatenate(
                [np.ravel(states), again.trajectory.inputs.ravel(), [again.cost]]
            )

        wanted = differences.derivative(solution, 1e-4)
        got = [found.states[..., i].ravel(), found.inputs[..., i].ravel(), found.cost[i : i + 1]]
        ends = np.cumsum([len(block) for block in got])[:-1]
        for block, exact in zip(got, np.split(wanted, ends), strict=True):
            scale = np.abs(exact).max()
            assert scale > 0
            np.testing.assert_allclose(block / scale, exact / scale, rtol=0, atol=1e-6)
    return optimum


def test_they_are_those_of_solutions_with_limits_constraints_and_an_end():
    dsys, n = nh.midpoint(cart_pole(), 0.05), 20
    wanted = nh.Trajectory(dsys.h, np.tile([0.8, 0.2, 0, 0], (n + 1, 1)), np.zeros((n, 1)))
    cost = quadratic_cost(dsys, wanted, np.diag([3.0, 1.0, 0.1, 0.1]), 0.1 * np.eye(1))
    guess = dsys.simulate([0.1, 0.2, 0, 0], np.zeros((n, 1)))
    track = nh.Constraint("track", lambda x, u, w: x[0] + 0.1 * ca.sin(x[1]), upper=0.3)
    options = dict(limits={"force": (-1.2, 9.0)}, constraints=[track])
    by = [dsys.state_space.tangent_names[1], dsys.system.parameter_names[0], "h"]
    optimum = agree(dsys, cost, guess, by, **options)
    assert optimum.active
    agree(dsys, cost, guess, by[:2], end=[0.2, 0.0, 0.0, 0.0], fixed=["x"])


@pytest.mark.slow
def test_they_are_those_of_solutions_on_a_manifold():
    dsys = nh.midpoint(pushed_ball(), 0.05)
    begin = wandering(dsys, 15, np.random.default_rng(1))
    goal = dsys.retract(begin.states[0], np.array([0.6, -0.4, 0.0, 0.0]))
    wanted = nh.Trajectory(dsys.h, np.tile(goal, (16, 1)), np.zeros((15, 2)))
    cost = quadratic_cost(dsys, wanted, np.eye(4), 0.1 * np.eye(2))
    by = [*dsys.state_space.tangent_names[:2], *dsys.system.parameter_names[:1], "h"]
    agree(dsys, cost, begin, by, limits={"force_x": (-0.4, 0.4)})


def test_what_has_no_derivative_is_refused():
    dsys, n = nh.midpoint(cart_pole(), 0.05), 5
    rest = dsys.simulate(np.zeros(4), np.zeros((n, 1)))
    cost = quadratic_cost(dsys, rest, np.eye(4), np.eye(1))
    found = nh.optimize(dsys, cost, rest)
    with pytest.raises(ValueError, match="unknown quantities \\['color'\\]"):
        nh.differentiate_optimum(dsys, cost, found, ["color"])
    stopped = nh.optimize(dsys, cost, moved(rest, dsys, np.ones(4)), max_iterations=1)
    with pytest.raises(ValueError, match="must have converged"):
        nh.differentiate_optimum(dsys, cost, stopped, ["h"])
