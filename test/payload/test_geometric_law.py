"""The geometric controller's law at any state off its path: each of its parts against Newton's and
Euler's equations and the paper's formulas, written in numpy.
"""

from functools import cache
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from payload_cases import model, parameters, random_motion
from transforms3d.quaternions import mat2quat, quat2mat

from nh_control.control import ControllerTracker, paths
from nh_control.papers.celledoni2021_payload_control import (
    GeometricController,
    GeometricGains,
    _control_law,
    desired_thrusts,
    quadrotor_inputs,
)
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios.quadrotor_payload import PATHS
from nh_control.systems.quadrotor_payload import Formation
from nh_control.systems.quadrotor_payload_continuous import E3, accelerations

GAINS = GeometricGains(k_y=3.0, k_yd=2.0, k_q=5.0, k_w=1.5, k_R=0.7, k_O=0.3)
FORMATION = Formation(0.4, azimuth=1.1)


@cache
def law(n):
    """WantedThrusts of (jet, y, y', links, angular velocities), in numbers."""
    sizes = (21, 3, 3, *(3,) * 2 * n)
    jet, y, y_dot, *links = symbols = [ca.SX.sym("s", size) for size in sizes]
    motion = y, y_dot, links[:n], links[n:]
    wanted = desired_thrusts(parameters(n), FORMATION, GAINS, jet, motion)
    return ca.Function("wanted", symbols, [*wanted])


def wanted(n, s):
    found = law(n)(s.jet, s.y, s.y_dot, *s.q, *s.w)
    return SimpleNamespace(
        **{name: np.array(value).T for name, value in
           zip(("forces", "attitudes", "omegas", "omega_dots", "links"), found)}
    )  # fmt: skip


def state(n, seed=0):
    """Off the path, links not where they are wanted, everything in motion."""
    rng = np.random.default_rng(seed)
    q = Formation(0.7, azimuth=0.5).links(n) + 0.2 * rng.normal(size=(n, 3))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    w = rng.normal(size=(n, 3))
    w -= q * np.sum(q * w, axis=1, keepdims=True)
    jet = rng.normal(size=(7, 3)) / np.array([1, 1, 2, 4, 8, 16, 32])[:, None]
    y, y_dot = jet[:2] + 0.4 * rng.normal(size=(2, 3))
    return SimpleNamespace(jet=jet.ravel(), y=y, y_dot=y_dot, q=q, w=w)


def force_on_payload(s, p):
    """`m_y (-k_y e_y - k_yd e_y' + y_d'' + g e3)`, z up."""
    y_d, y_d_dot, y_d_ddot = s.jet.reshape(7, 3)[:3]
    e, e_dot = s.y - y_d, s.y_dot - y_d_dot
    return p.payload_mass * (-GAINS.k_y * e - GAINS.k_yd * e_dot + y_d_ddot + p.g * E3)


def moved(s, n, dt):
    """The state after a short time under the wanted thrusts, to second order."""
    p = parameters(n)
    forces = wanted(n, s).forces
    still = np.zeros((n, 3))
    v_dot, w_dot, _ = accelerations(p, s.q, s.w, still, forces, still)
    jets = s.jet.reshape(7, 3)
    later = sum(
        np.vstack([jets[k:], np.zeros((k, 3))]) * dt**k / np.prod(range(1, k + 1))
        for k in range(7)
    )
    q = s.q + dt * np.cross(s.w, s.q)
    q = q + dt**2 / 2 * (np.cross(w_dot, s.q) + np.cross(s.w, np.cross(s.w, s.q)))
    return SimpleNamespace(
        jet=later.ravel(),
        y=s.y + dt * s.y_dot + dt**2 / 2 * v_dot,
        y_dot=s.y_dot + dt * v_dot,
        q=q / np.linalg.norm(q, axis=1, keepdims=True),
        w=s.w + dt * w_dot,
    )


def rate(n, s, what, dt=1e-5):
    return (what(moved(s, n, dt)) - what(moved(s, n, -dt))) / (2 * dt)


@pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_links_carry_their_shares_of_the_force_on_the_payload(n):
    """`y'' + g e3 = sum (F . q_i) q_i / (m_y n cos^2 tilt)`, whatever the thrusts across the
    links; in formation that is F.
    """
    p, s = parameters(n), state(n)
    F = force_on_payload(s, p)
    share = n * np.cos(FORMATION.angle) ** 2 if n > 1 else 1.0
    still = np.zeros((n, 3))

    def proper(s):
        v_dot = accelerations(p, s.q, s.w, still, wanted(n, s).forces, still)[0]
        return p.payload_mass * (v_dot + p.g * E3)

    np.testing.assert_allclose(proper(s), (s.q @ F) @ s.q / share, atol=1e-10)
    s.q = wanted(n, s).links
    s.w -= s.q * np.sum(s.q * s.w, axis=1, keepdims=True)
    np.testing.assert_allclose(s.q.sum(axis=0) / np.linalg.norm(s.q.sum(axis=0)),
                               F / np.linalg.norm(F), atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_wanted_links_are_the_formation_turned_with_the_force(n):
    """In hover it is the formation itself; quadrotor 1 stays in the plane of force and azimuth."""
    s, p = state(n), parameters(n)
    F = force_on_payload(s, p)
    links = wanted(n, s).links
    up = F / np.linalg.norm(F)
    tilt = FORMATION.angle if n > 1 else 0.0
    np.testing.assert_allclose(links @ up, np.cos(tilt), atol=1e-12)
    np.testing.assert_allclose(
        links @ links.T, (level := FORMATION.links(n)) @ level.T, atol=1e-12
    )
    toward = np.array([np.cos(FORMATION.azimuth), np.sin(FORMATION.azimuth), 0.0])
    assert abs(links[0] @ np.cross(F, toward)) < 1e-10
    still = SimpleNamespace(jet=np.zeros(21), y=np.zeros(3), y_dot=np.zeros(3), q=s.q, w=0 * s.w)
    np.testing.assert_allclose(wanted(n, still).links, FORMATION.links(n), atol=1e-12)


def test_the_links_follow_their_turning_formation_by_the_feedback_alone():
    """`e_w' = -k_q e_q - k_w e_w` across the links, `e_q = q_d x q`, `e_w = w + hat(q)^2 w_d`,
    `w_d = q_d x q_d'`.
    """
    n, s = 2, state(2, seed=3)

    def w_d(s):
        q_d = wanted(n, s).links
        return np.cross(q_d, rate(n, s, lambda s: wanted(n, s).links, 1e-4))

    def e_w(s):
        return s.w + np.cross(s.q, np.cross(s.q, w_d(s)))

    e_q = np.cross(wanted(n, s).links, s.q)
    e_w_dot = rate(n, s, e_w, 1e-4)
    expected = -GAINS.k_q * e_q - GAINS.k_w * e_w(s)
    assert np.abs(e_q).max() > 0.2 and np.abs(w_d(s)).max() > 0.2
    np.testing.assert_allclose(np.cross(s.q, e_w_dot), np.cross(s.q, expected), atol=1e-3)


def test_attitudes_are_the_least_turns_to_the_thrusts_and_move_with_them():
    n, s = 2, state(2, seed=1)
    found = wanted(n, s)
    for force, attitude in zip(found.forces, found.attitudes):
        along = quat2mat(attitude)[:, 2] * np.linalg.norm(force)
        np.testing.assert_allclose(along, force, atol=1e-10)
        assert attitude[3] == 0.0 and attitude[0] > 0

    def rotations(s):
        return np.array([quat2mat(attitude) for attitude in wanted(n, s).attitudes])

    turning = np.einsum("nji,njk->nik", rotations(s), rate(n, s, rotations))
    body = np.array([turning[:, 2, 1], turning[:, 0, 2], turning[:, 1, 0]]).T
    np.testing.assert_allclose(found.omegas, body, atol=1e-6 * np.abs(body).max())
    slopes = rate(n, s, lambda s: wanted(n, s).omegas)
    np.testing.assert_allclose(found.omega_dots, slopes, atol=1e-5 * np.abs(slopes).max())


def test_moments_are_the_paper_s_in_rotation_matrices():
    """`M = -k_R e_R - k_O e_O + Omega x J Omega - J (Omega x R_e^T Omega_d - R_e^T Omega_d')`, and
    a thrust is what the wanted one has along the body's z; for two that differ in everything.
    """
    p, rng = parameters(2), np.random.default_rng(4)
    R, R_d = ([quat2mat(q / np.linalg.norm(q)) for q in rng.normal(size=(2, 4))] for _ in range(2))
    omegas, forces, omegas_d, omega_dots = rng.normal(size=(4, 2, 3))
    attitudes_d = np.array([mat2quat(r) for r in R_d])
    columns = [ca.SX(ca.DM(value.T)) for value in (forces, attitudes_d, omegas_d, omega_dots)]
    u = quadrotor_inputs(
        p, GAINS, (*columns, None), [ca.SX(ca.DM(mat2quat(r))) for r in R],
        [ca.SX(ca.DM(omega)) for omega in omegas],
    )  # fmt: skip
    u, J = np.array(ca.evalf(u)).reshape(2, 4), np.diag([p.Jx, p.Jy, p.Jz])
    for i, (r, r_d, omega) in enumerate(zip(R, R_d, omegas)):
        e = r_d.T @ r
        skew = (e - e.T) / 2
        e_R, spin = np.array([skew[2, 1], skew[0, 2], skew[1, 0]]), e.T @ omegas_d[i]
        moment = -GAINS.k_R * e_R - GAINS.k_O * (omega - spin) + np.cross(omega, J @ omega)
        moment -= J @ (np.cross(omega, spin) - e.T @ omega_dots[i])
        np.testing.assert_allclose(u[i], [forces[i] @ r[:, 2], *moment], atol=1e-12)


def test_the_whole_law_takes_its_motion_from_configuration_and_velocity():
    """Links turn by `q x q'`, attitudes and body rates are those of the velocity."""
    p, s, rng = parameters(1), state(1, seed=5), np.random.default_rng(6)
    attitude, omega = rng.normal(size=4), rng.normal(size=3)
    attitude /= np.linalg.norm(attitude)
    q = np.r_[s.y, attitude, s.q[0]]
    v = np.r_[s.y_dot, omega, np.cross(s.w[0], s.q[0])]
    u = _control_law(p, FORMATION, GAINS)("law", s.jet, q, v)[0][:, 0]
    thrusts = [ca.SX(ca.DM(value)) for value in law(1)(s.jet, s.y, s.y_dot, *s.q, *s.w)]
    parts = [ca.SX(ca.DM(attitude))], [ca.SX(ca.DM(omega))]
    expected = quadrotor_inputs(p, GAINS, thrusts, *parts)
    np.testing.assert_allclose(u, np.array(ca.evalf(expected))[:, 0], atol=1e-10)


def test_commands_are_of_their_step_within_the_limits_and_past_the_end_of_the_last():
    path = paths.line([0.0, 0.0, 1.0], [0.4, 0.2, 1.3], 2.0)
    limits = np.array([[0.0, 11.0], [-0.02, 0.01], [-9.0, 9.0], [-9.0, 9.0]])
    dsys, law = model(1), _control_law(parameters(1), FORMATION, GAINS)
    controller = GeometricController(dsys, path, FORMATION, GAINS)
    tracker = ControllerTracker(dsys, controller, limits=limits)
    x = dsys.state(*random_motion(1, np.random.default_rng(8), 0.3))
    states, h, end = controller.targets, dsys.h, len(controller.targets) - 1
    for k, step in ((0, 0), (60, 60), (199, 199), (end, end), (end + 7, end)):
        jet = path.jets([step * h])[0].ravel()
        wanted = law("law", jet, dsys.configuration(x), dsys.velocity(x))[0][:, 0]
        command = tracker.command(k, x)
        np.testing.assert_allclose(command.u, np.clip(wanted, *limits.T), rtol=1e-12)
        assert command.saturated.tolist() == (command.u != wanted).tolist()
        assert command.saturated.any() and not command.saturated.all()
        np.testing.assert_array_equal(command.error, dsys.local(states[step], x))


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_figure_of_eight_is_tracked_with_the_feed_forward(n):
    """The formation turns with the force, unlike the flat reference's, so only the payload is
    compared; the start differs by link rates.
    """
    plant, path = model(n), PATHS["figure_of_eight"]()
    controller = GeometricController(plant, path, Formation(0.4))
    result = closed_loop(plant, controller, controller.targets[0])
    y = result.trajectory.states[:, :3]
    error = np.linalg.norm(y - path.jets(result.trajectory.times)[:, 0], axis=1)
    assert result.failure is None
    assert error.max() < 0.05
