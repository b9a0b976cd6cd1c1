"""Axioms of configuration spaces, and their maps against matrices, at random points: near the
identity, near half a turn (a full one in the plane), and where the frame of directions jumps.

Tolerances are round-off times the condition number of the coordinates: Cayley coordinates of an
angle a are `2 tan(a/2)`, so an error eps of the stored configuration is an error
`(1 + |d|^2 / 4) eps` in them; the direction of the exponential ones on S2 is known to
`eps / (pi - a)` near the opposite point.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from differences import derivative, jacobian
from refusals import refusal
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from transforms3d import quaternions

from nh_control.geometry import quaternion, se2
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, PhaseSpace, Product, Rn
from nh_control.mechanics.coordinates import coordinate_frame

EPS = float(np.finfo(float).eps)
PRODUCT = Product(Rn("a", "b"), SO3("s_"), S2("l_"), SE2(), S2("m_", "exp"))
SPACES = {
    **{f"{s.__name__}-{r}": s(retraction=r) for s in (SO3, S2, SE3) for r in ("exp", "cay")},
    **{f"SE2-{r}": SE2(retraction=r) for r in se2.RETRACTIONS},
    "Rn": Rn("a", "b"),
    "Product": PRODUCT,
    "Phase": PhaseSpace(PRODUCT, PRODUCT.velocity_names, PRODUCT.tangent_names),
}
CONFIGURATIONS = [name for name in SPACES if name != "Phase"]
SPHERES = ("S2-exp", "S2-cay")
TURNS = {SO3: 3, S2: 2, SE3: 3, SE2: 1, Rn: 0}
"""Numbers of a tangent vector that turn."""
ANGLES = {
    "zero": lambda rng: 0.0,
    "tiny": lambda rng: 10 ** rng.uniform(-12, -3),
    "moderate": lambda rng: rng.uniform(1e-3, 2.0),
    "near pi": lambda rng: np.pi - 10 ** -rng.uniform(0, 3),
}
MANY = 10
"""Random points of a test."""


def draws(n=MANY):
    return (np.random.default_rng(seed) for seed in range(n))


def unit(n, rng):
    a = rng.normal(size=n)
    return a / np.linalg.norm(a) if n else a


def point(space, rng):
    """A configuration or a state; directions lie on the equator and at the poles, too."""
    if isinstance(space, PhaseSpace):
        q = point(space.base, rng)
        return np.concatenate(
            [q, functions(space.base)["frame"](q) @ rng.normal(size=space.nv // 2)]
        )
    if isinstance(space, Product):
        return np.concatenate([point(factor, rng) for factor in space.factors])
    if isinstance(space, S2):
        a = rng.uniform(-4, 4)
        special = [np.cos(a), np.sin(a), 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0], unit(3, rng)
        return np.array(special[rng.integers(4)])
    n = 4 if isinstance(space, SO3 | SE3) else 0
    return np.concatenate([unit(n, rng), rng.uniform(-10, 10, space.nq - n)])


def retraction(space):
    """ "exp" or "cay" of a sphere shows in how far it goes."""
    if isinstance(space, S2):
        height = space.retract(space.origin, np.array([1.0, 0.0]))[2]
        return "exp" if np.isclose(height, np.cos(1.0)) else "cay"
    return "exp" if isinstance(space, Rn) else space.retraction.name


def tangent(space, regime, rng):
    """A tangent vector whose rotations have angles of the regime, or one angle; near pi those of
    the plane are twice as large; translations and momenta are as long as the angle, at most 2.
    """
    if isinstance(space, PhaseSpace):
        return np.append(tangent(space.base, regime, rng), rng.uniform(-2, 2, space.nv // 2))
    if isinstance(space, Product):
        return np.concatenate([tangent(factor, regime, rng) for factor in space.factors])
    angle, n = ANGLES.get(regime, lambda rng: regime)(rng), TURNS[type(space)]
    if retraction(space) == "cay":
        angle = 2 * np.tan(angle / 2)
    elif isinstance(space, SE2) and regime == "near pi":
        angle *= 2
    return np.concatenate(
        [angle * unit(n, rng), min(angle, 2.0) * rng.uniform(-1, 1, space.nv - n)]
    )


def parts(space, *values, size):
    """Factors of a configuration space with their parts of values."""
    at = 0
    for factor in getattr(space, "factors", (space,)):
        n = getattr(factor, size)
        yield factor, *(value[at : at + n] for value in values)
        at += n


def condition(space, q, d):
    """Largest ratio of an error of d to the error of the stored configurations that causes it."""
    if isinstance(space, PhaseSpace):
        of_base = condition(space.base, q, d)
        return of_base * (1 + np.abs(q).max() + np.abs(d[space.base.nv :]).max())
    worst = 1.0
    for (f, qf), (_, df) in zip(parts(space, q, size="nq"), parts(space, d, size="nv")):
        turn = np.linalg.norm(df[: TURNS[type(f)]])
        here = 1.0
        if retraction(f) == "cay":
            here += turn**2
        elif isinstance(f, S2) and turn:
            here = max(1.0, turn / np.sin(turn))
        elif isinstance(f, SE2) and retraction(f) == "exp":
            here += 1 / (2 * np.pi - turn)
        lever = 1.0 if isinstance(f, SO3 | S2) else 1 + np.abs(qf).max() + np.linalg.norm(df)
        worst = max(worst, here * lever)
    return worst


@cache
def functions(space):
    """Frame, transport and the geometry of a step of a configuration space, on numbers."""
    q, q1, w = (ca.SX.sym(s, n) for s, n in (("q", space.nq), ("q1", space.nq), ("w", space.nw)))
    d = ca.SX.sym("d", space.nv)
    s = space.step_geometry(q, d)
    found = {
        "frame": ([q], [space.frame(q)]),
        "transport": ([q, q1, w], [space.transport(q, q1, w)]),
        "step": ([q, d], [s.q1, s.middle, s.w, s.j0, s.j1, *space.local_jacobians(q, d)]),
        "change": ([q, q1], [space.coordinate_change(q, q1)]),
    }

    def numeric(arguments, results):
        function = ca.Function("f", arguments, [ca.densify(r) for r in results])
        several = lambda *a: [np.asarray(r) for r in function.call([ca.DM(x) for x in a])]
        return several if len(results) > 1 else lambda *a: several(*a)[0]

    return {name: numeric(*each) for name, each in found.items()}


def within(got, want, tolerance):
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


# --- retraction and its inverse ------------------------------------------------------------------


@pytest.mark.parametrize("regime", ANGLES)
@pytest.mark.parametrize("name", SPACES)
def test_local_undoes_retract_and_retract_undoes_local(name, regime):
    """A configuration comes back to round-off even where local coordinates are ill-conditioned."""
    space = SPACES[name]
    for rng in draws():
        q, d = point(space, rng), tangent(space, regime, rng)
        q1 = space.retract(q, d)
        there, worst = space.local(q, q1), condition(space, q, d)
        within(there, d, 16 * EPS * worst)
        lever = worst * (1 + np.abs(q).max() + np.abs(q1).max())
        within(space.retract(q, there), q1, 32 * EPS * (1 if name[:2] in ("SO", "S2") else lever))
        within(space.retract(q, 0 * d), q, 4 * EPS)
        within(space.local(q, q), 0, EPS)


@pytest.mark.parametrize("name", [n for n in CONFIGURATIONS if n != "SE2-ccsk"])
def test_the_way_back_is_the_way_there(name):
    """With the same middle. On groups it is `-local(q0, q1)`; on spheres it is as long."""
    space = SPACES[name]
    for rng in draws():
        q0, d = point(space, rng), tangent(space, "moderate", rng)
        q1, middle = (value[:, 0] for value in functions(space)["step"](q0, d)[:2])
        within(q1, space.retract(q0, d), 8 * EPS * (1 + np.abs(q1).max()))
        back, tolerance = space.local(q1, q0), 16 * EPS * condition(space, q0, d)
        for f, there, here in parts(space, d, back, size="nv"):
            if isinstance(f, S2):
                there, here = np.linalg.norm(there), -np.linalg.norm(here)
            within(here, np.negative(there), tolerance)
        within(functions(space)["step"](q1, back)[1][:, 0], middle, tolerance)
        assert np.abs(middle - q0).max() > 1e-4 < np.abs(middle - q1).max()
        for f, at in parts(space, middle, size="nq"):
            assert not isinstance(f, SO3 | S2) or abs(np.linalg.norm(at) - 1) <= 4 * EPS


# --- against other people's formulas -------------------------------------------------------------


def apply(function, *arrays) -> np.ndarray:
    return np.array(ca.evalf(ca.SX(function(*[ca.DM(a) for a in arrays]))))


def hat(w):
    return np.cross(w, np.eye(3), axisb=0, axisc=0)


def cayley(x):
    eye = np.eye(len(x))
    return np.linalg.solve(eye - x / 2, eye + x / 2)


def pose(g):
    """The matrix of an element (w, x, y, z, r) or (w, x, y, z) of SE(3)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[: len(g) - 4, 3] = quaternions.quat2mat(g[:4]), g[4:]
    return matrix


