"""Axioms of configuration spaces and of SE(2) with its retractions, against matrices; random
points by hypothesis.
"""

import casadi as ca
import numpy as np
import pytest
from differences import derivative, jacobian
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from scipy.special import bernoulli, comb, factorial

from nh_control.geometry import even_functions, se2
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.mechanics.coordinates import coordinate_frame

SPACES = {
    "Rn": Rn("a", "b"),
    **{name: SE2(retraction=name) for name in se2.RETRACTIONS},
    "Product": Product(Rn("a"), SE2(), Rn("b", "c")),
    "Product of poses": Product(
        SE2(("t1", "x1", "y1"), ("w1", "f1", "s1"), "cay"),
        SE2(("t2", "x2", "y2"), ("w2", "f2", "s2"), "sccsk"),
    ),
}
SWITCH = float(np.sqrt(even_functions.SERIES_BELOW))
NEARLY_FULL_TURN = 2 * np.pi - 0.01
TURNING = Product(Rn("z"), SO3("r"), S2("n"))
GROUPS = list(se2.RETRACTIONS.values())
NAMES = list(se2.RETRACTIONS)

coordinate = st.floats(-10, 10)
small = st.one_of(
    st.floats(-1e-3, 1e-3), st.sampled_from([0.0, 1e-9, -1e-15, 1e-300, SWITCH, -SWITCH])
)


def rotation(name):
    """Rotations a retraction's tangent vector may have; cay takes any, 1e3 of it being 0.002 rad
    short of pi.
    """
    reach = 1e3 if name == "cay" else NEARLY_FULL_TURN
    return st.one_of(st.floats(-reach, reach), small)


def vectors(*parts):
    return st.tuples(*parts).map(np.array)


def tangents_of(space):
    if isinstance(space, Product):
        return st.tuples(*map(tangents_of, space.factors)).map(np.concatenate)
    if isinstance(space, SE2):
        return vectors(rotation(space.retraction.name), coordinate, coordinate)
    return vectors(*[coordinate] * space.nv)


def conditioning(d, name) -> float:
    """Amplification of round-off by the inverse of a retraction: its tangent is nearly singular
    close to a full turn (exp) or pi (cay), as it may be in products.
    """
    if name == "cay":
        return 1 + d[0] ** 2
    if name.startswith("Product"):
        return 101 + np.abs(d).max() ** 2
    return 1 + 1 / (2 * np.pi - abs(d[0])) if name == "exp" else 1.0


def value(expression) -> np.ndarray:
    return np.array(ca.evalf(ca.SX(expression)))


def apply(function, *arrays) -> np.ndarray:
    return value(function(*[ca.DM(a) for a in arrays])).reshape(-1)


def group_matrix(g):
    c, s = np.cos(g[0]), np.sin(g[0])
    return np.array([[c, -s, g[1]], [s, c, g[2]], [0, 0, 1]])


def hat(v):
    return np.array([[0, -v[0], v[1]], [v[0], 0, v[2]], [0, 0, 0]])


def vee(m):
    return np.array([m[1, 0], m[0, 2], m[1, 2]])


@pytest.mark.parametrize("name", SPACES)
@given(data=st.data())
def test_local_is_the_inverse_of_retract(name, data):
    space = SPACES[name]
    q, d = data.draw(vectors(*[coordinate] * space.nq)), data.draw(tangents_of(space))
    q1 = space.retract(q, d)
    there = space.local(q, q1)
    factor = conditioning(d, name)
    assert np.abs(there - d).max() <= 1e-13 * (1 + np.abs(q).max() + np.abs(d).max()) * factor
    size = 1 + np.abs(q1).max()
    assert np.abs(space.retract(q, there) - q1).max() <= 1e-11 * size
    assert np.array_equal(space.retract(q, np.zeros(space.nv)), q)
    assert np.array_equal(space.local(q, q), np.zeros(space.nv))


