"""Splines: values and derivatives of SciPy's, in expressions, and in systems of all kinds."""

import casadi as ca
import numpy as np
import pytest
from differences import hessian, jacobian
from refusals import refusal
from scipy import interpolate
from scipy.interpolate import BSpline, CubicSpline, PPoly, make_interp_spline

import nh_control as nh
from nh_control.geometry.homogeneous import TranslationAction
from nh_control.integrators import midpoint
from nh_control.mechanics.outputs import Output

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(-2, 2, 9))
Y = RNG.normal(size=9)
INSIDE = np.linspace(X[0], X[-1], 201)
FREE = np.full(9, np.nan)


def at(place, value):
    """Data that are free but at one point."""
    return np.where(np.arange(9) == place % 9, value, FREE)


def taylor(curve, x, x0):
    """The parabola of a SciPy curve at x0."""
    return curve(x0) + curve(x0, 1) * (x - x0) + curve(x0, 2) * (x - x0) ** 2 / 2


CURVES = {
    "natural": (nh.Spline(X, Y), CubicSpline(X, Y, bc_type="natural")),
    "clamped": (
        nh.Spline(X, Y, slopes=np.r_[1.3, FREE[2:], -0.4]),
        CubicSpline(X, Y, bc_type=((1, 1.3), (1, -0.4))),
    ),
    "end curvature": (
        nh.Spline(X, Y, slopes=at(0, 0.3), curvatures=at(-1, 2.0)),
        CubicSpline(X, Y, bc_type=((1, 0.3), (2, 2.0))),
    ),
    "not-a-knot": (nh.Spline.of(CubicSpline(X, Y)), CubicSpline(X, Y)),
    "quintic": (nh.Spline.of(make_interp_spline(X, Y, k=5)), make_interp_spline(X, Y, k=5)),
    "quadratic": (nh.Spline.of(make_interp_spline(X, Y, k=2)), make_interp_spline(X, Y, k=2)),
    "akima": (
        nh.Spline.of(interpolate.Akima1DInterpolator(X, Y)),
        interpolate.Akima1DInterpolator(X, Y),
    ),
    "bernstein": (
        nh.Spline.of(interpolate.BPoly.from_derivatives(X, np.stack([Y, -Y, 2 * Y], 1))),
        interpolate.BPoly.from_derivatives(X, np.stack([Y, -Y, 2 * Y], 1)),
    ),
    "all derivatives": (
        nh.Spline(X, Y, slopes=-Y, curvatures=2 * Y),
        interpolate.BPoly.from_derivatives(X, np.stack([Y, -Y, 2 * Y], 1)),
    ),
}


@pytest.mark.parametrize("name", CURVES)
def test_values_and_derivatives_are_those_of_scipy(name):
    """The third derivative jumps at the knots, which are left out."""
    spline, curve = CURVES[name]
    x = np.setdiff1d(INSIDE, X)
    for order in range(3):
        size = np.abs(curve(x, order)).max()
        found = spline.derivative(order)(x)
        np.testing.assert_allclose(found, curve(x, order), rtol=0, atol=1e-11 * size)


@pytest.mark.parametrize("name", CURVES)
def test_expressions_have_the_values_and_exact_derivatives(name):
    """Of an SX and of an MX symbol, at knots, between them and beyond the ends."""
    spline, _ = CURVES[name]
    points = np.concatenate([INSIDE[::9], X, X[[0, -1]] + [-1.5, 1.5]])
    for kind in (ca.SX, ca.MX):
        x = kind.sym("x")
        y = spline(x)
        slope = ca.jacobian(y, x)
        f = ca.Function("f", [x], [y, slope, ca.jacobian(slope, x)])
        for order, values in enumerate(f(points[None])):
            wanted = spline.derivative(order)(points)
            np.testing.assert_allclose(
                np.asarray(values)[0], wanted, rtol=0, atol=1e-13 * np.abs(wanted).max()
            )


@pytest.mark.parametrize("name", ["natural", "quintic"])
def test_beyond_its_ends_a_spline_is_a_parabola(name):
    spline, curve = CURVES[name]
    for end, side in ((X[0], -1), (X[-1], 1)):
        x = end + side * np.array([0.0, 1e-3, 0.7, 10.0])
        np.testing.assert_allclose(spline(x), taylor(curve, x, end), rtol=1e-11, atol=1e-11)


def test_slopes_and_curvatures_at_single_points_are_kept():
    """With two continuous derivatives, which cubic polynomials do not have then."""
    slopes, curvatures = at(4, 0.3), at(6, -7.0)
    slopes[0] = curvatures[0] = 1.0
    spline = nh.Spline(X, Y, slopes, curvatures)
    np.testing.assert_allclose(spline(X), Y, rtol=0, atol=1e-13)
    found = spline.derivative()(X[[0, 4]]), spline.derivative(2)(X[[0, 6, 8]])
    np.testing.assert_allclose(np.concatenate(found), [1.0, 0.3, 1.0, -7.0, 0.0], atol=1e-11)
    for order in range(3):
        curve = spline.derivative(order)
        before, after = curve(X - 1e-12), curve(X)
        np.testing.assert_allclose(before, after, rtol=0, atol=1e-8 * np.abs(curve(INSIDE)).max())


