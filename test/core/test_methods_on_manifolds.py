"""Methods on unit vectors, strings and prescribed coordinates, beside velocity constraints: order,
energy, symplectic form, refusals.
"""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from energy_cases import VARIATIONAL, H, held_rows, slopes, start, system, turning
from numpy.polynomial.legendre import leggauss
from scipy.integrate import solve_ivp

from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS, explicit_runge_kutta, implicit_midpoint, midpoint
from nh_control.integrators.variational_gauss import variational_gauss
from nh_control.mechanics.system import System
from nh_control.numerics.quadrature import gauss, integrals, lagrange
from nh_control.systems import snakeboard
from nh_control.systems.spherical_pendulum import spherical_pendulum

G = 9.81
STEPS = {2: (10, 20, 40, 80), 4: (8, 12, 18, 26), 6: (5, 7, 9, 12)}


@pytest.mark.parametrize(
    "name, method",
    [
        ("generic", "mean_value"),
        ("generic", "gonzalez_f"),
        ("tied", "gonzalez"),
        ("body", "variational_gauss_4"),
        ("bound", "spark_2"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("suslov", "gonzalez"),
                ("double_pendulum", "energy_collocation_6"),
                ("generic", "gonzalez_r"),
                ("hung", "gonzalez"),
                ("swinging", "gonzalez"),
                ("swinging", "variational_gauss_4"),
                ("body", "variational_gauss_6"),
                ("bound", "nonholonomic_gauss_2"),
            )
        ),
    ],
)
def test_order(name, method):
    """In configuration and velocity, against the continuous equations, under damping and constant
    inputs.
    """
    order = INTEGRATORS[method].order
    found = slopes(name, method, STEPS[order], 0.1)
    assert np.abs(found - order).max() <= 0.06 * order, found


def puppet() -> System:
    """A mass on a string with a prescribed upper end and a prescribed length."""
    return System(
        name="puppet",
        space=Rn("x", "y", "z", "hand", "length"),
        lagrangian=lambda q, v: ca.sumsqr(v[:3]) / 2 - G * q[2] - 0.3 * q[0] * q[1] ** 2,
        holonomic_constraint=lambda q: ca.sumsqr(q[:3] - ca.vertcat(q[3], 0, 0)) - q[4] ** 2,
        prescribed=("hand", "length"),
        nominal=[0.6, 0.0, -0.8, 0.0, 1.0],
    )


@cache
def drawn(method: str):
    return INTEGRATORS[method].make(puppet(), 0.05)


def hand(t: float) -> np.ndarray:
    """The prescribed coordinates at t, their velocities and accelerations, (3, 2)."""
    s, c, s3, c3 = np.sin(2 * t), np.cos(2 * t), np.sin(3 * t), np.cos(3 * t)
    return np.array([[0.2 * s, 1 + 0.1 * s3], [0.4 * c, 0.3 * c3], [-0.8 * s, -0.9 * s3]])


def end_of_the_string(t: float, start: np.ndarray) -> np.ndarray:
    """Position and velocity of the mass at t: `a = f + lam r`, `|r| = l`, r from the hand."""

    def rate(t, y):
        (at, length), (speed, longer), (acceleration, bend) = hand(t)
        r, w = y[:3] - [at, 0, 0], y[3:] - [speed, 0, 0]
        f = -np.array([0.3 * y[1] ** 2 + acceleration, 0.6 * y[0] * y[1], G])
        lam = (longer**2 + length * bend - w @ w - r @ f) / (r @ r)
        return np.concatenate([y[3:], f + lam * r + [acceleration, 0, 0]])

    return solve_ivp(rate, (0, t), start, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]


@pytest.mark.parametrize(
    "method", ["gonzalez", "mean_value", "itoh_abe_symmetrized", "gonzalez_r"]
)
def test_strings_that_are_moved_and_pulled_are_second_order(method):
    """In position and velocity, over four step sizes; a length that changes does work."""
    q, v = np.array([0.6, 0.0, -0.8, *hand(0)[0]]), np.array([0.4, 0.7, 0.0, *hand(0)[1]])
    v[2] = (0.6 * (v[0] - v[3]) - v[4]) / 0.8
    want, errors, counts = end_of_the_string(1.0, np.append(q[:3], v[:3])), [], (20, 40, 80, 160)
    for n in counts:
        dsys = drawn(method).with_step(1 / n)
        inputs = np.array([hand((k + 1) / n)[0] for k in range(n)])
        x = dsys.simulate(dsys.state(q, v, inputs[0]), inputs).states[-1]
        at, speed = dsys.configuration(x), dsys.velocity(x)
        errors.append([np.abs(at[:3] - want[:3]).max(), np.abs(speed[:3] - want[3:]).max()])
    slopes = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert np.abs(slopes[0] - 2) <= 0.1 and slopes[1] >= 0.95, (slopes, errors)


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


# --- variational Gauss integrators ---------------------------------------------------------------


def test_quadrature_is_that_of_gauss():
    """Points and weights, and the integrals of the points' polynomials."""
    c, b = gauss(3)
    assert np.allclose(c, (1 + leggauss(3)[0]) / 2) and abs(b.sum() - 1) <= 1e-15
    assert np.allclose([p(c) for p in lagrange(c)], np.eye(3), atol=1e-14)
    a = integrals(c, np.array([*c, 1.0]))
    assert np.allclose(a[-1], b) and np.allclose(a @ c**2, np.array([*c, 1.0]) ** 3 / 3)
    root = np.sqrt(15)
    assert np.allclose(a[0], [5 / 36, 2 / 9 - root / 15, 5 / 36 - root / 30])


@pytest.mark.parametrize("name", ["double_pendulum", "body"])
def test_one_stage_is_the_midpoint_method(name):
    """Without forces, on R^n and with the exponential of rotations, whose half steps add up.
    (Forces act by their virtual work at the middle, which `midpoint` splits between the ends.)
    """
    body = replace(turning(False, retraction="exp"), inputs=(), force=None)
    one = body if name == "body" else system(name, forced=False)
    dsys = variational_gauss(one, H, stages=1)
    x = dsys.state(*start(name))
    assert np.abs(dsys.step(x) - midpoint(one, H).step(x)).max() <= 1e-14


def test_variational_gauss_refuses_constraints_by_name():
    on_surface = replace(system("tied"), velocity_constraint=None)
    for bad, reason in (
        (snakeboard(), "velocity constraints"),
        (on_surface, "holonomic constraints"),
    ):
        for method in VARIATIONAL:
            assert reason in INTEGRATORS[method].refuses(bad)
        with pytest.raises(ValueError, match=reason):
            variational_gauss(bad, H)
    with pytest.raises(ValueError, match="stages must be at least 1"):
        variational_gauss(system("body"), H, stages=0)
