"""Equilibria by solving, the projection operator, hover LQR and the limits of all of them."""

import numpy as np
import pytest
from payload_cases import lqr_weights, model, parameters

from nh_control.control import NoEquilibrium, equilibrium, lqr, project_trajectory
from nh_control.control.paths import point
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint
from nh_control.scenarios.payload_flatness import flat_motion
from nh_control.systems import Formation, pendulum

pytestmark = pytest.mark.slow

Y = np.array([0.3, -0.2, 1.0])


def guess(n, formation):
    """Links in formation, quadrotors upright, thrusts that carry the weight: an equilibrium only
    without an angle.
    """
    dsys, p = model(n), parameters(n)
    q = np.concatenate([Y, np.tile([1.0, 0, 0, 0], n), formation.links(n).ravel()])
    thrust = (p.payload_mass / n + p.quadrotor_mass) * p.g
    return dsys.state(q, np.zeros(dsys.system.space.nw)), np.tile([thrust, 0.0, 0, 0], n)


def held(dsys):
    return [
        name for name in dsys.state_space.tangent_names if name.startswith(("payload", "link"))
    ]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 6, 1.2])
def test_hover_in_formation_is_found_and_is_that_of_the_flat_motion(n, angle):
    dsys, formation = model(n), Formation(angle)
    x, u = equilibrium(dsys, *guess(n, formation), fixed=held(dsys))
    assert np.abs(dsys.local(x, dsys.step(x, u))).max() < 1e-12
    np.testing.assert_array_equal(x[:3], Y)
    np.testing.assert_allclose(
        x[3 + 4 * n : 3 + 7 * n].reshape(n, 3), formation.links(n), atol=1e-15
    )
    flat = flat_motion(parameters(n), point(Y, 1.0), [0.0], formation)
    assert (
        np.abs(dsys.local(dsys.state(flat.q[0], flat.v[0]), x)).max() < 1e-9
    )  # any yaw is an equilibrium: nothing draws it back to 0
    np.testing.assert_allclose(u, flat.u[0], atol=1e-10)


def test_without_held_coordinates_the_nearest_equilibrium_is_found():
    dsys = model(2)
    x0, u0 = guess(2, Formation(0.5))
    x0 = dsys.retract(x0, 0.1 * np.random.default_rng(0).normal(size=dsys.ndx))
    x, u = equilibrium(dsys, x0, u0)
    assert np.abs(dsys.local(x, dsys.step(x, u))).max() < 1e-12
    assert np.abs(dsys.local(x0, x)).max() < 0.5
    np.testing.assert_allclose(dsys.velocity(x), 0, atol=1e-11)


def test_a_pendulum_is_held_at_an_angle_by_its_torque():
    dsys = midpoint(pendulum(), 0.05)
    x, u = equilibrium(dsys, [0.7, 0.3], [0.0], fixed=["theta"])
    np.testing.assert_allclose([*x, *u], [0.7, 0.0, 9.8 * np.sin(0.7)], atol=1e-11)


def test_no_equilibrium_is_an_error_that_names_what_still_moves():
    dsys = model(2)
    x, u = guess(2, Formation(0.5))
    with pytest.raises(
        NoEquilibrium, match="a step still moves p?_?.* by .*fix less than"
    ) as caught:
        equilibrium(dsys, x, u, fixed=(*held(dsys), "quad1_thrust", "quad2_thrust"))
    assert np.linalg.norm(caught.value.motion) > 1e-3
    with pytest.raises(ValueError, match=r"cannot fix \['payload'\], choose of \['payload_x'"):
        equilibrium(dsys, x, u, fixed=["payload"])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_hover_is_stabilizable(n):
    dsys = model(n)
    x, u = equilibrium(dsys, *guess(n, Formation()), fixed=held(dsys) if n > 1 else ())
    gain = lqr.infinite_horizon(dsys, x, u, *lqr_weights(n))
    open_loop = np.abs(np.linalg.eigvals(dsys.linearize(x, u).A)).max()
    assert np.abs(gain.poles).max() < 0.997 < 1 - 1e-9 < open_loop


def test_projection_is_feasible_idempotent_and_close():
    dsys = model(2)
    rng = np.random.default_rng(6)
    x, u = guess(2, Formation())
    feasible = dsys.simulate(x, u + 0.1 * rng.normal(size=(60, 8)))
    noise = 1e-3 * rng.normal(size=(61, dsys.ndx))
    noise[0] = 0
    desired = Trajectory(
        dsys.h,
        [dsys.retract(s, e) for s, e in zip(feasible.states, noise)],
        feasible.inputs,
        name="noisy",
    )
    with pytest.raises(ValueError, match="not feasible"):
        lqr.finite_horizon(dsys, desired, *lqr_weights(2))
    once = project_trajectory(dsys, desired, *lqr_weights(2))
    for k in range(60):
        np.testing.assert_array_equal(
            dsys.step(once.states[k], once.inputs[k]), once.states[k + 1]
        )
    assert max(np.abs(dsys.local(a, b)).max() for a, b in zip(feasible.states, once.states)) < 0.02
    twice = project_trajectory(dsys, once, *lqr_weights(2))
    np.testing.assert_allclose(twice.states, once.states, atol=1e-12)
    assert once.name == "noisy" and once.input_names == dsys.inputs
