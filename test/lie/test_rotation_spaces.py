"""Spaces are spaces: retraction and inverse, group laws, tangents, on random points, near
identity, near pi and across the frame's seam on S2.

Tolerances are round-off times the condition number of the coordinates: Cayley coordinates of an
angle a are `2 tan(a/2)`, so an error eps of the stored configuration is an error
`(1 + |d|^2 / 4) eps` in them; the direction of the exponential ones on S2 is known to
`eps / (pi - a)` near the opposite point.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lie_differences import jacobian
from scipy.linalg import expm
from transforms3d import axangles, quaternions

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, PhaseSpace, Product, Rn

pytestmark = pytest.mark.slow

EPS = float(np.finfo(float).eps)
NEAR_PI = np.pi - 1e-3
PRODUCT = Product(Rn("a", "b"), SO3("s_"), S2("l_"), S2("m_", "exp"))

SPACES = {
    **{f"SO3-{r}": SO3(retraction=r) for r in ("exp", "cay")},
    **{f"S2-{r}": S2(retraction=r) for r in ("exp", "cay")},
    **{f"SE3-{r}": SE3(retraction=r) for r in ("exp", "cay")},
    **{f"SE2-{r}": SE2(retraction=r) for r in ("exp", "cay", "ccsk", "sccsk")},
    "Rn": Rn("a", "b"),
    "Product": PRODUCT,
    "Phase": PhaseSpace(
        PRODUCT, [f"p{i}" for i in range(PRODUCT.nw)], [f"dp{i}" for i in range(PRODUCT.nv)]
    ),
}
CONFIGURATIONS = [name for name in SPACES if name != "Phase"]
SPHERES = ("S2-exp", "S2-cay")
ROTATIONS = ("SO3-exp", "SO3-cay")

every_space = pytest.mark.parametrize("name", SPACES)
every_configuration = pytest.mark.parametrize("name", CONFIGURATIONS)
many = settings(max_examples=25, deadline=None)


def factors(space):
    """The simple spaces of a configuration space."""
    return space.factors if isinstance(space, Product) else (space,)


def cut(space, values, size):
    """Pairs of every factor and its part of `values`; `size` is "nq" or "nv"."""
    i = 0
    for f in factors(space):
        yield f, values[i : i + getattr(f, size)]
        i += getattr(f, size)


def split(space, values, size):
    """Configuration (or its tangent) and momentum part of a state, the latter empty for other
    spaces.
    """
    if isinstance(space, PhaseSpace):
        n = getattr(space.base, size)
        return space.base, values[:n], values[n:]
    return space, values, values[:0]


def vectors(n, bound=1.0):
    return st.lists(st.floats(-bound, bound), min_size=n, max_size=n).map(np.array)


def directions(n):
    return (
        vectors(n).filter(lambda a: np.linalg.norm(a) > 0.1).map(lambda a: a / np.linalg.norm(a))
    )


EQUATOR = st.floats(-4, 4).map(lambda a: np.array([np.cos(a), np.sin(a), 0.0]))
POLES = st.sampled_from([np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, -1.0])])


@cache
def points(space):
    """Strategy for configurations, or states, of a space; directions lie on the equator and at the
    poles more often than chance has it.
    """
    if isinstance(space, PhaseSpace):
        momenta = st.tuples(points(space.base), vectors(space.base.nv, 5.0))
        return momenta.map(lambda qp: np.concatenate([qp[0], frame(space.base, qp[0]) @ qp[1]]))
    if isinstance(space, Product):
        return st.tuples(*(points(f) for f in space.factors)).map(np.concatenate)
    if isinstance(space, SO3):
        return directions(4)
    if isinstance(space, S2):
        return directions(3) | EQUATOR | POLES
    if isinstance(space, SE3):
        return st.tuples(directions(4), vectors(3, 10.0)).map(np.concatenate)
    return vectors(space.nq, 10.0)


ANGLES = {
    "tiny": st.floats(-12, -3).map(lambda e: 10.0**e),
    "moderate": st.floats(1e-3, 2.0),
    "near pi": st.floats(0, 3).map(lambda e: np.pi - 10.0**-e),
}


def radius(space, angle):
    """Length of the local coordinates of a rotation by `angle`."""
    return 2 * np.tan(angle / 2) if retraction(space) == "cay" else angle


@cache
def retraction(space):
    """ "exp" or "cay": which of the two an unknown sphere has shows in how far it goes."""
    if isinstance(space, S2):
        return (
            "exp"
            if np.isclose(space.retract(space.origin, np.array([1.0, 0.0]))[2], np.cos(1.0))
            else "cay"
        )
    return "exp" if isinstance(space, Rn) else space.retraction.name


@cache
def tangents(space, regime):
    """Strategy for tangent vectors whose rotations have angles of the regime; translations and
    momenta are as long as the angle, at most 2.
    """
    if isinstance(space, PhaseSpace):
        return st.tuples(tangents(space.base, regime), vectors(space.base.nv, 2.0)).map(
            np.concatenate
        )
    if isinstance(space, Product):
        return st.tuples(*(tangents(f, regime) for f in space.factors)).map(np.concatenate)
    rotation = {SO3: 3, S2: 2, SE3: 3, SE2: 1, Rn: 0}[type(space)]

    def build(parts):
        angle, axis, shift = parts
        return np.concatenate([radius(space, angle) * axis, min(angle, 2.0) * shift])

    axes = directions(rotation) if rotation else vectors(0)
    return st.tuples(ANGLES[regime], axes, vectors(space.nv - rotation)).map(build)


def condition(space, q, d):
    """Largest ratio of an error of d to the error of the stored configurations that causes it."""
    base, _, _ = split(space, q, "nq")
    worst = 1.0
    for (f, qf), (_, df) in zip(cut(base, q, "nq"), cut(base, d, "nv")):
        rotation = np.linalg.norm(
            df if isinstance(f, (SO3, S2)) else df[:3] if isinstance(f, SE3) else df[:1]
        )
        if retraction(f) == "cay":
            worst_here = 1 + rotation**2
        else:
            worst_here = max(1.0, rotation / np.sin(rotation)) if isinstance(f, S2) else 1.0
        lever = 1.0 if isinstance(f, (SO3, S2)) else 1 + np.abs(qf).max() + np.linalg.norm(df)
        worst = max(worst, worst_here * lever)
    return (
        worst * (1 + np.abs(q).max() + np.abs(d[base.nv :]).max(initial=0.0))
        if isinstance(space, PhaseSpace)
        else worst
    )


def frame(space, q):
    return (
        np.asarray(ca.DM(space.frame(ca.DM(q))))
        if not isinstance(space, Product)
        else _frame(space)(q).full()
    )


@cache
def _frame(space):
    q = ca.SX.sym("q", space.nq)
    return ca.Function("frame", [q], [space.frame(q)])


@cache
def _transport(space):
    q0, q1, w = ca.SX.sym("q0", space.nq), ca.SX.sym("q1", space.nq), ca.SX.sym("w", space.nw)
    return ca.Function("transport", [q0, q1, w], [space.transport(q0, q1, w)])


def transport(space, q0, q1, w):
    return np.asarray(_transport(space)(q0, q1, w)).reshape(-1)


@cache
def _geometry(space):
    q, d = ca.SX.sym("q", space.nq), ca.SX.sym("d", space.nv)
    s = space.step_geometry(q, d)
    return ca.Function(
        "geometry", [q, d], [s.q1, s.middle, s.w, s.j0, s.j1, *space.local_jacobians(q, d)]
    )


def geometry(space, q, d):
    """q1, middle, w, j0, j1 of `step_geometry` and the two `local_jacobians` at numbers."""
    q1, middle, w, *matrices = (np.asarray(o) for o in _geometry(space)(q, d))
    return q1[:, 0], middle[:, 0], w[:, 0], *matrices


def same_up_to_quaternion_sign(space, a, b):
    """b, with every quaternion's sign chosen as in a."""
    base, b, p = split(space, np.array(b), "nq")
    for (f, af), (_, bf) in zip(cut(base, a, "nq"), cut(base, b, "nq")):
        if isinstance(f, (SO3, SE3)) and af[:4] @ bf[:4] < 0:
            bf[:4] *= -1
    return np.concatenate([b, p])


