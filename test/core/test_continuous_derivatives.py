"""Continuous equations of motion: A, B, Hessians and derivatives of multipliers by differences,
and those with prescribed coordinates.
"""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import casadi as ca
import control
import numpy as np
import pytest
from differences import jacobian, second_derivative
from refusals import refusal
from scipy.integrate import solve_ivp

sys.path.insert(0, str(Path(__file__).parents[1] / "constraints"))
import combined  # noqa: E402
import linkages  # noqa: E402

import nh_control as nh  # noqa: E402
from nh_control.integrators import midpoint, nonholonomic_midpoint  # noqa: E402
from nh_control.mechanics.actuators import with_lag  # noqa: E402
from nh_control.mechanics.continuous import ContinuousSystem  # noqa: E402
from nh_control.mechanics.lie_equations import LieEquations  # noqa: E402
from nh_control.mechanics.reduced import ReducedEquations  # noqa: E402
from nh_control.systems import pendulum, snakeboard  # noqa: E402

G = 9.81


def bob_on_a_cart():
    """A bob on a rod, a direction in space, below a cart whose position is prescribed."""
    return nh.System(
        name="bob_on_a_cart",
        space=nh.Product(nh.Rn("x"), nh.S2("d_"), nh.Rn("belt")),
        lagrangian=lambda q, v: (
            v[0] ** 2 / 2
            + 0.15 * ca.sumsqr(ca.vertcat(v[0], v[4], 0) + 0.7 * v[1:4])
            - 0.21 * G * q[3]
        ),
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u[0], ca.SX(4, 1)),
        prescribed=("belt",),
    )


def skate_on_a_belt():
    """A skate that a belt, which moves as prescribed, pulls aside."""
    return nh.System(
        name="skate",
        space=nh.Product(nh.SE2(), nh.Rn("belt")),
        lagrangian=lambda q, v: (0.3 * v[0] ** 2 + ca.sumsqr(v[1:3]) + 0.4 * v[0] * v[2]) / 2,
        inputs=("push", "turn"),
        force=lambda q, v, u: ca.vertcat(u[1], u[0] - 0.2 * v[1], 0, 0),
        velocity_constraint=lambda q: ca.horzcat(0.2, 0, 1, -0.4 * ca.cos(q[0])),
        prescribed=("belt",),
    )


def direction(*v):
    return np.array(v) / np.linalg.norm(v)


def swinging(n, d, *v):
    """A velocity (v, w x d, the rest) of a system with a direction d at index n."""
    return np.array([*v[:n], *np.cross([0.5, -1.0, 0.8], d), *v[n:]])


D = direction(0.6, 0.48, -0.64)
CASES = {
    "snakeboard": lambda: (
        snakeboard(),
        [0.3, 0.2, 0.1, 0.5, -0.4],
        [0.3, 0.1, 0.2, 0.4, 0.2],
        [0.1, 0.2],
    ),
    "lamp": lambda: (
        linkages.lamp(),
        [1, 0, 0, 0, 0, 0, -0.3],
        [0.4, -0.7, 0.3, 0.21, 0.12, 0.0],
        [],
    ),
    "sling": lambda: (
        linkages.sling(),
        [0.3, -0.4, 0.0, 0.0, 0.0],
        [0.4, 0.3, 0.0, 0.0, 0.0],
        [0.7, -0.4, 0.2],
    ),
    "bob": lambda: (bob_on_a_cart(), [0.1, *D, 0.2], swinging(1, D, 0.3, 0.4), [0.5, -0.8]),
    "skate": lambda: (
        skate_on_a_belt(),
        [0.3, 0.1, 0.2, 0.4],
        [0.6, 1.1, 0, 0.5],
        [0.3, 0.1, 0.9],
    ),
    **{
        name: lambda case=case: (case.system, case.q, case.v, case.u)
        for name, case in combined.CASES.items()
    },
}
SLOW = ("wheel_with_arm", "ball_on_turntable", "bob", "lamp")


def cases(names=CASES):
    return [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in names]


@cache
def continuous(name):
    """The equations of a case, with a configuration, an admissible velocity and inputs."""
    system, q, v, u = (
        part if i == 0 else np.array(part, float) for i, part in enumerate(CASES[name]())
    )
    equations = ContinuousSystem(system)
    return equations, q, equations.velocity(equations.state(q, v)), u


def rate_between(equations, q, v, u):
    """g(dx, du): the rate of `local(x, x_e)` of two motions, by differences of their paths, from
    accelerations and the geometry alone.
    """
    space, states = equations.system.space, equations.state_space
    x, n, nq = equations.state(q, v), states.nv, space.nq

    def path(x, u):
        q, v = x[:nq], equations.velocity(x)
        frame = np.asarray(ca.DM(space.frame(ca.SX(q))))
        y, a = frame.T @ v, equations.acceleration(q, v, u)
        return lambda t: equations.state(space.retract(q, t * y), v + t * a)

    base = path(x, u)

    def g(w):
        moved = path(states.retract(x, w[:n]), u + w[n:])
        return jacobian(lambda t: states.local(base(t[0]), moved(t[0])), 1, 2e-3)[:, 0]

    return g, n


