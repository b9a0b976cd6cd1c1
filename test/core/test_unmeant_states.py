"""States that nobody meant are refused, or put right where it is clear what was meant."""

import casadi as ca
import numpy as np
import pytest
from refusals import refusal

from nh_control import KalmanFilter
from nh_control.control.estimation import Belief
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.integrators import midpoint
from nh_control.mechanics import states
from nh_control.mechanics.consistent_states import NotConsistent
from nh_control.mechanics.system import System
from nh_control.multibody import Body, Multibody, spherical

H = 0.1
INERTIA = ca.DM([1.0, 2.0, 3.0])
QUARTER = [0.707, 0.707, 0.0, 0.0]


@pytest.fixture(scope="module")
def body():
    """A free rigid body."""
    return midpoint(System("body", SO3("r"), lambda q, v: ca.dot(INERTIA, v * v) / 2), H)


@pytest.fixture(scope="module")
def rod():
    """A mass on a rod."""
    return midpoint(
        System(
            "rod",
            Rn("x", "y"),
            lambda q, v: ca.sumsqr(v) / 2 - 9.81 * q[1],
            holonomic_constraint=lambda q: ca.sumsqr(q) - 1,
        ),
        H,
    )


OFF = {
    "too long": [1.1, 0.0, 0.0, 0.0],
    "zero": [0.0, 0.0, 0.0, 0.0],
    "NaN": [1.0, 0.0, 0.0, np.nan],
    "infinite": [1.0, 0.0, np.inf, 0.0],
}


def test_numbers_that_are_no_state_are_refused_wherever_they_are_given(body, snapshot):
    still, quick = np.zeros(3), np.array([0.0, 1.01 * np.pi / H, 0.0])
    fine, nan, kalman = np.eye(4)[0], np.full(7, np.nan), KalmanFilter(body, np.eye(6), np.eye(3))
    x = body.state(fine, still)
    belief, of_nothing = Belief(x, np.eye(6)), Belief(x, np.full((6, 6), np.nan))
    one = KalmanFilter(body, np.eye(6), [[1.0]], measurement=lambda x: x[4])
    table = np.tile(fine, (3, 1))
    wrong = [
        *(lambda q=q: body.state(q, still) for q in OFF.values()),
        *(lambda q=q: body.state(np.array([fine, q]), np.zeros((2, 3))) for q in OFF.values()),
        *(lambda q=q: body.step([*q, 1.0, 0.0, 0.0]) for q in OFF.values()),
        *(lambda q=q: kalman.update(belief, q) for q in OFF.values()),
        lambda: body.linearize([*OFF["too long"], 1.0, 0.0, 0.0]),
        lambda: body.simulate([*OFF["too long"], 1.0, 0.0, 0.0], steps=2),
        lambda: body.velocity(nan),
        lambda: body.energy(nan),
        lambda: body.local(x, nan),
        lambda: body.retract(x, nan[:6]),
        lambda: body.measured_state(nan[:4], nan[:3]),
        lambda: body.state(table, np.array([still, still, quick])),
        lambda: body.state(table, np.zeros((3, 2))),
        *(lambda n=n: body.state(table, np.zeros((3, 3))[n]) for n in (0, slice(2))),
        *(lambda b=b: kalman.update(b, fine) for b in (Belief(nan, np.eye(6)), of_nothing)),
        *(lambda b=b: kalman.predict(b, ()) for b in (Belief(nan, np.eye(6)), of_nothing)),
        *(lambda y=y: one.update(belief, y) for y in ([np.nan], [np.inf], [0.1, 0.2])),
    ]
    assert [refusal(call) for call in wrong] == snapshot
    assert np.isfinite(one.update(belief, [0.1]).x).all()


def test_few_digits_are_normalized(body):
    x = body.state(QUARTER, [0.0, 0.0, 1.0])
    np.testing.assert_allclose(x[:4], [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0], atol=1e-15)
    kalman = KalmanFilter(body, np.eye(6), np.eye(3))
    found = kalman.update(Belief(x, np.eye(6)), QUARTER).x
    np.testing.assert_allclose(found, x, atol=1e-15)
    written = np.array([*QUARTER, *x[4:]])
    np.testing.assert_allclose(body.step(written)[:4], body.step(x)[:4], atol=1e-3)


