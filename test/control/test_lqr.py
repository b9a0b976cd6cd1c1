"""LQR: optimality, stationarity, periodicity, and the errors where there is nothing to
stabilize.
"""

import re

import casadi as ca
import differences
import numpy as np
import pytest
from refusals import said

from nh_control.control import lqr
from nh_control.control.modes import Mode, main_coordinates
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry import Rn
from nh_control.integrators import midpoint, nonholonomic_midpoint
from nh_control.mechanics.system import System
from nh_control.scenarios import SNAKEBOARD
from nh_control.systems import cart_pole, pendulum, snakeboard


@pytest.fixture(scope="module")
def upright():
    return midpoint(pendulum(), 0.05), np.array([np.pi, 0.0]), np.zeros(1)


@pytest.fixture(scope="module")
def board():
    return SNAKEBOARD.model()


def holding(dsys, x, u, steps):
    return Trajectory(dsys.h, np.tile(x, (steps + 1, 1)), np.tile(u, (steps, 1)))


def test_infinite_horizon_is_a_fixed_point_of_the_finite_horizon(upright):
    dsys, x, u = upright
    Q, R = np.diag([3.0, 1.0]), np.array([[0.5]])
    stationary = lqr.infinite_horizon(dsys, x, u, Q, R)
    finite = lqr.finite_horizon(dsys, holding(dsys, x, u, 7), Q, R, stationary.P)
    np.testing.assert_allclose(finite.P, np.broadcast_to(stationary.P, finite.P.shape), rtol=1e-9)
    np.testing.assert_allclose(finite.K, np.broadcast_to(stationary.K, finite.K.shape), rtol=1e-9)
    lin = dsys.linearize(x, u)
    np.testing.assert_allclose(
        np.sort(np.abs(stationary.poles)),
        np.sort(np.abs(np.linalg.eigvals(lin.A - lin.B @ stationary.K))),
        rtol=1e-9,
    )
    assert np.abs(stationary.poles).max() < 1 < np.abs(np.linalg.eigvals(lin.A)).max()


def test_without_a_weight_of_the_state_unstable_poles_are_mirrored(upright):
    dsys, x, u = upright
    nothing, R = np.zeros((2, 2)), np.eye(1)
    poles = lqr.infinite_horizon(dsys, x, u, nothing, R).poles
    open_loop = np.abs(np.linalg.eigvals(dsys.linearize(x, u).A))
    mirrored = np.minimum(open_loop, 1 / open_loop)
    np.testing.assert_allclose(np.abs(poles), mirrored, rtol=1e-6)
    with pytest.raises(lqr.NotDetectable, match="the weight Q is zero for modes"):
        lqr.infinite_horizon(dsys, [0.0, 0.0], u, nothing, R)


def test_finite_horizon_minimizes_the_cost_of_the_linear_problem(board):
    """The gains' cost is x0^T P0 x0, and no change of an input makes it less, to first order."""
    reference = SNAKEBOARD.reference(board, "forward")
    short = Trajectory(board.h, reference.states[:13], reference.inputs[:12])
    Q, R, Qf = SNAKEBOARD.weights
    A, B = lqr.linearize_along(board, short)
    gains = lqr.finite_horizon(board, short, Q, R, Qf)
    x0 = np.random.default_rng(1).normal(size=board.ndx)

    def cost(change):
        x, total = x0, 0.0
        for a, b, k, du in zip(A, B, gains.K, change.reshape(12, 2)):
            u = du - k @ x
            total += x @ Q @ x + u @ R @ u
            x = a @ x + b @ u
        return total + x @ Qf @ x

    least = x0 @ gains.P[0] @ x0
    assert cost(np.zeros(24)) == pytest.approx(least, rel=1e-9)
    slopes = differences.jacobian(cost, 24, 1e-3)
    assert np.abs(slopes).max() <= 1e-7 * least
    assert all(cost(s * d) > least for d in 0.1 * np.eye(24) for s in (-1, 1))