@pytest.mark.parametrize("name", cases())
def test_first_and_second_derivatives_are_those_of_differences(name):
    """Of rates and multipliers; A, B and the Hessian along random directions."""
    equations, q, v, u = continuous(name)
    g, n = rate_between(equations, q, v, u)
    lin, states, rng = (
        equations.linearize(q, v, u),
        equations.state_space,
        np.random.default_rng(0),
    )
    x, nq, size = equations.state(q, v), len(q), n + len(u)

    def multipliers(w):
        moved = states.retract(x, w[:n])
        return equations.multipliers(moved[:nq], equations.velocity(moved), u + w[n:])

    directions = rng.normal(size=(size, 3))
    found = jacobian(lambda s: g(directions @ s), 3, 1e-2)
    got = np.hstack([lin.A, lin.B]) @ directions
    np.testing.assert_allclose(got, found, rtol=0, atol=1e-8 * np.abs(found).max())
    again = equations.multipliers(q, v, u)  # by other generated functions
    np.testing.assert_allclose(lin.multipliers, again, rtol=1e-14, atol=1e-14)
    found = jacobian(multipliers, size, 1e-2)
    got = np.hstack([lin.multipliers_x, lin.multipliers_u])
    largest = np.abs(found).max(initial=0)
    np.testing.assert_allclose(got, found, rtol=0, atol=1e-9 * (1 + largest))
    lam, nu = rng.normal(size=n), rng.normal(size=len(again))
    hessian = equations.hessian(q, v, u, lam, nu)
    np.testing.assert_array_equal(hessian, hessian.T)
    for d in rng.normal(size=(2, size)):
        d /= np.linalg.norm(d)
        found = second_derivative(lambda s: lam @ g(s * d) + nu @ multipliers(s * d), 2e-2)
        assert d @ hessian @ d == pytest.approx(found, rel=1e-5, abs=1e-5)


def test_a_pendulum_has_the_matrices_of_the_textbook():
    """With a system of python-control that has their names."""
    lin = ContinuousSystem(pendulum()).linearize([0.0], [0.0], [0.0])
    np.testing.assert_allclose(lin.A, [[0, 1], [-9.8, 0]], rtol=0, atol=1e-14)
    np.testing.assert_allclose(lin.B, [[0], [1]], rtol=0, atol=1e-14)
    A, B = lin
    assert A is lin.A and B is lin.B
    ss = lin.to_ss()
    assert ss.isctime(strict=True) and ss.state_labels == ["theta", "theta_dot"]
    assert ss.input_labels == ["torque"]
    np.testing.assert_allclose(control.poles(ss).imag, [3.1304951685, -3.1304951685])


def test_first_order_coordinates_have_their_rates_in_A():
    """Against differences of the reduced equations."""
    system = with_lag(pendulum(), {"torque": 0.05})
    equations, reduced = ContinuousSystem(system), ReducedEquations(system)
    q, v, u = np.array([0.3, 0.7]), np.array([0.4, 0.0]), np.array([0.9])
    lin, w = equations.linearize(q, v, u), reduced.start(q, v)

    def rates(d):
        return reduced.rates(u + d[3:])(0.0, w + d[:3]).copy()

    np.testing.assert_allclose(np.hstack([*lin]), jacobian(rates, 4, 1e-2), rtol=0, atol=1e-10)
    lam = np.array([0.4, -1.0, 0.3])
    found = second_derivative(lambda s: lam @ rates(s * np.ones(4)), 1e-2)
    assert equations.hessian(q, v, u, lam).sum() == pytest.approx(found, abs=1e-7)


PRESCRIBED = ["sling", "skate", "bob"]


def with_a_push(system):
    """The system with its prescribed coordinates free, of a mass of their own, under forces."""
    n = len(system.prescribed)

    def force(q, v, u):
        own = system.generalized_force(q, v, u[: system.nu])
        return own + ca.vertcat(ca.SX(system.space.nw - n, 1), u[system.nu :])

    return replace(
        system,
        lagrangian=lambda q, v: system.lagrangian(q, v) + ca.sumsqr(v[-n:]),
        inputs=(*system.inputs, *(f"push_{name}" for name in system.prescribed)),
        force=force,
        prescribed=(),
    )