def motion(v):
    """An element (rotation, translation) or (rotation) of se(3)."""
    x = np.zeros((4, 4))
    x[:3, :3], x[: len(v) - 3, 3] = hat(v[:3]), v[3:]
    return x


def plane(g):
    c, s = np.cos(g[0]), np.sin(g[0])
    return np.array([[c, -s, g[1]], [s, c, g[2]], [0, 0, 1]])


def flat(v):
    return np.array([[0, -v[0], v[1]], [v[0], 0, v[2]], [0, 0, 0]])


def vee(m):
    return np.array([m[1, 0], m[0, 2], m[1, 2]])


def in_turn(v):
    """exp of the generators of SE(2), one after the other."""
    return plane([v[0], 0, 0]) @ plane([0, v[1], 0]) @ plane([0, 0, v[2]])


def symmetrized(v):
    half = plane([v[0] / 2, 0, 0])
    return half @ plane([0, v[1], v[2]]) @ half


TEXTBOOK = {
    **{f"SO3-{r}": lambda v, f=f: f(motion(v)) for r, f in (("exp", expm), ("cay", cayley))},
    **{f"SE3-{r}": lambda v, f=f: f(motion(v)) for r, f in (("exp", expm), ("cay", cayley))},
    **{f"SE2-{r}": lambda v, f=f: f(flat(v)) for r, f in (("exp", expm), ("cay", cayley))},
    "SE2-ccsk": in_turn,
    "SE2-sccsk": symmetrized,
}