def angle_between(space, q0, q1):
    """Largest angle of the rotations and directions that join two configurations."""
    angles = [0.0]
    for (f, a), (_, b) in zip(cut(space, q0, "nq"), cut(space, q1, "nq")):
        if isinstance(f, (SO3, SE3)):
            angles.append(2 * np.arccos(min(1.0, abs(a[:4] @ b[:4]))))
        elif isinstance(f, S2):
            angles.append(2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))
        elif isinstance(f, SE2):
            angles.append(abs(b[0] - a[0]))
    return max(angles)


def random_point(space, rng):
    """A seeded point, on spheres away from the seam of the frame, across which local coordinates
    (not what is stored) jump.
    """
    if isinstance(space, PhaseSpace):
        q = random_point(space.base, rng)
        return np.concatenate([q, frame(space.base, q) @ rng.normal(size=space.base.nv)])
    parts = []
    for f in factors(space):
        q = rng.normal(size=f.nq)
        while isinstance(f, S2) and abs(q[2]) < 0.2 * np.linalg.norm(q):
            q = rng.normal(size=3)
        n = {SO3: 4, SE3: 4, S2: 3}.get(type(f), 0)
        q[:n] /= np.linalg.norm(q[:n]) if n else 1
        parts.append(q)
    return np.concatenate(parts)


