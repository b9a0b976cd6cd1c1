"""Munthe-Kaas and commutator-free methods: their orders, those of the embedded ones, the
manifold.

The motions are those of test_lie_order.py with steady inputs, and their references DOP853 at 1e-13
on equations by hand (lie_motion.py).
"""

from functools import cache

import casadi as ca
import lie_cases
import numpy as np
import pytest
from lie_differences import jacobian
from test_lie_order import OBSERVED, RUNS, torque, wrench

from nh_control.geometry.rotations import S2, SO3
from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.integrators import INTEGRATORS
from nh_control.integrators.lie_group import lie_group, lie_step
from nh_control.integrators.lie_tableaux import TABLES, munthe_kaas
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.lie_equations import LieEquations
from nh_control.mechanics.system import System
from nh_control.systems.satellite import SatelliteParameters, satellite

RNG = np.random.default_rng
PAIRS = [name for name, table in TABLES.items() if table.embedded_order]
ALONE = [name for name in TABLES if name not in PAIRS] + ["cf43"]
"""The orders of the other pairs are asked of the errors of one step, too."""
COARSE = (8, 16, 24, 32, 48, 64, 96, 128)
FINE = (128, 192, 256, 384, 512)
COUNTS = {1: (*FINE, 768), 2: FINE, 3: (48, 64, 96, *FINE), 4: (*COARSE, *FINE[1:])}
COUNTS[5] = (*COARSE, *FINE[1:], 768)
"""Numbers of steps for a method of an order."""
FITTED = 4
"""How many step sizes make a slope."""
STEADY = {torque: 0.3, wrench: 0.3}
MOTIONS = (
    "heavy top",
    "forced rigid body",
    "body on SE(3), exp",
    "2 links",
)
"""Runs; all but the first with the long studies."""


@cache
def reference(run):
    """System, steady input, duration, the states at 2 OBSERVED + 1 times, and errors of their
    components, or of a method's sums, above which those of the method are seen.
    """
    name, start, duration, _, inputs, _ = RUNS[run]
    u = np.zeros(0) if inputs is None else inputs(STEADY[inputs])
    times = np.linspace(0, duration, 2 * OBSERVED + 1)
    motion = lie_cases.motion(name, None if inputs is None else lambda t: u)
    states = motion.solve(start, times)
    floor = np.abs(motion.solve(start, times, 1e-12) - states).max(0)
    floor = 10 * floor + 100 * np.finfo(float).eps * np.abs(states).max(0)
    return lie_cases.system(name), u, duration, states, floor


def blocks(space):
    """Names and places of every position, rotation, direction and momentum vector in a state."""
    for i, (_, q, _, w) in enumerate(lie_cases.parts(space)):
        yield f"pose {i + 1}", [*range(*q.indices(space.nq))]
        yield f"momentum {i + 1}", [space.nq + k for k in range(*w.indices(space.nw))]


def slopes(run, dsys_of, counts):
    """Order of every vector in a state: of its components' largest error at times of the second
    half, over the finest steps where it stands above the reference's; those where it does at four
    or more.
    """
    _, u, duration, states, floors = reference(run)
    base, errors = dsys_of(duration), []
    for n in counts:
        dsys = base.with_step(duration / n)
        inputs = np.tile(u[: dsys.nu], (n, 1)) if dsys.nu else np.zeros((n, 0))
        nodes = dsys.simulate(states[0], inputs).states[:: n // (2 * OBSERVED)]
        errors.append(np.abs(nodes - states)[OBSERVED:].max(0))
    found, errors = {}, np.array(errors)
    for name, at in blocks(base.system.space):
        worst = errors[:, at].max(1)
        above = np.flatnonzero(worst > floors[at].max())[-FITTED:]
        if len(above) == FITTED:
            logs = np.log(np.take(counts, above)), np.log(worst[above])
            found[name] = -np.polyfit(*logs, 1)[0]
    return found


def check_order(run, table, coordinates="exp"):
    """No vector below the order, and the slowest of each kind not above it."""
    system, counts = reference(run)[0], COUNTS[table.order]
    found = slopes(run, lambda h: lie_group(system, h, table, coordinates), counts)
    for kind in ("pose", "momentum"):
        slowest = min(slope for name, slope in found.items() if kind in name)
        assert abs(slowest - table.order) <= 0.05 * (table.order + 1), found


def cases(names, default):
    """All motions with all methods; the first motion by the methods `default`, the others slow."""
    for run in MOTIONS:
        for name in names:
            often = run == MOTIONS[0] and name in default
            yield pytest.param(run, name, marks=() if often else pytest.mark.slow)


# --- orders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("run, name", list(cases(TABLES, ALONE)))
def test_order_in_configuration_and_momenta(run, name):
    check_order(run, TABLES[name])


@pytest.mark.parametrize("run, name", list(cases(PAIRS, ("cf43",))))
def test_order_of_embedded_methods(run, name):
    check_order(run, TABLES[name].embedded_method)


@pytest.mark.parametrize("name", ("rkmk4", pytest.param("rkmk54", marks=pytest.mark.slow)))
@pytest.mark.parametrize("coordinates", ("cay", "second"))
def test_order_in_other_coordinates(coordinates, name):
    check_order("heavy top", TABLES[name], coordinates)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ("cay", "second"))
