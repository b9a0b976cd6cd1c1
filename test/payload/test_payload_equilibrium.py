"""Equilibria by solving, and hover LQR."""

import numpy as np
import pytest
from payload_cases import lqr_weights, model, parameters

from nh_control.control import NoEquilibrium, equilibrium, lqr
from nh_control.control.paths import point
from nh_control.scenarios.payload_flatness import flat_motion
from nh_control.systems import Formation

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


def test_no_equilibrium_is_an_error_that_names_what_still_moves():
    dsys = model(2)
    x, u = guess(2, Formation(0.5))
    with pytest.raises(
        NoEquilibrium, match="a step still moves p?_?.* by .*fix fewer names than"
    ) as caught:
        equilibrium(dsys, x, u, fixed=(*held(dsys), "quad1_thrust", "quad2_thrust"))
    assert np.linalg.norm(caught.value.motion) > 1e-3
    with pytest.raises(ValueError, match=r"cannot fix \['payload'\], choose from \['payload_x'"):
        equilibrium(dsys, x, u, fixed=["payload"])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_hover_is_stabilizable(n):
    dsys = model(n)
    x, u = equilibrium(dsys, *guess(n, Formation()), fixed=held(dsys) if n > 1 else ())
    gain = lqr.infinite_horizon(dsys, x, u, *lqr_weights(n))
    open_loop = np.abs(np.linalg.eigvals(dsys.linearize(x, u).A)).max()
    assert np.abs(gain.poles).max() < 0.997 < 1 - 1e-9 < open_loop