# --- retraction and its inverse ------------------------------------------------------------------


@pytest.mark.parametrize("regime", ANGLES)
@every_space
@many
@given(data=st.data())
def test_local_undoes_retract(name, regime, data):
    space = SPACES[name]
    q, d = data.draw(points(space)), data.draw(tangents(space, regime))
    np.testing.assert_allclose(
        space.local(q, space.retract(q, d)), d, rtol=0, atol=16 * EPS * condition(space, q, d)
    )


@every_space
@many
@given(data=st.data())
def test_retract_undoes_local(name, data):
    """For any two configurations less than pi - 1e-3 apart; the configuration comes back to
    round-off even where local coordinates are ill-conditioned.
    """
    space = SPACES[name]
    q0, q1 = data.draw(points(space)), data.draw(points(space))
    if data.draw(st.booleans()):
        q1 = space.retract(q0, data.draw(tangents(space, "near pi")))
    base = split(space, q0, "nq")[0]
    angle = angle_between(base, q0, q1)
    assume(angle < NEAR_PI)
    back = same_up_to_quaternion_sign(space, q1, space.retract(q0, space.local(q0, q1)))
    lever = (
        (1 + np.abs(q0).max() + np.abs(q1).max()) / np.cos(angle / 2)
        if name not in (*ROTATIONS, *SPHERES)
        else 1.0
    )
    np.testing.assert_allclose(back, q1, rtol=0, atol=32 * EPS * lever)


@pytest.mark.parametrize("name", [n for n in CONFIGURATIONS if n != "SE2-ccsk"])
@many
@given(data=st.data())
def test_the_way_back_is_the_way_there(name, data):
    """`local(q1, q0)` retracts to q0 and, on groups, is `-local(q0, q1)`; on spheres it has the
    same length.
    """
    space = SPACES[name]
    q0, d = data.draw(points(space)), data.draw(tangents(space, "moderate"))
    q1 = space.retract(q0, d)
    back, atol = space.local(q1, q0), 16 * EPS * condition(space, q0, d)
    for (f, there), (_, here) in zip(cut(space, d, "nv"), cut(space, back, "nv")):
        if isinstance(f, S2):
            assert abs(np.linalg.norm(here) - np.linalg.norm(there)) <= atol
        else:
            np.testing.assert_allclose(here, -there, rtol=0, atol=atol)


