"""Keep-out balls, limits of tilt, taut links: their values, and optimization with them."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from refusals import refusal

import nh_control as nh
from nh_control.systems import (
    QuadrotorPayloadParameters,
    pendulum,
    quadrotor,
    quadrotor_payload,
)
from nh_control.systems.quadrotor_payload_continuous import link_tensions


def values(constraint, dsys, x, u, w=()):
    """The constraint's rows at a state, an input and parameters."""
    x_, u_ = ca.SX.sym("x", dsys.nx), ca.SX.sym("u", dsys.nu)
    f = ca.Function("f", [x_, u_], [constraint.f(x_, u_, ca.SX(ca.DM(w)))])
    return np.asarray(f(x, u))[:, 0]


def arm():
    """Two links of a URDF."""
    urdf = Path(nh.__file__).parent / "data" / "double_pendulum.urdf"
    return nh.midpoint(nh.load_urdf(urdf).system, 0.05)


def test_tensions_are_those_of_newton_s_law():
    for n in (2, 3):
        p = QuadrotorPayloadParameters(lengths=(0.6, 0.8, 0.7)[:n])
        dsys, rng = nh.midpoint(quadrotor_payload(p), 0.01), np.random.default_rng(n)
        constraint = nh.tension_limit(dsys, 2.0, weight=9.0)
        assert (constraint.lower, constraint.weight) == (2.0, 9.0)
        for _ in range(3):
            x = dsys.retract(dsys.state_space.origin, rng.normal(size=dsys.ndx))
            u = rng.normal(size=dsys.nu) + 5
            wind = np.concatenate([rng.normal(size=3), np.zeros(3 * n)])
            motion = dsys.configuration(x), dsys.velocity(x)
            wanted = link_tensions(p, *motion, np.concatenate([u, wind]))
            pushed = np.concatenate([wind[:3], rng.normal(size=dsys.system.nrho - 3)])
            np.testing.assert_allclose(values(constraint, dsys, x, u, pushed), wanted, rtol=1e-9)


def test_a_tilt_is_the_angle_of_the_body_s_z_axis():
    dsys = nh.midpoint(quadrotor(), 0.02)
    for angle in (0.3, 1.2):
        q = np.concatenate(
            [[1, 2, 3], [np.cos(angle / 2), 0.6 * np.sin(angle / 2), 0.8 * np.sin(angle / 2), 0]]
        )
        x = np.concatenate([q, np.zeros(6)])
        limit = nh.tilt_limit(dsys, angle)
        assert values(limit, dsys, x, np.zeros(4))[0] == pytest.approx(limit.lower, abs=1e-15)


def test_near_a_ball_its_value_is_the_distance():
    dsys = arm()
    tip = list(dsys.system.model.tree.frames)[-1]
    for x in dsys.state_space.origin + 0.3 * np.random.default_rng(0).normal(size=(3, dsys.nx)):
        p = dsys.system.model.pose(dsys.configuration(x), tip).position
        away = np.array([0.6, 0.0, 0.8])
        ball = nh.keep_out(dsys, tip, p - 0.201 * away, 0.2)
        assert values(ball, dsys, x, np.zeros(dsys.nu))[0] == pytest.approx(0.001, rel=0.01)
    own = nh.keep_out(dsys, lambda q: q[:2], [0.0, 0.0], 0.5)
    assert values(own, dsys, np.array([0.5, 0, 0, 0]), np.zeros(dsys.nu))[0] == 0


def test_what_does_not_fit_is_said(snapshot):
    swing, body = nh.midpoint(pendulum(), 0.1), nh.midpoint(quadrotor(), 0.1)
    wrong = (
        lambda: nh.keep_out(swing, "tip", [0, 0, 0], 1.0),
        lambda: nh.keep_out(swing, lambda q: q, [0.0], -1.0),
        lambda: nh.keep_out(arm(), "hand", [0, 0, 0], 1.0),
        lambda: nh.tilt_limit(swing, 0.1),
        lambda: nh.tilt_limit(body, 4.0),
        lambda: nh.tension_limit(body, 1.0),
    )
    assert [refusal(make, (ValueError, KeyError)) for make in wrong] == snapshot
    wrong = nh.keep_out(swing, lambda q: q, [0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match="the point of 'keep_out' has shape"):
        values(wrong, swing, np.zeros(2), np.zeros(1))