@pytest.mark.parametrize("name", cases(PRESCRIBED))
def test_prescribed_accelerations_are_those_that_forces_would_give(name):
    equations, q, v, u = continuous(name)
    system, n = equations.system, len(equations.system.prescribed)
    assert equations.inputs[-n:] == tuple(f"{c}_ddot" for c in system.prescribed)
    free = ContinuousSystem(with_a_push(CASES[name]()[0]))
    start, wanted = np.concatenate([u[: system.nu], np.zeros(n)]), u[system.nu :]
    without = free.acceleration(q, v, start)
    by_push = np.stack(
        [free.acceleration(q, v, start + e) - without for e in np.eye(len(start))[-n:]], axis=1
    )
    push = np.linalg.solve(by_push[-n:], wanted - without[-n:])
    found = equations.acceleration(q, v, u)
    np.testing.assert_array_equal(found[-n:], wanted)
    np.testing.assert_allclose(found, without + by_push @ push, rtol=0, atol=1e-12 * 50)
    np.testing.assert_allclose(
        equations.multipliers(q, v, u),
        free.multipliers(q, v, start + np.r_[np.zeros(system.nu), push]),
        rtol=0,
        atol=1e-11,
    )


@pytest.mark.parametrize("name", cases(PRESCRIBED))
def test_all_forms_of_the_equations_have_the_prescribed_accelerations(name):
    """Reduced equations, and those of Lie group methods, whose states are of discrete systems."""
    equations, q, v, u = continuous(name)
    system, e = equations.system, 1e-4
    acceleration = equations.acceleration(q, v, u)
    reduced = ReducedEquations(system)
    w, rates = reduced.start(q, v), reduced.rates(u)
    after, before = (reduced.phase(w + s * e * rates(0.0, w)) for s in (1, -1))
    np.testing.assert_allclose(
        (after[1] - before[1]) / (2 * e),
        acceleration,
        rtol=0,
        atol=1e-6 * np.abs(acceleration).max(),
    )
    dsys = nonholonomic_midpoint(system, 0.1)
    x, lie = dsys.measured_state(q, v), LieEquations(system)
    slope = np.asarray(ca.DM(lie.action.generator(ca.SX(x)) @ lie.field(x, u, [])))[:, 0]
    y = np.asarray(ca.DM(system.space.frame(ca.SX(q)))).T @ v
    ends = [
        dsys.measured_state(system.space.retract(q, s * e * y), v + s * e * acceleration)
        for s in (1, -1)
    ]
    found = (ends[0] - ends[1]) / (2 * e)
    np.testing.assert_allclose(slope, found, rtol=0, atol=1e-6 * np.abs(acceleration).max())


def test_a_hand_swings_a_sling_along_a_function_of_time():
    """Which enters by its second derivative; in an adaptive run as in SciPy's."""
    system, k = linkages.sling(), 5.0

    def acceleration(t, sin):
        return [-0.1 * k**2 * sin(k * t), 0.1 + 0 * t, 0.12 * t]

    dsys, reduced = midpoint(system, 0.1), ReducedEquations(system)
    x0 = dsys.state([0.3, -0.4, 0, 0, 0], [0.7, 0.15, 0.1 * k, 0, 0])
    options = dict(rtol=1e-11, atol=1e-12)
    found = nh.solve_ivp(system, (0, 0.6), x0, lambda t, x: acceleration(t, ca.sin), **options)
    rates = reduced.rates(lambda t: acceleration(t, np.sin))
    start = reduced.start(dsys.configuration(x0), dsys.velocity(x0))
    again = solve_ivp(rates, (0, 0.6), start, "DOP853", **options)
    q, v = reduced.phase(again.y[:, -1])
    np.testing.assert_allclose(dsys.configuration(found.y[:, -1]), q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(dsys.velocity(found.y[:, -1]), v, rtol=0, atol=1e-9)
    hand = [0.1 * np.sin(0.6 * k), 0.05 * 0.6**2, 0.02 * 0.6**3]
    np.testing.assert_allclose(q[2:], hand, rtol=0, atol=1e-10)


def test_impulses_in_the_momentum_of_a_start_do_not_change_an_adaptive_run():
    """States of discrete systems have them, along the constraints at their own configuration."""
    system = linkages.rod()
    dsys = midpoint(system, 0.1)
    x = dsys.with_constraint_impulses(dsys.state([0.7, 0.0], [0.0, 1.0]), [0.0])
    pushed = dsys.with_constraint_impulses(x, [0.4])
    assert np.abs(pushed - x).max() > 0.1
    ends = [nh.solve_ivp(system, (0, 1), start, rtol=1e-10).y[:, -1] for start in (x, pushed)]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-12)


def test_what_does_not_fit_is_refused(snapshot):
    equations = ContinuousSystem(pendulum())
    calls = (
        lambda c: c.linearize([0.3], [0.4], []),
        lambda c: c.linearize([0.3, 1.0], [0.4], [0.0]),
        lambda c: c.acceleration([0.3], [np.nan], [0.0]),
        lambda c: c.hessian([0.3], [0.4], [0.0], [1.0]),
    )
    assert [refusal(lambda: call(equations)) for call in calls] == snapshot