@pytest.mark.parametrize("name", ("SO3-exp", "SO3-cay", "SE3-exp", "SE3-cay"))
@many
@given(data=st.data())
def test_group_laws(name, data):
    """Left invariance: moving the start by a group element moves the end by it; and a q, -q are
    the same rotation.
    """
    space = SPACES[name]
    g, q, d = (
        data.draw(points(space)),
        data.draw(points(space)),
        data.draw(tangents(space, "moderate")),
    )

    def act(q):
        turned = quaternions.qmult(g[:4], q[:4])
        return (
            turned
            if len(q) == 4
            else np.concatenate([turned, g[4:] + quaternions.quat2mat(g[:4]) @ q[4:]])
        )

    np.testing.assert_allclose(
        act(space.retract(q, d)), space.retract(act(q), d), rtol=0, atol=200 * EPS
    )
    q1 = space.retract(q, d)
    flipped = np.concatenate([-q1[:4], q1[4:]])
    np.testing.assert_allclose(
        space.local(q, flipped), space.local(q, q1), rtol=0, atol=16 * EPS * condition(space, q, d)
    )


# --- against other people's formulas -------------------------------------------------------------


def hat(w):
    return np.cross(w, np.eye(3), axisb=0, axisc=0)


def pose(g):
    return np.block(
        [[quaternions.quat2mat(g[:4]), g[4:, None]], [np.zeros((1, 3)), np.ones((1, 1))]]
    )


@many
@given(q=directions(4), p=directions(4), a=vectors(3, 10.0))
def test_quaternions_are_those_of_transforms3d(q, p, a):
    x, y, v = ca.SX.sym("x", 4), ca.SX.sym("y", 4), ca.SX.sym("v", 3)
    outputs = (
        quaternion.matrix(x),
        quaternion.rotate(x, v),
        quaternion.rotate_back(x, v),
        quaternion.multiply(x, y),
        quaternion.conjugate(x),
    )
    matrix, turned, back, product, inverse = (
        o.full().squeeze() for o in ca.Function("f", [x, y, v], outputs)(q, p, a)
    )
    expected = quaternions.quat2mat(q)
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=8 * EPS)
    np.testing.assert_allclose(turned, expected @ a, rtol=0, atol=100 * EPS)
    np.testing.assert_allclose(back, expected.T @ a, rtol=0, atol=100 * EPS)
    np.testing.assert_allclose(product, quaternions.qmult(q, p), rtol=0, atol=4 * EPS)
    np.testing.assert_array_equal(inverse, quaternions.qconjugate(q))


@many
@given(axis=directions(3), angle=st.floats(0, np.pi) | st.floats(-12, 0).map(lambda e: 10.0**e))
def test_exp_and_log_of_quaternions(axis, angle):
    """exp is transforms3d's for every angle up to pi, log its inverse up to the sign of the axis
    at pi, and of q and -q the same.
    """
    d, q = ca.SX.sym("d", 3), ca.SX.sym("q", 4)
    exp, log = (
        ca.Function("exp", [d], [quaternion.exp(d)]),
        ca.Function("log", [q], [quaternion.log(q)]),
    )
    value = exp(angle * axis).full()[:, 0]
    np.testing.assert_allclose(
        value, quaternions.axangle2quat(axis, angle, is_normalized=True), rtol=0, atol=4 * EPS
    )
    for sign in (1, -1):
        back = log(sign * value).full()[:, 0]
        if angle > np.pi - 1e-12 and back @ axis < 0:
            back = -back
        np.testing.assert_allclose(back, angle * axis, rtol=0, atol=16 * EPS)


@pytest.mark.parametrize("regime", ANGLES)
@many
@given(data=st.data())
def test_retractions_are_the_textbook_maps(regime, data):
    """Rotation matrices by Rodrigues and `(I - W/2)^{-1} (I + W/2)`, poses by the 4 x 4
    exponential and Cayley transform, directions by the rotation about q x t.
    """
    eye = np.eye(4)
    for name in ("SO3-exp", "SO3-cay"):
        d = data.draw(tangents(SPACES[name], regime))
        w = hat(d)
        expected = (
            axangles.axangle2mat(d, np.linalg.norm(d))
            if name == "SO3-exp"
            else np.linalg.solve(eye[:3, :3] - w / 2, eye[:3, :3] + w / 2)
        )
        actual = quaternions.quat2mat(SPACES[name].retract(SPACES[name].origin, d))
        np.testing.assert_allclose(
            actual,
            expected,
            rtol=0,
            atol=64 * EPS * (1 + np.linalg.norm(d) ** (name == "SO3-cay")),
        )
    for name in ("SE3-exp", "SE3-cay"):
        d = data.draw(tangents(SPACES[name], regime))
        x = np.block([[hat(d[:3]), d[3:, None]], [np.zeros((1, 4))]])
        expected = expm(x) if name == "SE3-exp" else np.linalg.solve(eye - x / 2, eye + x / 2)
        actual = pose(SPACES[name].retract(SPACES[name].origin, d))
        np.testing.assert_allclose(
            actual, expected, rtol=0, atol=128 * EPS * (1 + np.linalg.norm(d))
        )
    for name in SPHERES:
        q, d = data.draw(points(SPACES[name])), data.draw(tangents(SPACES[name], regime))
        t = frame(SPACES[name], q) @ d
        turn = SPACES["SO3-" + name[3:]].retract(np.array([1.0, 0, 0, 0]), np.cross(q, t))
        np.testing.assert_allclose(
            SPACES[name].retract(q, d),
            quaternions.quat2mat(turn) @ q,
            rtol=0,
            atol=64 * EPS * (1 + np.linalg.norm(d)),
        )


