"""Groups are groups and actions are actions, in all coordinates: what Lie group integrators take
for granted, on random points.

Derivatives are differences of eighth order of the maps themselves.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from differences import jacobian
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusal

from nh_control.geometry.cotangent import CotangentGroup
from nh_control.geometry.groups import SE2Group, SE3Group, SO3Group, VectorGroup
from nh_control.geometry.homogeneous import (
    CoadjointAction,
    HomogeneousSpace,
    LeftMultiplication,
    ProductAction,
    RightMultiplication,
    SphereAction,
    TangentSphereAction,
    TranslationAction,
    phase_action,
    pose_action,
)
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn

KINDS = ("exp", "cay", "second")
GROUPS = {
    "vectors": VectorGroup(3),
    **{f"{c.__name__}-{k}": c(k) for c in (SO3Group, SE2Group, SE3Group) for k in KINDS},
    **{
        f"CotangentGroup-{g.__name__}-{k}": CotangentGroup(g(), k)
        for g in (SO3Group, SE2Group, SE3Group)
        for k in ("exp", "second")
    },
}
ALL = Product(Rn("a", "b"), SO3("s_"), S2("l_"), SE2(), SE3("b_"))
ACTIONS = {
    **{
        f"left {name}": LeftMultiplication(g, [f"g{i}" for i in range(g.n)])
        for name, g in GROUPS.items()
    },
    **{
        f"right {name}": RightMultiplication(g, [f"g{i}" for i in range(g.n)])
        for name, g in GROUPS.items()
    },
    **{
        f"coadjoint {name}": CoadjointAction(g, [f"m{i}" for i in range(g.dim)])
        for name, g in GROUPS.items()
    },
    **{f"directions {k}": SphereAction(coordinates=k) for k in KINDS},
    **{f"tangent directions {k}": TangentSphereAction(coordinates=k) for k in KINDS},
    **{f"phase {k}": phase_action(ALL, coordinates=k) for k in KINDS},
}
NEGATIVE = [name for name in ACTIONS if "second" not in name]
"""Coordinates with tau(-v) = tau(v)^{-1}."""


every_group = pytest.mark.parametrize("name", GROUPS)
every_action = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if "Cotangent" in name else ())
        for name in ACTIONS
    ],
)
few = settings(max_examples=4)
seeds = given(seed=st.integers(0, 2**32 - 1))


def unit(x):
    return x / np.linalg.norm(x)


def element(group, rng):
    """A seeded group element (n)."""
    g = rng.normal(size=group.n)
    at = {SO3Group: 4, SE3Group: 4}.get(type(getattr(group, "group", group)))
    g[:at] = unit(g[:at]) if at else g[:at]
    return g


def point(action, rng):
    """A seeded point of the manifold."""
    if isinstance(action, ProductAction):
        x = np.zeros(action.nx)
        for factor, at in zip(action.factors, action.places):
            x[at] = point(factor, rng)
        return x
    if isinstance(action, LeftMultiplication):
        return element(action.group, rng)
    x = rng.normal(size=action.nx)
    if isinstance(action, (SphereAction, TangentSphereAction)):
        x[:3] = unit(x[:3])
        x[3:] -= x[:3] @ x[3:] * x[:3] if len(x) > 3 else 0
    return x


def vector(n, rng):
    """A seeded algebra element (n) of length one: angles below those where charts end."""
    return unit(rng.normal(size=n))


@cache
def group_functions(name):
    group = GROUPS[name]
    (u, v, mu), (g, k) = (
        [ca.SX.sym(s, group.dim) for s in "uvm"],
        [ca.SX.sym(s, group.n) for s in "gk"],
    )
    outputs = {
        "tau": ([u], group.tau(u)),
        "multiply": ([g, k], group.multiply(g, k)),
        "bracket": ([u, v], group.bracket(u, v)),
        "ad_star": ([u, mu], group.ad_star(u, mu)),
        "adjoint": ([g, v], group.adjoint(g, v)),
        "coadjoint": ([g, mu], group.coadjoint(g, mu)),
        "dexp": ([u, v], group.dexp(u, v)),
        "dtau_inverse": ([u, v], group.dtau_inverse(u, v)),
        "normalize": ([g], group.normalize(g)),
    }
    return {key: numeric(*value) for key, value in outputs.items()}


@cache
def action_functions(name):
    action = ACTIONS[name]
    x, u, v = ca.SX.sym("x", action.nx), ca.SX.sym("u", action.dim), ca.SX.sym("v", action.dim)
    outputs = {
        "act": ([u, x], action.act(u, x)),
        "generator": ([x, v], action.generator(x) @ v),
        "bracket": ([u, v], action.bracket(u, v)),
        "dtau_inverse": ([u, v], action.dtau_inverse(u, v)),
        "normalize": ([x], action.normalize(x)),
        "series": ([u, v], action.dexp_inverse_series(u, v, 11)),
    }
    return {key: numeric(*value) for key, value in outputs.items()}


def numeric(arguments, value):
    function = ca.Function("f", arguments, [ca.densify(value)])
    return lambda *numbers: np.asarray(function(*numbers))[:, 0]


def value(expression):
    """An expression without symbols, in numbers."""
    return np.asarray(ca.evalf(ca.SX(expression)))[:, 0]


def close(a, b, tolerance=1e-12):
    assert np.isfinite(b).all()  # NaN would agree with NaN
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * (1 + np.abs(b).max(initial=0.0)))


def slope(f):
    """Derivative of f(e) at e = 0."""
    return jacobian(lambda e: f(e[0]), 1, 0.01)[:, 0]


# --- groups --------------------------------------------------------------------------------------


@every_group
@few
@seeds
def test_groups_and_their_representations(name, seed):
    """Products are associative; Ad and Ad* are representations, ad and ad* their derivatives; the
    pairing of Ad* with Ad is invariant.
    """
    f, group, rng = group_functions(name), GROUPS[name], np.random.default_rng(seed)
    (g, k, m), (u, v) = (
        [element(group, rng) for _ in range(3)],
        [vector(group.dim, rng) for _ in range(2)],
    )
    mu, times = rng.normal(size=group.dim), f["multiply"]
    close(times(times(g, k), m), times(g, times(k, m)))
    identity = f["tau"](np.zeros(group.dim))
    close(times(identity, g), g), close(times(g, identity), g)
    close(f["normalize"](g), g)
    close(f["adjoint"](times(g, k), v), f["adjoint"](g, f["adjoint"](k, v)))
    close(f["coadjoint"](times(g, k), mu), f["coadjoint"](g, f["coadjoint"](k, mu)))
    close([f["coadjoint"](g, mu) @ f["adjoint"](g, v)], [mu @ v])
    close([f["ad_star"](u, mu) @ v], [mu @ f["bracket"](u, v)])
    close(slope(lambda e: f["adjoint"](f["tau"](e * u), v)), f["bracket"](u, v), 1e-11)
    close(slope(lambda e: f["coadjoint"](f["tau"](e * u), mu)), -f["ad_star"](u, mu), 1e-11)


def test_every_number_belongs_to_one_block():
    """To what is rounded together: a rotation, a place, a momentum."""
    for group in GROUPS.values():
        for blocks, n in ((group.blocks, group.n), (group.algebra_blocks, group.dim)):
            assert sorted(i for block in blocks for i in block) == list(range(n)), group
    for name, action in ACTIONS.items():
        numbers = [i for block in action.blocks for i in block]
        assert sorted(numbers) == list(range(len(action.names))), name


@pytest.mark.parametrize("name", [name for name in GROUPS if name.endswith("exp")])
@few
@seeds
def test_dexp_and_its_inverse(name, seed):
    f, group, rng = group_functions(name), GROUPS[name], np.random.default_rng(seed)
    u, v = (vector(group.dim, rng) for _ in range(2))
    close(f["dexp"](u, f["dtau_inverse"](u, v)), v)
    close(f["tau"](1.7 * u), f["multiply"](f["tau"](u), f["tau"](0.7 * u)))


# --- actions -------------------------------------------------------------------------------------


@every_action
@few
@seeds
def test_actions_are_actions(name, seed):
    """The generator is the derivative at zero, points stay on the manifold, and what is there
    already is settled.
    """
    f, action, rng = action_functions(name), ACTIONS[name], np.random.default_rng(seed)
    x, u, v = point(action, rng), vector(action.dim, rng), vector(action.dim, rng)
    close(f["act"](np.zeros(action.dim), x), x)
    close(slope(lambda e: f["act"](e * v, x)), f["generator"](x, v), 1e-11)
    moved = f["act"](u, x)
    close(f["normalize"](moved), moved)
    if name in NEGATIVE:
        close(f["act"](-u, moved), x)


@every_action
@few
@seeds
def test_coordinates_follow_their_velocity(name, seed):
    """`d/de tau(u + e dtau^{-1}_u(v)) . x = generator(tau(u) . x) v`."""
    f, action, rng = action_functions(name), ACTIONS[name], np.random.default_rng(seed)
    x, u, v = point(action, rng), vector(action.dim, rng), vector(action.dim, rng)
    rate = f["dtau_inverse"](u, v)
    moving = slope(lambda e: f["act"](u + e * rate, x))
    close(moving, f["generator"](f["act"](u, x), v), 1e-9)


@every_action
@few
@seeds
def test_brackets_belong_to_the_generators(name, seed):
    """The generators' bracket `DY X - DX Y` is `-generator [u, v]`, whatever side the group
    multiplies from.
    """
    f, action, rng = action_functions(name), ACTIONS[name], np.random.default_rng(seed)
    x, u, v = point(action, rng), vector(action.dim, rng), vector(action.dim, rng)
    generator = f["generator"]

    def along(a, b):
        """Derivative of the field of b along that of a."""
        return slope(lambda e: generator(f["act"](e * a, x), b))

    close(along(u, v) - along(v, u), -generator(x, f["bracket"](u, v)), 1e-10)


@pytest.mark.parametrize("name", [name for name in ACTIONS if "exp" in name])
def test_the_series_is_that_of_dexp_inverse(name):
    """Eleven terms leave `B_12 / 12! ad_u^12`, below 1e-8 for brackets as large as those here."""
    f, action, rng = action_functions(name), ACTIONS[name], np.random.default_rng(5)
    u, v = vector(action.dim, rng) / 2, vector(action.dim, rng)
    close(f["series"](u, v), f["dtau_inverse"](u, v), 1e-9)


def test_an_action_of_ones_own_needs_two_functions():
    """The affine group of the line, `x -> e^a x + b t`, with the series for dexp^{-1}."""

    class Affine(HomogeneousSpace):
        names, dim = ("x",), 2

        def act(self, v, x):
            stretch = ca.if_else(v[0] == 0, 1, (ca.exp(v[0]) - 1) / (v[0] + (v[0] == 0)))
            return ca.exp(v[0]) * x + stretch * v[1]

        def bracket(self, u, v):
            return ca.vertcat(0, u[0] * v[1] - v[0] * u[1])

    action = Affine()
    u, v, x = np.array([0.3, 0.4]), np.array([0.5, -0.7]), np.array([1.2])
    rate = value(action.dtau_inverse(ca.SX(u), ca.SX(v)))
    act = lambda w: value(action.act(ca.SX(w), ca.SX(x)))
    moved = act(u)
    close(slope(lambda e: act(u + e * rate)), v[0] * moved + v[1], 1e-10)


class Elsewhere(Rn.__base__):
    """A space that no group is known for."""

    names = velocity_names = ("a",)
    origin = np.zeros(1)
    _retract = _local = lambda self, a, b: a


def test_wrong_arguments_are_named(snapshot):
    two, one = TranslationAction("a", "b"), TranslationAction("c")
    wrong = (
        lambda: SO3Group("cayley"),
        lambda: LeftMultiplication(SO3Group(), ("a", "b")),
        lambda: RightMultiplication(SO3Group(), tuple("abcde")),
        lambda: ProductAction(two, one, places=[[0, 1], [1]]),
        lambda: CotangentGroup(SE3Group("cay")),
        lambda: pose_action(Elsewhere()),
    )
    assert [refusal(make) for make in wrong] == snapshot


def cayley(u):
    """The rotation (3, 3) of Cayley's map."""
    half = np.cross(np.eye(3), u) / 2
    return np.linalg.solve(np.eye(3) - half, np.eye(3) + half)


def test_unit_vectors_move_in_the_coordinates_of_the_group():
    u, q = np.array([0.6, -0.9, 0.4]), np.array([0.0, 0.6, 0.8])
    w = np.cross(q, [1.0, 2.0, 3.0])
    alone, pair, of_space = (
        action("cay")
        for action in (
            lambda c: SphereAction(coordinates=c),
            lambda c: TangentSphereAction(coordinates=c),
            lambda c: phase_action(S2(), coordinates=c),
        )
    )
    close(value(alone.act(ca.SX(u), ca.SX(q))), cayley(u) @ q)
    motion, x = ca.SX([*u, 0.1, 0.2, 0.3]), ca.SX([*q, *w])
    for action in (pair, of_space):
        close(value(action.act(motion, x))[:3], cayley(u) @ q)
    close(value(of_space.act(motion, x)), value(pair.act(motion, x)))
    assert np.abs(value(SphereAction().act(ca.SX(u), ca.SX(q))) - cayley(u) @ q).max() > 1e-2