@pytest.mark.parametrize("name", SPACES)
def test_local_jacobians_are_its_derivatives(name):
    space, rng = SPACES[name], np.random.default_rng(3)
    for _ in range(5):
        q0, d = rng.uniform(-2, 2, space.nq), rng.uniform(-1.5, 1.5, space.nv)
        q1 = space.retract(q0, d)
        j0, j1 = (value(j) for j in space.local_jacobians(ca.SX(q0), ca.SX(d)))
        assert np.allclose(
            j0,
            jacobian(lambda e: space.local(space.retract(q0, e), q1), space.nv, 0.01),
            rtol=0,
            atol=1e-10,
        )
        change = jacobian(lambda e: space.local(q0, space.retract(q1, e)), space.nv, 0.01)
        assert np.allclose(j1, change, rtol=0, atol=1e-10)
        turned = value(space.coordinate_change(ca.DM(q0), ca.DM(q1)))
        assert np.allclose(turned, change, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", SPACES)
def test_the_middle_of_a_step_is_that_of_the_way_back(name):
    space, rng = SPACES[name], np.random.default_rng(8)
    q0, d = rng.uniform(-2, 2, space.nq), rng.uniform(-1.5, 1.5, space.nv)
    q1 = space.retract(q0, d)
    middle = apply(lambda *a: space.step_geometry(*a).middle, q0, d)
    back = apply(lambda *a: space.step_geometry(*a).middle, q1, space.local(q1, q0))
    assert np.abs(middle - back).max() <= 1e-13
    assert min(np.abs(middle - q0).max(), np.abs(middle - q1).max()) > 0.1


@given(
    vectors(coordinate, coordinate, coordinate),
    vectors(coordinate, coordinate, coordinate),
    vectors(coordinate, coordinate, coordinate),
)
def test_group_laws(g, k, m):
    one = np.zeros(3)
    left, right = (
        apply(se2.compose, apply(se2.compose, g, k), m),
        apply(se2.compose, g, apply(se2.compose, k, m)),
    )
    assert np.allclose(left, right, rtol=0, atol=1e-13)
    assert np.array_equal(apply(se2.compose, g, one), g) and np.array_equal(
        apply(se2.compose, one, g), g
    )
    assert np.allclose(apply(se2.between, g, apply(se2.compose, g, k)), k, rtol=0, atol=1e-13)
    assert np.allclose(apply(se2.compose, apply(se2.between, g, one), g), one, rtol=0, atol=1e-13)
    assert np.allclose(
        group_matrix(apply(se2.compose, g, k)),
        group_matrix(g) @ group_matrix(k),
        rtol=0,
        atol=1e-13,
    )


@given(vectors(coordinate, coordinate, coordinate), vectors(coordinate, coordinate, coordinate))
def test_adjoint_and_bracket(g, v):
    w = np.array([0.3, -1.2, 0.7])
    matrix = group_matrix(g)
    assert np.allclose(
        value(se2.adjoint(ca.DM(g))) @ v,
        vee(matrix @ hat(v) @ np.linalg.inv(matrix)),
        rtol=0,
        atol=1e-11,
    )
    assert np.allclose(
        value(se2.ad(ca.DM(v))) @ w, vee(hat(v) @ hat(w) - hat(w) @ hat(v)), rtol=0, atol=1e-12
    )


def tau_by_matrices(name, v):
    e1, e2, e3 = np.eye(3)
    if name == "exp":
        return expm(hat(v))
    if name == "cay":
        return np.linalg.solve(np.eye(3) - hat(v) / 2, np.eye(3) + hat(v) / 2)
    if name == "ccsk":
        return expm(hat(v[0] * e1)) @ expm(hat(v[1] * e2)) @ expm(hat(v[2] * e3))
    half = expm(hat(v[0] / 2 * e1))
    return half @ expm(hat(v[1] * e2 + v[2] * e3)) @ half


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "sccsk" else n for n in NAMES]
)
@given(data=st.data())
def test_retractions_are_what_their_names_say(name, data):
    v = data.draw(vectors(st.one_of(st.floats(-6, 6), small), coordinate, coordinate))
    g = apply(se2.RETRACTIONS[name].tau, v)
    assert np.allclose(group_matrix(g), tau_by_matrices(name, v), rtol=0, atol=1e-12)


