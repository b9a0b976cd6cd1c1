"""Velocity constraints beside holonomic ones, spheres, prescribed coordinates and ground that
moves: second order against equations by hand, constraints at round-off, exact derivatives.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from combined import CASES
from refusals import refusal

from nh_control.geometry.rotations import S2
from nh_control.geometry.spaces import Product, Rn
from nh_control.integrators import (
    midpoint,
    nonholonomic_midpoint,
    rdp,
)
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.system import System

T, STEPS = 1.0, (20, 40, 80, 160)


@cache
def discrete(name):
    return nonholonomic_midpoint(CASES[name].system, T / STEPS[0])


def run(dsys, case, steps):
    x = dsys.state(case.q, case.v)
    states = [x]
    for _ in range(steps):
        states.append(dsys.step(states[-1], case.u))
    return states


@pytest.mark.parametrize("name", CASES)
def test_second_order_in_configuration_and_velocity(name):
    case = CASES[name]
    q, v = case.solution(T)
    errors = []
    for steps in STEPS:
        dsys = discrete(name).with_step(T / steps)
        x = run(dsys, case, steps)[-1]
        off = dsys.system.space.local(q, dsys.configuration(x)), dsys.velocity(x) - v
        errors.append([np.abs(part).max() for part in off])
    slopes = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(slopes[1:], 2.0, atol=0.1)
    assert np.max(errors[-1]) < 1e-2


@pytest.mark.parametrize("name", CASES)
def test_the_continuous_equations_are_those_by_hand(name):
    case = CASES[name]
    equations, t, d = ContinuousSystem(case.system), 0.3, 1e-3
    q, v = case.solution(t)
    weights = ((4 / 5, 1), (-1 / 5, 2), (4 / 105, 3), (-1 / 280, 4))
    rate = sum(w * (case.solution(t + k * d)[1] - case.solution(t - k * d)[1]) for w, k in weights)
    np.testing.assert_allclose(equations.acceleration(q, v, case.u), rate / d, atol=1e-8)


def test_a_driven_wheel_pulls_its_cart():
    """At the speed of a prescribed wheel; a weight on a spring follows Newton's law."""
    radius, mass, load, k = 0.2, 3.0, 0.5, 8.0
    system = System(
        name="driven_cart",
        space=Rn("x", "load", "wheel"),
        lagrangian=lambda q, v: (mass * v[0] ** 2 + load * v[1] ** 2 - k * (q[0] - q[1]) ** 2) / 2,
        velocity_constraint=lambda q: ca.horzcat(1, 0, -radius),
        prescribed=("wheel",),
    )
    omega = np.sqrt(k / load)
    errors = []
    for steps in (80, 160, 320, 640):
        dsys = nonholonomic_midpoint(system, 2.0 / steps)
        assert dsys.inputs == ("wheel",) and dsys.state_names[3:] == ("p_x", "p_load", "v_wheel")
        x = dsys.state([0.0, 0.0, 0.0], [0.3, 0.0, 1.5])
        np.testing.assert_allclose(dsys.velocity(x), [0.3, 0.0, 1.5], rtol=0, atol=1e-14)
        for i in range(steps):
            x = dsys.step(x, [1.5 * dsys.h * (i + 1)])
            assert abs(x[0] - radius * x[2]) < 1e-14
        behind = 0.3 * 2.0 - 0.3 / omega * np.sin(omega * 2.0)
        errors.append(abs(x[1] - behind))
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.1)


def test_what_cannot_be_is_refused(snapshot):
    flat, row = Rn("x", "y"), lambda q: ca.horzcat(1, 0)
    beside, rows = Product(flat, S2("bob_")), lambda q: ca.horzcat(1, 0, 0, 0, 0)
    free = lambda q: ca.SX.eye(5)[:, 1:4]
    wrong = (
        {"space": beside, "velocity_constraint": rows, "distribution": free},
        {"space": flat, "velocity_drift": lambda q: q[0]},
        {"space": flat, "velocity_constraint": row, "velocity_drift": lambda q: q},
        {"space": Rn("x", "y", "z"), "velocity_constraint": lambda q: ca.SX.ones(2, 3)},
    )
    make = lambda fields: System(name="wrong", lagrangian=lambda q, v: ca.sumsqr(v), **fields)
    told = [refusal(lambda: make(fields)) for fields in wrong]
    told.append(refusal(lambda: midpoint(CASES["wheel_with_arm"].system, 0.1)))
    told.append(refusal(lambda: rdp(CASES["ball_on_turntable"].system, 0.1)))
    assert told == snapshot
