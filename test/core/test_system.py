"""What a user may not write, and what the error says; parameters of the systems."""

import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from refusals import refusal

import nh_control as nh
from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import SE2, Rn
from nh_control.integrators import midpoint, nonholonomic_midpoint, rdp
from nh_control.mechanics.system import System
from nh_control.systems import SnakeboardParameters, pendulum, snakeboard


def test_rotor_inertia_is_part_of_the_total():
    for inertia in (4.0, 5.0):
        with pytest.raises(ValueError, match="m l\\^2 = 4 is the total yaw inertia"):
            SnakeboardParameters(m=1.0, l=2.0, I=inertia)
    with pytest.raises(ValueError, match="total yaw inertia"):
        replace(SnakeboardParameters(), m=0.25)


def point(**changes) -> System:
    """A particle in the plane that may only move along (cos x, sin x), with changes."""
    fields = dict(
        name="point",
        space=Rn("x", "y"),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2,
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u, 0),
        velocity_constraint=lambda q: ca.horzcat(ca.sin(q[0]), -ca.cos(q[0])),
        distribution=lambda q: ca.vertcat(ca.cos(q[0]), ca.sin(q[0])),
    )
    return System(**{**fields, **changes})


FREE = dict(velocity_constraint=None, distribution=None)
UNDRIVEN = dict(inputs=(), force=None)
BELT = dict(space=Rn("x", "y", "belt"), prescribed=("belt",), **UNDRIVEN)


def rolling(rows, **changes):
    """A constraint without a distribution."""
    return dict(velocity_constraint=rows, distribution=None, **changes)


def lagrangian(function, **changes):
    return dict(lagrangian=function, **changes)


WRONG = {
    "inputs without a force": dict(force=None),
    "a force of another shape": dict(force=lambda q, v, u: u),
    "a vector": lagrangian(lambda q, v: v),
    "fourth degree": lagrangian(lambda q, v: ca.sumsqr(v) ** 2),
    "no mass": lagrangian(lambda q, v: v[1] ** 2 / 2),
    "dependent rows": dict(
        velocity_constraint=lambda q: ca.SX([[1, 2], [2, 4]]), distribution=lambda q: ca.SX(2, 0)
    ),
    "dependent rows without a distribution": rolling(lambda q: ca.SX([[1, 2], [2, 4]])),
    "a constraint that vanishes": rolling(lambda q: q[0] * ca.SX([[0, 1]])),
    "a constraint of velocities": rolling(lambda q: ca.horzcat(ca.SX.sym("speed"), -1)),
    "a NaN": lagrangian(lambda q, v: np.nan * ca.sumsqr(v)),
    "a lagrangian of another library": lagrangian(lambda q, v: ca.sumsqr(v) / 2 + math.cos(q[0])),
    "a force of another library": dict(force=lambda q, v, u: ca.vertcat(math.sin(u), 0)),
    "a domain of another library": dict(domain=lambda q: float(q[0])),
    "an if": lagrangian(lambda q, v: ca.sumsqr(v) / 2 - max(q[0], 0)),
    "a negative mass": lagrangian(lambda q, v: -ca.sumsqr(v) / 2),
    "a negative mass of a nanogram": lagrangian(
        lambda q, v: 1e-12 * (v[0] ** 2 - v[1] ** 2) / 2, **FREE
    ),
    "more constraints than coordinates": rolling(lambda q: ca.SX([[1, 0], [0, 1], [1, 1]])),
    "as many": rolling(lambda q: ca.SX.eye(2)),
    "more rows than what is not prescribed": rolling(
        lambda q: ca.SX([[1, 0, 0], [0, 1, 2], [0, 0, 1]]), **BELT
    ),
    "more holonomic constraints than what is not prescribed": {
        **BELT,
        **FREE,
        "space": Rn("x", "belt"),
    }
    | dict(holonomic_constraint=lambda q: ca.vertcat(q[0], q[0] - q[1])),
    "more holonomic constraints than velocities": dict(
        holonomic_constraint=lambda q: ca.vertcat(q[0], q[1])
    ),
    "an infinite constraint": rolling(lambda q: ca.horzcat(1 / q[0], 1)),
    "a distribution that violates the constraint": dict(
        distribution=lambda q: ca.vertcat(ca.sin(q[0]), ca.cos(q[0]))
    ),
    "a distribution that violates it away from the origin": dict(
        distribution=lambda q: ca.vertcat(ca.cos(q[0]), -ca.sin(q[0]))
    ),
    "a wide distribution": dict(distribution=lambda q: ca.SX.zeros(2, 2)),
    "a distribution alone": dict(velocity_constraint=None),
    "a wide constraint": dict(velocity_constraint=lambda q: ca.SX([[1, 0, 0]])),
    "more units": dict(input_units=("N", "N")),
    "fewer units": dict(inputs=("push", "pull"), force=lambda q, v, u: u, input_units=("N",)),
    "limits of another shape": dict(input_limits=[-1.0, 1.0]),
    "limits of more inputs": dict(input_limits=[[-1.0, 1.0]] * 2),
    "limits upside down": dict(input_limits=[[1.0, -1.0]]),
    "limits that are NaN": dict(input_limits=[[np.nan, 1.0]]),
    "limits that leave nothing": dict(input_limits=[[1.0, 1.0]]),
    "a drift alone": dict(velocity_drift=lambda q: q[0], **FREE),
    "a long drift": dict(velocity_drift=lambda q: q),
    "a prescribed coordinate before another": dict(prescribed=("x",), **FREE),
    "prescribed coordinates in another order": dict(
        space=Rn("z", "x", "y"), prescribed=("y", "x"), **UNDRIVEN, **FREE
    ),
    "a prescribed coordinate of a pose": dict(space=SE2(), prescribed=("y",), **UNDRIVEN, **FREE),
}


