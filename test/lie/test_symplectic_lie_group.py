"""Symplectic Lie group integrators: the printed formulas, orders, momenta, constraints,
and what they have in common with other methods.
"""

from __future__ import annotations

from dataclasses import replace

import lie_cases
import numpy as np
import pytest
from lie_motion import rotate
from scipy.spatial.transform import Rotation
from test_lie_order import TURNED

from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Space
from nh_control.integrators import INTEGRATORS, midpoint, slgi
from nh_control.mechanics.system import System
from nh_control.systems import pendulum, snakeboard
from nh_control.systems.kaluza_klein_top import kaluza_klein_top, momentum_of_y
from nh_control.systems.rigid_body import heavy_top

THETAS = {"slgi_0": 0.0, "slgi_half": 0.5, "slgi_1": 1.0}
ROUND_OFF = 1e-13


# --- the printed formulas ------------------------------------------------------------------------


def hat(w):
    return np.cross(w, np.eye(3)).T


def exp(x):
    return Rotation.from_rotvec(x).as_matrix()


def dexp(x):
    """`sum ad^k / (k + 1)!`."""
    total, term, ad = np.eye(3), np.eye(3), hat(x)
    for k in range(2, 22):
        term = ad @ term / k
        total += term
    return total


def as_printed(parameters, q, mu, h, theta, transport=True):
    """(15)-(17) for the heavy top with rotation matrices and right-trivialized momenta; f2 with or
    without the transport of the momentum.
    """
    p, inertia = parameters, lie_cases.inertia(parameters)

    def f(q, mu):
        omega = q @ (q.T @ mu / inertia)
        weight = p.M * p.g * p.l * np.cross([0, 0, 1.0], q @ p.chi)
        return omega, weight + transport * np.cross(mu, omega)

    def unsolved(y):
        xi, n = y[:3], y[3:]
        back = exp(theta * xi).T @ n
        m = dexp(-xi).T @ (mu + back) - theta * dexp(-theta * xi).T @ back
        return y - h * np.concatenate(f(exp(theta * xi) @ q, m))

    y = np.zeros(6)
    for _ in range(6):
        slopes = [(unsolved(y + e) - unsolved(y - e)) / 2e-6 for e in 1e-6 * np.eye(6)]
        y = y - np.linalg.solve(np.transpose(slopes), unsolved(y))
    xi, n = y[:3], y[3:]
    return exp(xi) @ q, exp((theta - 1) * xi).T @ n + exp(-xi).T @ mu


def matrix(q):
    return np.column_stack([rotate(q, e) for e in np.eye(3)])


@pytest.mark.parametrize("method", THETAS)
def test_body_momenta_give_the_printed_step(method):
    dsys = lie_cases.discrete("heavy_top", 0.05, method)
    for seed in range(3):
        x, _ = lie_cases.random_point(dsys, np.random.default_rng(seed))
        q, p = matrix(x[:4]), x[4:]
        q1, mu1 = as_printed(lie_cases.MILD_TOP, q, q @ p, 0.05, THETAS[method])
        x1 = dsys.step(x)
        np.testing.assert_allclose(matrix(x1[:4]), q1, rtol=0, atol=ROUND_OFF)
        np.testing.assert_allclose(x1[4:], q1.T @ mu1, rtol=0, atol=ROUND_OFF)


def test_without_the_momentum_s_transport_the_printed_step_does_not_converge():
    """The error at t = 0.05 does not fall with h; with it, by four each time."""
    q, p = matrix(TURNED), lie_cases.inertia(lie_cases.MILD_TOP) * [0.5, 8.0, -1.0]
    reference = lie_cases.motion("heavy_top").solve([*TURNED, *p], [0.0, 0.05])[-1]
    errors = {True: [], False: []}
    for transport, found in errors.items():
        for n in (2, 4):
            at, mu = q, q @ p
            for _ in range(n):
                at, mu = as_printed(lie_cases.MILD_TOP, at, mu, 0.05 / n, 0.5, transport)
            found.append(np.abs(at.T @ mu - reference[4:]).max())
    assert errors[True][0] / errors[True][1] > 3.5
    assert errors[False][0] / errors[False][1] < 1.2 and errors[False][1] > 0.05


@pytest.mark.parametrize(
    "name",
    ["rigid_body", "planar_body_free", pytest.param("body_in_fluid", marks=pytest.mark.slow)],
)
def test_theta_does_not_matter_to_free_motions(name):
    """All three are the discrete Euler-Poincare equations."""
    steps = []
    for method in THETAS:
        dsys = lie_cases.discrete(name, 0.1, method)
        x, u = lie_cases.random_point(dsys, np.random.default_rng(9))
        steps.append(dsys.step(x, 0 * u))
    np.testing.assert_allclose(steps, [steps[0]] * 3, rtol=0, atol=ROUND_OFF)


