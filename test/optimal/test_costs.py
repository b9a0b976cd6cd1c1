"""Costs: every component of their gradients and Hessians in local coordinates against differences,
on manifolds; how they add; what is refused.
"""

from functools import cache, partial

import casadi as ca
import differences
import numpy as np
import pytest
from optimal_cases import entangled, pushed_ball, wandering
from refusals import refusal

from nh_control.control.costs import (
    Cost,
    barrier_cost,
    compile_cost,
    limit_bounds,
    limit_excess,
    quadratic_cost,
)
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint, nonholonomic_midpoint
from nh_control.mechanics.system import System
from nh_control.systems import pendulum, snakeboard
from nh_control.systems.rigid_body import rigid_body

STEPS = 3

SYSTEMS = {
    "pendulum": lambda: midpoint(pendulum(), 0.1),
    "snakeboard": lambda: nonholonomic_midpoint(snakeboard(), 0.1),
    "rigid_body": lambda: midpoint(rigid_body(), 0.1),
    "pushed_ball": lambda: midpoint(pushed_ball(), 0.1),
}


@cache
def made(name):
    return SYSTEMS[name]()


@pytest.fixture(params=SYSTEMS)
def dsys(request):
    return made(request.param)


@pytest.fixture(params=["sum", "outside"])
def cost(request, dsys):
    rng = np.random.default_rng(1)
    q, r = rng.normal(size=(dsys.ndx, dsys.ndx)), rng.normal(size=(dsys.nu, dsys.nu))
    tracking = quadratic_cost(
        dsys, wandering(dsys, STEPS, rng), q @ q.T, r @ r.T + np.eye(dsys.nu), 2 * q @ q.T
    )
    inside, outside = (
        barrier_cost(
            dsys,
            {dsys.state_names[-1]: (a, a + 7), **{name: (a, np.inf) for name in dsys.inputs}},
            0.5,
            0.1,
            STEPS,
        )
        for a in (-4, 4)
    )
    both = tracking + entangled(dsys) + inside
    return {"sum": both, "outside": outside}[request.param]


def test_every_derivative_is_exact(dsys, cost):
    """By differences of J and of its gradients at moved nodes."""
    trajectory = wandering(dsys, STEPS, np.random.default_rng(2))
    total, n = compile_cost(dsys, cost), dsys.ndx
    model = total.expand(trajectory.states, trajectory.inputs)

    def moved(k, y):
        states, inputs = trajectory.states.copy(), trajectory.inputs.copy()
        states[k] = dsys.retract(states[k], y[:n])
        if k < STEPS:
            inputs[k] = inputs[k] + y[n:]
        return total(states, inputs)

    for k in range(STEPS + 1):
        gradient, hessian = (
            (model.gradients[k], model.hessians[k])
            if k < STEPS
            else (model.end_gradient, model.end_hessian)
        )
        scale = 1 + np.abs(hessian).max()
        at = partial(moved, k)
        np.testing.assert_allclose(
            gradient, differences.jacobian(at, len(gradient), 3e-3), atol=1e-9 * scale
        )
        np.testing.assert_allclose(
            hessian, differences.hessian(at, len(gradient), 1e-2), atol=3e-7 * scale
        )


@pytest.mark.parametrize("end", [None, 3.0], ids=["Q at the end", "Qf"])
def test_quadratic_cost_is_its_formula(dsys, end):
    rng = np.random.default_rng(3)
    desired, trajectory = wandering(dsys, STEPS, rng), wandering(dsys, STEPS, rng)
    Q, R = np.diag(rng.uniform(1, 2, dsys.ndx)), np.diag(rng.uniform(1, 2, dsys.nu))
    Qf = () if end is None else (end * np.eye(dsys.ndx),)
    dx = dsys.local(desired.states, trajectory.states)
    du = trajectory.inputs - desired.inputs
    value = sum(x @ Q @ x + u @ R @ u for x, u in zip(dx, du)) + dx[-1] @ (*Qf, Q)[0] @ dx[-1]
    total = compile_cost(dsys, quadratic_cost(dsys, desired, Q, R, *Qf))
    assert total(trajectory.states, trajectory.inputs) == pytest.approx(value / 2, rel=1e-12)


LONG = Trajectory(0.1, np.zeros((3, 2)), np.zeros((2, 1)))
WIDE = Trajectory(0.1, np.zeros((3, 3)), np.zeros((2, 1)))
TORQUE = {"torque": (0, 1)}


