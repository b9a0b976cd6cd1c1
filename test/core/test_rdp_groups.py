"""Reduced d'Alembert-Pontryagin on R^n, SO(3), SE(2), SE(3) and products of them, with shapes on
R^n and SO(3): order, constraints, exact derivatives, symmetry, and the midpoint rules it equals.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from symmetric_systems import SYSTEMS

from nh_control import systems
from nh_control.geometry.factors import split_space, with_retraction
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.integrators import INTEGRATORS, midpoint, nonholonomic_midpoint, rdp
from nh_control.mechanics.reduced import ReducedEquations
from nh_control.mechanics.reduction import Reduction
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System

H, END = 0.1, 0.8
ALL = {**SYSTEMS, "rolling_ball": systems.rolling_ball, "suslov": systems.suslov}
TURNING = ("bent_body", "carriage", "free_body", "suslov")
"""Groups with rotations, on which retractions differ."""


@cache
def made(name, retraction="exp", alpha=0.5, tangent="exact"):
    return rdp(ALL[name](), H, retraction, alpha, tangent)


@cache
def start(name):
    """A configuration, an admissible velocity and inputs of order one."""
    dsys, rng = made(name), np.random.default_rng(5)
    space = dsys.system.space
    q = space.retract(space.origin, rng.uniform(-0.8, 0.8, space.nv))
    v = dsys.velocity(dsys.state(q, rng.normal(size=space.nw)))
    return q, v, 0.3 * rng.normal(size=dsys.nu)


@cache
def end(name):
    """Configuration and velocity at the end of the forced motion, by DOP853."""
    q, v, u = start(name)
    equations = ReducedEquations(ALL[name]())
    run = solve_ivp(
        equations.rates(u), (0, END), equations.start(q, v), "DOP853", rtol=1e-12, atol=1e-13
    )
    return equations.phase(run.y[:, -1])


def errors(name, counts, **options):
    """Largest errors of (q, v) at the end after numbers of steps."""
    q, v, u = start(name)
    q1, v1 = end(name)
    found = []
    for n in counts:
        dsys = made(name, **options).with_step(END / n)
        x = dsys.simulate(dsys.state(q, v), np.tile(u, (n, 1))).states[-1]
        off = dsys.system.space.local(q1, dsys.configuration(x)), dsys.velocity(x) - v1
        found.append(np.abs(np.concatenate(off)).max())
    return np.array(found)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "carriage" else pytest.param(name, marks=pytest.mark.slow)
        for name in SYSTEMS
    ],
)
def test_the_exponential_gives_the_midpoint_rule(name):
    """The same step and derivatives, by multipliers eliminated at the middle; for systems of the
    package, see test_nonholonomic_systems.
    """
    dsys = made(name)
    rule = midpoint if name == "free_body" else nonholonomic_midpoint
    other, (q, v, u) = rule(dsys.system, H), start(name)
    x = dsys.state(q, v)
    want = other.linearize(x, u)
    np.testing.assert_allclose(dsys.step(x, u), want.x1, rtol=0, atol=1e-11)
    for got, part in zip(dsys.linearize(x, u), want):
        np.testing.assert_allclose(got, part, rtol=0, atol=1e-10 * (1 + np.abs(part).max()))


OPTIONS = [
    {"retraction": "exp"},
    {"retraction": "cay"},
    {"retraction": "exp", "tangent": "truncated"},
    {"retraction": "cay", "tangent": "truncated"},
]


@pytest.mark.parametrize(
    "name, options",
    [
        pytest.param(
            name,
            options,
            id="-".join((name, *options.values())),
            # each group and each option once in the default tests
            marks=() if i == j else pytest.mark.slow,
        )
        for i, name in enumerate(TURNING)
        for j, options in enumerate(OPTIONS)
    ],
)
def test_second_order_over_four_step_sizes(name, options):
    found = errors(name, (20, 40, 80, 160), **options)
    slopes = np.log2(found[:-1] / found[1:])
    assert found[-1] > 1e-8 and np.abs(slopes - 2).max() <= 0.1, (found, slopes)


@pytest.mark.parametrize("name", ["particle", pytest.param("bent_body", marks=pytest.mark.slow)])
def test_off_the_middle_the_order_is_one(name):
    found = errors(name, (40, 80, 160, 320), alpha=0.3)
    slopes = np.log2(found[:-1] / found[1:])
    assert np.abs(slopes - 1).max() <= 0.1, (found, slopes)


@pytest.mark.parametrize("name", ["particle", pytest.param("carriage", marks=pytest.mark.slow)])
def test_the_way_back_is_that_of_the_other_side(name):
    """`rdp(1 - alpha)` undoes `rdp(alpha)` when the velocity is reversed: what the one evaluates
    before the middle of a step the other evaluates behind it.
    """
    q, v, u = start(name)
    x, n = made(name).state(q, v), len(q)
    flip = np.where(np.arange(len(x)) < n, 1, -1)
    for alpha in (0.3, 0.0):
        there = made(name, alpha=alpha).step(x, u)
        back = flip * made(name, alpha=1 - alpha).step(flip * there, u)
        np.testing.assert_allclose(back, x, rtol=0, atol=1e-12)


def test_a_single_unknown_is_no_special_case():
    """A bead on R^2 with one direction that keeps its constraint, and a cart on R."""
    bead = System(
        "bead", Rn("x", "y"), lambda q, v: ca.sumsqr(v) / 2,
        velocity_constraint=lambda q: ca.horzcat(1, 2), symmetry=Symmetry(n_shape=0),
    )  # fmt: skip
    cart = System("cart", Rn("x"), lambda q, v: v**2 / 2, symmetry=Symmetry(n_shape=0))
    for system, velocity in ((bead, [2.0, -1.0]), (cart, [3.0])):
        dsys = rdp(system, H)
        x = dsys.step(dsys.state(np.zeros(system.space.nq), velocity))
        np.testing.assert_allclose(dsys.configuration(x), H * np.array(velocity), atol=1e-14)
        assert Reduction(system).momentum_rate(np.zeros(system.space.nq), velocity) == [0.0]


@pytest.mark.parametrize("name, default, taken", [
    ("suslov", "exp", {"rdp_exp", "rdp_cay"}),
    ("bent_body", "exp", {"rdp_exp", "rdp_cay"}),
    ("carriage", "sccsk", {"rdp_exp", "rdp_cay", "rdp_sccsk"}),
    ("rolling_ball", "sccsk", {"rdp_exp", "rdp_cay", "rdp_sccsk"}),
])  # fmt: skip
def test_the_default_retraction_is_one_of_the_group(name, default, taken):
    """SO(3) and SE(3) have no symmetrized coordinates of the second kind here."""
    system = ALL[name]()
    assert rdp(system, H).method.name == f"rdp({default}, alpha=0.5, exact)"
    assert {one for one in INTEGRATORS.fitting(system) if "rdp" in one} == taken


def test_spaces_are_parted_and_retracted_by_factors():
    space = Product(Rn("a", "b"), Product(SO3("body_", "cay"), SE2()), SE3("link_"))
    first, last = split_space(space, 6)
    assert (first.names, last.names) == (space.names[:6], space.names[6:])
    both = Product(*split_space(space, 1))
    assert (both.names, both.velocity_names) == (space.names, space.velocity_names)
    assert split_space(space, 0)[0].nq == 0 == split_space(space, space.nq)[1].nq
    exp = with_retraction(space, "exp")
    assert (exp.names, exp.velocity_names) == (space.names, space.velocity_names)
    d = np.linspace(-0.5, 0.5, space.nv)
    want = Product(Rn("a", "b"), SO3("body_"), SE2(), SE3("link_"))
    np.testing.assert_array_equal(exp.retract(space.origin, d), want.retract(space.origin, d))
    with pytest.raises(ValueError, match="no other retraction"):
        with_retraction(S2("n"), "exp")


@pytest.mark.parametrize(
    ("retraction", "tangent", "drift"),
    [
        ("exp", "exact", 0.0),
        ("cay", "exact", 0.0),
        ("sccsk", "exact", 0.0),
        ("cay", "truncated", 0.0),
        ("exp", "truncated", 2.5e-2),
        ("sccsk", "truncated", 2.5e-2),
    ],
)
def test_momenta_of_free_translations_are_kept_but_with_a_truncated_tangent(
    retraction, tangent, drift
):
    """Of a body whose rotation follows its shape: the translations are horizontal symmetries."""
    step = rdp(body_that_turns_with_its_shape(), 0.1, retraction, tangent=tangent)
    states = step.simulate(
        step.state([0.0, 0.3, 0.0, 0.0], [2.0, -1.0, 0.7, 0.4]), steps=200
    ).states
    c, s = np.cos(states[:, 1]), np.sin(states[:, 1])
    forward, side = states[:, 5:].T
    momentum = np.stack([c * forward - s * side, s * forward + c * side], axis=1)
    assert np.abs(momentum - momentum[0]).max() == pytest.approx(drift, rel=0.1, abs=1e-12)


def body_that_turns_with_its_shape():
    """A planar body with an inner mass, `omega = -r_dot / 2`."""
    return System(
        name="turning",
        space=Product(Rn("r"), SE2()),
        lagrangian=lambda q, v: (
            (v[0] ** 2 + v[1] ** 2 + 2 * (v[2] ** 2 + v[3] ** 2) + 0.4 * v[0] * v[2]) / 2
        ),
        velocity_constraint=lambda q: ca.horzcat(0.5, 1, 0, 0),
        distribution=lambda q: ca.vertcat(
            ca.horzcat(1, 0, 0), ca.horzcat(-0.5, 0, 0), ca.horzcat(0, 1, 0), ca.horzcat(0, 0, 1)
        ),
        symmetry=Symmetry(
            1,
            connection=lambda r: ca.vertcat(0.5, 0, 0),
            basis=lambda r: ca.vertcat(ca.horzcat(0, 0), ca.horzcat(1, 0), ca.horzcat(0, 1)),
        ),
    )