@pytest.mark.parametrize("retraction", GROUPS, ids=NAMES)
@pytest.mark.parametrize("turn", [0.0, 1e-8, 0.2499, 0.2501, -0.9, 2.9, -3.3, 5.5])
def test_right_trivialized_tangents(retraction, turn):
    """`d/dt tau(v + t w) = hat(dtau_v w) tau(v)`, and dtau_inverse is the inverse of that
    dtau_v.
    """
    v = np.array([turn, 1.3, -0.7])
    inverse = np.linalg.inv(group_matrix(apply(retraction.tau, v)))
    dtau = np.stack(
        [
            vee(
                derivative(lambda s: group_matrix(apply(retraction.tau, v + s * w)), 0.01)
                @ inverse
            )
            for w in np.eye(3)
        ],
        -1,
    )
    assert np.allclose(
        value(retraction.dtau_inverse(ca.DM(v))) @ dtau, np.eye(3), rtol=0, atol=1e-9
    )


def series(coefficient, square, order):
    """Derivative of sum_k coefficient(k) square^k by its Taylor series, 29 terms."""
    falling = [np.prod(k - np.arange(order)) for k in range(29)]
    return float(
        np.sum(
            [coefficient(k) * falling[k] * square ** (k - order) for k in range(order, 29)][::-1]
        )
    )


BERNOULLI = bernoulli(60)
SMOOTH = {
    "sinc": (even_functions.sinc, lambda k: (-1) ** k / factorial(2 * k + 1)),
    "versine": (even_functions.versine, lambda k: (-1) ** k / factorial(2 * k + 2)),
    "sine_defect": (even_functions.sine_defect, lambda k: (-1) ** k / factorial(2 * k + 3)),
    "cosine": (even_functions.cosine, lambda k: (-1) ** k / factorial(2 * k)),
    "tangent_coefficient": (
        even_functions.tangent_coefficient,
        lambda k: abs(BERNOULLI[2 * k + 2]) / factorial(2 * k + 2),
    ),
    "arctan_over": (
        lambda s: even_functions.arctan_over(s, ca.sqrt(1 - s)),
        lambda k: comb(2 * k, k) / 4**k / (2 * k + 1),
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("order", range(4))
def test_smooth_functions_with_their_derivatives(name, order):
    """Value and three derivatives by the squared angle, at zero, tiny, and on both sides of the
    switch from series to closed form.

    Every differentiation of the closed form divides its round-off by the square, so 1e-14 of the
    value becomes 1e-14 / SERIES_BELOW^order.
    """
    function, coefficient = SMOOTH[name]
    square = ca.SX.sym("square")
    expression = function(square)
    for _ in range(order):
        expression = ca.gradient(expression, square)
    evaluate = ca.Function("f", [square], [expression])
    switch = 0.07**2 if name == "arctan_over" else even_functions.SERIES_BELOW
    for at in (0.0, 1e-300, 1e-9, 1e-3, switch * (1 - 1e-12), switch, 2 * switch, 0.3):
        expected = series(coefficient, at, order)
        assert (
            abs(float(evaluate(at)) - expected) <= 1e-14 * max(1.0, abs(expected)) / switch**order
        ), at


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: SE2(retraction="euler"), ["euler", "cay", "ccsk", "exp", "sccsk"]),
        (lambda: SE2(names=("theta", "x")), ["three"]),
        (lambda: Rn("a", "b", velocity_names=("a_dot",)), ["velocity names"]),
        (lambda: Product(Rn("a"), Rn("a")), ["coordinate names must differ"]),
        (
            lambda: Product(Rn("a"), Rn("b", velocity_names=("a_dot",))),
            ["velocity names must differ", "a_dot"],
        ),
        (lambda: SO3(retraction="ccsk"), ["SO3", "ccsk", "['cay', 'exp']"]),
        (lambda: Rn("a", "b").retract([1.0, 2.0], [1.0]), ["retract", "(2,)", "(1,)"]),
        (lambda: SE2().local([0.0, 0.0], [0.0, 0.0, 0.0]), ["local", "(3,)", "(2,)"]),
    ],
)
def test_bad_spaces_and_arguments_say_what_is_expected(make, words):
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words)


