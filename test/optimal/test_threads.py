"""Threads share the steps of a horizon: the same bits and failures for any number of them."""

import numpy as np
import pytest
from masses import mass
from test_mpc import OFF, tracker, upright
from test_optima_in_both_tiers import swing_problem

import nh_control as nh
from nh_control.control.costs import Cost
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.layout import Outcome
from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.integrators import INTEGRATORS
from nh_control.systems import pendulum


def swing(threads):
    dsys, cost, guess, options = swing_problem()
    return nh.optimize(dsys, cost, guess, **options, threads=threads)


def test_an_optimum_has_the_same_bits_for_any_number_of_threads():
    """More than there are steps, too."""
    one = swing(1)
    assert one.converged
    for threads in (2, 3, 40):
        found = swing(threads)
        assert len(found.history) == len(one.history)
        for name in ("states", "inputs"):
            trajectories = one.trajectory, found.trajectory
            np.testing.assert_array_equal(*(getattr(each, name) for each in trajectories))
        np.testing.assert_array_equal(found.multipliers.costates, one.multipliers.costates)


def test_plans_have_the_same_bits_for_any_number_of_threads():
    dsys, _ = upright()
    shared = [tracker(threads=threads, hessian="exact") for threads in (1, 4)]
    assert [mpc._idle[0].record.threads for mpc in shared] == [1, 4]
    runs = [nh.rollout(dsys, OFF, mpc, steps=40) for mpc in shared]
    np.testing.assert_array_equal(runs[0].states, runs[1].states)
    other = shared[1].with_reference(shared[1].reference)
    assert other._idle[0].record.threads == 4


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


def test_steps_that_python_makes_take_one_thread():
    """Of a composition."""
    dsys = INTEGRATORS["midpoint_order4"].make(pendulum(), 0.1)
    native = Transcription(Problem(dsys, Cost(lambda x, u, w: u[0] ** 2), 4, threads=3))
    assert native.record.threads == 1 and not native.routines.are_native
