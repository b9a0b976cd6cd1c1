"""GNI, RATTLE, SHAKE, SPARK, partitioned and projected methods: the printed schemes, what they
keep, which of them are one map, what they refuse.
"""

from dataclasses import replace
from functools import partial

import casadi as ca
import numpy as np
import pytest
from cases import random_point
from energy_cases import generic, turning
from refusals import refusal

from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS, gni, nonholonomic_midpoint, rattle, shake
from nh_control.integrators.geometric_nonholonomic import MIDPOINT
from nh_control.integrators.lobatto import nprk, spark
from nh_control.integrators.projected_gauss import nonholonomic_gauss
from nh_control.integrators.runge_kutta import explicit_runge_kutta
from nh_control.integrators.semi_implicit import si_dla
from nh_control.integrators.stages import lobatto_tables
from nh_control.mechanics.system import System
from nh_control.systems import cart_pole, chaplygin_sleigh, pendulum, snakeboard

H = 0.05
ROUND_OFF = 1e-12
Q = np.array([0.3, 0.5, -0.6, 0.4, 0.7, -0.2, 0.5])
V = np.array([0.1, 0.6, -0.4, 0.7, 0.5, 0.8, -0.3])
PUSH = np.array([0.1, 0.2, -0.3, 0.1, 0.2, 0.1, -0.2])


def quartic(strength: float = 1.0) -> System:
    """The chaotic system of [celledoni2016 (19), (20)], n = 3, q = (x, w, z), pushed."""

    def potential(q):
        w, z = q[1:4], q[4:]
        return (ca.sumsqr(q) + (z[0] * z[1]) ** 2 + ca.sumsqr(w * z)) / 2

    return System(
        name="quartic",
        space=Rn("x", "w1", "w2", "w3", "z1", "z2", "z3"),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2 - strength * potential(q),
        inputs=tuple(f"u{i}" for i in range(7)),
        force=lambda q, v, u: u,
        velocity_constraint=lambda q: ca.horzcat(1, ca.SX(1, 3), q[1:4].T),
    )


def by_hand(q):
    """Force -dV/dq, constraint row A and projection P^T of (12), M = 1."""
    w, z = q[1:4], q[4:]
    slope = q + np.concatenate([[0], w * z**2, z * w**2])
    slope[4:6] += np.array([z[0] * z[1] ** 2, z[0] ** 2 * z[1]])
    a = np.concatenate([[1.0], np.zeros(3), w])
    return -slope, a, np.eye(7) - np.outer(a, a) / (a @ a)


def admissible(dsys):
    return dsys.velocity(dsys.state(Q, V))


def momentum(dsys, x):
    """p of a state of the quartic system: M = 1, so it is the velocity."""
    return dsys.velocity(x)


def test_shake_is_the_scheme_that_the_paper_prints():
    """(16) with the reflection's factor 2: q after 40 steps, and the momentum after the closing
    half kick, which is rho.
    """
    dsys, u = shake(quartic(), H), 0 * PUSH
    q, p = Q.copy(), admissible(dsys)
    states = dsys.simulate(dsys.state(q, p), np.tile(u, (40, 1))).states
    force, _, project = by_hand(q)
    half = p + H / 2 * project @ force
    for k in range(40):
        q = q + H * half
        force, _, project = by_hand(q)
        if k < 39:
            half = (2 * project - np.eye(7)) @ half + H * project @ force
    end = project @ half + H / 2 * project @ force
    assert np.abs(states[-1][:7] - q).max() <= ROUND_OFF
    assert np.abs(momentum(dsys, states[-1]) - end).max() <= ROUND_OFF


def multipliers_of_rattle(q, p, lam, u, steps):
    """(10) by hand, `M = 1`; q, p and all lambda."""
    found = []
    for _ in range(steps):
        force, a, _ = by_hand(q)
        half = p + H / 2 * (force + u - a * lam)
        q = q + H * half
        force, a, _ = by_hand(q)
        kicked = half + H / 2 * (force + u)
        lam = 2 / H * (a @ kicked) / (a @ a)
        p = kicked - H / 2 * a * lam
        found.append(lam)
    return q, p, np.array(found)


def test_rattle_is_the_scheme_that_the_paper_prints():
    """(10) from lambda_0 = 0, under a constant push; `lambda = -2 sigma / h`."""
    dsys = rattle(quartic(), H)
    states = dsys.simulate(dsys.state(Q, V), np.tile(PUSH, (40, 1))).states
    q, p, lam = multipliers_of_rattle(Q, admissible(dsys), 0.0, PUSH, 40)
    assert np.abs(states[-1][:7] - q).max() <= ROUND_OFF
    assert np.abs(momentum(dsys, states[-1]) - p).max() <= ROUND_OFF
    assert np.abs(states[1:, -1] + H / 2 * lam).max() <= ROUND_OFF


def test_explicit_and_implicit_gni_are_one_map():
    for system in (quartic(), snakeboard(), pendulum()):
        one, other = gni(system, H), gni(system, H, explicit=False)
        assert one.method.nz == 0 and other.method.nz == system.space.nv
        x, u = random_point(one, np.random.default_rng(5))
        assert np.abs(one.step(x, u) - other.step(x, u)).max() <= ROUND_OFF