def test_riccati_matrices_are_symmetric_and_grow_with_the_horizon(board):
    gains = lqr.finite_horizon(board, SNAKEBOARD.reference(board, "parking"), *SNAKEBOARD.weights)
    assert (gains.P.transpose(0, 2, 1) == gains.P).all()
    assert np.linalg.eigvalsh(gains.P[0]).min() > 0


def test_periodic_gain_repeats_and_stabilizes_a_gait(board):
    whole = SNAKEBOARD.reference(board, "slalom")
    n = len(whole) // 4
    Q, R, _ = SNAKEBOARD.weights
    one = Trajectory(board.h, whole.states[: n + 1], whole.inputs[:n], name="one period")
    gains = lqr.periodic(board, one, Q, R)
    size = np.abs(gains.P[0]).max()
    np.testing.assert_allclose(gains.P[0], gains.P[-1], rtol=1e-7, atol=1e-9 * size)
    A, B = lqr.linearize_along(board, one)
    transition = np.eye(board.ndx)
    for a, b, k in zip(A, B, gains.K):
        transition = (a - b @ k) @ transition
    assert np.abs(np.linalg.eigvals(transition)).max() < 0.9
    long_horizon = lqr.finite_horizon(board, whole, Q, R, gains.P[0])
    np.testing.assert_allclose(long_horizon.P[0], gains.P[0], rtol=1e-6, atol=1e-8 * size)
    with pytest.raises(ValueError, match="not periodic"):
        lqr.periodic(board, SNAKEBOARD.reference(board, "forward"), Q, R)


def test_snakeboard_at_rest_is_not_stabilizable_and_the_error_names_why(board):
    rest = board.state(np.zeros(5), np.zeros(5))
    with pytest.raises(lqr.NotStabilizable, match="no input influences") as caught:
        lqr.infinite_horizon(board, rest, np.zeros(2), *SNAKEBOARD.weights[:2])
    names = board.state_space.tangent_names
    lin = board.linearize(rest, np.zeros(2))
    for w in caught.value.directions:
        np.testing.assert_allclose(w @ lin.A, w, atol=1e-9)
        np.testing.assert_allclose(w @ lin.B, 0, atol=1e-9)
    for name in ("theta", "side", "rho_3"):
        assert name in str(caught.value)
        assert np.abs(caught.value.directions[:, names.index(name)]).max() > 0.1
    assert not re.search(r"[0-9]j\b", str(caught.value))  # real directions have real numbers
    with pytest.raises(lqr.NotStabilizable, match="over one period"):
        lqr.periodic(board, holding(board, rest, np.zeros(2), 5), *SNAKEBOARD.weights[:2])


def test_to_ss_is_the_control_library_s_model(upright):
    import control  # here, because it takes long

    dsys, x, u = upright
    lin = dsys.linearize(x, u)
    ss = lin.to_ss()
    assert isinstance(ss, control.StateSpace) and ss.dt == dsys.h
    np.testing.assert_array_equal(ss.A, lin.A)
    np.testing.assert_array_equal(ss.B, lin.B)
    np.testing.assert_array_equal(ss.C, np.eye(2))
    K, _, _ = control.dlqr(ss, np.eye(2), np.eye(1))
    np.testing.assert_allclose(
        K, lqr.infinite_horizon(dsys, x, u, np.eye(2), np.eye(1)).K, rtol=1e-9
    )


UP, PI = np.array([np.pi, 0.0]), np.tile([np.pi, 0.0], (4, 1))
ONE = np.eye(2), np.eye(1)
PASSIVE = System("passive", Rn("x"), lambda q, v: v[0] ** 2 / 2)


def horizon(states, inputs, h=0.05):
    return lambda dsys: lqr.linearize_along(dsys, Trajectory(h, states, inputs))


