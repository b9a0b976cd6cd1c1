"""States that nobody meant are refused, or put right where it is clear what was meant."""

import casadi as ca
import numpy as np
import pytest

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


@pytest.mark.parametrize("what", OFF)
def test_numbers_that_are_no_rotation_are_refused_wherever_a_state_is_given(body, what):
    words = "finite" if what in ("NaN", "infinite") else "lie on its manifold.*divide quaternions"
    x, still = np.array([*OFF[what], 1.0, 0.0, 0.0]), np.zeros(3)
    kalman = KalmanFilter(body, np.eye(6), np.eye(3))
    belief = Belief(body.state([1, 0, 0, 0], still), np.eye(6))
    for refused in (
        lambda: body.state(OFF[what], still),
        lambda: body.step(x),
        lambda: body.linearize(x),
        lambda: body.simulate(x, steps=2),
        lambda: kalman.update(belief, OFF[what]),
    ):
        with pytest.raises(ValueError, match=words):
            refused()


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


def test_what_follows_from_a_state_is_finite_or_refused(body):
    nan, x = np.full(7, np.nan), body.state([1.0, 0.0, 0.0, 0.0], np.zeros(3))
    for refused in (
        lambda: body.velocity(nan),
        lambda: body.energy(nan),
        lambda: body.local(x, nan),
        lambda: body.retract(x, np.full(6, np.nan)),
        lambda: body.measured_state(nan[:4], nan[:3]),
    ):
        with pytest.raises(ValueError, match="body by midpoint.*finite"):
            refused()


def test_a_table_is_refused_for_any_of_its_rows(body):
    fine, still = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1)), np.zeros((3, 3))
    for what, q in OFF.items():
        words = "finite" if what in ("NaN", "infinite") else "lie on its manifold"
        with pytest.raises(ValueError, match=words):
            body.state(np.array([*fine[:2], q]), still)
    fast = np.array([*still[:2], [0.0, 1.01 * np.pi / H, 0.0]])
    with pytest.raises(ValueError, match="turns by 3.17 rad in one step"):
        body.state(fine, fast)
    with pytest.raises(ValueError, match="must be 3 finite numbers"):
        body.state(fine, np.zeros((3, 2)))
    for velocities in (still[0], still[:2]):
        with pytest.raises(ValueError, match="or of tables of as many rows"):
            body.state(fine, velocities)


def test_half_a_turn_in_one_step_is_refused(body):
    limit = np.pi / H
    assert body.state([1, 0, 0, 0], [0, 0.99 * limit, 0])[5] == pytest.approx(2 * 0.99 * limit)
    with pytest.raises(ValueError, match="turns by 3.17 rad in one step.*choose h < 0.099 s"):
        body.state([1, 0, 0, 0], [0, 1.01 * limit, 0])
    ball = midpoint(System("ball", Product(Rn("z"), S2("n")), lambda q, v: ca.sumsqr(v) / 2), H)
    ball.state([0, 0, 0, 1], [2 * limit, 0, 0.99 * limit, 0])
    with pytest.raises(ValueError, match="turns by 3.17 rad"):
        ball.state([0, 0, 0, 1], [0, 0, 1.01 * limit, 0])


def test_a_start_off_its_holonomic_constraint_is_refused_a_measured_one_is_not(rod):
    with pytest.raises(NotConsistent, match="rod: .*h = .0.4.*satisfy_constraints") as error:
        rod.state([1.2, 0.0], [0.0, 0.0])
    assert error.value.residual == pytest.approx([0.44])
    at_rest = rod.state([0.6, -0.8], [0.0, 0.0])
    assert rod.configuration(at_rest) == pytest.approx([0.6, -0.8])
    assert rod.velocity(at_rest) == pytest.approx([0.0, 0.0], abs=1e-15)
    assert rod.measured_state([1.2, 0.0], [0.0, 0.0])[0] == 1.2


@pytest.mark.parametrize("what", ["x", "P"])
def test_a_belief_must_be_finite(body, what):
    values = dict(x=body.state([1, 0, 0, 0], np.zeros(3)), P=np.eye(6))
    values[what] = np.full_like(values[what], np.nan)
    kalman = KalmanFilter(body, np.eye(6), np.eye(3))
    for refused in (
        lambda: kalman.update(Belief(**values), [1, 0, 0, 0]),
        lambda: kalman.predict(Belief(**values), ()),
    ):
        with pytest.raises(ValueError, match=f"{what} of the belief must be finite"):
            refused()


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


def test_measured_vectors_must_be_finite(body):
    kalman = KalmanFilter(body, np.eye(6), [[1.0]], measurement=lambda x: x[4])
    belief = Belief(body.state([1, 0, 0, 0], np.zeros(3)), np.eye(6))
    assert np.isfinite(kalman.update(belief, [0.1]).x).all()
    for wrong in ([np.nan], [np.inf], [0.1, 0.2]):
        with pytest.raises(ValueError, match="a measurement must be 1 finite numbers"):
            kalman.update(belief, wrong)