@pytest.mark.parametrize("regime", ANGLES)
@pytest.mark.parametrize("name", [*TEXTBOOK, *SPHERES])
def test_retractions_are_the_textbook_maps(name, regime):
    """Of matrices; directions turn about q x t."""
    space = SPACES[name]
    for rng in draws():
        q, d = point(space, rng), tangent(space, regime, rng)
        tolerance = 128 * EPS * (1 + np.linalg.norm(d))
        if name in SPHERES:
            turn = np.cross(q, functions(space)["frame"](q) @ d)
            want = TEXTBOOK[f"SO3-{name[3:]}"](turn)[:3, :3] @ q
            within(space.retract(q, d), want, tolerance)
        else:
            got = space.retract(space.origin, d)
            within(plane(got) if name[:3] == "SE2" else pose(got), TEXTBOOK[name](d), tolerance)


@pytest.mark.parametrize("name", ["SO3-exp", "SO3-cay", "SE3-exp", "SE3-cay"])
def test_moving_the_start_by_a_group_element_moves_the_end_by_it(name):
    """And q, -q are the same rotation."""
    space = SPACES[name]
    for rng in draws():
        g, q, d = point(space, rng), point(space, rng), tangent(space, "moderate", rng)

        def act(q):
            turned = quaternions.qmult(g[:4], q[:4])
            return np.concatenate([turned, (g[4:] + quaternions.quat2mat(g[:4]) @ q[4:])
                                   if len(q) > 4 else []])  # fmt: skip

        q1 = space.retract(q, d)
        within(act(q1), space.retract(act(q), d), 200 * EPS)
        flipped = np.concatenate([-q1[:4], q1[4:]])
        within(space.local(q, flipped), space.local(q, q1), 16 * EPS * condition(space, q, d))


def test_quaternions_are_those_of_transforms3d():
    for rng in draws():
        q, p, a = unit(4, rng), unit(4, rng), rng.uniform(-10, 10, 3)
        matrix = quaternions.quat2mat(q)
        within(apply(quaternion.matrix, q), matrix, 8 * EPS)
        within(apply(quaternion.rotate, q, a)[:, 0], matrix @ a, 100 * EPS)
        within(apply(quaternion.rotate_back, q, a)[:, 0], matrix.T @ a, 100 * EPS)
        within(apply(quaternion.multiply, q, p)[:, 0], quaternions.qmult(q, p), 4 * EPS)
        within(apply(quaternion.conjugate, q)[:, 0], quaternions.qconjugate(q), 0)