WRONG = [
    *(
        lambda d, w=w: lqr.infinite_horizon(d, UP, np.zeros(1), *w)
        for w in (
            (np.eye(3), np.eye(1)),
            (np.array([[1.0, 1.0], [0.0, 1.0]]), np.eye(1)),
            (np.diag([1.0, -1.0]), np.eye(1)),
            (np.eye(2), np.zeros((1, 1))),
            (np.eye(2), np.full((1, 1), np.nan)),
        )
    ),
    lambda d: lqr.infinite_horizon(
        midpoint(PASSIVE, 0.1), np.zeros(2), [], np.eye(2), np.zeros((0, 0))
    ),
    lambda d: lqr.infinite_horizon(d, [1.0, 0.0], [0.0], *ONE),
    lambda d: lqr.finite_horizon(d, holding(d, [1.0, 0.0], np.zeros(1), 3), *ONE),
    lambda d: lqr.finite_horizon(
        nonholonomic_midpoint(snakeboard(), 0.05),
        holding(d, UP, [0.0], 3),
        *(np.eye(8), np.eye(2)),
    ),
    horizon(PI, np.zeros((3, 2))),
    horizon(PI, np.zeros((3, 1)), 0.0501),
    horizon(np.zeros((4, 3)), np.zeros((3, 1))),
]


def test_what_does_not_fit_is_refused(upright, snapshot):
    assert said(WRONG, lambda call: call(upright[0])) == snapshot


def test_a_gap_of_a_millionth_is_feasible_and_a_larger_one_where_it_is_allowed(upright):
    """At the last step, to either side."""
    dsys, x, u = upright
    for gap, allowed, fits in (
        (0.9e-6, {}, True),
        (-0.9e-6, {}, True),
        (1.1e-6, {}, False),
        (-1.1e-6, {}, False),
        (0.9e-2, {"gap": 1e-2}, True),
        (1.1e-2, {"gap": 1e-2}, False),
    ):
        states = np.tile(x, (4, 1))
        states[3, 1] += gap
        moved = Trajectory(dsys.h, states, np.zeros((3, 1)))
        if fits:
            lqr.finite_horizon(dsys, moved, np.eye(2), np.eye(1), **allowed)
            continue
        with pytest.raises(ValueError, match=f"not feasible: step 2 .* by {abs(gap):.1e}"):
            lqr.finite_horizon(dsys, moved, np.eye(2), np.eye(1), **allowed)


def test_the_terminal_weight_is_q_by_default(upright):
    dsys, x, u = upright
    Q, R = np.diag([3.0, 2.0]), np.eye(1)
    gains = [lqr.finite_horizon(dsys, holding(dsys, x, u, 3), Q, R, *end) for end in ((), (Q,))]
    assert gains[0].P[-1].tolist() == Q.tolist()
    np.testing.assert_array_equal(gains[0].K, gains[1].K)


def test_the_error_names_one_coordinate_to_exclude_for_each_direction():
    parts = np.array([[0.1, 0.2, 1.0, 0.8], [0.7, 0.1, 1.0, 0.1]])
    modes = [Mode(1.0, row, row) for row in parts]
    assert main_coordinates(modes, ("a", "b", "c", "d")) == ("a", "c")  # c is taken by the first


@pytest.mark.parametrize(
    ("force", "speed", "options", "moved"),
    [
        (0.9e-8, 0.0, {}, None),
        (-1.1e-8, 0.0, {}, 1.1e-8),
        (0.9e-4, 0.0, {"drift": 1e-4}, None),
        (1.1e-4, 0.0, {"drift": 1e-4}, 1.1e-4),
        (0.0, 5.0, {"excluded": ("x",)}, None),  # of what is left out anything goes
        (1e-3, 5.0, {"excluded": ("x",)}, 1e-3),
    ],
)
def test_an_equilibrium_moves_its_stabilized_coordinates_by_at_most_the_drift(
    force, speed, options, moved
):
    """A step changes the momentum of a cart by the force times the step."""
    dsys = midpoint(cart_pole(), 0.05)
    x = dsys.state([0.0, np.pi], [speed, 0.0])
    given = x, [force / dsys.h], np.diag([float(not speed), 1.0, 1.0, 1.0]), np.eye(1)
    if moved is None:
        assert lqr.infinite_horizon(dsys, *given, **options).K.shape == (1, 4)
        return
    with pytest.raises(ValueError, match=f"not an equilibrium under u: .* by {moved:.1e}"):
        lqr.infinite_horizon(dsys, *given, **options)


