"""The reduction that follows from a Lagrangian, constraints and a shape: the connections, locked
inertias and momentum equations that are known by hand, the continuous motion, and what is refused.
"""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from differences import derivative
from refusals import refusal
from symmetric_systems import SYSTEMS, particle

from nh_control import systems
from nh_control.geometry.spaces import SE2, Rn
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.reduction import Reduction
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System

sin, cos, tan = np.sin, np.cos, np.tan


def racer(q, p):
    """Connection and locked inertia: `N + s I^{-1} s . (M_gr - M_gg N)` along the direction s."""
    c = p.d1 * cos(q[0]) + p.d2
    spin, turn = p.I1 + p.I2, p.d2 / c
    inertia = spin * sin(q[0]) ** 2 + p.m * c**2
    along = sin(q[0]) * (p.I2 - spin * turn) / inertia
    return [[turn + sin(q[0]) * along], [c * along], [0]], [[inertia]]


def ball(q, p):
    w, x, y, z = q[:4]
    first = [1 - 2 * (y**2 + z**2), 2 * (x * y - w * z), 2 * (x * z + w * y)]
    second = [2 * (x * y + w * z), 1 - 2 * (x**2 + z**2), 2 * (y * z - w * x)]
    return -p.r * np.array([second, np.negative(first)]), np.zeros((0, 0))


def board(q, p):
    k, s, c = p.I / (p.m * p.l**2), sin(q[1]), cos(q[1])
    return [[k * s**2, 0], [-k * p.l * s * c, 0], [0, 0]], [[p.m * p.l**2]]


def drive(q, p):
    return [[p.r / 2 / p.b, -p.r / 2 / p.b], [-p.r / 2, -p.r / 2], [0, 0]], np.zeros((0, 0))


HAND = {
    "car": lambda q, p: (
        [[-p.r * tan(q[1]) / p.l, 0], [-p.r, 0], [0, 0]], np.zeros((0, 0)),
    ),
    "chaplygin_sleigh": lambda q, p: (np.zeros((3, 0)), np.diag([p.I + p.m * p.a**2, p.m])),
    "chaplygin_sleigh_contact": lambda q, p: (np.zeros((3, 0)), np.eye(2)),
    "differential_drive": drive,
    "roller_racer": racer,
    "rolling_ball": ball,
    "rolling_disk": lambda q, p: ([[0], [-p.r], [0]], [[p.J_theta]]),
    "snakeboard": board,
    "suslov": lambda q, p: (np.zeros((3, 0)), np.diag([p.I11, p.I22])),
}  # fmt: skip
"""Connection and locked inertia, in the bases of the systems' own momenta."""


@cache
def reduced(name):
    system = (SYSTEMS.get(name) or getattr(systems, name))()
    return system, Reduction(system)


def point(name, seed=0):
    """A reduction, and a configuration, a velocity and inputs of order one."""
    rng, (system, reduction) = np.random.default_rng(seed), reduced(name)
    q = system.space.retract(system.space.origin, rng.uniform(-1, 1, system.space.nv))
    rate, momentum = (
        rng.normal(size=n) for n in (reduction.shape.nw, reduction.basis(q).shape[1])
    )
    return reduction, q, reduction.velocity(q, rate, momentum), rng.normal(size=system.nu)


