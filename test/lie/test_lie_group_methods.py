"""Munthe-Kaas and commutator-free methods: tableaux, pairs, the manifold, fields."""

from functools import cache

import casadi as ca
import lie_cases
import numpy as np
import pytest
from differences import jacobian
from refusals import refusal

from nh_control.geometry.rotations import S2, SO3
from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.integrators import INTEGRATORS
from nh_control.integrators.lie_group import lie_group, lie_step
from nh_control.integrators.lie_tableaux import TABLES, munthe_kaas
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.lie_equations import LieEquations
from nh_control.mechanics.system import System

RNG = np.random.default_rng
HEUN, HALVES = [[0, 0], [1, 0]], [1 / 2, 1 / 2]


def test_what_is_no_explicit_tableau_is_refused(snapshot):
    wrong = (
        (np.eye(3), [0, 1, 0]),
        ([[0, 0], [1, 1e-3]], HALVES),
        (HEUN, [1, 1 / 2]),
        (HEUN, HALVES, [1, 1e-11], 1),
        (HEUN, HALVES, [1.0], 1),
    )
    assert [refusal(lambda: munthe_kaas("mine", 2, *one)) for one in wrong] == snapshot


# --- one step ------------------------------------------------------------------------------------


@cache
def step_of(name, table):
    """`(x, u, h) -> (x1, x1_hat)` of a pair on a system."""
    system = lie_cases.system(name)
    equations, p = LieEquations(system), system.parameter_symbols
    x, u, h = ca.SX.sym("x", equations.action.nx), ca.SX.sym("u", system.nu), ca.SX.sym("h")
    ends = lie_step(TABLES[table], equations.action, lambda x: equations.field(x, u, p), x, h)
    values = system.parameter_values
    return ca.Function("step", [x, u, h], ca.substitute(list(ends), [p], [ca.DM(values)]))


@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.embedded_order])
def test_pairs_are_their_two_methods(table):
    x, _ = lie_cases.random_point(lie_cases.discrete("heavy_top", 0.1), RNG(3))
    ends = step_of("heavy_top", table)(x, np.zeros(0), 0.1)
    for end, one in zip(ends, (TABLES[table].main, TABLES[table].embedded_method)):
        dsys = lie_group(lie_cases.system("heavy_top"), 0.1, one)
        np.testing.assert_allclose(dsys.step(x), np.asarray(end)[:, 0], rtol=0, atol=1e-14)


# --- fields --------------------------------------------------------------------------------------


def constrained(space) -> System:
    """A mass matrix, forces, a velocity constraint over ground that moves, and a holonomic one,
    with nothing special about them.
    """
    n, m = space.nq, space.nw
    first, second = np.cos(np.arange(n)), np.sin(1 + np.arange(m))

    def lagrangian(q, v):
        bend = ca.dot(first, q)
        field = (1 + ca.sin(q[0])) * ca.dot(second, v) / 5
        return (ca.dot(2 + ca.DM(second), v**2) + bend**2 * v[0] ** 2) / 2 + field - bend

    def constraint(q):
        return (ca.DM(second[::-1]) + q[0] * ca.DM(first[:m]) / 3).T + ca.sin(q[n - 1]) / 4

    return System(
        name=f"constrained_{m}",
        space=space,
        lagrangian=lagrangian,
        inputs=("u",),
        force=lambda q, v, u: u * ca.DM(second) - v / 10,
        velocity_constraint=constraint,
        velocity_drift=lambda q: ca.sin(q[1]) / 3,
        holonomic_constraint=lambda q: ca.dot(first[::-1], q) + q[0] * q[n - 2] - 0.4,
    )


FIELDS = {
    **{
        name: lambda name=name: lie_cases.system(name)
        for name in ("heavy_top", "pendulum_2", "floating_body_cay", "rigid_body", "payload")
    },
    "everything": lambda: constrained(Product(Rn("a", "b"), SO3("s_"), SE2())),
    "everything on a sphere": lambda: constrained(Product(Rn("a", "b"), SO3("s_"), S2("l_"))),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_the_continuous_equations(name):
    """`generator(x) f(x)` moves configuration and momenta as Hamel's equations do."""
    system, rng = FIELDS[name](), RNG(3)
    space, dsys = system.space, INTEGRATORS["lie_euler"].make(system, 0.1)
    q = satisfy_constraints(system, lie_cases.random_configuration(space, rng))
    guess = project(space, q, rng.normal(size=space.nw))
    v, u = admissible_velocity(system, q, guess), rng.normal(size=system.nu)
    equations, x = LieEquations(system), dsys.state(q, v)
    np.testing.assert_allclose(dsys.velocity(x), v, rtol=0, atol=1e-12)
    x_ = ca.SX.sym("x", len(x))
    generator = ca.Function("generator", [x_], [equations.action.generator(x_)])
    rate = np.asarray(generator(x) @ equations.field(x, u, system.parameter_values))[:, 0]
    acceleration = ContinuousSystem(system).acceleration(q, v, u)
    y = np.asarray(ca.evalf(space.frame(ca.SX(q)).T @ ca.SX(v)))[:, 0]

    def state(s):
        """State at time s of a motion with this velocity and acceleration."""
        at = space.retract(q, y * s[0])
        return dsys.measured_state(at, project(space, at, v + s[0] * acceleration))

    size = 1 + np.abs(rate).max()
    np.testing.assert_allclose(rate, jacobian(state, 1, 0.002)[:, 0], rtol=0, atol=1e-9 * size)


def admissible_velocity(system, q, v):
    """The velocity next to v (in the metric of its numbers) that keeps all constraints."""
    q_ = system.symbols[0]
    values = [
        system.value(expression, q)
        for expression in (
            ca.vertcat(
                system.constraint_matrix(q_) @ system.space.frame(q_),
                system.mechanics.holonomic_jacobian(q_),
            ),
            ca.vertcat(system.drift(q_), ca.SX(system.n_holonomic_constraints, 1)),
            system.space.frame(q_),
        )
    ]
    rows, drift, frame = values
    y = frame.T @ v
    return frame @ (y + np.linalg.pinv(rows) @ (drift[:, 0] - rows @ y))


def project(space, q, v):
    """Tangential part of stored velocities."""
    v = v.copy()
    for factor, at, _, stored in lie_cases.parts(space):
        if isinstance(factor, S2):
            v[stored] -= q[at] @ v[stored] * q[at]
    return v
