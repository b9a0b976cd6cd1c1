"""The native optima are IPOPT's on five problems, with and without limits, and those of the
projection operator in [johnson2014]; corrections of Newton's step make iterations fewer; calls of
the solver let other threads run.
"""

from dataclasses import replace

import numpy as np
import pytest
from optimal_cases import resting
from swing_ups import NAMES, problem
from threads import gives_way

import nh_control as nh
from nh_control.control.costs import Cost, quadratic_cost
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.transcription import Problem, Transcription


@pytest.mark.slow
@pytest.mark.parametrize("limited", [False, True], ids=["free", "limited"])
@pytest.mark.parametrize("name", NAMES)
def test_optima_are_ipopts(name, limited):
    if name == "ur5e":
        pytest.importorskip("airo_models")
    p = problem(name)
    limits = p.limits if limited else {}
    found = nh.optimize(p.dsys, p.cost, p.guess(0), limits=limits, tolerance=1e-9)
    assert found.converged, found.reason
    there = nh.collocate(
        p.dsys, p.cost, found.trajectory, limits=limits, barrier_start=1e-9, tolerance=1e-9
    )
    assert there.converged and there.cost == pytest.approx(found.cost, rel=1e-8)
    for x, y in zip(found.trajectory.states, there.trajectory.states):
        np.testing.assert_allclose(p.dsys.local(x, y), 0, atol=1e-6)


def pushed(force):
    """A mass of 1 kg on a line under a force that depends on the input."""
    return nh.System(
        name="block",
        space=nh.Rn("x"),
        lagrangian=lambda q, v: v[0] ** 2 / 2,
        inputs=("push",),
        force=lambda q, v, u: force(u),
    )


def test_a_predictor_and_a_corrector_take_fewer_iterations_of_a_convex_problem():
    """14, 12 and 12 with steps that aim at what the first ones leave out, else 17, 15 and 14."""
    dsys = nh.midpoint(pushed(lambda u: u), 0.1)
    rest, goal = (resting(dsys, 30, [x, 0.0]) for x in (0.0, 1.0))
    cost = quadratic_cost(dsys, goal, np.diag([10.0, 1.0]), 0.01 * np.eye(1))
    total = 0
    for most in (0.5, 1.0, 2.0):
        limits = {"push": (-most, most), "p_x": (-1.0, 0.4)}
        found = nh.optimize(
            dsys, cost, rest, limits=limits, hessian="gauss_newton", tolerance=1e-9
        )
        assert found.converged
        total += len(found.history)
    assert total <= 41


def test_a_second_order_correction_lets_the_whole_step_be_taken():
    """Where cost and violation rise along it (Maratos): `J = (u - 1)^2 / 4 + M (p + u^2 / 2)` with
    the step `p = -u^2 / 2`, from the feasible u = 0, at the multipliers of the optimum u = 1.
    """
    dsys = nh.midpoint(pushed(lambda u: -(u**2) / 2), 1.0)
    cost = Cost(lambda x, u, w: (u[0] - 1) ** 2 / 4 + 2 * u[0] ** 2 / 2, lambda x, w: 2 * x[1])
    still = nh.Trajectory(1.0, np.zeros((2, 2)), np.zeros((1, 1)))
    found = nh.optimize(dsys, cost, still)
    assert found.converged and found.trajectory.inputs[0, 0] == pytest.approx(1.0, abs=1e-7)
    again = nh.optimize(dsys, cost, still, warm_start=found)
    assert again.converged and again.history[0].step == 1.0
    assert len(again.history) == 2


def test_other_threads_run_during_the_solvers_calls():
    p = replace(problem("pendulum"), steps=10_000)  # calls of a millisecond
    native = Transcription(Problem(p.dsys, p.cost, p.steps, p.limits))
    native.record.mu, native.record.widest = 0.1, interior_point.WIDEST
    interior_point.start(native, p.guess(0))
    assert gives_way(lambda: [native.call("nh_ocp_measure") for _ in range(50)])
