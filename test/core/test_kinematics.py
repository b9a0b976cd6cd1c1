"""Rates of positions and kinetic energies in a user's functions, and `ca.jtimes` there."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.external_forces import on_coordinates
from nh_control.scenarios.error_metrics import coordinate_units


def tip(q):
    """The position of a pole's mass on a cart."""
    return ca.vertcat(q[0] + 0.5 * ca.sin(q[1]), 0.5 * ca.cos(q[1]))


def cart_pole(kinetic):
    return nh.System(
        name="cart_pole",
        space=nh.Rn("x", "angle", units=("m", "rad")),
        lagrangian=lambda q, v: 0.5 * v[0] ** 2 + kinetic(q, v) - 0.1 * 9.8 * tip(q)[1],
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u, 0),
    )


def by_hand(q, v):
    return 0.05 * v[0] ** 2 + 0.05 * ca.cos(q[1]) * v[0] * v[1] + 0.0125 * v[1] ** 2


def taking(system):
    """The names of all methods that take a system; of every family one is tested by default."""
    quick = ("midpoint", "variational_gauss_4", "spark_2", "gonzalez", "itoh_abe", "rkmk4")
    return [
        pytest.param(name, marks=() if name in quick else pytest.mark.slow)
        for name, entry in INTEGRATORS.items()
        if "_order" not in name and entry.takes(system)
    ]


WAYS = {
    "jtimes": lambda q, v: 0.05 * ca.sumsqr(ca.jtimes(tip(q), q, v)),
    "jacobian": lambda q, v: 0.05 * ca.sumsqr(ca.jacobian(tip(q), q) @ v),
    "velocity": lambda q, v: 0.05 * ca.sumsqr(nh.velocity(tip(q), q, v)),
    "of a function": lambda q, v: 0.05 * ca.sumsqr(nh.velocity(tip, q, v)),
    "kinetic_energy": lambda q, v: nh.kinetic_energy(0.1, tip(q), q, v),
}


@pytest.fixture(scope="module")
def plain():
    return cart_pole(by_hand)


@pytest.fixture(scope="module")
def differentiated():
    return cart_pole(WAYS["jtimes"])


@pytest.mark.parametrize("way", WAYS)
def test_the_energy_is_that_by_hand(way, plain):
    step = nh.midpoint(cart_pole(WAYS[way]), 0.02)
    same = nh.midpoint(plain, 0.02)
    x = same.state([0.1, 0.4], [0.3, -0.2])
    np.testing.assert_allclose(step.state([0.1, 0.4], [0.3, -0.2]), x, rtol=1e-14)
    np.testing.assert_allclose(step.step(x, [0.5]), same.step(x, [0.5]), rtol=1e-12)


@pytest.mark.parametrize("name", taking(cart_pole(by_hand)))
def test_every_method_takes_a_lagrangian_that_differentiates(name, plain, differentiated):
    """It makes the step of the same Lagrangian by hand."""
    entry = INTEGRATORS[name]
    steps = []
    for system in (plain, differentiated):
        dsys = entry(system, 0.02)
        steps.append(dsys.step(dsys.state([0.1, 0.4], [0.3, -0.2]), [0.5]))
    np.testing.assert_allclose(*steps, rtol=1e-9, atol=1e-12)


def test_on_a_group_velocities_are_those_of_the_body():
    """A point 1 m in front of a sleigh that moves sideways and turns; on a rotation, w x r."""
    seen = []

    def lagrangian(q, v):
        point = ca.vertcat(q[1] + ca.cos(q[0]), q[2] + ca.sin(q[0]))
        seen.append(ca.Function("rate", [q, v], [nh.velocity(point, q, v)]))
        return ca.sumsqr(v) / 2

    nh.System(name="plane", space=nh.SE2(), lagrangian=lagrangian)
    np.testing.assert_allclose(seen[0]([np.pi / 2, 0, 0], [2, 3, 1]).full().ravel(), [-3, 3])
    space, q, v = nh.SO3(), ca.SX.sym("q", 4), ca.SX.sym("v", 3)
    at, r = space.retract(space.origin, [0.3, -0.2, 0.5]), np.array([1.0, 2.0, 3.0])

    def turned(q):
        w, x = q[0], q[1:]
        return (w**2 - ca.dot(x, x)) * r + 2 * ca.dot(x, r) * x + 2 * w * ca.cross(x, r)

    rate = ca.Function("rate", [q, v], [nh.velocity(turned, q, v, space=space)])
    turn = ca.Function("turn", [q], [turned(q)])
    w = np.array([0.4, 0.1, -0.7])
    ahead, behind = (turn(space.retract(at, sign * 1e-6 * w)).full() for sign in (1, -1))
    np.testing.assert_allclose(rate(at, w).full(), (ahead - behind) / 2e-6, atol=1e-8)


def test_kinetic_energy_of_a_body_that_turns():
    q, v, space = ca.SX.sym("q", 2), ca.SX.sym("v", 2), nh.Rn("x", "angle")
    energy = nh.kinetic_energy(2.0, q[0], q, v, inertia=3.0, angle=2 * q[1], space=space)
    found = ca.Function("energy", [q, v], [energy])
    assert float(found([0.0, 0.0], [0.5, 0.2])) == pytest.approx(0.25 + 1.5 * 0.16)


def test_units_of_coordinates_are_shown():
    space = nh.Product(nh.SE2(), nh.Rn("heading", "s", "n", units=("rad", "m", "")))
    assert space.units == {"theta": "rad", "x": "m", "y": "m", "heading": "rad", "s": "m"}
    scenario = SimpleNamespace(body=None, joints=())
    assert coordinate_units(scenario, space) == space.units | {"n": "m"}
    units = {target.name: target.units for target in on_coordinates(space)}
    assert (units["heading"], units["s"], units["n"]) == (("N m",), ("N",), ("N or N m",))
    with pytest.raises(ValueError, match="a unit for each"):
        nh.Rn("x", "y", units=("m",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda q, v: (q[0], q, v), "pass the configuration space"),
        (
            lambda q, v: (q[0], q, v[0], nh.Rn("x", "y")),
            "with 2 entries and v with 2, got 2 and 1",
        ),
        (lambda q, v: (2 * q[0], 2 * q, v, nh.Rn("x", "y")), "as a function of q"),
    ],
)
def test_what_has_no_velocity_is_told(arguments, message):
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    with pytest.raises(ValueError, match=message):
        nh.velocity(*arguments(q, v))
