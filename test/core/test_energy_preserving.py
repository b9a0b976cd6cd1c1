"""Energy-preserving methods on D*: their structure, order, energy, constraints, and refusals."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from differences import derivative
from energy_cases import ENERGY, INPUT, H, constraint, discrete, start, system, turning
from refusals import refusal

from nh_control.geometry.chart import Chart
from nh_control.geometry.spaces import SE2, Rn
from nh_control.integrators import INTEGRATORS, gonzalez, itoh_abe, mean_value
from nh_control.integrators.discrete_gradients import (
    coordinate_gradient,
    mean_value_gradient,
    midpoint_gradient,
    symmetrized_gradient,
)
from nh_control.integrators.energy_collocation import energy_collocation
from nh_control.mechanics.almost_poisson import AlmostPoisson
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.distribution import BASES
from nh_control.mechanics.householder import householder
from nh_control.mechanics.system import System
from nh_control.systems import car, chaotic_quartic, chaplygin_sleigh, gearbox, snakeboard

DAMPING = 0.1
WORK = [
    ("generic", "mean_value"),
    ("generic", "gonzalez_f"),
    ("double_pendulum", "energy_collocation_4"),
    *(
        pytest.param("generic", method, marks=pytest.mark.slow)
        for method in ENERGY
        if method not in ("mean_value", "gonzalez_f")
    ),
]


def evaluated(expressions, *values, of=None):
    """Expressions of symbols, and of a system's parameters, at values, as arrays."""
    symbols = [ca.SX.sym(f"s{i}", np.size(value)) for i, value in enumerate(values)]
    results = [ca.densify(e) for e in expressions(*symbols)]
    if of is not None:
        symbols, values = [*symbols, of.parameter_symbols], [*values, of.parameter_values]
    found = ca.Function("f", symbols, results)(*values)
    return [np.array(e) for e in (found if len(results) > 1 else (found,))]


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(
    "make", [lambda: system("generic", 0.2), snakeboard, turning, lambda: system("hung", 0.2)]
)
def test_the_structure_is_the_continuous_system(make, basis):
    """`zeta' = Pi grad H + (0, X^T f)` against Hamel's equations, for every basis of D, off the
    middle of a chart, too.
    """
    one, rng = make(), np.random.default_rng(3)
    n, motion = one.space.nv, ContinuousSystem(one)
    q0 = one.space.retract(one.space.origin, rng.normal(size=n) / 3)
    d, rho, u = rng.normal(size=n) / 3, rng.normal(size=one.nrho), rng.normal(size=one.nu)
    q = one.space.retract(q0, d)

    def terms(d, rho, e):
        at, centre = ca.SX(ca.DM(q)), ca.SX(ca.DM(q0))
        chart, m = Chart(one.space, centre), one.space.nw
        chosen = BASES[basis](one, centre, chart.moving_frame)
        structure = AlmostPoisson(one, chosen)
        local, zeta = structure.local(chart), ca.vertcat(d, rho)
        rate = local.rate(zeta, local.gradient(zeta), ca.DM(u))
        v = chosen(at) @ structure.gradient(at, rho)[1]
        moved = one.space.along(at, e[:m])
        momenta = chosen(moved).T @ one.mechanics.gradients(moved, v + e[m:])[1]
        zeta_of = ca.vertcat(one.space.local(centre, moved), momenta)
        values = rate, v, zeta_of, ca.jacobian(zeta_of, e)
        return one.mechanics.at_signs(values, centre)

    rate, v, zeta, slope = evaluated(terms, d, rho, np.zeros(2 * one.space.nw), of=one)
    acceleration = motion.acceleration(q, v[:, 0], u)
    expected = slope @ np.concatenate([v[:, 0], acceleration])
    assert np.allclose(zeta[:, 0], np.concatenate([d, rho]), rtol=0, atol=1e-13)
    assert np.abs(rate[:, 0] - expected).max() <= 1e-12 * (1 + np.abs(expected).max())


def test_householder_gives_an_orthonormal_basis_that_moves_smoothly():
    """Its derivative by CasADi against differences, with the signs of the start."""
    rng = np.random.default_rng(0)
    a, change = rng.normal(size=(2, 5)), rng.normal(size=(2, 5)) / 5

    _, signs = householder(ca.SX(ca.DM(a)))
    basis = lambda t: (householder(ca.DM(a) + t * ca.DM(change), signs)[0],)
    slope = evaluated(lambda t: (ca.jacobian(ca.vec(basis(t)[0]), t),), 0.0)[0]
    at = lambda t: evaluated(basis, t)[0]
    assert np.abs(slope.reshape(3, 5).T - derivative(at, 0.01)).max() <= 1e-10
    for t in (-0.5, 0.0, 0.5):
        assert np.abs((a + t * change) @ at(t)).max() <= 1e-14
        assert np.abs(at(t).T @ at(t) - np.eye(3)).max() <= 1e-15