def test_what_makes_no_sense_is_refused(snapshot):
    dsys = midpoint(pendulum(), 0.1)
    wrong = (
        lambda d: barrier_cost(d, {"spin": (0, 1)}, 1.0, 0.1, 2),
        lambda d: barrier_cost(d, {"torque": (1, 1)}, 1.0, 0.1, 2),
        lambda d: compile_cost(d, Cost(lambda x, u, w: x)),
        lambda d: quadratic_cost(d, WIDE, np.eye(2), np.eye(1)),
        lambda d: quadratic_cost(d, LONG, -np.eye(2), np.eye(1)),
        lambda d: Cost(lambda x, u, w: ca.SX(0), parameters=np.zeros(3)),
        lambda d: Cost(lambda x, u, w: w[0], parameters=[[1.0], [np.nan]]),
        lambda d: barrier_cost(d, TORQUE, 1.0, 0.1, 2) + barrier_cost(d, TORQUE, 1.0, 0.1, 3),
    )
    assert [refusal(lambda: make(dsys)) for make in wrong] == snapshot


@pytest.fixture
def carts():
    """Two carts that are pushed, states (a, b, p_a, p_b)."""
    system = System(
        name="carts",
        space=Rn("a", "b"),
        lagrangian=lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2,
        inputs=("push", "pull"),
        force=lambda q, v, u: u,
    )
    return midpoint(system, 0.1)


LIMITS = {"b": (-1.0, 3.0), "p_a": (-np.inf, 2.0), "pull": (0.5, np.inf), "push": (-2.0, 0.0)}


def test_excess_is_a_fraction_of_the_distance_of_the_limits_where_there_is_one(carts):
    """The first state is given, and does not count; nor what has no limit."""
    both, span = limit_bounds(carts, LIMITS)
    assert both.tolist() == [
        *([-np.inf, np.inf], [-1.0, 3.0], [-np.inf, 2.0], [-np.inf, np.inf]),
        *([-2.0, 0.0], [0.5, np.inf]),
    ]
    assert span.tolist() == [1.0, 4.0, 1.0, 1.0, 2.0, 1.0]
    inside = np.zeros((3, 4)), np.tile([-1.0, 9.0], (2, 1))
    for change, expected in (
        ({}, -0.25),  # b, a quarter of its distance from the lower limit
        ({(1, 1): -2.0}, 0.25),
        ({(2, 1): 5.0}, 0.5),
        ({(2, 2): 2.125}, 0.125),
        ({(0, 1): 99.0}, -0.25),
        ({(1, 0): 99.0, (1, 3): -99.0}, -0.25),
        ({(0, 4): 1.0}, 0.5),
        ({(1, 4): -3.0}, 0.5),
        ({(1, 5): 0.25}, 0.25),
    ):
        states, inputs = (each.copy() for each in inside)
        for (k, i), value in change.items():
            (states if i < 4 else inputs)[k, i % 4] = value
        found = limit_excess(carts, LIMITS, Trajectory(0.1, states, inputs))
        assert found == pytest.approx(expected), change


def test_a_barrier_is_the_sum_of_its_walls_the_last_node_s_of_states_alone(carts):
    """Against the formula, with nodes inside, in the relaxed part, and outside."""
    weight, d = 0.3, 0.2

    def b(s):
        return -np.log(s) if s > d else ((s - 2 * d) ** 2 / d**2 - 1) / 2 - np.log(d)

    rng = np.random.default_rng(0)
    states, inputs = rng.uniform(-2, 4, (5, 4)), rng.uniform(-3, 3, (4, 2))
    slacks = [(states[:, 1] + 1) / 4, (3 - states[:, 1]) / 4, 2 - states[:, 2]]
    slacks += [(inputs[:, 0] + 2) / 2, -inputs[:, 0] / 2, inputs[:, 1] - 0.5]
    slacks = np.concatenate(slacks)
    assert (slacks < 0).any() and (slacks > d).any() and ((slacks > 0) & (slacks < d)).any()
    cost = compile_cost(carts, barrier_cost(carts, LIMITS, weight, d, 4))
    assert cost(states, inputs) == pytest.approx(weight * sum(map(b, slacks)), rel=1e-12)


def test_a_cost_whose_numbers_change_is_another_one():
    """Expressions decide, not the functions that make them."""
    dsys, weight = made("pendulum"), [2.0]
    cost = Cost(lambda x, u, w: weight[0] * ca.sumsqr(u), lambda x, w: weight[0] * x[0])
    states, inputs = np.ones((2, 2)), np.array([[3.0]])
    first = compile_cost(dsys, cost)
    assert first(states, inputs) == 20
    weight[0] = 5.0
    assert compile_cost(dsys, cost)(states, inputs) == 50 and first(states, inputs) == 20
    assert compile_cost(dsys, cost).functions is compile_cost(dsys, cost).functions
