"""Parameters as unknowns of an optimization, the step among them, and periodic motions: against
analytic optima, IPOPT's, and the derivatives of the optimal cost, which vanish.
"""

import casadi as ca
import numpy as np
import pytest
from optimal_cases import mass, resting, springs_system

import nh_control as nh
from nh_control.control.costs import Cost, quadratic_cost
from nh_control.systems import pendulum


def duration(steps):
    """The final time as a cost; the step is the last one of a node's parameters."""
    return Cost(lambda x, u, w: ca.SX(0), lambda x, w: steps * w[-1])


@pytest.mark.parametrize(("distance", "most"), [(1.0, 2.0), (0.3, 5.0)])
def test_the_shortest_way_of_a_block_takes_the_time_that_is_known(distance, most):
    """T = 2 sqrt(d / a), of midpoint steps that switch between two of them exactly."""
    dsys, steps = nh.midpoint(mass(), 0.05), 20
    found = nh.optimize(
        dsys, duration(steps), resting(dsys, steps), end=[distance, 0.0], free=["h"],
        limits={"push": (-most, most)}, tolerance=1e-9,
    )  # fmt: skip
    assert found.converged, found.reason
    shortest = 2 * np.sqrt(distance / most)
    assert found.cost == pytest.approx(shortest, abs=1e-8)
    (h,) = found.parameters.values()
    assert steps * h == found.cost and found.trajectory.h == found.trajectory.dsys.h == h
    np.testing.assert_allclose(
        found.trajectory.inputs[:, 0], [most] * 10 + [-most] * 10, rtol=1e-6
    )
    states = found.trajectory.dsys.simulate([0.0, 0.0], found.trajectory.inputs).states
    np.testing.assert_allclose(states, found.trajectory.states, atol=1e-9)


def test_limits_of_a_parameter_hold_once_and_are_named():
    dsys, steps = nh.midpoint(mass(), 0.09), 20
    options = dict(end=[1.0, 0.0], free=["h"], limits={"push": (-2.0, 2.0), "h": (0.08, 0.2)})
    found = nh.optimize(dsys, duration(steps), resting(dsys, steps), **options)
    assert found.converged and found.cost == pytest.approx(1.6, abs=1e-7)
    # the time's slope by h is all in one multiplier, at the last node
    assert found.active == {"h >= 0.08": (steps,)}
    assert found.multipliers.inequalities["h >= 0.08"][steps] == pytest.approx(steps, rel=1e-6)
    again = nh.optimize(dsys, duration(steps), resting(dsys, steps), warm_start=found, **options)
    assert again.converged and again.cost == pytest.approx(1.6, abs=1e-7)


@pytest.mark.parametrize("most", [3.0, 0.9], ids=["free", "limited"])
def test_physical_parameters_and_the_step_are_found_where_the_cost_is_least(most):
    """A pendulum follows another one's motion, with its length and step if the torque suffices.
    The cost's derivatives vanish, IPOPT finds it at these parameters, and second derivatives by
    parameters are exact: Newton's method takes few iterations.
    """
    dsys, steps, names = nh.midpoint(pendulum(), 0.1), 20, ["l", "h"]
    other = dsys.with_parameters(l=1.3).with_step(0.12)
    driven = other.simulate([0.2, 0.0], np.sin(0.7 * np.arange(steps))[:, None])
    wanted = nh.Trajectory(dsys.h, driven.states, driven.inputs)
    cost = quadratic_cost(dsys, wanted, np.diag([10.0, 1.0]), 0.1 * np.eye(1))
    limits = {"torque": (-most, most)}
    found = nh.optimize(dsys, cost, wanted, free=names, limits=limits, tolerance=1e-10)
    assert found.converged and len(found.history) < 25
    assert not set(found.active) & {"l >= 0", "h >= 0"}
    model = found.trajectory.dsys
    length, h = found.parameters.values()
    assert model.h == h and model.system.parameters.l == length
    if most > 1:
        assert (length, h) == pytest.approx((1.3, 0.12), rel=1e-6)
        return
    assert found.active
    there = nh.collocate(model, cost, found.trajectory, limits=limits, barrier_start=1e-9)
    assert there.cost == pytest.approx(found.cost, abs=1e-9)
    np.testing.assert_allclose(there.trajectory.states, found.trajectory.states, atol=1e-6)
    fixed = nh.optimize(model, cost, found.trajectory, limits=limits)
    slopes = nh.differentiate_optimum(model, cost, fixed, names, limits=limits).cost
    np.testing.assert_allclose(slopes, 0, atol=1e-5)
    assert found.cost < 0.5 * nh.optimize(dsys, cost, wanted, limits=limits).cost


def periodic_by_kkt(dsys, cost, wanted, free, fixed):
    """States and inputs of the linear problem by its equations of first order."""
    n, m, steps = dsys.nx, dsys.nu, len(wanted)
    step = dsys.linearize(np.zeros(n), np.zeros(m))
    A, B = step.A, step.B
    size, last = (n + m) * steps + n, (n + m) * steps
    rows = np.zeros((n * steps + n - len(free) + len(fixed), size))
    for k in range(steps):
        at, here = n * k, (n + m) * k
        rows[at : at + n, here : here + n + m] = np.hstack([A, B])
        rows[at : at + n, here + n + m : here + 2 * n + m] = -np.eye(n)
    kept = [i for i in range(n) if i not in free]
    for j, i in enumerate(kept):
        rows[n * steps + j, i] = 1.0
    for j, i in enumerate(fixed):
        rows[n * steps + len(kept) + j, [i, last + i]] = -1.0, 1.0
    Q, R = cost
    H = np.kron(np.eye(steps + 1), np.block([[Q, np.zeros((n, m))], [np.zeros((m, n)), R]]))
    H = H[:size, :size]
    z = np.hstack([wanted.states, np.vstack([wanted.inputs, np.zeros(m)])]).reshape(-1)[:size]
    whole = np.block([[H, rows.T], [rows, np.zeros((len(rows),) * 2)]])
    right = np.concatenate([H @ z, np.zeros(len(rows))])
    return np.linalg.solve(whole, right)[:size]


@pytest.mark.parametrize("partly", [False, True], ids=["all", "some coordinates"])
def test_a_periodic_motion_of_a_linear_system_is_that_of_its_equations(partly):
    """Partly, one coordinate of the start is given, and one is not that of the end."""
    dsys, steps = nh.midpoint(springs_system(), 0.1), 12
    rng = np.random.default_rng(0)
    states = np.vstack([np.zeros(dsys.nx), rng.normal(size=(steps, dsys.nx))])
    wanted = nh.Trajectory(0.1, states, rng.normal(size=(steps, dsys.nu)))
    names = dsys.state_space.tangent_names
    free, fixed = ([0, 2, 3], [0, 1, 3]) if partly else (range(4), range(4))
    Q, R = np.diag([1.0, 2.0, 3.0, 4.0]), 0.5 * np.eye(1)
    expected = periodic_by_kkt(dsys, (Q, R), wanted, list(free), list(fixed))
    found = nh.optimize(
        dsys, quadratic_cost(dsys, wanted, Q, R), wanted, periodic=True,
        free=[names[i] for i in free], fixed=[names[i] for i in fixed],
    )  # fmt: skip
    assert found.converged and len(found.history) <= 3
    both = np.hstack([found.trajectory.states, np.vstack([found.trajectory.inputs, [[0.0]]])])
    np.testing.assert_allclose(both.reshape(-1)[: len(expected)], expected, atol=1e-7)