# --- directions: frame and transport -------------------------------------------------------------


@pytest.mark.parametrize("name", SPHERES)
@many
@given(data=st.data())
def test_the_frame_is_orthonormal_and_transport_a_rotation(name, data):
    """Transport carries tangent vectors to tangent vectors, keeps their lengths and angles, and
    transports back to where it came from.
    """
    space = SPACES[name]
    q0, q1 = data.draw(points(space)), data.draw(points(space))
    if data.draw(st.booleans()):
        q1 = space.retract(q0, data.draw(tangents(space, "near pi")))
    assume(angle_between(space, q0, q1) < NEAR_PI)
    b = frame(space, q0)
    np.testing.assert_allclose(
        np.column_stack([b, q0]).T @ np.column_stack([b, q0]), np.eye(3), rtol=0, atol=8 * EPS
    )
    assert np.linalg.det(np.column_stack([b, q0])) > 0 or q0[2] < 0
    tolerance = 32 * EPS / np.cos(angle_between(space, q0, q1) / 2)
    moved = np.column_stack([transport(space, q0, q1, w) for w in b.T])
    np.testing.assert_allclose(q1 @ moved, 0, rtol=0, atol=tolerance)
    np.testing.assert_allclose(moved.T @ moved, np.eye(2), rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        np.column_stack([transport(space, q1, q0, w) for w in moved.T]),
        b,
        rtol=0,
        atol=2 * tolerance,
    )


@pytest.mark.parametrize("gap", (1e-3, 1e-6, 1e-9, 1e-12, 0.0))
@pytest.mark.parametrize("name", SPHERES)
@many
@given(longitude=st.floats(-4, 4), data=st.data())
def test_nothing_jumps_at_the_equator(name, gap, longitude, data):
    """The frame changes sides at z = 0. What is stored does not: steps along, tangents to and
    transport of vectors of R^3 differ by the gap in z alone.
    """
    space = SPACES[name]
    above, below = (
        np.array(
            [np.cos(longitude) * np.cos(gap), np.sin(longitude) * np.cos(gap), s * np.sin(gap)]
        )
        for s in (1, -1)
    )
    other, w = data.draw(points(space)), data.draw(vectors(3, 2.0))
    assume(max(angle_between(space, above, other), angle_between(space, below, other)) < 2.5)
    tolerance = 40 * gap + 64 * EPS

    def views(q):
        b = frame(space, q)
        t = b @ (b.T @ w)
        to, back = (
            transport(space, q, other, t),
            transport(space, other, q, w - (w @ other) * other),
        )
        return np.concatenate([space.retract(q, b.T @ w), b @ space.local(q, other), to, back])

    np.testing.assert_allclose(views(above), views(below), rtol=0, atol=tolerance)


