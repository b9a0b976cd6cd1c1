"""Hard rows as exact penalties whose weights are normalized and grow while they are violated: in
whole optimizations and from one plan of an `MpcTracker` to the next.
"""

import numpy as np
import pytest
from test_mpc import OFF, UP, tracker, upright

import nh_control as nh
from nh_control.systems import cart_pole


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_a_wall_in_the_guess_is_met_whatever_the_units_of_cost_and_wall_are(scale):
    """A cart that is asked to go 1 m stops at 0.3 m, with one multiplier in these units, where
    weights of 3 would stop it nowhere.
    """
    dsys, steps = nh.midpoint(cart_pole(), 0.02), 60
    wanted = np.zeros((steps + 1, 4))
    wanted[:, 0] = np.linspace(0, 1, steps + 1)
    guess = nh.Trajectory(dsys.h, wanted, np.zeros((steps, 1)))
    Q, end = np.diag([10.0, 1.0, 1.0, 1.0]), np.diag([100.0, 1.0, 1.0, 1.0])
    cost = nh.quadratic_cost(dsys, guess, scale * Q, scale * 0.1 * np.eye(1), scale * end)
    for unit in (1.0, 1e3):
        wall = nh.Constraint("wall", lambda x, u, w: unit * x[0], upper=unit * 0.3)
        found = nh.optimize(dsys, cost, guess, constraints=[wall])
        assert found.converged, found.reason
        assert found.trajectory.states[:, 0].max() == pytest.approx(0.3, abs=1e-6)
        most = found.multipliers.inequalities["wall <= 0.3" if unit == 1 else "wall <= 300"].max()
        assert most * unit / scale == pytest.approx(135.2, rel=1e-3)


@pytest.mark.parametrize("of_states", [False, True])
def test_a_tracker_keeps_hard_rows_by_weights_that_grow_and_shrink_again(of_states):
    """A constraint, and a limit of a state: the weight of the side that the cart would leave grows
    a thousandfold, above twice the multiplier, the other one stays.
    """
    track = nh.Constraint("track", lambda x, u, w: x[0], -0.32, 0.32)
    limits = {"force": (-8.0, 8.0)} | ({"x": (-0.32, 0.32)} if of_states else {})
    dsys, _ = upright()
    kept = tracker(constraints=[] if of_states else [track], limits=limits)
    x, memory, weights = OFF, None, []
    for k in range(100):
        command = kept.command(k, x, memory)
        x, memory = dsys.step(x, command.u), command.memory
        weights.append(memory.arrays["weight"][2:])
        most = memory.arrays["lam"][1:, 2:].max(axis=0)
        assert (most < weights[-1]).all() and memory.failures == 0
        assert abs(x[0]) < 0.3205
    last, most = weights[-1], np.max(weights, axis=0)
    np.testing.assert_allclose(last, [0.3, 0.3])
    np.testing.assert_allclose(most, [300.0, 0.3])


def test_where_a_hard_row_cannot_be_met_there_are_plans_that_violate_it_little():
    """A wall that is out of reach for half a second: the force is at its limit, and then the cart
    goes back to rest, with weights that have shrunk.
    """
    places = np.full((151, 1), 0.5)
    places[20:45] = -3.0
    wall = nh.Constraint("wall", lambda x, u, w: w - x[0], 0, parameters=places)
    dsys, rest = upright()
    kept, x, memory, seen = tracker(constraints=[wall]), UP, None, []
    for k in range(150):
        command = kept.command(k, x, memory)
        x, memory = dsys.step(x, command.u), command.memory
        seen.append((command.u[0], x[0], memory.arrays["weight"][2]))
    u, places, weights = np.array(seen).T
    assert memory.failures == 0 and weights.max() > 1e2 * weights[0]
    assert np.abs(u).max() > 7.9 and places.min() < -0.3
    assert weights[-1] == pytest.approx(0.3)
    np.testing.assert_allclose(x, UP, atol=0.1)