NAMED = {
    "product": (
        Product(Rn("psi"), SE2()),
        "psi theta x y",
        "psi_dot omega v_forward v_side",
        "psi theta forward side",
    ),
    "R^2": (Rn("a", "b"), "a b", "a_dot b_dot", "a b"),
    "SE(2)": (SE2(), "theta x y", "omega v_forward v_side", "theta forward side"),
    "SO(3)": (
        SO3("arm_"),
        "arm_qw arm_qx arm_qy arm_qz",
        "arm_omega_x arm_omega_y arm_omega_z",
        "arm_rotation_x arm_rotation_y arm_rotation_z",
    ),
    "S^2": (S2("link_"), "link_x link_y link_z", "link_x_dot link_y_dot link_z_dot",
            "link_swing_1 link_swing_2"),
    "SE(3)": (
        SE3(),
        "qw qx qy qz x y z",
        "omega_x omega_y omega_z v_x v_y v_z",
        "rotation_x rotation_y rotation_z translation_x translation_y translation_z",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_names_of_numbers_velocities_and_local_coordinates(name):
    space, *expected = NAMED[name]
    found = space.names, space.velocity_names, space.tangent_names
    assert found == tuple(tuple(names.split()) for names in expected)


@pytest.mark.parametrize("make", [S2, SO3, SE3, SE2], ids=lambda make: make.__name__)
def test_the_velocity_of_the_way_to_another_configuration(make):
    """That of the curve of the retraction, where it begins."""
    space, rng = make(), np.random.default_rng(7)
    q = space.retract(space.origin, rng.normal(size=space.nv))
    q1 = space.retract(q, rng.normal(size=space.nv) / 2)
    d = space.local(q, q1)
    v = space.velocity(q, q1)
    if make is S2:
        expected = derivative(lambda t: space.retract(q, t * d), 1e-2)
        np.testing.assert_allclose(v, expected, rtol=0, atol=1e-12)
        assert abs(v @ q) <= 1e-15 and abs(v @ q1) > 0.1
    else:
        np.testing.assert_array_equal(v, d)


@pytest.mark.parametrize("hemisphere", [1, -1])
def test_frames_of_directions_are_orthonormal_and_turn_the_least(hemisphere):
    """The images of x and y (-y below the equator) under the least rotation of +-z to q."""
    rng = np.random.default_rng(4)
    for q in rng.normal(size=(5, 3)):
        q = q * [1, 1, hemisphere * np.sign(q[2])] / np.linalg.norm(q)
        pole = np.array([0.0, 0.0, hemisphere])
        frame = np.array(ca.DM(S2().frame(ca.DM(q))))
        axis = np.cross(pole, q)
        angle = np.arctan2(np.linalg.norm(axis), pole @ q)
        turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
        expected = turn @ np.array([[1.0, 0.0], [0.0, hemisphere], [0.0, 0.0]])
        np.testing.assert_allclose(frame, expected, atol=1e-14)


def test_rates_of_coordinates_are_those_along_the_velocities_of_planar_bodies():
    space = Product(Rn("a"), SE2(), Rn("b"))
    q, v = np.array([0.3, 0.8, -0.5, 2.0, 1.1]), np.array([0.7, -1.3, 0.4, 0.9, -0.2])
    frame = np.array(ca.DM(coordinate_frame(space.factors, ca.SX(q))))
    rates = derivative(lambda t: space.retract(q, t * v), 1e-2)
    np.testing.assert_allclose(frame @ v, rates, atol=1e-10)
    np.testing.assert_allclose(frame @ frame.T, np.eye(5), atol=1e-15)


def test_tables_of_configurations_move_row_by_row():
    """To the bit, in one call."""
    rng = np.random.default_rng(3)
    d = rng.normal(size=(4, TURNING.nv))
    reached = TURNING.retract(TURNING.origin, d)
    np.testing.assert_array_equal(reached, [TURNING.retract(TURNING.origin, one) for one in d])
    way = TURNING.local(reached, reached[::-1])
    rows = [TURNING.local(*pair) for pair in zip(reached, reached[::-1])]
    np.testing.assert_array_equal(way, rows)
    assert TURNING.retract(reached[:0], d[:0]).shape == (0, TURNING.nq)
    with pytest.raises(ValueError, match=r"retract: .* got \[3, 4\]"):
        TURNING.retract(reached[:3], d)
    with pytest.raises(ValueError, match=r"argument 2 must have shape \(6,\) or \(N, 6\)"):
        TURNING.retract(reached, d[:, :5])