# --- momenta, energy, reversibility --------------------------------------------------------------


@pytest.mark.parametrize("name", ["heavy_top", "planar_body"])
def test_back_by_the_adjoint_method(name):
    """theta and 1 - theta undo each other."""
    dsys, other = (lie_cases.discrete(name, 0.05, method) for method in ("slgi_0", "slgi_1"))
    x, u = lie_cases.random_point(dsys, np.random.default_rng(4))
    flip = np.concatenate([np.ones(len(x) - 3), -np.ones(3)])
    again = flip * other.step(flip * dsys.step(x, u), u)
    np.testing.assert_allclose(again, x, rtol=0, atol=ROUND_OFF * 10)
    assert not INTEGRATORS["slgi_0"].symmetric


# --- other methods, and the larger group ---------------------------------------------------------


def test_a_half_is_the_midpoint_rule_where_its_middle_is_the_exponential_s():
    exp = replace(heavy_top(lie_cases.MILD_TOP), space=SO3(retraction="exp"))
    for system, u in ((pendulum(), [0.3]), (exp, []), (lie_cases.planar_body(), [0.0] * 3)):
        one, other = slgi(system, 0.05), midpoint(system, 0.05)
        x, _ = lie_cases.random_point(one, np.random.default_rng(5))
        assert np.abs(one.step(x, u) - other.step(x, u)).max() <= ROUND_OFF


@pytest.mark.parametrize("method", THETAS)
def test_the_larger_group_gives_the_same_steps(method):
    """The paper's SLGI-KK is SLGI: in the Kaluza-Klein form of the heavy top the momentum of y is
    constant, so its torque is the weight's at the same point of the step.
    """
    p, h = lie_cases.MILD_TOP, 0.02
    large = slgi(kaluza_klein_top(p), h, THETAS[method])
    small = slgi(heavy_top(p), h, THETAS[method])
    x, _ = lie_cases.random_point(small, np.random.default_rng(7))
    y = np.concatenate([x[:4], [0.1, -0.2, 0.3], x[4:], momentum_of_y(p)])
    for _ in range(50):
        x, y = small.step(x), large.step(y)
    np.testing.assert_allclose(y[[0, 1, 2, 3, 7, 8, 9]], x, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(y[10:], momentum_of_y(p))


# --- constraints ---------------------------------------------------------------------------------


def test_a_ball_joint_holds_and_the_order_stays():
    """The top as a pose on a joint, to the top's own motion."""
    start = np.array([*TURNED, *(lie_cases.inertia(lie_cases.MILD_TOP) * [0.5, 8.0, -1.0])])
    exact = lie_cases.motion("heavy_top").solve(start, [0.0, 0.25])[-1]
    omega = start[4:] / lie_cases.inertia(lie_cases.MILD_TOP)
    pose, velocity = lie_cases.on_the_joint(TURNED, omega)
    for method, order in (("slgi_half", 2), ("slgi_0", 1)):
        errors = []
        for n in (32, 64, 128):
            dsys = lie_cases.discrete("top_on_a_joint", 0.25 / 32, method).with_step(0.25 / n)
            states = dsys.simulate(dsys.state(pose, velocity), np.zeros((n, 0))).states
            ends = states[:, 4:7] - rotate(states[:, :4], np.tile(lie_cases.ARM, (n + 1, 1)))
            assert np.abs(ends[1:]).max() <= 1e-14
            rate = dsys.velocity(states[-1])[:3] - exact[4:] / lie_cases.inertia(
                lie_cases.MILD_TOP
            )
            errors.append(np.concatenate([states[-1, :4] - exact[:4], rate]))
        slope = -np.polyfit(np.log([32, 64, 128]), np.log(np.abs(errors)), 1)[0]
        assert np.abs(slope - order).max() <= 0.2, slope


# --- refusals ------------------------------------------------------------------------------------


class Spheroid(Space):
    """A space of the user's own."""

    names, velocity_names = ("x",), ("x_dot",)
    origin = np.zeros(1)
    _retract = staticmethod(lambda q, d: q + d)
    _local = staticmethod(lambda q0, q1: q1 - q0)


def test_what_it_cannot_take_it_names():
    with pytest.raises(ValueError, match="snakeboard has velocity constraints"):
        slgi(snakeboard(), 0.1)
    own = System("own", Spheroid(), lambda q, v: v[0] ** 2 / 2)
    with pytest.raises(ValueError, match="no group action is known for a Spheroid"):
        slgi(own, 0.1)
    with pytest.raises(ValueError, match=r"theta must be one of \(0.0, 0.5, 1.0\), got 0.3"):
        slgi(pendulum(), 0.1, 0.3)