def test_two_points_with_a_carried_multiplier_are_gni():
    """`lam = 2 sigma / h` for a constant mass matrix, from the same start."""
    one, other = gni(quartic(), H), nprk(quartic(), H, 2, carried=True)
    ours, theirs = (d.simulate(d.state(Q, V), np.tile(PUSH, (20, 1))).states for d in (one, other))
    assert np.abs(ours[:, :-1] - theirs[:, :-1]).max() <= ROUND_OFF
    assert np.abs(2 / H * ours[:, -1] - theirs[:, -1]).max() <= 1e-10


def jumping(method, steps):
    """Configuration and momenta of the quartic system at t = 1 under a push that jumps thrice."""
    dsys = method.with_step(1 / steps)
    pushes = np.repeat(np.outer([1, -1, 2, 0.5], PUSH), steps // 4, axis=0)
    return dsys.simulate(dsys.state(Q, V), pushes).states[-1][:13]


@pytest.mark.parametrize(
    "make, order",
    [(partial(nprk, s=3, carried=True), 2), (partial(nprk, s=3), 4), (partial(spark, s=3), 4)],
)
def test_a_jump_of_the_input_spoils_carried_multipliers_alone(make, order):
    """Three points: order 4 with recomputed multipliers and with SPARK, order 2 with carried."""
    steps = (8, 12, 16, 24)
    exact, method = jumping(spark(quartic(), H, 4), 48), make(quartic(), H)
    errors = [np.abs(jumping(method, n) - exact).max() for n in steps]
    assert abs(-np.polyfit(np.log(steps), np.log(errors), 1)[0] - order) <= 0.25


@pytest.mark.parametrize("s", [2, 3, 4])
def test_lobatto_coefficients(s):
    """Published numbers, and the conditions that define the families."""
    t = lobatto_tables(s)
    a, b, c = t["A"], t["b"], t["A"].sum(axis=1)
    for k in range(1, 2 * s - 2):
        assert abs(b @ c ** (k - 1) - 1 / k) <= 2e-15
    for k in range(1, s):
        assert np.abs(t["C"] @ c ** (k - 1) - c**k / k).max() <= 2e-15
    assert np.abs(a @ c ** (s - 1) - c**s / s).max() <= 2e-15
    for one, other in (("A", "B"), ("C", "C*"), ("D", "D")):
        pairs = b[:, None] * t[one] + (b[:, None] * t[other]).T
        assert np.abs(pairs - np.outer(b, b)).max() <= 2e-15
    if s == 3:
        table = np.array([[4, -4, 0], [4, 8, 0], [4, 20, 0]]) / 24
        assert np.abs(t["B"] - table).max() <= 2e-15


MASSLESS = System(
    name="massless",
    space=Rn("x", "y"),
    lagrangian=lambda q, v: v[0] ** 2 / 2,
    velocity_constraint=lambda q: ca.horzcat(q[0], 1),
)


def test_what_they_refuse(snapshot):
    wrong = (
        lambda: gni(generic(), H, explicit=True),
        lambda: gni(cart_pole(), H, explicit=True),
        lambda: gni(quartic(), H, MIDPOINT, explicit=True),
        lambda: gni(quartic(), H, start="rest"),
        lambda: spark(quartic(), H, 5),
        lambda: spark(quartic(), H, 2, "A"),
        lambda: nprk(quartic(), H, 1),
        lambda: nonholonomic_gauss(quartic(), H, 4),
        lambda: explicit_runge_kutta(quartic(), H, "rk3"),
        lambda: explicit_runge_kutta(turning(), H),
        lambda: si_dla(MASSLESS, H),
    )
    assert [refusal(make) for make in wrong] == snapshot


def test_forces_of_velocities_make_gni_implicit():
    damped = replace(quartic(), force=lambda q, v, u: u - 0.1 * v)
    assert gni(damped, H).method.nz == 7
    assert "velocities" in INTEGRATORS["gni"].refuses(damped)


@pytest.mark.parametrize("method", ["gni_implicit", "gni_midpoint"])
def test_gni_starts_under_the_input_of_its_first_step(method):
    """Sigma is then close to h/2 times the multipliers from the first step on; without the input
    it alternates around them, and errors are many times as large.
    """
    system, q, v, u = chaplygin_sleigh(), [0.2, 0.0, 0.0], [0.5, 1.0, -0.5], [1.0, 2.0]
    fine = nonholonomic_midpoint(system, 0.002)
    end = fine.simulate(fine.state(q, v), u, steps=1000, every=1000).states[-1]
    dsys, off, jumps = INTEGRATORS[method].make(system, 0.05), [], []
    for start in (dsys.state(q, v), dsys.state(q, v, u)):
        states = dsys.simulate(start, np.tile(u, (40, 1))).states
        off.append(np.abs(states[-1, :5] - end).max())
        jumps.append(np.abs(np.diff(states[:, 5])).max())
    assert off[1] < off[0] / 10 and jumps[1] < jumps[0] / 100
    assert np.array_equal(dsys.state(q, v), dsys.state(q, v, [0.0, 0.0]))
