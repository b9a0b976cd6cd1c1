"""Systems as fields of actions: against formulas written densely in numpy, against one another,
and against the package's systems of the same name.
"""

import casadi as ca
import numpy as np
import pytest
from transforms3d.quaternions import qmult, quat2mat

from nh_control.integrators import midpoint
from nh_control.mechanics import parametric
from nh_control.mechanics.lie_equations import LieEquations
from nh_control.systems import QuadrotorPayloadParameters
from nh_control.systems import quadrotor_payload_continuous as continuous
from nh_control.systems.pendulum_chain import momenta, pendulum_chain, pendulum_chain_momenta
from nh_control.systems.quadrotor_payload_field import quadrotor_payload_field
from nh_control.systems.rigid_body import (
    HeavyTopParameters,
    RigidBodyParameters,
    heavy_top,
    rigid_body,
)
from nh_control.systems.rigid_body_fields import (
    heavy_top_coadjoint,
    heavy_top_cotangent,
    heavy_top_quadratic,
    rigid_body_attitude,
    rigid_body_momentum,
)
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters, spherical_pendulum


def rate(equations, x, u=(), parameters=None):
    """x' of an action and a field at numbers."""
    action, field = equations
    symbol = ca.SX.sym("x", action.nx)
    f = field(x, list(u), parametric.values(parameters))
    slope = ca.Function("slope", [symbol], [action.generator(symbol)])
    return np.array(slope(x) @ f).ravel()


def directions(rng, n):
    """Unit vectors (n, 3)."""
    q = rng.normal(size=(n, 3))
    return q / np.linalg.norm(q, axis=1)[:, None]


def tangent(rng, q):
    """Vectors normal to q (n, 3)."""
    w = rng.normal(size=q.shape)
    return w - q * np.sum(q * w, axis=1)[:, None]


def links(n, seed=0):
    """Parameters and a state (q, w) of a chain of unequal links."""
    rng = np.random.default_rng(seed)
    masses, lengths = rng.uniform(0.5, 2, (2, n))
    q = directions(rng, n)
    return SphericalPendulumParameters(masses=masses, lengths=lengths), q, tangent(rng, q)


def hat(a):
    return np.cross(np.eye(3), a)


def dense(p, q, w):
    """R(q) (3 n, 3 n) and the right side (3 n) of EQUATIONS.md and [celledoni2021 5.2]."""
    n, total = len(q), np.cumsum(p.masses[::-1])[::-1]
    R, right = np.zeros((n, 3, n, 3)), np.zeros((n, 3))
    for i in range(n):
        for j in range(n):
            M = total[max(i, j)] * p.lengths[i] * p.lengths[j]
            R[i, :, j] = M * np.eye(3) if i == j else M * hat(q[i]).T @ hat(q[j])
            right[i] += M * (w[j] @ w[j]) * np.cross(q[i], q[j])
        right[i] -= total[i] * p.g * p.lengths[i] * np.cross(q[i], [0, 0, 1])
    return R.reshape(3 * n, 3 * n), right.ravel()


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_the_chain_solves_the_dense_equations(n):
    p, q, w = links(n)
    R, right = dense(p, q, w)
    found = rate(pendulum_chain(p), np.hstack([q, w]).ravel(), parameters=p).reshape(n, 2, 3)
    np.testing.assert_allclose(found[:, 0], np.cross(w, q), atol=1e-14)
    expected = np.linalg.solve(R, right).reshape(n, 3)
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_momenta_of_the_chain_move_as_its_velocities(n):
    p, q, w = links(n)
    x = np.hstack([q, w]).ravel()
    symbol = ca.SX.sym("x", 6 * n)
    parts = [[symbol[6 * i + k : 6 * i + k + 3] for i in range(n)] for k in (0, 3)]
    pi = momenta(*parts, p)
    both = ca.vertcat(*(ca.vertcat(a, b) for a, b in zip(parts[0], pi)))
    to_momenta = ca.Function("to_momenta", [symbol], [both, ca.jacobian(both, symbol)])
    y, slope = (np.array(value) for value in to_momenta(x))
    np.testing.assert_allclose(
        y.reshape(n, 2, 3)[:, 1].ravel(), dense(p, q, w)[0] @ w.ravel(), atol=1e-12
    )
    found = rate(pendulum_chain_momenta(p), y.ravel(), parameters=p)
    expected = slope @ rate(pendulum_chain(p), x, parameters=p)
    assert np.abs(found - expected).max() < 1e-12 * max(1, np.abs(expected).max())