@pytest.mark.parametrize("name", HAND)
def test_connections_and_locked_inertias_are_those_by_hand(name):
    for seed in range(5):
        reduction, q, _, _ = point(name, seed)
        parameters = reduced(name)[0].parameters
        connection, inertia = (np.asarray(x) for x in HAND[name](q, parameters))
        np.testing.assert_allclose(reduction.connection(q), connection, rtol=0, atol=1e-12)
        size = np.abs(inertia).max(initial=1.0)
        np.testing.assert_allclose(reduction.locked_inertia(q), inertia, rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("name", ["snakeboard", "roller_racer", "rolling_disk", "car"])
def test_the_connection_does_not_depend_on_bases(name):
    """Without a declared distribution the basis is an orthonormal one of the null space."""
    system, one = reduced(name)
    symmetry = Symmetry(n_shape=system.symmetry.n_shape)
    other = Reduction(replace(system, distribution=None, symmetry=symmetry))
    for seed in range(5):
        _, q, v, _ = point(name, seed)
        for part in ("connection", "kinematic_connection", "symmetric_connection"):
            got, want = getattr(other, part)(q), getattr(one, part)(q)
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            other.locked_velocity(q, v), one.locked_velocity(q, v), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("name", [*HAND, *SYSTEMS])
def test_a_velocity_is_its_locked_velocity_less_the_connection(name):
    system, (reduction, q, v, _) = reduced(name)[0], point(name)
    n, r = reduction.shape.nw, reduction.connection(q)
    np.testing.assert_allclose(
        v[n:], reduction.locked_velocity(q, v) - r @ v[:n], rtol=0, atol=1e-12
    )
    q_, v_, _ = system.symbols
    a = system.value(ca.densify(system.constraint_matrix(q_)), q)
    np.testing.assert_allclose(a @ v, 0, atol=1e-12 * (1 + np.abs(a).max(initial=0)))
    # horizontal velocities keep the constraints, and are orthogonal to S in the kinetic metric
    mass = system.value(ca.hessian(system.lagrangian_at(q_, v_), v_)[0], q)
    horizontal = np.vstack([np.eye(n), -r])
    np.testing.assert_allclose(reduction.basis(q).T @ mass[n:] @ horizontal, 0, atol=1e-12)
    # A_sym is along S, and A_kin orthogonal to it
    kinematic, basis = reduction.kinematic_connection(q), reduction.basis(q)
    np.testing.assert_allclose(a[:, n:] @ reduction.symmetric_connection(q), 0, atol=1e-12)
    np.testing.assert_allclose(basis.T @ mass[n:, n:] @ kinematic, 0, atol=1e-12)
    parts = kinematic + reduction.symmetric_connection(q)
    np.testing.assert_allclose(parts, r, rtol=0, atol=1e-12)
    np.testing.assert_allclose(a[:, n:] @ kinematic, a[:, :n], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [*HAND, *SYSTEMS])
def test_the_momentum_equation_is_that_of_the_motion(name):
    """J' along the accelerations of Hamel's equations with multipliers."""
    system, (reduction, q, v, u) = reduced(name)[0], point(name)
    acceleration = ContinuousSystem(system).acceleration(q, v, u)

    def moved(t):
        return reduction.momentum(system.space.retract(q, t * v), v + t * acceleration)

    want = derivative(moved, 2e-3)
    tolerance = 1e-10 * (1 + np.abs(want).max(initial=0.0))
    np.testing.assert_allclose(reduction.momentum_rate(q, v, u), want, rtol=0, atol=tolerance)


def test_momentum_equations_are_those_of_the_papers():
    """The sleigh's [kobilarov2010 6.1], and Suslov's [celledoni2016 4.3]."""
    reduction, q, v, u = point("chaplygin_sleigh")
    p, (p1, p2) = reduced("chaplygin_sleigh")[0].parameters, reduction.momentum(q, v)
    inertia = p.I + p.a**2 * p.m
    want = [u[0] - p.a / inertia * p1 * p2, u[1] + p.m * p.a / inertia**2 * p1**2]
    np.testing.assert_allclose(reduction.momentum_rate(q, v, u), want, rtol=1e-12)
    reduction, q, v, u = point("suslov")
    p = reduced("suslov")[0].parameters
    s = p.I13 * v[0] + p.I23 * v[1]
    want = [u[0] - v[1] * s, u[1] + v[0] * s]
    np.testing.assert_allclose(reduction.momentum_rate(q, v, u), want, rtol=1e-12)


def test_a_connection_is_smooth_at_all_shapes():
    """A skate that turns all around: no velocity is eliminated, and the signs of the orthonormal
    basis change without a trace. By hand, with the least energy on `A_g xi = -A_r rdot` and
    without a mass for the rotation.
    """
    _, reduction = reduced("turning_skate")
    turned = set()
    for angle in np.linspace(-np.pi, np.pi, 25):
        q = np.array([angle, 0.3, 1.0, -2.0])
        # translations are free: they take (0.3, 0) / 2 of the coupling, and the turning the rest
        want = [[(0.1 + 0.15 * sin(angle)) / 0.5], [0.15], [0]]
        np.testing.assert_allclose(reduction.connection(q), want, rtol=0, atol=1e-14)
        turned |= {tuple(np.sign(reduction.basis(q)[0].round(12)))}
    assert len(turned) > 1


def on_a_slope() -> System:
    sleigh = systems.chaplygin_sleigh()
    lagrangian = sleigh.lagrangian
    return replace(sleigh, lagrangian=lambda q, v, p: lagrangian(q, v, p) - 9.81 * q[1])


def turned_skate() -> System:
    """A skate along an axis of the ground: it depends on the heading."""
    row = lambda q: ca.horzcat(0, ca.sin(q[0]), ca.cos(q[0]))
    return System("turned", SE2(), lambda q, v: ca.sumsqr(v) / 2, velocity_constraint=row,
                  symmetry=Symmetry(n_shape=0))  # fmt: skip


def on_the_shape() -> System:
    """Its constraint is between coordinates of the shape alone."""
    return System("tied", Rn("a", "b", "c"), lambda q, v: ca.sumsqr(v) / 2,
                  velocity_constraint=lambda q: ca.horzcat(1, -q[0], 0),
                  symmetry=Symmetry(n_shape=2))  # fmt: skip


def test_what_is_no_symmetry_is_refused(snapshot):
    wrong = (
        on_a_slope,
        turned_skate,
        lambda: replace(systems.rolling_ball(), symmetry=Symmetry(n_shape=0)),
        lambda: replace(systems.rolling_ball(), symmetry=Symmetry(n_shape=2)),
        lambda: replace(systems.suslov(), symmetry=Symmetry(n_shape=7)),
        on_the_shape,
        lambda: replace(
            systems.snakeboard(), symmetry=Symmetry(2, basis=lambda r, p: ca.SX(2, 1))
        ),
        lambda: replace(
            systems.suslov(), symmetry=Symmetry(0, basis=lambda r, p: ca.DM.ones(3, 2))
        ),
        lambda: replace(
            particle(), symmetry=Symmetry(1, connection=lambda r: -ca.SX([[0.3], [0]]))
        ),
        lambda: System(
            "timed",
            Rn("x", "time"),
            lambda q, v: v[0] ** 2 / 2,
            prescribed=("time",),
            symmetry=Symmetry(0),
        ),
        lambda: Reduction(systems.pendulum()),
        lambda: Reduction(replace(systems.chaplygin_sleigh(), velocity_drift=lambda q, p: 0.1)),
    )
    assert [refusal(make) for make in wrong] == snapshot