def test_the_group_of_the_plane_is_that_of_matrices():
    """Products, inverses, adjoints and brackets."""
    compose = lambda *a: apply(se2.compose, *a)[:, 0]
    for rng in draws():
        (g, k), (v, w) = rng.uniform(-10, 10, (2, 3)), rng.uniform(-2, 2, (2, 3))
        within(plane(compose(g, k)), plane(g) @ plane(k), 1e-13)
        within(apply(se2.between, g, compose(g, k))[:, 0], k, 1e-13)
        adjoint = plane(g) @ flat(v) @ np.linalg.inv(plane(g))
        within(apply(se2.adjoint, g) @ v, vee(adjoint), 1e-12)
        within(apply(se2.ad, v) @ w, vee(flat(v) @ flat(w) - flat(w) @ flat(v)), 1e-13)


# --- directions: frame and transport -------------------------------------------------------------


@pytest.mark.parametrize("name", SPHERES)
def test_the_frame_is_orthonormal_and_transport_a_rotation(name):
    """Transport carries tangent vectors to tangent vectors, keeps their lengths and angles, and
    transports back to where it came from.
    """
    space = SPACES[name]
    frame, transport = functions(space)["frame"], functions(space)["transport"]
    for k, rng in enumerate(draws()):
        q0 = point(space, rng)
        q1 = space.retract(q0, tangent(space, ("moderate", "near pi")[k % 2], rng))
        b = frame(q0)
        basis = np.column_stack([b, q0])
        within(basis.T @ basis, np.eye(3), 8 * EPS)
        assert np.linalg.det(basis) > 0 or q0[2] < 0
        tolerance = 64 * EPS / np.linalg.norm(q0 + q1)
        moved = np.column_stack([transport(q0, q1, w) for w in b.T])
        within(q1 @ moved, 0, tolerance)
        within(moved.T @ moved, np.eye(2), tolerance)
        within(np.column_stack([transport(q1, q0, w) for w in moved.T]), b, 2 * tolerance)


@pytest.mark.parametrize("gap", (1e-3, 1e-6, 1e-9, 1e-12, 0.0))
@pytest.mark.parametrize("name", SPHERES)
def test_nothing_jumps_at_the_equator(name, gap):
    """The frame changes sides at z = 0. What is stored does not: steps along, tangents to and
    transport of vectors of R^3 differ by the gap in z alone.
    """
    space = SPACES[name]
    frame, transport = functions(space)["frame"], functions(space)["transport"]
    for rng in draws():
        a, w = rng.uniform(-4, 4), rng.uniform(-2, 2, 3)
        level = np.array([np.cos(a), np.sin(a), 0.0])
        other = space.retract(level, tangent(space, "moderate", rng))
        views = []
        for side in (gap, -gap):
            q = level * np.cos(side) + [0, 0, np.sin(side)]
            b = frame(q)
            to = transport(q, other, b @ (b.T @ w))[:, 0]
            back = transport(other, q, w - (w @ other) * other)[:, 0]
            views.append([space.retract(q, b.T @ w), b @ space.local(q, other), to, back])
        within(*views, 40 * gap + 64 * EPS)


# --- tangents ------------------------------------------------------------------------------------


def off_the_seam(space, rng):
    """A point whose directions are away from where local coordinates (not what is stored) jump."""
    while True:
        q = point(space, rng)
        base, at = (
            (space.base, q[: space.base.nq]) if isinstance(space, PhaseSpace) else (space, q)
        )
        if all(abs(p[2]) > 0.2 for f, p in parts(base, at, size="nq") if isinstance(f, S2)):
            return q


