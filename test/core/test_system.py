"""What a user may not write, and what the error says; parameters of the systems."""

import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import SE2, Rn
from nh_control.integrators import midpoint, nonholonomic_midpoint, rdp
from nh_control.mechanics.system import System
from nh_control.systems import (
    SnakeboardParameters,
    pendulum,
    snakeboard,
)


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
    "inputs without a force": (dict(force=None), "push|force"),
    "a force of another shape": (dict(force=lambda q, v, u: u), "force|(2, 1)|(1, 1)"),
    "a vector": (lagrangian(lambda q, v: v), "lagrangian|(1, 1)|(2, 1)"),
    "fourth degree": (lagrangian(lambda q, v: ca.sumsqr(v) ** 2), "quadratic"),
    "no mass": (
        lagrangian(lambda q, v: v[1] ** 2 / 2),
        "mass matrix|singular|q = [0.0, 0.0]|kinetic energy",
    ),
    "dependent rows": (
        dict(
            velocity_constraint=lambda q: ca.SX([[1, 2], [2, 4]]),
            distribution=lambda q: ca.SX(2, 0),
        ),
        "rows [1]|q = [0.0, 0.0]|drop dependent rows",
    ),
    "dependent rows without a distribution": (
        rolling(lambda q: ca.SX([[1, 2], [2, 4]])),
        "rows [1]|q = [0.0, 0.0]|drop dependent rows",
    ),
    "a constraint that vanishes": (
        rolling(lambda q: q[0] * ca.SX([[0, 1]])),
        "rows [0]|q = [0.0",
    ),
    "a constraint of velocities": (
        rolling(lambda q: ca.horzcat(ca.SX.sym("speed"), -1)),
        "speed|A(q) v = b(q)|without v|depends on [SX(speed)]|the matrix A(q) of A(q) v",
    ),
    "a NaN": (lagrangian(lambda q, v: np.nan * ca.sumsqr(v)), "lagrangian(q, v)|NaN"),
    "a lagrangian of another library": (
        lagrangian(lambda q, v: ca.sumsqr(v) / 2 + math.cos(q[0])),
        "lagrangian(q, v) contains NaN|CasADi's functions|ca.cos|math",
    ),
    "a force of another library": (
        dict(force=lambda q, v, u: ca.vertcat(math.sin(u), 0)),
        "force(q, v, u) contains NaN|CasADi's functions",
    ),
    "a domain of another library": (
        dict(domain=lambda q: float(q[0])),
        "domain(q) contains NaN|float()",
    ),
    "an if": (
        lagrangian(lambda q, v: ca.sumsqr(v) / 2 - max(q[0], 0)),
        "lagrangian(q, v) fails|truth value|ca.fmax, ca.if_else",
    ),
    "a negative mass": (
        lagrangian(lambda q, v: -ca.sumsqr(v) / 2),
        "not positive definite|eigenvalue is -1|kinetic less potential energy",
    ),
    "a negative mass of a nanogram": (
        lagrangian(lambda q, v: 1e-12 * (v[0] ** 2 - v[1] ** 2) / 2, **FREE),
        "not positive definite|eigenvalue is -1e-12",
    ),
    "more constraints than coordinates": (
        rolling(lambda q: ca.SX([[1, 0], [0, 1], [1, 1]])),
        "rows [2]|drop dependent rows",
    ),
    "as many": (rolling(lambda q: ca.SX.eye(2)), "2 rows|the 2 velocities|drop rows"),
    "only what is prescribed is left": (
        rolling(lambda q: ca.SX([[1, 0, 0], [0, 1, 2]]), **BELT),
        "2 rows|the 2 velocities that are not prescribed|drop rows",
    ),
    "more holonomic constraints than what is not prescribed": (
        {**BELT, **FREE, "space": Rn("x", "belt")}
        | dict(holonomic_constraint=lambda q: ca.vertcat(q[0], q[0] - q[1])),
        "holonomic_constraint has 2 equations for 1 admissible",
    ),
    "more holonomic constraints than velocities": (
        dict(holonomic_constraint=lambda q: ca.vertcat(q[0], q[1])),
        "holonomic_constraint has 2 equations for 1 admissible|drop",
    ),
    "an infinite constraint": (
        rolling(lambda q: ca.horzcat(1 / q[0], 1)),
        "velocity_constraint is not finite|q = [0.0, 0.0]",
    ),
    "a distribution that violates the constraint": (
        dict(distribution=lambda q: ca.vertcat(ca.sin(q[0]), ca.cos(q[0]))),
        "vanish",
    ),
    "a distribution that violates it away from the origin": (
        dict(distribution=lambda q: ca.vertcat(ca.cos(q[0]), -ca.sin(q[0]))),
        "vanish",
    ),
    "a wide distribution": (
        dict(distribution=lambda q: ca.SX.zeros(2, 2)),
        "distribution|(2, 1)|(2, 2)",
    ),
    "a distribution alone": (dict(velocity_constraint=None), "velocity_constraint"),
    "a wide constraint": (
        dict(velocity_constraint=lambda q: ca.SX([[1, 0, 0]])),
        "velocity_constraint",
    ),
    "more units": (dict(input_units=("N", "N")), "1 inputs|2 input_units"),
    "fewer units": (
        dict(inputs=("push", "pull"), force=lambda q, v, u: u, input_units=("N",)),
        "2 inputs|1 input_units",
    ),
    "limits of another shape": (dict(input_limits=[-1.0, 1.0]), "input_limits|(1, 2)"),
    "limits of more inputs": (dict(input_limits=[[-1.0, 1.0]] * 2), "input_limits|(1, 2)"),
    "limits upside down": (dict(input_limits=[[1.0, -1.0]]), "lower < upper"),
    "limits that are NaN": (dict(input_limits=[[np.nan, 1.0]]), "lower < upper"),
    "limits that leave nothing": (dict(input_limits=[[1.0, 1.0]]), "lower < upper"),
    "a drift alone": (
        dict(velocity_drift=lambda q: q[0], **FREE),
        "velocity_drift needs its velocity_constraint",
    ),
    "a long drift": (dict(velocity_drift=lambda q: q), "velocity_drift|(1, 1)|(2, 1)"),
    "a prescribed coordinate before another": (
        dict(prescribed=("x",), **FREE),
        "prescribed coordinates ('x',) must be the last ones|('x', 'y')",
    ),
    "prescribed coordinates in another order": (
        dict(space=Rn("z", "x", "y"), prescribed=("y", "x"), **UNDRIVEN, **FREE),
        "('y', 'x') must be the last ones",
    ),
    "a prescribed coordinate of a pose": (
        dict(space=SE2(), prescribed=("y",), **UNDRIVEN, **FREE),
        "('y',) must be the last ones of a space Rn",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_systems_are_refused(case):
    changes, words = WRONG[case]
    with pytest.raises(ValueError) as error:
        point(**changes)
    assert all(word in str(error.value) for word in ["point", *words.split("|")]), error.value


@pytest.mark.parametrize("function", [lambda q, v: ca.horzcat(v[1], -v[0]), lambda: ca.SX(1, 2)])
def test_a_constraint_of_other_arguments_is_a_type_error(function):
    with pytest.raises(TypeError) as error:
        point(velocity_constraint=function)
    words = ["point", "velocity_constraint", "A(q)", "1 argument", "linear in v"]
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(lagrangian=lambda q, v, t: t), ["lagrangian(q, v) of 2 arguments", "'t'"]),
        (dict(force=lambda q, v, u, t: u), ["force(q, v, u) of 3 arguments", "'t'"]),
        (dict(holonomic_constraint=lambda q, t: t), ["holonomic_constraint(q) of 1 argument:"]),
    ],
)
def test_a_function_of_time_is_told_how_time_is_had(changes, words):
    with pytest.raises(TypeError) as error:
        point(**changes)
    expected = ["point", *words, 'prescribed=("time",)', "t + h"]
    assert all(word in str(error.value) for word in expected), error.value


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
        "polar",
        Rn("r", "phi"),
        lambda q, v: (v[0] ** 2 + q[0] ** 2 * v[1] ** 2) / 2,
        **changes,
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


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: midpoint(snakeboard(), 0.1), ["2 velocity constraints", "nonholonomic_midpoint"]),
        (lambda: midpoint(pendulum(), 0.1, "right"), ["right", "left", "symmetric"]),
        (
            lambda: nonholonomic_midpoint(snakeboard(), 0.1, "right"),
            ["right", "left", "symmetric"],
        ),
        (lambda: rdp(pendulum(), 0.1), ["pendulum", "symmetry", "nonholonomic_midpoint"]),
        (lambda: rdp(snakeboard(), 0.1, "euler"), ["euler", "cay", "ccsk", "exp", "sccsk"]),
        (lambda: rdp(snakeboard(), 0.1, tangent="rough"), ["rough", "exact", "truncated"]),
        (lambda: rdp(snakeboard(), 0.1, alpha=1.5), ["alpha", "1.5"]),
        (lambda: rdp(snakeboard(), 0.1, alpha=np.nan), ["alpha", "nan"]),
    ],
)
def test_wrong_choices_of_an_integrator_list_the_right_ones(make, words):
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words), error.value


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
