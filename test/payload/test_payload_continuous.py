"""The variational integrator against Newton's and Euler's equations [celledoni2021 (36)-(38)], and
the tensions of the links.
"""

import numpy as np
import pytest
from payload_cases import model, parameters, random_motion
from scipy.integrate import solve_ivp

from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.systems import link_tensions, quadrotor_payload
from nh_control.systems import quadrotor_payload_continuous as continuous

T = 0.32
STEPS = (16, 32, 64, 128)
COMPONENTS = {
    "y": slice(0, 3),
    "v": slice(3, 6),
    "q": slice(0, 3),
    "w": slice(3, 6),
    "R": slice(6, 15),
    "Omega": slice(15, 18),
}


def part(phases, name):
    """A component of phases (N, 6 + 18 n), for all quadrotors where it is theirs."""
    if name in ("y", "v"):
        return phases[:, COMPONENTS[name]]
    return (
        phases[:, 6:].reshape(len(phases), -1, 18)[:, :, COMPONENTS[name]].reshape(len(phases), -1)
    )


def forces(n, controlled, rng):
    """Thrusts (n), torques (n, 3) and wind forces (n + 1, 3); none if not controlled."""
    if not controlled:
        return np.zeros(n), np.zeros((n, 3)), np.zeros((n + 1, 3))
    return rng.uniform(5, 15, n), rng.normal(size=(n, 3)) * 0.3, rng.normal(size=(n + 1, 3))


def exact(p, phase, thrust, torque, wind, times):
    """Phases at the times by DOP853 at 1e-13, restarted at each; wind on the quadrotors adds to
    their thrusts.
    """

    def derivative(_, z):
        v, quads = z[3:6], z[6:].reshape(p.n, 18)
        q, w, R, omega = (
            quads[:, :3],
            quads[:, 3:6],
            quads[:, 6:15].reshape(p.n, 3, 3),
            quads[:, 15:],
        )
        push = thrust[:, None] * R[:, :, 2] + wind[1:]
        v_dot, w_dot, omega_dot = continuous.accelerations(p, q, w, omega, push, torque, wind[0])
        R_dot = np.array(
            [r @ [[0, -o[2], o[1]], [o[2], 0, -o[0]], [-o[1], o[0], 0]] for r, o in zip(R, omega)]
        )
        return np.concatenate(
            [
                v,
                v_dot,
                np.hstack([np.cross(w, q), w_dot, R_dot.reshape(p.n, 9), omega_dot]).ravel(),
            ]
        )

    out = [phase]
    for start, end in zip(times[:-1], times[1:]):
        out.append(
            solve_ivp(derivative, (start, end), out[-1], "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
        )
    return np.array(out)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("controlled", [False, True], ids=["free", "controlled"])
def test_variational_integrator_converges_with_order_two_in_every_component(n, controlled):
    rng, p = np.random.default_rng(10 * n + controlled), parameters(n)
    q, v = random_motion(n, rng)
    thrust, torque, wind = forces(n, controlled, rng)
    nodes = np.linspace(0, T, STEPS[0] + 1)
    reference = exact(p, continuous.phase(p, q, v), thrust, torque, wind, nodes)
    u = np.concatenate([np.column_stack([thrust, torque]).ravel(), wind.ravel()])
    errors = {name: [] for name in COMPONENTS}
    for steps in STEPS:
        dsys = model(n, T / steps, wind=True)
        states = dsys.simulate(dsys.state(q, v), np.tile(u, (steps, 1))).states[
            :: steps // STEPS[0]
        ]
        phases = np.array(
            [continuous.phase(p, dsys.configuration(x), dsys.velocity(x)) for x in states]
        )
        for name in COMPONENTS:
            errors[name].append(np.abs(part(phases, name) - part(reference, name)).max())
    for name, error in errors.items():
        slope = np.polyfit(np.log(1 / np.array(STEPS)), np.log(error), 1)[0]
        assert slope == pytest.approx(2.0, abs=0.1), (name, error)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_derivative_and_phase_agree_with_the_accelerations(n):
    """The vector field for ODE solvers is what the test above integrates, without wind on the
    quadrotors.
    """
    rng, p = np.random.default_rng(n), parameters(n)
    z = continuous.phase(p, *random_motion(n, rng))
    thrust, torque, wind = forces(n, True, rng)
    step = 1e-4
    times = np.array([0.0, step])
    wind[1:] = 0
    ahead, behind = (exact(p, z, thrust, torque, wind, sign * times)[1] for sign in (1, -1))
    np.testing.assert_allclose(
        continuous.derivative(p, z, thrust, torque, wind[0]),
        (ahead - behind) / (2 * step),
        atol=1e-4,
    )


def test_without_a_force_on_the_payload_there_is_none():
    rng, p = np.random.default_rng(2), parameters(2)
    z = continuous.phase(p, *random_motion(2, rng))
    thrust, torque, _ = forces(2, True, rng)
    np.testing.assert_array_equal(
        continuous.derivative(p, z, thrust, torque),
        continuous.derivative(p, z, thrust, torque, np.zeros(3)),
    )


def test_tensions_are_what_the_equations_of_motion_leave():
    """`m_y (y'' + g e3) = sum tension_i q_i + wind` with y'' of the Lagrangian's equations, and
    wind on the payload and on every quadrotor.
    """
    rng, p = np.random.default_rng(5), parameters(2)
    q, v = random_motion(2, rng)
    u = np.concatenate([rng.uniform(5, 15, 8), rng.normal(size=9)])
    acceleration = ContinuousSystem(quadrotor_payload(p, wind=True)).acceleration(q, v, u)[:3]
    needed = p.payload_mass * (acceleration + [0, 0, p.g]) - u[8:11]
    tensions = link_tensions(p, q, v, u)
    np.testing.assert_allclose(tensions @ q[11:].reshape(2, 3), needed, rtol=0, atol=1e-12)
    still = ContinuousSystem(quadrotor_payload(p)).acceleration(q, v, u[:8])[:3]
    needed = p.payload_mass * (still + [0, 0, p.g])
    tensions = link_tensions(p, q, v, u[:8])
    np.testing.assert_allclose(tensions @ q[11:].reshape(2, 3), needed, rtol=0, atol=1e-12)


def test_tension_is_negative_when_quadrotors_push_the_payload_and_zero_in_free_fall():
    p = parameters(2)
    upright, upside_down = [1.0, 0, 0, 0], [0.0, 1, 0, 0]
    links = [0.0, 0, 1] * 2
    v = np.zeros(15)
    thrusts = np.array([5.0, 0, 0, 0] * 2)
    assert (link_tensions(p, np.r_[np.zeros(3), upright * 2, links], v, thrusts) > 0).all()
    assert (link_tensions(p, np.r_[np.zeros(3), upside_down * 2, links], v, thrusts) < 0).all()
    np.testing.assert_allclose(
        link_tensions(p, np.r_[np.zeros(3), upright * 2, links], v, np.zeros(8)), 0, atol=1e-15
    )


def test_tensions_refuse_a_wrong_number_of_inputs():
    with pytest.raises(ValueError, match="expected 8 inputs, or 17 with wind, got 9"):
        link_tensions(parameters(2), np.zeros(17), np.zeros(15), np.zeros(9))