@pytest.mark.parametrize("angle", (0.0, 1e-8, 0.5, 2.5))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_tangents_against_differences(name, angle):
    """`local_jacobians` and the segment's j0, j1: derivatives along trivialized variations
    `retract(q0, e)`, `retract(q1, e)`, e in R^nv.
    """
    space, of = SPACES[name], functions(SPACES[name])
    rng = np.random.default_rng(0)
    q0, d = off_the_seam(space, rng), tangent(space, angle, rng)
    q1 = space.retract(q0, d)
    _, _, _, j0, j1, l0, l1 = of["step"](q0, d)
    within(of["change"](q0, q1), l1, 1e-10)

    def joined(a, b):
        return np.concatenate(of["step"](a, space.local(a, b))[1:3])[:, 0]

    for exact, f in (
        (l0, lambda e: space.local(space.retract(q0, e), q1)),
        (l1, lambda e: space.local(q0, space.retract(q1, e))),
        (j0, lambda e: joined(space.retract(q0, e), q1)),
        (j1, lambda e: joined(q0, space.retract(q1, e))),
    ):
        want = jacobian(f, space.nv, 0.01)
        np.testing.assert_allclose(exact, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


@pytest.mark.parametrize("name", SPACES)
def test_derivatives_at_zero(name):
    """First and second derivatives by CasADi at exactly d = 0, and at q1 = q: finite, and those
    that differences across zero see.
    """
    space, rng = SPACES[name], np.random.default_rng(3)
    q, q1, d = (ca.SX.sym(s, n) for s, n in (("q", space.nq), ("q1", space.nq), ("d", space.nv)))
    maps = [(space.retract(q, d), d), (space.local(q, q1), q1)]
    if name != "Phase":
        s = space.step_geometry(q, d)
        more = s.q1, s.middle, s.w, s.j0, s.j1, *space.local_jacobians(q, d)
        maps.append((ca.vertcat(*(ca.vec(ca.densify(one)) for one in more)), d))
    for value, about in maps:
        first = ca.densify(ca.jacobian(value, about))
        second = ca.densify(ca.jacobian(ca.vec(first), about))
        f = ca.Function("f", [q, q1, d], [value, first, second])
        for start in (space.origin, off_the_seam(space, rng)):

            def at(e, k):
                arguments = (
                    (start, start + e, np.zeros(space.nv)) if about is q1 else (start, start, e)
                )
                return f(*arguments)[k].full().reshape(-1, order="F")

            for k in (1, 2):
                found = at(np.zeros(about.shape[0]), k)
                want = jacobian(lambda e: at(e, k - 1), about.shape[0], 0.01).ravel(order="F")
                assert np.isfinite(found).all()
                within(found, want, 1e-10 * (1 + np.abs(found).max()))


@pytest.mark.parametrize("retraction", se2.RETRACTIONS.values(), ids=se2.RETRACTIONS)
@pytest.mark.parametrize("turn", [0.0, 1e-8, 0.2499, 0.2501, -0.9, 2.9, -3.3, 5.5])
def test_right_trivialized_tangents(retraction, turn):
    """`d/dt tau(v + t w) = hat(dtau_v w) tau(v)`, and dtau_inverse is the inverse of that
    dtau_v.
    """
    v, tau = np.array([turn, 1.3, -0.7]), lambda v: plane(apply(retraction.tau, v)[:, 0])
    rates = [derivative(lambda s: tau(v + s * w), 0.01) for w in np.eye(3)]
    dtau = np.transpose([vee(rate @ np.linalg.inv(tau(v))) for rate in rates])
    within(apply(retraction.dtau_inverse, v) @ dtau, np.eye(3), 1e-9)


def test_bad_spaces_and_arguments_say_what_is_expected(snapshot):
    wrong = (
        lambda: SE2(retraction="euler"),
        lambda: SE2(names=("theta", "x")),
        lambda: Rn("a", "b", velocity_names=("a_dot",)),
        lambda: Product(Rn("a"), Rn("a")),
        lambda: Product(Rn("a"), Rn("b", velocity_names=("a_dot",))),
        lambda: SO3(retraction="ccsk"),
        lambda: Rn("a", "b").retract([1.0, 2.0], [1.0]),
        lambda: SE2().local([0.0, 0.0], [0.0, 0.0, 0.0]),
    )
    assert [refusal(make) for make in wrong] == snapshot


def test_names_of_numbers_velocities_and_local_coordinates(snapshot):
    spaces = Product(Rn("psi"), SE2()), Rn("a", "b"), SO3("arm_"), S2("link_"), SE3()
    told = {str(s): [s.names, s.velocity_names, s.tangent_names] for s in spaces}
    assert {name: "; ".join(map(" ".join, one)) for name, one in told.items()} == snapshot


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
    d = rng.normal(size=(4, PRODUCT.nv))
    reached = PRODUCT.retract(PRODUCT.origin, d)
    np.testing.assert_array_equal(reached, [PRODUCT.retract(PRODUCT.origin, one) for one in d])
    way = PRODUCT.local(reached, reached[::-1])
    rows = [PRODUCT.local(*pair) for pair in zip(reached, reached[::-1])]
    np.testing.assert_array_equal(way, rows)
    assert PRODUCT.retract(reached[:0], d[:0]).shape == (0, PRODUCT.nq)
    with pytest.raises(ValueError, match=r"retract: .* got \[3, 4\]"):
        PRODUCT.retract(reached[:3], d)
    with pytest.raises(ValueError, match=r"argument 2 must have shape \(12,\) or \(N, 12\)"):
        PRODUCT.retract(reached, d[:, :5])