# --- tangents ------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", (0.0, 1e-8, 0.5, 2.5))
@every_configuration
def test_tangents_against_differences(name, angle):
    """`local_jacobians` and the segment's j0, j1: derivatives along trivialized variations
    `retract(q0, e)`, `retract(q1, e)`, e in R^nv.
    """
    space, rng = (
        SPACES[name],
        np.random.default_rng([7, int(10 * angle), CONFIGURATIONS.index(name)]),
    )
    for _ in range(4):
        q0, d = random_point(space, rng), rng.normal(size=space.nv)
        for f, part in cut(space, d, "nv"):
            n = {SO3: 3, S2: 2, SE3: 3, SE2: 1, Rn: 0}[type(f)]
            part[:n] *= radius(f, angle) / np.linalg.norm(part[:n]) if n else 1
            part[n:] *= min(angle, 1.0)
        q1, middle, w, j0, j1, l0, l1 = geometry(space, q0, d)
        np.testing.assert_allclose(
            q1, space.retract(q0, d), rtol=0, atol=8 * EPS * (1 + np.abs(q1).max())
        )

        def joined(a, b):
            _, middle, w, *_ = geometry(space, a, space.local(a, b))
            return np.concatenate([middle, w])

        cases = [
            (l0, lambda e: space.local(space.retract(q0, e), q1)),
            (l1, lambda e: space.local(q0, space.retract(q1, e))),
            (j0, lambda e: joined(space.retract(q0, e), q1)),
            (j1, lambda e: joined(q0, space.retract(q1, e))),
        ]
        for exact, f in cases:
            np.testing.assert_allclose(
                exact,
                jacobian(f, space.nv, 0.01),
                rtol=1e-10,
                atol=1e-10 * (1 + np.abs(exact).max()),
            )


@every_configuration
@many
@given(data=st.data())
def test_the_middle_is_the_middle_of_the_way_back(name, data):
    space = SPACES[name]
    q0, d = data.draw(points(space)), data.draw(tangents(space, "moderate"))
    q1, middle, *_ = geometry(space, q0, d)
    back = geometry(space, q1, space.local(q1, q0))[1]
    np.testing.assert_allclose(
        same_up_to_quaternion_sign(space, middle, back),
        middle,
        rtol=0,
        atol=16 * EPS * condition(space, q0, d),
    )
    if "SE2" not in name:
        for f, part in cut(space, middle, "nq"):
            assert not isinstance(f, (SO3, S2)) or abs(np.linalg.norm(part) - 1) <= 4 * EPS


def _smooth_maps(space):
    q, q1, d = ca.SX.sym("q", space.nq), ca.SX.sym("q1", space.nq), ca.SX.sym("d", space.nv)
    yield "retract", q, q1, d, space._retract(q, d), d
    yield "local", q, q1, d, space._local(q, q1), q1
    if not isinstance(space, PhaseSpace):
        s = space.step_geometry(q, d)
        parts = (s.q1, s.middle, s.w, s.j0, s.j1, *space.local_jacobians(q, d))
        yield "segment", q, q1, d, ca.vertcat(*(ca.vec(ca.densify(p)) for p in parts)), d


@every_space
def test_derivatives_at_zero(name):
    """First and second derivatives by CasADi at exactly d = 0, and at q1 = q: finite, and those
    that differences across zero see.
    """
    space, rng = SPACES[name], np.random.default_rng(3)
    for what, q, q1, d, value, about in _smooth_maps(space):
        first = ca.densify(ca.jacobian(value, about))
        second = ca.densify(ca.jacobian(ca.vec(first), about))
        f = ca.Function("f", [q, q1, d], [value, first, second])
        for start in (space.origin, random_point(space, rng), random_point(space, rng)):
            zero = np.zeros(space.nv)
            _, j, h = (o.full() for o in f(start, start, zero))
            assert np.isfinite(j).all() and np.isfinite(h).all(), what

            def at(e, output):
                arguments = (start, start + e, zero) if what == "local" else (start, start, e)
                return f(*arguments)[output].full().reshape(-1, order="F")

            n = about.shape[0]
            np.testing.assert_allclose(
                j,
                jacobian(lambda e: at(e, 0), n, 0.01),
                rtol=0,
                atol=1e-10 * (1 + np.abs(j).max()),
                err_msg=what,
            )
            np.testing.assert_allclose(
                h,
                jacobian(lambda e: at(e, 1), n, 0.01),
                rtol=0,
                atol=1e-10 * (1 + np.abs(h).max()),
                err_msg=what,
            )
