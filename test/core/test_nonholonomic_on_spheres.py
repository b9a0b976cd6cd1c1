"""Gauss, Lobatto and geometric nonholonomic methods on systems with unit vectors: constraints, and
order on pendulums and payloads.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from energy_cases import constraint, discrete, embedding, start
from scipy.integrate import solve_ivp
from test_energy_on_manifolds import directed
from test_nonholonomic_on_manifolds import SPHERES, STEPS

from nh_control.integrators import INTEGRATORS, explicit_runge_kutta, implicit_midpoint
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.system import System
from nh_control.systems.quadrotor_payload import quadrotor_payload
from nh_control.systems.spherical_pendulum import (
    SphericalPendulumParameters,
    spherical_pendulum,
)


@pytest.mark.parametrize("method", SPHERES)
def test_constraints_hold_while_the_direction_passes_equator_and_pole(method):
    dsys = discrete("hung", method, 0.05, forced=False)
    states = dsys.simulate(dsys.state(*start("hung")), [0.0, 0.0], steps=300).states
    slips = [constraint("hung", x[:5]) @ dsys.velocity(x) for x in states]
    assert np.abs(slips).max() <= 1e-14
    assert np.abs(np.linalg.norm(states[:, 2:5], axis=1) - 1).max() <= 4e-16
    assert states[:, 4].min() < -0.9 and states[:, 4].max() > 0.4


def double() -> System:
    lengths = SphericalPendulumParameters((1.0, 0.5), (1.0, 0.7))
    return spherical_pendulum(lengths, "exp")


@cache
def motion(make, t: float) -> tuple[System, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A system, a start and an input, and where DOP853 arrives."""
    system = make()
    continuous, rates, nq = ContinuousSystem(system), embedding(system.space), system.space.nq
    q, v = directed(system, 0.7, 0)
    u = 0.5 * np.random.default_rng(1).normal(size=system.nu)

    def derivative(_, y):
        moved = np.asarray(rates(y[:nq])) @ y[nq:]
        return np.concatenate([moved, continuous.acceleration(y[:nq], y[nq:], u)])

    run = solve_ivp(derivative, (0, t), np.append(q, v), "DOP853", rtol=1e-12, atol=1e-12)
    return system, q, v, u, run.y[:, -1]


@pytest.mark.parametrize(
    "make, method",
    [
        (double, "variational_gauss_4"),
        (quadrotor_payload, "spark_2"),
        (quadrotor_payload, "gni_implicit"),
        *(
            pytest.param(make, method, marks=pytest.mark.slow)
            for make, method in (
                (double, "nonholonomic_gauss_2"),
                (double, "spark_2"),
                (double, "gni_implicit"),
                (quadrotor_payload, "variational_gauss_4"),
                (quadrotor_payload, "nonholonomic_gauss_2"),
            )
        ),
    ],
)
def test_order_on_pendulums_and_payloads(make, method):
    """Over four step sizes, in configuration and velocity, without velocity constraints."""
    order, t = INTEGRATORS[method].order, 0.5 if make is double else 0.2
    (system, q, v, u, end), counts, errors = motion(make, t), STEPS[order], []
    built = INTEGRATORS[method].make(system, t)
    for n in counts:
        dsys = built.with_step(t / n)
        x = dsys.simulate(dsys.state(q, v), np.tile(u, (n, 1))).states[-1]
        reached = np.append(dsys.configuration(x), dsys.velocity(x))
        errors.append([np.abs(part).max() for part in np.split(reached - end, [len(q)])])
    found = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert np.abs(found - order).max() <= 0.03 * order, (found, errors)


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
