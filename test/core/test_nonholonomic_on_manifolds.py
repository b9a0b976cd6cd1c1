"""Gauss, Lobatto and geometric nonholonomic methods with unit vectors and holonomic constraints,
beside velocity constraints: constraints over many steps, symplectic form, order, refusals.
"""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from energy_cases import (
    INPUT,
    constraint,
    discrete,
    embedding,
    held_rows,
    hung,
    start,
    system,
)
from scipy.integrate import solve_ivp

from nh_control.integrators import INTEGRATORS, explicit_runge_kutta, implicit_midpoint
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.system import System
from nh_control.systems.spherical_pendulum import spherical_pendulum

STEPS = {2: (16, 24, 36, 54), 4: (8, 12, 18, 26)}


@pytest.mark.parametrize("method", ["spark_3_d", "gni_implicit"])
def test_all_constraints_hold_over_many_steps(method):
    dsys, tied = discrete("tied", method, 0.05, forced=False), system("tied")
    states = dsys.simulate(dsys.state(*start("tied")), [0.0, 0.0], steps=300).states
    q = ca.SX.sym("q", 4)
    surface = ca.Function("h", [q, tied.parameter_symbols], [tied.holonomic(q)])
    heights = np.asarray(surface(states[:, :4].T, tied.parameter_values))
    slips = [
        np.vstack([constraint("tied", x[:4]), held_rows("tied", x[:4])]) @ dsys.velocity(x)
        for x in states
    ]
    assert np.abs(heights).max() <= 1e-14 and np.abs(slips).max() <= 1e-14
    assert np.ptp(states[:, :4], axis=0).min() > 0.5


def height(q):
    """A condition on a cart and a direction."""
    return q[0] + 0.5 * q[2] * q[3] + 0.3 * q[4] ** 2 - q[1] ** 2 / 2


def bound() -> System:
    """The cart and the direction with both kinds of constraints."""
    free = hung(0.1)
    q = np.array([0.0, -0.4, 0.6, 0.64, 0.48])
    q[0] = -float(height(q))
    return replace(free, name="bound", holonomic_constraint=lambda q, p: height(q), nominal=q)


@cache
def motion() -> tuple[System, np.ndarray, np.ndarray, np.ndarray]:
    """The system, a start with an admissible velocity, and where DOP853 arrives after 1 s."""
    one, at = bound(), ca.SX.sym("q", 5)
    rows = ca.vertcat(
        one.constraint_matrix(at),
        ca.jacobian(height(at), at),
        ca.horzcat(0, 0, at[2:].T),
    )
    q, v = np.array(one.nominal), np.array([0.3, -0.4, 0.3, 0.4, 0.5])
    a = np.asarray(ca.Function("rows", [at], [ca.densify(rows)])(q))
    v -= np.linalg.pinv(a) @ a @ v
    continuous, rates = ContinuousSystem(one), embedding(one.space)

    def derivative(_, y):
        moved = np.asarray(rates(y[:5])) @ y[5:]
        return np.concatenate([moved, continuous.acceleration(y[:5], y[5:], INPUT)])

    run = solve_ivp(derivative, (0, 1), np.append(q, v), "DOP853", rtol=1e-13, atol=1e-13)
    return one, q, v, run.y[:, -1]


@pytest.mark.parametrize("method", ["spark_2", "nonholonomic_gauss_2"])
def test_order_with_unit_vectors_and_both_kinds_of_constraints(method):
    (one, q, v, end), order, errors = motion(), INTEGRATORS[method].order, []
    built = INTEGRATORS[method].make(one, 0.1)
    for n in STEPS[order]:
        dsys = built.with_step(1 / n)
        x = dsys.simulate(dsys.state(q, v, INPUT), np.tile(INPUT, (n, 1))).states[-1]
        off = np.append(dsys.configuration(x), dsys.velocity(x)) - end
        errors.append([np.abs(off[:5]).max(), np.abs(off[5:]).max()])
        assert abs(height(x[:5])) <= 1e-14
    found = -np.polyfit(np.log(STEPS[order]), np.log(errors), 1)[0]
    assert np.abs(found - order).max() <= 0.06 * order, (found, errors)


@pytest.mark.parametrize(
    "make, reason", [(explicit_runge_kutta, "unit vectors"), (implicit_midpoint, "spheres")]
)
def test_methods_on_the_continuous_equations_take_no_spheres(make, reason):
    with pytest.raises(ValueError, match=reason):
        make(spherical_pendulum(), 0.1)


def test_a_mass_matrix_counts_on_the_tangent_vectors_alone():
    """It may be singular along the direction itself, where no velocity points."""
    system = spherical_pendulum()
    tangential = System(
        name="tangential",
        space=system.space,
        lagrangian=lambda q, v: ca.sumsqr(v - ca.dot(q, v) * q) / (2 * ca.sumsqr(q)) - 9.81 * q[2],
    )
    method = INTEGRATORS["spark_2"]
    assert method.takes(tangential)
    x = (dsys := method.make(tangential, 0.05)).state([0.6, 0.0, 0.8], [0.0, 1.0, 0.0])
    assert np.isfinite(dsys.simulate(x, [], steps=20).states).all()


@pytest.mark.parametrize("method", ["nprk_2", "si_dla", "implicit_midpoint", "gni"])
def test_methods_that_take_no_holonomic_constraints_say_so(method):
    assert "holonomic constraints" in INTEGRATORS[method].refuses(system("tied"))


def test_without_velocity_constraints_spark_is_symplectic_on_the_surface():
    """It is the pair IIIA-B of Jay (1996), RATTLE for two points, also for a mass matrix that
    depends on q: `T^T (A^T J A - J) T = 0` for the tangents T of `h(q) = 0, Dh v = 0`.
    """
    tied = system("tied", forced=False)
    free = replace(tied, name="surface", velocity_constraint=None)
    dsys = INTEGRATORS["spark_2"].make(free, 0.2)
    q, v = (np.array(each) for each in start("tied"))
    x = dsys.state(q, v)
    slope = held_rows("tied", q)
    rows = np.vstack([np.hstack([slope, np.zeros((1, 4))]), unprojected(free, x)])
    tangents = np.linalg.svd(rows)[2][2:].T
    form = np.block([[np.zeros((4, 4)), np.eye(4)], [-np.eye(4), np.zeros((4, 4))]])
    A = dsys.linearize(x, []).A
    assert np.abs(tangents.T @ (A.T @ form @ A - form) @ tangents).max() <= 1e-12


def unprojected(one: System, x: np.ndarray) -> np.ndarray:
    """The derivative of `Dh M^{-1} (p - c)`, (1, 8)."""
    state, v = ca.SX.sym("x", 8), ca.SX.sym("v", 4)
    at, p = state[:4], state[4:]
    mass, momentum = ca.hessian(one.lagrangian_at(at, v), v)
    mass, rest = ca.substitute([mass, momentum], [v], [ca.SX.zeros(4)])
    slip = ca.jacobian(one.holonomic(at), at) @ ca.solve(mass, p - rest)
    slope = ca.Function("slope", [state, one.parameter_symbols], [ca.jacobian(slip, state)])
    return np.asarray(slope(x, one.parameter_values))