def test_wrong_systems_are_refused(snapshot):
    assert {name: refusal(lambda: point(**changes)) for name, changes in WRONG.items()} == snapshot


@pytest.mark.parametrize("function", [lambda q, v: ca.horzcat(v[1], -v[0]), lambda: ca.SX(1, 2)])
def test_a_constraint_of_other_arguments_is_a_type_error(function):
    with pytest.raises(TypeError) as error:
        point(velocity_constraint=function)
    words = ["point", "velocity_constraint", "A(q)", "1 argument", "linear in v"]
    assert all(word in str(error.value) for word in words), error.value


def test_a_function_of_time_is_told_how_time_is_had(snapshot):
    for changes in (
        dict(lagrangian=lambda q, v, t: t),
        dict(force=lambda q, v, u, t: u),
        dict(holonomic_constraint=lambda q, t: t),
    ):
        assert refusal(lambda: point(**changes)) == snapshot


@pytest.mark.parametrize("distance, fits", [(1e-13, True), (2e-15, False)])
def test_a_mass_matrix_is_singular_where_its_scaled_eigenvalue_is_1e_14(distance, fits):
    def build():
        c = 1 - distance
        lagrangian = lambda q, v: 5e3 * v[0] ** 2 + v[1] ** 2 / 2 + 100 * c * v[0] * v[1]
        return System("tied", Rn("x", "y"), lagrangian)

    if fits:
        assert build().nrho == 2
        return
    with pytest.raises(ValueError, match="singular or not finite at q = .0.0, 0.0."):
        build()


def polar(**changes) -> System:
    """A particle in the plane in polar coordinates."""
    return System(
        "polar", Rn("r", "phi"), lambda q, v: (v[0] ** 2 + q[0] ** 2 * v[1] ** 2) / 2, **changes
    )