@pytest.mark.parametrize("n", [1, 3])
def test_the_chain_moves_as_the_system_of_its_lagrangian(n):
    p, q, w = links(n)
    dsys = midpoint(spherical_pendulum(p), 0.01)
    equations = LieEquations(dsys.system)
    state = dsys.state(q.ravel(), np.cross(w, q).ravel())
    q_rate, p_rate = np.split(rate((equations.action, equations.field), state, parameters=p), 2)
    momentum = state[3 * n :].reshape(n, 3)
    x = np.stack([q, np.cross(q, momentum)], axis=1).ravel()
    found = rate(pendulum_chain_momenta(p), x, parameters=p).reshape(n, 2, 3)
    np.testing.assert_allclose(found[:, 0].ravel(), q_rate, atol=1e-12)
    expected = np.cross(q_rate.reshape(n, 3), momentum) + np.cross(q, p_rate.reshape(n, 3))
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-12)


def test_every_link_costs_the_same_number_of_operations():
    counts = []
    for n in (10, 20, 40, 80):
        equations = (make(links(n)[0]) for make in (pendulum_chain, pendulum_chain_momenta))
        counts.append([field.n_instructions() for _, field in equations])
    per_link = np.diff(counts, axis=0) / np.array([[10], [20], [40]])
    np.testing.assert_array_equal(per_link, per_link[:1].repeat(3, axis=0))
    assert per_link.max() < 150


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_payload_moves_as_newton_says(n):
    rng = np.random.default_rng(n)
    p = QuadrotorPayloadParameters(lengths=tuple(rng.uniform(0.5, 1, n)))
    q, omega, (y, v) = directions(rng, n), rng.normal(size=(n, 3)), rng.normal(size=(2, 3))
    w, R = tangent(rng, q), rng.normal(size=(n, 4))
    R /= np.linalg.norm(R, axis=1)[:, None]
    thrust, torque = rng.uniform(1, 9, n), rng.normal(size=(n, 3))
    x = np.concatenate([y, v, np.hstack([R, omega]).ravel(), np.hstack([q, w]).ravel()])
    found = rate(quadrotor_payload_field(p), x, np.column_stack([thrust, torque]).ravel(), p)
    at = np.concatenate([y, R.ravel(), q.ravel()])
    moving = np.concatenate([v, omega.ravel(), np.cross(w, q).ravel()])
    expected = continuous.derivative(p, continuous.phase(p, at, moving), thrust, torque)
    quads = expected[6:].reshape(n, 18)
    bodies, pairs = np.split(found[6:], [7 * n])
    np.testing.assert_allclose(found[:6], expected[:6], atol=1e-12)
    np.testing.assert_allclose(pairs.reshape(n, 6), quads[:, :6], atol=1e-12)
    np.testing.assert_allclose(bodies.reshape(n, 7)[:, 4:], quads[:, 15:], atol=1e-12)
    turning = [qmult(a, [0, *o]) for a, o in zip(R, omega / 2)]
    np.testing.assert_allclose(bodies.reshape(n, 7)[:, :4], turning, atol=1e-12)


@pytest.fixture
def body():
    """An attitude and a body momentum."""
    rng = np.random.default_rng(4)
    R = rng.normal(size=4)
    return R / np.linalg.norm(R), rng.normal(size=3)


def test_the_free_body_moves_as_the_system(body):
    R, momentum = body
    p = RigidBodyParameters()
    equations = LieEquations(rigid_body(p))
    x = np.concatenate([R, momentum])
    expected = rate((equations.action, equations.field), x, np.zeros(3), p)
    np.testing.assert_allclose(
        rate(rigid_body_momentum(p), momentum, parameters=p), expected[4:], atol=1e-14
    )
    x = np.concatenate([R, quat2mat(R) @ momentum])
    found = rate(rigid_body_attitude(p), x, parameters=p)
    np.testing.assert_allclose(found, [*expected[:4], 0, 0, 0], atol=1e-14)


def test_three_formulations_of_the_top_move_as_the_system(body):
    R, momentum = body
    p = HeavyTopParameters(chi=(0.6, 0.0, 0.8))
    equations = LieEquations(heavy_top(p))
    Q = quat2mat(R)
    expected = rate(
        (equations.action, equations.field), np.concatenate([R, momentum]), parameters=p
    )
    omega = momentum / [p.Jx, p.Jy, p.Jz]
    pi_rate = Q @ (np.cross(omega, momentum) + expected[4:])
    start = np.concatenate([R, Q @ momentum])
    cotangent = rate(heavy_top_cotangent(p), start, parameters=p)
    np.testing.assert_allclose(cotangent, [*expected[:4], *pi_rate], atol=1e-12)
    constant = -p.M * p.g * p.l * np.array(p.chi)
    x = np.concatenate([start, constant, np.zeros(3)])
    quadratic = rate(heavy_top_quadratic(p), x, parameters=p)
    np.testing.assert_allclose(quadratic[:7], cotangent, atol=1e-12)
    np.testing.assert_allclose(quadratic[7:], [0, 0, 0, *(constant - Q[2])], atol=1e-12)
    coadjoint = rate(heavy_top_coadjoint(p), np.concatenate([momentum, Q[2]]), parameters=p)
    np.testing.assert_allclose(coadjoint[:3], expected[4:], atol=1e-12)
    np.testing.assert_allclose(coadjoint[3:], np.cross(Q[2], omega), atol=1e-12)