@pytest.mark.parametrize(("part", "decays"), [(1.1e-6, True), (0.9e-6, False), (0.0, False)])
def test_modes_that_no_input_reaches_must_decay(part, decays):
    """By a millionth of the fastest mode's motion in a step: here momenta fall by this."""
    motion = np.array([0.2, 0.2 * part])
    damping = motion / 0.1 / (1 - motion / 2)  # of a step of 0.1 s by the midpoint rule
    two = System(
        "two", Rn("x", "y"), lambda q, v: ca.sumsqr(v) / 2, inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u[0], 0) - damping * v,
    )  # fmt: skip
    given = midpoint(two, 0.1), np.zeros(4), np.zeros(1), np.eye(4), np.eye(1)
    if decays:
        poles = lqr.infinite_horizon(*given, excluded=("y",)).poles
        assert np.abs(poles).max() == pytest.approx(1 - motion[1], abs=1e-9)
        return
    with pytest.raises(lqr.NotStabilizable, match=r"no input influences: p_y \(eigenvalue 1"):
        lqr.infinite_horizon(*given, excluded=("y",))


def test_a_growing_mode_without_weight_is_mirrored_at_the_unit_circle():
    """It must be stabilized, and the cheapest gain does this (Kwakernaak, Sivan 1972)."""
    two = System(
        "two", Rn("x", "y"), lambda q, v: (ca.sumsqr(v) + ca.sumsqr(q)) / 2, inputs=("a", "b"),
        force=lambda q, v, u: u,
    )  # fmt: skip
    dsys = midpoint(two, 0.1)
    rest = np.zeros(4), np.zeros(2)
    growing = np.abs(np.linalg.eigvals(dsys.linearize(*rest).A)).max()
    poles = lqr.infinite_horizon(dsys, *rest, np.diag([1.0, 0, 1, 0]), np.eye(2)).poles
    np.testing.assert_allclose(np.sort(np.abs(poles))[-2:], 1 / growing, rtol=1e-6)


@pytest.mark.parametrize(("gap", "closes"), [(0.9e-6, True), (1.1e-6, False)])
def test_a_period_closes_up_to_a_millionth_of_its_linearization(gap, closes):
    """On the way along y, the stiffness across it changes."""

    def moving(slope):
        way = System(
            "way", Rn("x", "y"), lambda q, v: (ca.sumsqr(v) - (1 + slope * q[1]) * q[0] ** 2) / 2,
            inputs=("across", "along"), force=lambda q, v, u: u,
        )  # fmt: skip
        dsys = midpoint(way, 0.1)
        return dsys, dsys.simulate(dsys.state([0.0, 0.0], [0.0, 2.5]), np.zeros((4, 2)))

    dsys, turn = moving(1e-3)
    first, again = (dsys.linearize(x, np.zeros(2)).A for x in turn.states[[0, -1]])
    dsys, turn = moving(1e-3 * gap / np.abs(again - first).max())
    if closes:
        gains = lqr.periodic(dsys, turn, np.eye(4), np.eye(2))
        np.testing.assert_allclose(gains.P[0], gains.P[-1], rtol=1e-5, atol=1e-6)
        return
    with pytest.raises(ValueError, match="not periodic: .* differs by 1.1e-06"):
        lqr.periodic(dsys, turn, np.eye(4), np.eye(2))