@pytest.mark.parametrize(
    "gradient", [mean_value_gradient, midpoint_gradient, coordinate_gradient, symmetrized_gradient]
)
def test_discrete_gradients_are_discrete_gradients(gradient):
    """`g . D = H1 - H0` for small and large D, also along single coordinates, and dH at D = 0."""
    one, rng = system("generic"), np.random.default_rng(1)
    zeta0, zeta1, q = ca.SX.sym("zeta0", 6), ca.SX.sym("zeta1", 6), ca.SX(4, 1)
    local = AlmostPoisson(one, one.mechanics.admissible_basis).local(Chart(one.space, q))
    values = gradient(local, zeta0, zeta1), *map(local.energy, (zeta0, zeta1))
    values = one.mechanics.at_signs((*values, local.gradient(zeta0)), q)
    symbols = zeta0, zeta1, one.parameter_symbols
    terms = ca.Function("terms", symbols, [ca.densify(value) for value in values])
    zeta, way = rng.normal(size=6) / 2, rng.normal(size=6) / 2
    way[2] = 0.0
    for size in (0.0, 1e-9, 1e-2, 0.2, 1.0):
        found = terms(zeta, zeta + size * way, one.parameter_values)
        g, h0, h1, slope = (np.array(value)[:, 0] for value in found)
        tolerance = 1e-4 if gradient is mean_value_gradient and size == 1.0 else 1e-13
        assert abs(g @ (size * way) - (h1 - h0).item()) <= tolerance
        if size <= 1e-9:
            assert np.abs(g - slope).max() <= 1e-7 * bool(size) + 1e-14


def energy(dsys, name, x) -> float:
    """H of the momentum that the method carries."""
    memory = len(dsys.method.memory)
    if not memory:
        return dsys.energy(x)
    at, v = ca.DM(dsys.configuration(x)), ca.SX.sym("v", dsys.system.space.nw)
    lagrangian, frame = dsys.system.lagrangian_at(at, v), dsys.system.space.frame(ca.SX(at))
    mass = frame.T @ ca.hessian(lagrangian, v)[0] @ frame
    mass, frame = map(np.array, ca.Function("mass", [v], [mass, ca.densify(frame)])(0))
    kick = frame.T @ constraint(name, dsys.configuration(x)).T @ x[-memory:]
    return dsys.energy(x) + kick @ np.linalg.solve(mass, kick) / 2


@pytest.mark.parametrize("name, method", WORK)
def test_the_energy_grows_by_the_work_of_the_forces(name, method):
    """`H1 - H0 = f(v_mid) . (q1 - q0)`, with damping at second order, where the force acts at the
    middle; constant forces at the stages of the others sum up to the same.
    """
    damping = DAMPING if INTEGRATORS[method].order <= 2 else 0.0
    dsys = discrete(name, method, damping=damping)
    states = dsys.simulate(dsys.state(*start(name)), np.tile(INPUT, (30, 1))).states
    constant, damped = np.array([*INPUT, 0.2, 0.1]), damping * np.array([2, 1, 3, 1])
    for x, x1 in zip(states, states[1:]):
        way = dsys.configuration(x1) - dsys.configuration(x)
        force = constant[: len(way)] - damped[: len(way)] * way / H
        gain = energy(dsys, name, x1) - energy(dsys, name, x)
        assert abs(gain - force @ way) <= 1e-14


def test_gonzalez_f_leaves_the_constraint_by_the_square_of_the_step():
    """The paper's criticism of (15): p breaks A M^{-1} p = 0 at the nodes, without drifting."""
    worst = []
    for n in (10, 20, 40):
        dsys = discrete("generic", "gonzalez_f", 2.0 / n)
        run = dsys.simulate(dsys.state(*start("generic")), np.tile(INPUT, (n, 1)))
        worst.append(np.abs(run.states[:, -2:]).max())
    ratios = np.divide(worst[:-1], worst[1:])
    assert ((ratios >= 3.4) & (ratios <= 4.6)).all(), worst


@pytest.mark.parametrize("method", [gonzalez, itoh_abe])
def test_derivatives_keep_their_digits_close_to_rest(method):
    """Quotients of differences of H would lose them: at a distance of 1e-6 from an equilibrium the
    linearization is that at the equilibrium.
    """
    dsys = method(system("double_pendulum", forced=False), H)
    rest = dsys.state(np.zeros(2), np.zeros(2))
    a = dsys.linearize(rest).A
    near = dsys.linearize(rest + 1e-6 * np.array([1.0, -0.5, 0.3, 0.8])).A
    assert np.abs(near - a).max() <= 1e-5
    if method is gonzalez:
        assert np.abs(a - mean_value(dsys.system, H).linearize(rest).A).max() <= 1e-13


