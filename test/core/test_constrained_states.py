"""Systems with velocity constraints in plain coordinates: their states hold at every
configuration, whichever velocity the constraints fix there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import plain_vehicles
import pytest
from plain_vehicles import VEHICLES

import nh_control as nh
from nh_control.integrators import INTEGRATORS, nonholonomic_midpoint

SECONDS = 4.0
NEEDED = ("nonholonomic_midpoint", "rk4", "cf3", "rkmk4", "itoh_abe", "gni_midpoint")
made = cache(lambda vehicle: VEHICLES[vehicle]())
exact = cache(lambda vehicle: plain_vehicles.reference(made(vehicle), SECONDS))
PAIRS = [
    pytest.param(
        *(vehicle, name), marks=() if vehicle == "sleigh" and name in NEEDED else pytest.mark.slow
    )
    for vehicle in VEHICLES
    for name in INTEGRATORS.fitting(made(vehicle))
]


@pytest.mark.parametrize("vehicle, name", PAIRS)
def test_methods_keep_their_order_through_all_headings(vehicle, name):
    """Against SciPy's solution with multipliers, over four step sizes or until round-off."""
    system, order = made(vehicle), INTEGRATORS[name].order
    errors, steps = [], np.array([40, 80, 160, 320])
    # multipliers of this method oscillate on the trailer, in every basis, unless steps are small
    finer = 64 if vehicle == "trailer" and name in ("rattle", "shake") else 1
    method = INTEGRATORS[name](system, SECONDS)
    for n in finer * steps:
        model = method.with_step(SECONDS / n)
        end = model.simulate(model.state(*plain_vehicles.start(system)), n).states[-1]
        errors.append(np.abs(end[: system.space.nq] - exact(vehicle)).max())
    assert errors[-1] < errors[0] or errors[0] < 1e-9
    errors = [error for error in errors if error > 1e-9]
    if len(errors) > 1:
        slope = np.log2(errors[-2] / errors[-1])
        assert slope > order - 0.35, (slope, errors)


def cart(basis=None):
    """A cart that is driven and turned."""
    return nh.System(
        name="cart",
        space=nh.Rn("x", "y", "theta"),
        lagrangian=lambda q, v: (v[0] ** 2 + v[1] ** 2 + 0.3 * v[2] ** 2) / 2,
        velocity_constraint=lambda q: ca.horzcat(-ca.sin(q[2]), ca.cos(q[2]), 0),
        distribution=basis,
        inputs=("drive", "turn"),
        force=lambda q, v, u: ca.vertcat(u[0] * ca.cos(q[2]), u[0] * ca.sin(q[2]), u[1]),
    )


def ahead_and_around(q):
    return ca.vertcat(ca.horzcat(ca.cos(q[2]), 0), ca.horzcat(ca.sin(q[2]), 0), ca.horzcat(0, 1))


WEIGHTS = {"x": 10, "y": 10, "theta": 1, "x_dot": 1, "y_dot": 1, "theta_dot": 0.1}


def tracked(system):
    """A model, its motion through three circles and the tracker of this motion."""
    model = nonholonomic_midpoint(system, 0.05)
    x = model.state([0, 0, 0.3], [np.cos(0.3), np.sin(0.3), 1.0])
    circles = model.simulate(x, np.zeros((400, 2)))
    return model, circles, nh.LqrTracker(model, circles, WEIGHTS, np.eye(2))


def test_weights_by_name_give_the_same_feedback_in_every_basis():
    """Of configuration errors, whose coordinates are the same."""
    (_, mine, plain), (_, theirs, declared) = tracked(cart()), tracked(cart(ahead_and_around))
    np.testing.assert_allclose(mine.states[:, :3], theirs.states[:, :3], rtol=0, atol=1e-12)
    feedback = (t.gains.K[:, :, :3] for t in (plain, declared))
    np.testing.assert_allclose(*feedback, rtol=0, atol=1e-11)
    assert plain.weighted == tuple(WEIGHTS)
    np.testing.assert_allclose(plain.diagonal_weights[0], [*WEIGHTS.values()])


@pytest.mark.parametrize("vehicle", VEHICLES)
def test_a_tracker_follows_motions_through_full_circles(vehicle):
    """Driven, turned, and with a motor at every joint."""
    plain = made(vehicle)
    joints = plain.space.names[3:]
    system = replace(
        plain,
        inputs=("drive", "turn", *joints),
        force=lambda q, v, u: ca.vertcat(u[0] * ca.cos(q[2]), u[0] * ca.sin(q[2]), u[1:]),
    )
    model = nonholonomic_midpoint(system, 0.05)
    inputs = np.tile(np.r_[0.1, 0.1, np.zeros(len(joints))], (400, 1))
    motion = model.simulate(model.state(*plain_vehicles.start(plain)), inputs)
    assert np.ptp(motion.states[:, 2]) > 2 * np.pi
    weights = {c: 1.0 for c in plain.space.names} | {f"{c}_dot": 0.1 for c in plain.space.names}
    tracker = nh.LqrTracker(model, motion, weights, np.eye(2 + len(joints)))
    start = model.retract(motion.states[0], np.random.default_rng(0).uniform(-0.2, 0.2, model.ndx))
    errors = np.abs(nh.rollout(model, [start], tracker, steps=400).errors[0]).max(axis=1)
    assert errors[-1] < 5e-3 < 0.15 < errors[0]


def test_costs_take_weights_by_name():
    model, circles, _ = tracked(cart())
    cost = nh.quadratic_cost(model, circles, WEIGHTS, np.eye(2))
    weights = nh.lqr.velocity_weights(model, circles.states[7, :3], WEIGHTS)
    d = np.array([0.01, 0.02, -0.01, 0.03, 0.02])
    x = model.retract(circles.states[7], d)
    symbols = ca.SX.sym("x", model.nx), ca.SX.sym("u", 2), ca.SX.sym("w", cost.n_parameters)
    value = ca.Function("value", symbols, [cost.stage(*symbols)])(x, [0, 0], cost.parameters[7])
    assert float(value) == pytest.approx(d @ weights @ d / 2, rel=1e-9)


def test_weights_that_would_change_their_meaning_are_refused():
    model, circles, _ = tracked(cart())
    with pytest.raises(ValueError, match="of names, or have shape .* local coordinates"):
        nh.LqrTracker(model, circles, np.eye(5), np.eye(2))
    with pytest.raises(ValueError, match=r"no configuration or velocity \['speed'\].*choose"):
        nh.LqrTracker(model, circles, {"speed": 1.0}, np.eye(2))
