"""Weights of velocities cost what they say, in the momenta of a state."""

import numpy as np
import pytest

import nh_control as nh
from nh_control import scenarios
from nh_control.control import lqr
from nh_control.systems.cart_pole import cart_pole


@pytest.mark.parametrize("name", ["snakeboard", "satellite"])
def test_a_small_error_costs_what_its_velocity_costs(name):
    """With a velocity constraint, and on a Lie group: along errors from rest."""
    model, rng = scenarios.get(name).model(), np.random.default_rng(3)
    space = model.system.space
    q = space.retract(space.origin, 0.2 * rng.normal(size=space.nv))
    root = rng.normal(size=(space.nv + space.nw,) * 2)
    Q = root @ root.T
    weight = lqr.velocity_weights(model, q, Q)
    rest = model.state(q, np.zeros(space.nw))
    for _ in range(3):
        dx = np.r_[np.zeros(space.nv), rng.normal(size=model.ndx - space.nv)]
        both = np.r_[dx[: space.nv], model.velocity(model.retract(rest, dx))]
        assert dx @ weight @ dx == pytest.approx(both @ Q @ both, rel=1e-12)
    np.testing.assert_allclose(weight[: space.nv, : space.nv], Q[: space.nv, : space.nv])


def test_the_gain_of_weights_of_velocities_is_that_of_the_momenta():
    """By the mass matrix of a cart-pole, `v = M^{-1} p`."""
    model = nh.midpoint(cart_pole(), 0.02)
    q = [0.3, np.pi]
    columns = [model.state(q, v)[2:] for v in np.eye(2)]
    inverse = np.linalg.inv(np.transpose(columns))
    weight = lqr.velocity_weights(model, q, [1.0, 2.0, 3.0, 4.0])
    expected = inverse.T @ np.diag([3.0, 4.0]) @ inverse
    np.testing.assert_allclose(weight[2:, 2:], expected, rtol=1e-12)
    assert np.diag(weight)[:2].tolist() == [1.0, 2.0] and not weight[:2, 2:].any()
    x = model.state(q, [0.0, 0.0])
    gain = lqr.infinite_horizon(model, x, [0.0], weight, np.eye(1))
    assert gain.K.shape[-2:] == (1, 4)
    with pytest.raises(ValueError, match=r"have shape \(4, 4\) or \(4,\), .* got \(3,\)"):
        lqr.velocity_weights(model, q, np.ones(3))


def test_without_a_last_weight_the_last_state_has_its_own():
    """Where the momenta of a velocity depend on the configuration."""
    model = nh.midpoint(cart_pole(), 0.01)
    states = np.array([model.state([0.0, angle], [0.0, 0.0]) for angle in (0.0, 1.0)])
    weight = np.eye(4)
    Q, _, last = lqr.checked_weights(model, states, weight, np.eye(model.nu))
    np.testing.assert_array_equal(last, weight)
    by_velocity = {"theta_dot": 1.0}
    Q, _, last = lqr.checked_weights(model, states, by_velocity, np.eye(model.nu))
    np.testing.assert_array_equal(last, Q[1])
    assert np.abs(Q[1] - Q[0]).max() > 1e-3
