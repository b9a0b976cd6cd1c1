"""Costs: every component of their gradients and Hessians in local coordinates against differences,
on manifolds; how they add; what is refused.
"""

from functools import cache, partial

import casadi as ca
import differences
import numpy as np
import pytest
from optimal_cases import entangled, pushed_ball, wandering

from nh_control.control.costs import Cost, barrier_cost, compile_cost, quadratic_cost
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint, nonholonomic_midpoint
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
    """Gradients of J along local coordinates by differences of J, Hessians by differences of
    gradients of J at moved nodes.
    """
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


def test_quadratic_cost_is_its_formula(dsys):
    rng = np.random.default_rng(3)
    desired, trajectory = wandering(dsys, STEPS, rng), wandering(dsys, STEPS, rng)
    Q, R, Qf = np.diag(rng.uniform(1, 2, dsys.ndx)), np.eye(dsys.nu), 3 * np.eye(dsys.ndx)
    value = 0.0
    for k in range(STEPS):
        dx, du = (
            dsys.local(desired.states[k], trajectory.states[k]),
            trajectory.inputs[k] - desired.inputs[k],
        )
        value += (dx @ Q @ dx + du @ R @ du) / 2
    dx = dsys.local(desired.states[-1], trajectory.states[-1])
    total = compile_cost(dsys, quadratic_cost(dsys, desired, Q, R, Qf))
    assert total(trajectory.states, trajectory.inputs) == pytest.approx(
        value + dx @ Qf @ dx / 2, rel=1e-13
    )


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


def test_barrier_is_the_logarithm_inside_and_finite_outside():
    dsys = midpoint(pendulum(), 0.1)
    walls = compile_cost(dsys, barrier_cost(dsys, {"torque": (-1.0, 3.0)}, 0.01, 0.01, 1))

    def at(torque):
        return walls(np.zeros((2, 2)), np.array([[torque]]))

    assert at(0.0) == pytest.approx(-0.01 * (np.log(0.25) + np.log(0.75)))
    assert at(5.0) > at(3.0) > at(2.9)
    for wall in (-1 + 0.01 * 4, 3 - 0.01 * 4):
        assert at(wall - 1e-9) == pytest.approx(at(wall + 1e-9), rel=1e-5)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda d: barrier_cost(d, {"spin": (0, 1)}, 1.0, 0.1, 2),
            "no state or input 'spin' to limit",
        ),
        (lambda d: barrier_cost(d, {"torque": (1, 1)}, 1.0, 0.1, 2), "must be lower < upper"),
        (
            lambda d: compile_cost(d, Cost(lambda x, u, w: x)),
            "the stage cost must be one expression",
        ),
        (
            lambda d: quadratic_cost(
                d, Trajectory(0.1, np.zeros((3, 3)), np.zeros((2, 1))), np.eye(2), np.eye(1)
            ),
            "has 3 states",
        ),
        (
            lambda d: quadratic_cost(
                d, Trajectory(0.1, np.zeros((3, 2)), np.zeros((2, 1))), -np.eye(2), np.eye(1)
            ),
            "positive semidefinite",
        ),
        (
            lambda d: Cost(lambda x, u, w: ca.SX(0), parameters=np.zeros(3)),
            r"shape \(N \+ 1, n_parameters\)",
        ),
        (
            lambda d: (
                barrier_cost(d, {"torque": (0, 1)}, 1.0, 0.1, 2)
                + barrier_cost(d, {"torque": (0, 1)}, 1.0, 0.1, 3)
            ),
            "over 2 and 3 steps",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make(midpoint(pendulum(), 0.1))