def test_coordinates_that_are_singular_at_the_origin_are_judged_elsewhere():
    with pytest.raises(ValueError, match="singular .* q = .0.0, 0.0.: .* `nominal`"):
        polar()
    dsys = midpoint(polar(nominal=[1.0, 0.0]), 0.01)
    states = dsys.simulate(dsys.state([1.0, 0.0], [0.0, 1.0]), steps=100).states
    r, phi = states[:, 0], states[:, 1]
    assert r * np.cos(phi) == pytest.approx(np.ones(101), abs=1e-4)
    for wrong in ([1.0], [np.nan, 0.0], [1.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="nominal must be a configuration, 2 finite"):
            polar(nominal=wrong)


def test_a_nominal_configuration_lies_on_its_manifold_and_cannot_be_changed():
    def body(nominal):
        return System("body", SO3(), lambda q, v: ca.sumsqr(v) / 2, nominal=nominal)

    turned = body([0.6, 0.8, 0.0, 0.0])
    assert turned.nominal_configuration.tolist() == [0.6, 0.8, 0.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        turned.nominal_configuration[0] = 1.0
    assert body([1 + 0.9e-9, 0.0, 0.0, 0.0]).nominal_configuration[0] == 1 + 0.9e-9
    for off in ([0.6, 0.8001, 0.0, 0.0], [1 + 1.1e-9, 0.0, 0.0, 0.0], [1 - 1.1e-9, 0, 0, 0]):
        with pytest.raises(ValueError, match="nominal must be a configuration, 4 finite"):
            body(off)


def test_limits_of_prescribed_coordinates_may_follow_those_of_the_inputs():
    held = dict(velocity_constraint=None, distribution=None, prescribed=("y",))
    given, free = [[-1.0, 2.0], [-3.0, 4.0]], [-np.inf, np.inf]
    assert point(**held, input_limits=given).input_bounds.tolist() == given
    assert point(**held, input_limits=given[:1]).input_bounds.tolist() == [given[0], free]
    assert point(**held).input_bounds.tolist() == [free, free]


def test_dependent_velocities_are_chosen_at_the_nominal_configuration():
    turned = dict(velocity_constraint=lambda q: q[0] * ca.SX([[0, 1]]), distribution=None)
    with pytest.raises(ValueError, match="depend .* `nominal`"):
        point(**turned)
    assert point(**turned, nominal=[1.0, 0.0]).mechanics.elimination.dependent == (1,)


def test_wrong_choices_of_an_integrator_list_the_right_ones(snapshot):
    choices = (
        lambda: midpoint(snakeboard(), 0.1),
        lambda: midpoint(pendulum(), 0.1, "right"),
        lambda: nonholonomic_midpoint(snakeboard(), 0.1, "right"),
        lambda: rdp(pendulum(), 0.1),
        lambda: rdp(snakeboard(), 0.1, "euler"),
        lambda: rdp(snakeboard(), 0.1, tangent="rough"),
        lambda: rdp(snakeboard(), 0.1, alpha=1.5),
        lambda: rdp(snakeboard(), 0.1, alpha=np.nan),
    )
    assert [refusal(make) for make in choices] == snapshot


def test_dependent_velocities_may_be_chosen():
    """With another choice of dependent velocities the motion is the same."""
    starts = np.array([0.2, 0.2]), np.array([np.cos(1.2), np.sin(1.2)])
    paths = []
    for dependent in ((0,), (1,)):
        turned = point(
            velocity_constraint=lambda q: ca.horzcat(ca.sin(q[0] + 1), -ca.cos(q[0] + 1)),
            distribution=None,
            dependent=dependent,
        )
        assert turned.mechanics.elimination.dependent == dependent
        dsys = nonholonomic_midpoint(turned, 0.05)
        paths.append(dsys.simulate(dsys.state(*starts), np.full((20, 1), 0.1)).states[:, :2])
    assert np.abs(paths[0] - paths[1]).max() <= 1e-12


def cart():
    return nh.midpoint(nh.systems.cart_pole(), 0.02)


def gain(Q):
    return nh.lqr.infinite_horizon(cart(), np.zeros(4), [0], Q=Q, R=[[1]])


def turning(**options):
    return nh.System("top", nh.SO3(), lambda q, v: ca.sumsqr(v) / 2, **options)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: gain(np.eye(4) + np.eye(4, k=1)), r"but Q\[0, 1\] = 1 and Q\[1, 0\] = 0; \(Q"),
        (lambda: gain(np.full((4, 4), np.nan)), "Q must be finite"),
        (
            lambda: nh.System("s", nh.Rn("x"), lambda q, v: None),
            r"s: lagrangian\(q, v\): the function returns None; end it with `return`",
        ),
        (lambda: cart().simulate([0] * 4, [0.0], steps=-3), "must be 0 or more, got -3"),
        (lambda: cart().simulate([0] * 4, -3), "must be 0 or more, got -3"),
        (lambda: cart().simulate([0] * 4, 3), r"has 1 inputs: pass one input .*\[0.0\], or a"),
        (lambda: nh.midpoint(turning(), 0.1).state([0.1, 0.2, 0.3], [0] * 3), "not Euler angles"),
        (lambda: turning(nominal=[0.0, 0.0, 0.0]), "not Euler angles"),
    ],
)
def test_common_mistakes_have_their_own_sentences(mistake, message):
    with pytest.raises(ValueError, match=message):
        mistake()
