"""What a first system of one's own may look like: taken as it is meant, or refused by an error
that says what to write.
"""

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control.control import lqr
from nh_control.control.collocation import collocate
from nh_control.control.costs import Cost
from nh_control.control.stationary import decoupling_transform, stationary
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.numerics.expressions import as_expression

H = 0.1
TARGETS = on_coordinates(nh.Rn("x", "y"), ())
EFFORT = Cost(lambda x, u, w: ca.sumsqr(u))


def free(names=("x", "y"), **given):
    """A free particle with a push along its first coordinate."""
    given = {"inputs": ("push",), "force": lambda q, v, u: ca.vertcat(u, 0), **given}
    return nh.System(
        name="free", space=nh.Rn(*names), lagrangian=lambda q, v: ca.sumsqr(v) / 2, **given
    )


def slider():
    """A particle on a line."""
    return nh.midpoint(free(("x",), force=lambda q, v, u: u), H)


@pytest.mark.parametrize(
    "force", [lambda q, v, u: [u[0], 0], lambda q, v, u: (u, 0.0), lambda q, v, u: [[u], [0]]]
)
def test_a_force_may_be_a_list_or_a_tuple(force):
    x = [0.1, 0.2, 0.3, 0.4]
    expected = nh.midpoint(free(), H).step(x, [2.0])
    np.testing.assert_array_equal(nh.midpoint(free(force=force), H).step(x, [2.0]), expected)
    both = [with_external_forces(free(**given), TARGETS) for given in ({}, {"force": force})]
    np.testing.assert_array_equal(*(nh.midpoint(s, H).step(x, [2.0, 3.0, 4.0]) for s in both))


@pytest.mark.parametrize("names", [("x", "x"), (2,), (("x", "y"),)])
def test_coordinates_are_names_that_differ(names):
    with pytest.raises(ValueError, match=r"Rn: expected distinct coordinate names, got .*Rn\('x'"):
        nh.Rn(*names)


@pytest.mark.parametrize("what", ["inputs", "input_units", "prescribed"])
def test_one_text_in_the_place_of_several_is_refused(what):
    with pytest.raises(TypeError, match=rf"free: {what} must be a tuple.*write \('push',\)"):
        free(**{what: "push"})


def test_a_number_will_do_for_one_input():
    dsys, x = slider(), np.array([0.5, -0.2])
    np.testing.assert_array_equal(dsys.step(x, 3.0), dsys.step(x, [3.0]))
    np.testing.assert_array_equal(dsys.linearize(x, 3).A, dsys.linearize(x, [3.0]).A)
    np.testing.assert_array_equal(dsys.state(0.5, -0.2), x)
    u = np.array([1.0, -2.0, 0.5])
    np.testing.assert_array_equal(dsys.simulate(x, u).states, dsys.simulate(x, u[:, None]).states)
    held = (dsys.simulate(x, value, steps=4).states for value in (2.0, [2.0]))
    np.testing.assert_array_equal(*held)
    gains = (lqr.infinite_horizon(dsys, [0, 0], 0.0, np.eye(2), R).K for R in (0.5, [[0.5]]))
    np.testing.assert_array_equal(*gains)
    with pytest.raises(ValueError, match=r"input must have shape \(1,\), got \(2,\)"):
        dsys.step(x, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"state must have shape \(2,\), got \(\)"):
        dsys.step(0.5, 1.0)


def test_what_collocation_finds_is_held_at_its_end(caplog):
    dsys, end = slider(), np.array([1.0, 0.0])
    guess = nh.Trajectory(H, np.linspace([0.0, 0.0], end, 21), np.zeros((20, 1)))
    found = collocate(dsys, EFFORT, guess, end=end).trajectory
    assert abs(found.inputs[-1, 0]) > 0.1  # it brakes until the end
    tracker = nh.LqrTracker(dsys, found, np.eye(2), np.eye(1), hold=True)
    assert "a step at rest" in caplog.text and "[0.0]" in caplog.text.replace("-0.0", "0.0")
    assert len(tracker.reference) == len(found) + 1
    np.testing.assert_allclose(tracker.reference.inputs[-1], 0, atol=1e-8)
    x = np.array([0.1, 0.3])
    for k in range(200):
        x = dsys.step(x, tracker.command(k, x).u)
    np.testing.assert_allclose(x, end, atol=1e-6)
    caplog.clear()
    nh.LqrTracker(dsys, tracker.reference, np.eye(2), np.eye(1), hold=True)
    assert not caplog.text
    moving = dsys.simulate([0.0, 1.0], np.zeros((5, 1)))
    with pytest.raises(ValueError, match="not an equilibrium"):
        nh.LqrTracker(dsys, moving, np.eye(2), np.eye(1), hold=True)


