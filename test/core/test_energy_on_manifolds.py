"""Energy-preserving methods on the systems of the package with unit vectors and strings, and with
prescribed coordinates.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.system import System
from nh_control.systems.quadrotor_payload import quadrotor_payload
from nh_control.systems.spherical_pendulum import (
    SphericalPendulumParameters,
    spherical_pendulum,
)

G = 9.81


def directed(system: System, size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random configuration and velocity."""
    space, rng = system.space, np.random.default_rng(seed)
    q = space.retract(space.origin, 0.6 * rng.normal(size=space.nv))
    at = ca.SX.sym("q", space.nq)
    frame = np.array(ca.Function("frame", [at], [ca.densify(space.frame(at))])(q))
    return q, size * frame @ rng.normal(size=space.nv)


def energy_error(dsys, x, u, steps) -> tuple[float, np.ndarray]:
    """Largest relative change of the energy, and all states."""
    states = dsys.simulate(x, u, steps=steps).states
    energies = dsys.energies(states)
    return np.abs(energies / energies[0] - 1).max(), states


@pytest.mark.parametrize("retraction", ["cay", "exp"])
def test_energy_of_a_chain_of_unit_vectors_over_a_thousand_steps(retraction):
    """The links turn over the pole and over the equator, where frames of the sphere jump."""
    system = spherical_pendulum(SphericalPendulumParameters((1.0, 0.5), (1.0, 0.7)), retraction)
    dsys = INTEGRATORS["gonzalez"].make(system, 0.01)
    error, states = energy_error(dsys, dsys.state(*directed(system, 1.5, 1)), [], 1000)
    assert error <= 1e-12
    assert states[:, 2].min() < -0.9 and states[:, 2].max() > 0.7
    lengths = [np.linalg.norm(states[:, first : first + 3], axis=1) for first in (0, 3)]
    assert np.abs(np.array(lengths) - 1).max() <= 4e-16
    normal = [
        np.einsum("ij,ij->i", states[:, k : k + 3], states[:, k + 6 : k + 9]) for k in (0, 3)
    ]
    assert np.abs(normal).max() <= 1e-14


@pytest.mark.parametrize(
    "method", ["gonzalez", pytest.param("energy_collocation_4", marks=pytest.mark.slow)]
)
def test_energy_of_the_payload_over_a_thousand_steps(method):
    """Two quadrotors and their payload fall and spin. The energy is a hundredth of the kinetic
    energy at the end, whose numbers round.
    """
    system = quadrotor_payload()
    dsys = INTEGRATORS[method].make(system, 0.004)
    x = dsys.state(*directed(system, 1.0, 0))
    states = dsys.simulate(x, np.zeros(dsys.nu), steps=1000).states
    energies, last = dsys.energies(states), states[-1]
    at_rest = dsys.state(dsys.configuration(last), 0 * dsys.velocity(last))
    kinetic = energies[-1] - dsys.energy(at_rest)
    assert np.ptp(energies) <= 1e-13 * kinetic


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


@pytest.mark.parametrize("method", ["gonzalez", "mean_value", "itoh_abe", "energy_collocation_4"])
def test_energy_of_a_string_that_is_held_still(method):
    dsys = drawn(method)
    x = dsys.state([0.6, 0.0, -0.8, 0.0, 1.0], [0.4, 0.7, 0.3, 0.0, 0.0])
    assert energy_error(dsys, x, [0.0, 1.0], 300)[0] <= 1e-13