@pytest.mark.parametrize("run", ("body on SE(3), exp", "2 links"))
def test_order_in_other_coordinates_of_motions(run, coordinates):
    check_order(run, TABLES["rkmk4"], coordinates)


def test_any_tableau_makes_a_method():
    """Ralston's third order."""
    a, b = [[0, 0, 0], [1 / 2, 0, 0], [0, 3 / 4, 0]], [2 / 9, 1 / 3, 4 / 9]
    check_order("heavy top", munthe_kaas("ralston", 3, a, b))


HEUN, HALVES = [[0, 0], [1, 0]], [1 / 2, 1 / 2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((np.eye(3), [0, 1, 0]), r"mine: a must be strictly lower triangular, \(3, 3\)"),
        (([[0, 0], [1, 1e-3]], HALVES), "strictly lower triangular"),
        ((HEUN, [1, 1 / 2]), "mine: weights must add up to 1, got 1.5"),
        ((HEUN, HALVES, [1, 1e-11], 1), r"add up to 1, got 1.0 and 1.000"),
        ((HEUN, HALVES, [1.0], 1), "for the 2 weights b"),
    ],
)
def test_what_is_no_explicit_tableau_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        munthe_kaas("mine", 2, *given)


def test_a_tableau_is_kept_as_it_is():
    table = munthe_kaas("mine", 2, HEUN, HALVES, [1, 0], 1, "by hand")
    assert (table.order, table.embedded_order, table.source) == (2, 1, "by hand")
    assert table.a == ((), (1.0,)) and (table.b, table.b_hat) == ((0.5, 0.5), (1.0, 0.0))
    other = table.embedded_method
    assert (other.order, other.b, other.b_hat, other.embedded_order) == (1, (1.0, 0.0), None, 0)
    assert len(other.main.a) == 1 and len(table.main.a) == 2 and table.main.b_hat is None
    with pytest.raises(ValueError, match="mine has no embedded method"):
        _ = other.embedded_method


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


@pytest.mark.parametrize("table", PAIRS)
def test_pairs_are_their_two_methods(table):
    x = np.asarray(RUNS["heavy top"][1])
    ends = step_of("heavy_top", table)(x, np.zeros(0), 0.1)
    for end, one in zip(ends, (TABLES[table].main, TABLES[table].embedded_method)):
        dsys = lie_group(lie_cases.system("heavy_top"), 0.1, one)
        np.testing.assert_allclose(dsys.step(x), np.asarray(end)[:, 0], rtol=0, atol=1e-14)


# --- the manifold --------------------------------------------------------------------------------


def off_manifold(dsys, states):
    """Largest errors of the lengths of unit vectors, and of momenta's normal parts."""
    worst = [0.0]
    for factor, at, _, stored in lie_cases.parts(dsys.system.space):
        q, p = states[:, at], states[:, dsys.system.space.nq :][:, stored]
        if isinstance(factor, (S2, SO3)):
            worst.append(np.abs(np.linalg.norm(q, axis=1) - 1).max())
        if isinstance(factor, S2):
            worst.append(np.abs(np.sum(q * p, 1)).max() / np.abs(p).max())
    return max(worst)


@pytest.mark.slow
@pytest.mark.parametrize("name, h", [("heavy_top", 0.02), ("pendulum_2", 0.01)])
@pytest.mark.parametrize("table", ("rkmk3", "crouch_grossman_3", "cf43", "rkmk54"))
def test_a_million_steps_stay_on_the_manifold(name, h, table):
    dsys = lie_group(lie_cases.system(name), h, TABLES[table])
    x, _ = lie_cases.random_point(dsys, RNG(8))
    for _ in range(10):
        states = dsys.simulate(x, np.zeros((100_000, dsys.nu))).states
        assert off_manifold(dsys, states) <= 1e-14
        x = states[-1]


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


@pytest.mark.parametrize("name", ["lie_euler", "rkmk4", "cf4"])
def test_parameters_are_arguments_of_a_step(name):
    make, other = INTEGRATORS[name].make, SatelliteParameters(Jx=2.4, Jy=2.0)
    changed = make(satellite(), 0.1).with_parameters(Jx=2.4, Jy=2.0)
    x, u = changed.state(changed.system.space.origin, np.linspace(-1, 1, 7)), np.full(4, 0.05)
    expected = make(satellite(other), 0.1).step(x, u)
    np.testing.assert_allclose(changed.step(x, u), expected, rtol=1e-14)


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