def test_the_antiderivative_begins_at_the_first_knot():
    spline, curve = CURVES["not-a-knot"]
    integral = spline.antiderivative()
    np.testing.assert_allclose(
        integral(INSIDE), [curve.integrate(X[0], x) for x in INSIDE], rtol=0, atol=1e-13
    )
    outside = np.array([X[0] - 2, X[0], X[-1] + 2])
    np.testing.assert_allclose(integral.derivative()(outside), spline(outside), rtol=1e-15)
    assert integral(X[0]) == 0.0


def test_what_is_no_smooth_function_is_refused(snapshot):
    wrong = (
        lambda: nh.Spline([0, 1, 1], [0, 1, 2]),
        lambda: nh.Spline([0.0], [1.0]),
        lambda: nh.Spline([0, 1], [0, 1, 2]),
        lambda: nh.Spline([0, 1], [0, np.nan]),
        lambda: nh.Spline.of(CubicSpline(X, np.stack([Y, Y], 1))),
        lambda: nh.Spline.of(make_interp_spline(X, Y, k=1)),
        lambda: nh.Spline.of(PPoly([[1.0, 2.0]], [0.0, 1.0, 2.0])),
        lambda: nh.Spline.of(BSpline([0, 0, 1, 2, 2], [0, 1, 0], 1)),
    )
    assert [refusal(make) for make in wrong] == snapshot


ROAD = nh.Spline(np.linspace(-3, 3, 7), [0.0, 0.3, -0.2, 0.5, 0.1, -0.4, 0.0])
PUSH = nh.Spline([-3.0, 0.0, 3.0], [-2.0, 0.0, 1.0])


def bead():
    """A bead on a wire along a spline, pushed by a spline of its speed: the constraint, the force
    and the potential are made of splines.
    """
    return nh.System(
        name="bead",
        space=nh.Rn("x", "z"),
        inputs=("force",),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2 - 9.81 * q[1] - PUSH(q[0]) ** 2,
        force=lambda q, v, u: ca.vertcat(u[0] - PUSH(v[0]), 0),
        holonomic_constraint=lambda q: q[1] - ROAD(q[0]),
    )


def test_steps_and_derivatives_of_a_system_of_splines():
    """Step against Newton's equations by hand, A, B and the Hessian against differences."""
    dsys, h = midpoint(bead(), 0.05), 0.05
    x = dsys.state([0.4, float(ROAD(0.4))], [1.1, 1.1 * float(ROAD.derivative()(0.4))])
    u = np.array([0.7])
    q0, p0 = np.split(x, 2)
    x1 = dsys.step(x, u)
    q1, p1 = np.split(x1, 2)
    middle, speed = (q0 + q1) / 2, (q1 - q0) / h
    force = np.array([u[0] - PUSH(speed[0]), -9.81])
    force[0] -= 2 * PUSH(middle[0]) * PUSH.derivative()(middle[0])
    normal = np.array([-ROAD.derivative()(q0[0]), 1.0])
    lam = (speed - p0 - h / 2 * force) / normal
    assert lam[0] == pytest.approx(lam[1], abs=1e-13)
    assert q1[1] == pytest.approx(float(ROAD(q1[0])), abs=1e-14)
    np.testing.assert_allclose(p1, speed + h / 2 * force, rtol=0, atol=1e-13)
    lin = dsys.linearize(x, u)
    n = dsys.ndx

    def moved(w):
        return dsys.step(x + w[:n], u + w[n:]) - x1

    found = jacobian(moved, n + 1, 1e-3)
    np.testing.assert_allclose(np.hstack([lin.A, lin.B]), found, rtol=0, atol=1e-9)
    weight = np.array([0.3, -1.0, 0.6, 0.2])
    found = hessian(lambda w: weight @ moved(w), n + 1, 5e-3)
    np.testing.assert_allclose(dsys.hessian(x, u, weight), found, rtol=0, atol=1e-6)


def with_table(kind, field):
    """A bead whose function of this name calls a table of CasADi."""
    table = ca.interpolant("table", kind, [X.tolist()], Y.tolist())
    functions = {
        "lagrangian": lambda q, v: ca.sumsqr(v) / 2 - table(q[0]),
        "force": lambda q, v, u: ca.vertcat(table(q[0]), 0),
        "holonomic_constraint": lambda q: table(q[0]) - q[1],
        "outputs": (Output("height", lambda q, v, u: table(q[0])),),
    }
    own = {"lagrangian": lambda q, v: ca.sumsqr(v) / 2, field: functions[field]}
    return nh.System(name="bead", space=nh.Rn("x", "z"), **own)


def test_a_table_of_casadi_is_refused_with_the_remedy(snapshot):
    table = ca.interpolant("table", "bspline", [X.tolist()], Y.tolist())
    field = TranslationAction("x"), lambda t, x: table(x)
    wrong = (
        *(lambda f=f: with_table("bspline", f) for f in ("force", "holonomic_constraint")),
        *(lambda k=k: with_table(k, "lagrangian") for k in ("bspline", "linear")),
        lambda: with_table("linear", "outputs"),
        lambda: nh.solve_ivp(field, (0, 1), [0.1]),
    )
    assert [refusal(make) for make in wrong] == snapshot