# --- leaving directions out ----------------------------------------------------------------------


def test_directions_out_of_reach_can_be_left_out_as_the_error_says():
    dsys, Q = nh.midpoint(free(), H), np.diag([1.0, 2.0, 3.0, 4.0])
    given = dsys, np.zeros(4), [0.0], Q, [[0.1]]
    with pytest.raises(lqr.NotStabilizable, match=r"p_y .*excluded=\('p_y',\)"):
        lqr.infinite_horizon(*given)
    with pytest.raises(lqr.NotStabilizable, match=r"no input influences: y .*excluded=\('y',\)"):
        lqr.infinite_horizon(*given, excluded=("p_y",))
    gain = lqr.infinite_horizon(*given, excluded=("y", "p_y"))
    line = lqr.infinite_horizon(slider(), np.zeros(2), [0.0], np.diag([1.0, 3.0]), [[0.1]])
    np.testing.assert_allclose(gain.K, [[line.K[0, 0], 0, line.K[0, 1], 0]], atol=1e-12)
    np.testing.assert_allclose(gain.P[np.ix_([0, 2], [0, 2])], line.P, atol=1e-12)
    np.testing.assert_allclose(sorted(gain.poles), sorted(line.poles))
    for wrong in (("z",), "y"):
        with pytest.raises(ValueError, match="cannot exclude .* choose from"):
            lqr.infinite_horizon(*given, excluded=wrong)


def test_a_conserved_quantity_among_the_coordinates_is_found():
    """The third coordinate is pushed by the first, and their sum with it is conserved."""
    A = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.0], [0.1, -0.1, 1.0]])
    B = np.array([[1.0], [0.0], [-1.0]])
    T = decoupling_transform(A, B, [0, 1], np.ones(3))
    np.testing.assert_allclose(T, [[1, 0, 0], [0, 1, 0], [1, 0, 1]], atol=1e-12)
    found = stationary(A, B, np.eye(3), np.eye(1), [0, 1], T, np.ones(3))
    closed = np.linalg.eigvals(A - B @ found.K)
    np.testing.assert_allclose(sorted(abs(closed))[-1], 1.0)
    assert sorted(abs(closed))[-2] < 0.9 and np.linalg.eigvalsh(found.P).min() > -1e-12


def test_lists_of_lists_are_matrices_and_lists_are_columns():
    x = ca.SX.sym("x", 2)
    matrix = as_expression([[x[0], 1], (x[1], 2.0), np.array([3.0, 4.0])])
    assert matrix.shape == (3, 2) and as_expression((x[0], 1.0, x[1])).shape == (3, 1)
    values = np.array(ca.Function("f", [x], [matrix])([5.0, 6.0]))
    np.testing.assert_array_equal(values, [[5.0, 1.0], [6.0, 2.0], [3.0, 4.0]])


def test_what_is_left_out_is_known_to_the_rest():
    """A weight that follows a cart on a spring: the cart's push makes up for a load that drifts,
    as the end of a long horizon with the load among the states says.
    """
    A = np.array([[1.0, 0.1, 0.02], [0.0, 0.9, 0.3], [0.0, 0.0, 0.95]])
    B, Q, R = np.array([[0.0], [1.0], [0.0]]), np.diag([1.0, 0.5, 0.2]), np.eye(1)
    Q[0, 2] = Q[2, 0] = 0.3
    T, sizes = decoupling_transform(A, B, [0, 1], np.ones(3)), np.ones(3)
    found = stationary(A, B, Q, R, [0, 1], T, sizes)
    steps = 400
    long = lqr.riccati(np.tile(A, (steps, 1, 1)), np.tile(B, (steps, 1, 1)), Q, R, Q)
    np.testing.assert_allclose(found.K, long.K[0], atol=1e-10)
    np.testing.assert_allclose(found.P[:2], long.P[0][:2], atol=1e-9)
