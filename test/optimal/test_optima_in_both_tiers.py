"""Optimal control with a compiler and without one: the same bits, whether sizes of the solver are
constants or data, and functions compiled or evaluated by CasADi's virtual machine; and by any
number of threads.
"""

from dataclasses import replace

import numpy as np
import pytest
from optimal_cases import mass
from tiers import needs_compiler, with_compiler

import nh_control as nh
from nh_control.control.costs import Cost
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.layout import Outcome
from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.integrators import INTEGRATORS
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.systems import cart_pole, pendulum
from nh_control.systems.cart_pole import CartPoleParameters

NEEDS_COMPILER = needs_compiler()


def assert_same_bits(solve):
    """Of the arrays that are solved for with a compiler and without one."""
    virtually = solve()
    with with_compiler():
        solve()  # all functions are asked for
        wait_for_compiler()
        natively = solve()
    for one, other in zip(natively, virtually, strict=True):
        np.testing.assert_array_equal(one, other)


def swing_problem(integrator="midpoint"):
    """A pendulum that swings up within limits, and a guess."""
    dsys = INTEGRATORS[integrator].make(pendulum(), 0.1)
    rest = nh.Trajectory(0.1, np.tile([0.3, 0.0], (13, 1)), np.zeros((12, 1)))
    cost = nh.quadratic_cost(dsys, rest, np.eye(2), 0.1 * np.eye(1), 100 * np.eye(2))
    fast = nh.Constraint("speed", lambda x, u, w: x[1], upper=1.5)
    guess = nh.Trajectory(0.1, np.tile([2.0, 0.5], (13, 1)), np.full((12, 1), 0.5))
    return dsys, cost, guess, {"limits": {"torque": (-4.0, 4.0)}, "constraints": [fast]}


def swing(integrator="midpoint", **options):
    dsys, cost, guess, given = swing_problem(integrator)
    found = nh.optimize(dsys, cost, guess, **given, **options, max_iterations=30)
    return found.trajectory.states, found.trajectory.inputs, found.multipliers.costates


@NEEDS_COMPILER
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"free": ["theta"], "periodic": True},
        {"integrator": "midpoint_order4"},
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (
                {"hessian": "gauss_newton"},
                {"end": [0.3, 0.0], "fixed": ["theta"]},
                {"free": ["h"]},
                {"threads": 3},
            )
        ),
    ],
    ids=lambda options: ",".join(options) or "limits",
)
def test_optima_have_the_same_bits(options):
    assert_same_bits(lambda: swing(**options))


@NEEDS_COMPILER
@pytest.mark.parametrize(
    "hessian", ["gauss_newton", pytest.param("exact", marks=pytest.mark.slow)]
)
def test_native_loops_of_mpc_have_the_same_bits(hessian):
    """With a soft constraint of the force and its estimate, of a heavier pole than the model's."""
    up, heavy = np.array([0.0, np.pi, 0.0, 0.0]), replace(CartPoleParameters(), m_pole=0.35)
    both = nh.Constraint("both", lambda x, u, w: u[0] + w[0], -7, 7, weight=10.0, disturbed=True)
    weights = np.diag([10.0, 10.0, 1.0, 1.0]), 0.01 * np.eye(1)

    def solve():
        dsys = nh.midpoint(cart_pole(), 0.02)
        rest = nh.Trajectory(0.02, np.tile(up, (41, 1)), np.zeros((40, 1)))
        tracker = nh.MpcTracker(
            *(dsys, rest, *weights),
            **dict(horizon_s=0.4, hold=True, disturbance_gain=0.5, hessian=hessian),
            **dict(limits={"force": (-8.0, 8.0)}, constraints=[both]),
        )
        plant = nh.midpoint(cart_pole(heavy), 0.02)
        run = nh.rollout(plant, up + [0.0, 0.25, 0.0, 0.0], tracker, steps=40)
        assert run.steps[0] == 40
        return run.states, run.inputs

    assert_same_bits(solve)


# --- threads, which share the steps of a horizon -------------------------------------------------


def by_threads(threads):
    dsys, cost, guess, options = swing_problem()
    return nh.optimize(dsys, cost, guess, **options, threads=threads)


def test_an_optimum_has_the_same_bits_for_any_number_of_threads():
    """More than there are steps, too."""
    one = by_threads(1)
    assert one.converged
    for threads in (2, 3, 40):
        found = by_threads(threads)
        assert len(found.history) == len(one.history)
        for name in ("states", "inputs"):
            trajectories = one.trajectory, found.trajectory
            np.testing.assert_array_equal(*(getattr(each, name) for each in trajectories))
        np.testing.assert_array_equal(found.multipliers.costates, one.multipliers.costates)


def walled(threads):
    """Steps of a mass that fail beyond x = 1."""
    still = nh.Trajectory(0.1, np.zeros((9, 2)), np.zeros((8, 1)))
    native = Transcription(
        Problem(nh.midpoint(mass(end=1), 0.1), Cost(lambda x, u, w: u[0] ** 2), 8, threads=threads)
    )
    native.record.mu = 0.1
    interior_point.start(native, still)
    return native


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_first_step_that_fails_is_named(threads):
    native = walled(threads)
    assert native.call("nh_ocp_prepare") == Outcome.GOES_ON
    native.array("x")[[6, 3, 5], 0] = 1.5
    native.record.reuses = 0  # so that derivatives make the steps
    assert native.call("nh_ocp_measure") == Outcome.STEP_FAILED
    assert native.record.failed_at == 3