def test_other_bases_give_other_steps_of_the_same_energy():
    """States keep their momenta whatever the basis within a step."""
    weights, ends = ca.DM([1.0, 2.0, 1.5]), []
    skating = System(
        name="skating",
        space=Rn("x", "y", "z"),
        lagrangian=lambda q, v: ca.dot(weights, v**2 - q**2) / 2 - q[0] * q[1] * q[2],
        velocity_constraint=lambda q: ca.horzcat(1 + q[1] / 4, q[2] / 2, ca.cos(q[0])),
    )
    for basis in BASES:
        dsys = gonzalez(skating, H, basis=basis)
        assert dsys.method.name == ("gonzalez" if basis == "own" else f"gonzalez({basis})")
        x = dsys.state([0.4, -0.3, 0.6], [0.5, 1.0, -0.8])
        ends.append(dsys.simulate(x, 10).states[-1])
        assert abs(dsys.energy(ends[-1]) - dsys.energy(x)) <= 1e-14
    own, elimination, _ = ends
    assert 1e-6 <= np.abs(own - elimination).max() <= 1e-2


def test_systems_that_do_not_fit_are_refused_by_name(snapshot):
    drifting = replace(
        system("generic", forced=False), velocity_drift=lambda q, p: ca.DM([0.1, 0.0])
    )
    crooked = replace(chaplygin_sleigh(), space=SE2(retraction="ccsk"))
    for method in ENERGY:
        one = INTEGRATORS[method]
        for bad, reason in ((drifting, "velocity drift"), (crooked, "retraction")):
            assert reason in one.refuses(bad)
            with pytest.raises(ValueError, match=reason):
                one.make(bad, H)
    many = Rn(*(f"q{i}" for i in range(21)))
    crowd = System(name="crowd", space=many, lagrangian=lambda q, v: ca.sumsqr(v) / 2)
    wrong = (
        lambda: INTEGRATORS["gonzalez_f"].make(system("double_pendulum"), H),
        lambda: INTEGRATORS["itoh_abe"].make(crowd, H),
        lambda: INTEGRATORS["itoh_abe_symmetrized"].make(crowd, H),
        lambda: INTEGRATORS["gonzalez_f"].make(system("tied"), H),
        lambda: gonzalez(system("generic"), H, basis="qr"),
        lambda: mean_value(system("generic"), H, points=0),
        lambda: energy_collocation(system("generic"), H, stages=3, points=2),
    )
    assert [refusal(make) for make in wrong] == snapshot


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in ENERGY if m != "gonzalez_f"])
@pytest.mark.parametrize("make", [gearbox, chaotic_quartic])
def test_energy_over_a_hundred_thousand_steps(make, method):
    """h = 0.1 s to t = 10^4 s. A state rounds in every step: an angle of size 5 by 4e-16, which a
    slope of H of order one carries into the energy, some 1e-13 after 1e5 independent steps; the
    gearbox has such angles, the chaotic system has not. The many unknowns of collocation leave
    2e-18 of one sign in every step.
    """
    dsys = INTEGRATORS[method].make(make(), H)
    rng = np.random.default_rng(0)
    nq = dsys.system.space.nq
    q, v = 0.6 * rng.normal(size=nq), 0.6 * rng.normal(size=nq)
    if make is gearbox:
        q, v = [0.12573022, -0.13210486, 0.64042265], [0.26346552, -0.44092109, 0.36159505]
    run = dsys.simulate(dsys.state(q, v), np.zeros(dsys.nu), steps=100_000, every=1000)
    energies = np.array([dsys.energy(x) for x in run.states])
    limit = 5e-13 if make is gearbox else 2e-13 if INTEGRATORS[method].order > 2 else 1e-13
    assert np.abs(energies - energies[0]).max() <= limit * abs(energies[0])


@pytest.mark.parametrize(
    "method",
    ["gonzalez", "itoh_abe", pytest.param("itoh_abe_symmetrized", marks=pytest.mark.slow)],
)
def test_quotients_of_large_energies_do_not_drown_in_round_off(method):
    """A car of 1200 kg whose steering moves little: H does not depend on how far it has gone and
    is quadratic in its momenta, so that nothing is divided by small changes.
    """
    system = car()
    dsys = INTEGRATORS[method].make(system, 0.07)
    q, v = np.array([0.0, 0.5, 0.0, 0.0, 0.0]), np.array([5.0, -0.4, 0.3, 1.5, 0.0])
    states = dsys.simulate(dsys.state(q, v), np.zeros((30, 2))).states
    energy = np.array([dsys.energy(x) for x in states])
    assert np.abs(energy / energy[0] - 1).max() <= 1e-14