@pytest.mark.parametrize("tree", [True, False])
def test_lengths_are_right_to_a_thousandth_in_states_and_steps(body, tree):
    if tree:
        frames, parts = [spherical("r")], [Body("r", 1.0, inertia=(1.0, 1.5, 2.0))]
        body = midpoint(Multibody("ball", frames, parts).system, H)
    for length in (1 - 0.9e-3, 1 + 0.9e-3):
        written = [length, 0.0, 0.0, 0.0]
        assert body.state(written, np.zeros(3))[0] == 1.0
        assert body.step([*written, 0.1, 0.0, 0.0])[0] == pytest.approx(1.0, abs=1e-4)
    for length in (1 - 1.1e-3, 1 + 1.1e-3):
        for refused in (
            lambda q: body.state(q, np.zeros(3)),
            lambda q: body.step([*q, 0.1, 0.0, 0.0]),
        ):
            with pytest.raises(ValueError, match="lie on its manifold"):
                refused([length, 0.0, 0.0, 0.0])


def test_half_a_turn_in_one_step_is_refused(body):
    limit = np.pi / H
    assert body.state([1, 0, 0, 0], [0, 0.99 * limit, 0])[5] == pytest.approx(2 * 0.99 * limit)
    with pytest.raises(ValueError, match="rotates by 3.17 rad in one step.*choose h < 0.099 s"):
        body.state([1, 0, 0, 0], [0, 1.01 * limit, 0])
    ball = midpoint(System("ball", Product(Rn("z"), S2("n")), lambda q, v: ca.sumsqr(v) / 2), H)
    ball.state([0, 0, 0, 1], [2 * limit, 0, 0.99 * limit, 0])
    with pytest.raises(ValueError, match="rotates by 3.17 rad"):
        ball.state([0, 0, 0, 1], [0, 0, 1.01 * limit, 0])


def test_a_start_off_its_holonomic_constraint_is_refused_a_measured_one_is_not(rod):
    with pytest.raises(NotConsistent, match="rod: .*h = .0.4.*satisfy_constraints") as error:
        rod.state([1.2, 0.0], [0.0, 0.0])
    assert error.value.residual == pytest.approx([0.44])
    at_rest = rod.state([0.6, -0.8], [0.0, 0.0])
    assert rod.configuration(at_rest) == pytest.approx([0.6, -0.8])
    assert rod.velocity(at_rest) == pytest.approx([0.0, 0.0], abs=1e-15)
    assert rod.measured_state([1.2, 0.0], [0.0, 0.0])[0] == 1.2


def test_numbers_of_full_precision_are_kept_and_rounded_ones_put_onto_their_manifold():
    space = Product(Rn("z"), SO3("r"), S2("n"))
    exact = np.array([0.3, 0.6, 0.0, 0.8, 0.0, 0.0, -0.6, 0.8])
    for at in (1, 7):
        for off, kept in ((0.9e-12, True), (1e-11, False)):
            q = exact.copy()
            q[at] *= 1 + off / exact[at]
            found = states.configuration("me", space, q)
            assert np.array_equal(found, q) == kept
            np.testing.assert_allclose(found, q, rtol=0, atol=2 * off)


@pytest.mark.parametrize("row, at, n", [(0, 1, 3), (1, 4, 4), (2, 11, 4)])
def test_of_every_rotation_pose_and_direction_the_length_is_told_to_be_one(row, at, n):
    """To a thousandth; other numbers do not count."""
    space = Product(Rn("z"), S2("n"), SE3("p"), SO3("r"))
    q = np.array([7.0, 0.0, 0.6, -0.8, 0.5, -0.5, 0.5, 0.5, 3.0, 4.0, 5.0, 0.0, 0.0, 1.0, 0.0])
    symbol = ca.SX.sym("q", space.nq)
    value = ca.Function("on", [symbol], [states.on_manifold(space, symbol)])
    for length in (1 - 1.1e-3, 1 - 0.9e-3, 1.0, 1 + 0.9e-3, 1 + 1.1e-3):
        moved = q.copy()
        moved[at : at + n] *= length
        inside = np.array(value(moved))[:, 0] > 0
        expected = [True] * 3
        expected[row] = abs(length - 1) < 1e-3
        assert inside.tolist() == expected
