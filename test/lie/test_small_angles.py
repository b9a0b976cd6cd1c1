"""Every closed form of the groups, and its first derivative, from angles of 1e-12 to pi - 1e-6
against mpmath with 80 digits, to 1e-13.

The references are textbook formulas and differences of them, whose cancellation the digits pay.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import bernoulli, comb, factorial

from nh_control.geometry import even_functions, quaternion, se2
from nh_control.geometry.cotangent import CotangentGroup
from nh_control.geometry.groups import SE2Group, SE3Group, SO3Group

TOLERANCE = 1e-13
mp.dps = 80
INNER, OUTER = mpf(10) ** -28, mpf(10) ** -13
"""Steps of the differences, one inside the other: errors of 1e-56 and, of those over the outer
step, 1e-26."""
TOP = np.pi - 1e-6
SWITCHES = (0.07, 0.25, 0.5, 1.0, 2.0)
"""Where closed forms change to series; quaternions have half the angle."""
ANGLES = [
    *np.geomspace(1e-12, 1.0, 13),
    *(a * side for a in SWITCHES for side in (1 - 1e-9, 1 + 1e-9)),
    *(0.3, 0.6, 1.5, 2.5, 3.0, TOP),
]
FEW = [1e-12, 1e-5, 0.2499, 0.51, 1.001, 2.1, TOP]


# --- the even functions of an angle --------------------------------------------------------------


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


# --- references ----------------------------------------------------------------------------------


def hat(w):
    return mp.matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def turning(w):
    """exp of a rotation vector, and V of the translation that goes with it [celledoni2021 (8)]."""
    a, h = mp.sqrt(sum(x * x for x in w)), hat(w)
    if not a:
        return mp.eye(3), mp.eye(3)
    versine, defect = (1 - mp.cos(a)) / a**2, (a - mp.sin(a)) / a**3
    return mp.eye(3) + mp.sin(a) / a * h + versine * h * h, mp.eye(
        3
    ) + versine * h + defect * h * h


def pose(rotation, translation):
    g = mp.eye(4)
    g[:3, :3], g[:3, 3] = rotation, translation
    return g


def exp(v):
    rotation, stretch = turning(v[:3])
    return pose(rotation, stretch * mp.matrix(v[3:]))


def cay(v):
    x = mp.zeros(4)
    x[:3, :3], x[:3, 3] = hat(v[:3]), mp.matrix(v[3:])
    return mp.inverse(mp.eye(4) - x / 2) * (mp.eye(4) + x / 2)


def second_of_motions(v):
    return pose(turning(v[:3])[0], mp.matrix(v[3:]))


def second_of_rotations(v):
    units = [[v[i] * (i == k) for k in range(3)] for i in range(3)]
    return pose(turning(units[0])[0] * turning(units[1])[0] * turning(units[2])[0], mp.zeros(3, 1))


def second_of_the_plane(v):
    rotation = turning(v[:3])[0]
    return pose(rotation, rotation * mp.matrix(v[3:]))


SPATIAL = {"exp": exp, "cay": cay}
PLACES = {SO3Group: (0, 1, 2), SE2Group: (2, 3, 4), SE3Group: range(6)}
"""Where the algebra elements of a group stand among those of SE(3)."""
GROUPS = {
    **{f"{c.__name__}-{k}": (c(k), c, SPATIAL[k]) for c in PLACES for k in SPATIAL},
    "SO3Group-second": (SO3Group("second"), SO3Group, second_of_rotations),
    "SE2Group-second": (SE2Group("second"), SE2Group, second_of_the_plane),
    "SE3Group-second": (SE3Group("second"), SE3Group, second_of_motions),
    "CotangentGroup-SO3Group-exp": (CotangentGroup(SO3Group()), SE3Group, exp),
}


def of_motions(kind, u):
    """An algebra element among those of SE(3)."""
    v = [mpf(0)] * 6
    for place, number in zip(PLACES[kind], u):
        v[place] = number
    return v


def coordinates(kind, u, tau):
    """tau(u) as a matrix."""
    return tau(of_motions(kind, u))


def vee(x):
    return [x[2, 1], x[0, 2], x[1, 0], x[0, 3], x[1, 3], x[2, 3]]


def central(f, u, d, step):
    """Derivative of a matrix function at u along d."""
    ahead, behind = ([x + s * step * y for x, y in zip(u, d)] for s in (1, -1))
    return (f(ahead) - f(behind)) / (2 * step)


def dtau(kind, u, tau):
    """Right-trivialized derivative of tau at u, (dim, dim)."""
    n = len(u)
    f = lambda w: coordinates(kind, w, tau)
    back, columns = mp.inverse(f(u)), []
    for i in range(n):
        rate = central(f, u, [mpf(i == k) for k in range(n)], INNER) * back
        columns.append([vee(rate)[place] for place in PLACES[kind]])
    return mp.matrix(columns).T


def dtau_inverse(kind, u, v, tau):
    return mp.lu_solve(dtau(kind, u, tau), mp.matrix(v))


# --- closed forms --------------------------------------------------------------------------------


def direction(n, seed):
    d = np.random.default_rng(seed).normal(size=n)
    return d / np.linalg.norm(d)


def at_angle(kind, n, angle):
    """Coordinates (n) whose rotation vector has the length `angle`, translations of order one;
    second kind's are off their singularity for all angles.
    """
    u = direction(n, 1)
    if kind is SE2Group:
        u[0] = 1.0
        return u * [angle, 1, 1]
    u[:3] = np.array([0.6, 0.48, -0.64]) * angle
    return u


@cache
def functions(name):
    """The matrix of tau, dtau^{-1}_u(v) and dexp_u(v), and their derivatives along d."""
    group, kind, _ = GROUPS[name]
    u, v, d = (ca.SX.sym(s, group.dim) for s in "uvd")
    outputs = [matrix_of(group, kind, group.tau(u)), group.dtau_inverse(u, v), group.dexp(u, v)]
    return ca.Function("f", [u, v, d], [*outputs, *(ca.jtimes(o, u, d) for o in outputs)])


def matrix_of(group, kind, g):
    """Rotation and translation of a group element in a column, (12)."""
    if kind is SE2Group:
        c, s = ca.cos(g[0]), ca.sin(g[0])
        rotation = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
        return ca.vertcat(ca.vec(rotation), g[1:], 0)
    translation = g[4:] if g.shape[0] > 4 else ca.SX(3, 1)
    return ca.vertcat(ca.vec(quaternion.matrix(g[:4])), translation)


def column(g):
    return mp.matrix([g[i, k] for k in range(4) for i in range(3)])


def agree(found, wanted, what):
    found = np.asarray(found)[:, 0]
    size = max(1, *(abs(x) for x in wanted))
    off = [abs(float(f) - w) for f, w in zip(found, wanted, strict=True)]
    assert all(o <= TOLERANCE * size for o in off), (*what, float(max(off)))


def check(name, angles):
    group, kind, tau = GROUPS[name]
    v, d = direction(group.dim, 2), direction(group.dim, 3)
    for angle in angles:
        u = at_angle(kind, group.dim, angle)
        start, value, along = ([mpf(float(x)) for x in a] for a in (u, v, d))
        references = [
            lambda w: column(coordinates(kind, w, tau)),
            lambda w: dtau_inverse(kind, w, value, tau),
        ]
        found = functions(name)(u, v, d)
        if name.endswith("exp"):
            references.append(lambda w: dtau(kind, w, tau) * mp.matrix(value))
        for i, reference in enumerate(references):
            agree(found[i], reference(start), (name, angle, i))
            agree(found[i + 3], central(reference, start, along, OUTER), (name, angle, i, "slope"))


@pytest.mark.parametrize("name", ("SO3Group-exp", "SE2Group-exp", "SE3Group-exp"))
def test_closed_forms(name):
    """tau, dtau^{-1} and dexp, and their derivatives by the coordinates."""
    check(name, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_closed_forms_at_many_angles(name):
    check(name, ANGLES)


@pytest.mark.parametrize(
    "angle",
    [0.26, *(pytest.param(a, marks=pytest.mark.slow) for a in (1e-12, 1e-3, 0.24, 1.01, 2, TOP))],
)
def test_the_cotangent_group_of_motions(angle):
    """`dexp = phi(ad)`, phi(z) = (e^z - 1) / z, from the exponential of [ad, 1; 0, 0]."""
    group = CotangentGroup(SE3Group())
    u, v = np.append(at_angle(SE3Group, 6, angle), direction(6, 4)), direction(12, 5)
    ad = ca.SX.sym("u", 12), ca.SX.sym("v", 12)
    bracket = ca.jacobian(group.bracket(*ad), ad[1])
    matrix = np.asarray(ca.Function("ad", [ad[0]], [ca.densify(bracket)])(u))
    big = mp.zeros(24)
    for i in range(12):
        big[i, 12 + i] = mpf(1)
        for k in range(12):
            big[i, k] = mpf(matrix[i, k])
    with mp.workdps(40):
        phi = mp.expm(big)[:12, 12:]
        wanted = mp.lu_solve(phi, mp.matrix([mpf(x) for x in v]))
    found = ca.Function("f", [*ad], [group.dtau_inverse(*ad), group.dexp(*ad)])(u, v)
    agree(found[0], wanted, (angle, "inverse"))
    agree(found[1], phi * mp.matrix([mpf(x) for x in v]), (angle, "dexp"))


@pytest.mark.parametrize("name", ("quaternion", "se2"))
def test_logarithms(name):
    """log is the inverse of exp, and their derivatives are those of inverses."""
    space = {"quaternion": quaternion, "se2": se2}[name]
    u = ca.SX.sym("u", 3)
    back = space.log(space.exp(u))
    f = ca.Function("f", [u], [back, ca.jacobian(back, u)])
    for angle in ANGLES:
        at = at_angle(SE2Group if name == "se2" else SO3Group, 3, angle)
        found, slope = (np.asarray(o) for o in f(at))
        np.testing.assert_allclose(found[:, 0], at, rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(slope, np.eye(3), rtol=0, atol=TOLERANCE, err_msg=str(angle))
