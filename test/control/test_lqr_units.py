"""Whether a gain exists, and the gain, do not depend on units, masses and the step."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control import scenarios
from nh_control.control import lqr
from nh_control.control.estimation import KalmanFilter
from nh_control.systems.cart_pole import cart_pole

GRAVITY = 9.81
STEPS = 1e-4, 3e-3, 0.1


@dataclass(frozen=True)
class Arm:
    mass: float = 1.0


def arm(p):
    """A motor lifts a mass at 1 m."""
    return nh.System(
        "arm",
        nh.Rn("angle"),
        lambda q, v, p: p.mass * (v[0] ** 2 / 2 + GRAVITY * ca.cos(q[0])),
        inputs=("torque",),
        force=lambda q, v, u, p: u,
        parameters=p,
    )


@dataclass(frozen=True)
class Units:
    """Units of length, angle and force, and the damping (1/s) of a load that no input reaches."""

    x: float = 1.0
    theta: float = 1.0
    y: float = 1.0
    force: float = 1.0
    damping: float = 0.0
    stiffness: float = 0.0


def cart_with_load(p):
    """A pendulum on a cart and a load y, in any units: coordinates are `x / p.x` and so on."""

    def lagrangian(q, v, p):
        theta, speed = p.theta * q[1], (p.x * v[0], p.theta * v[1], p.y * v[2])
        kinetic = speed[0] ** 2 + speed[1] ** 2 / 3 + speed[0] * speed[1] * ca.cos(theta)
        return (
            kinetic / 2
            + speed[2] ** 2 / 2
            - p.stiffness * (p.y * q[2]) ** 2 / 2
            - 5 * ca.cos(theta)
        )

    return nh.System(
        "cart",
        nh.Rn("x", "theta", "y"),
        lagrangian,
        inputs=("f",),
        force=lambda q, v, u, p: ca.vertcat(p.x * p.force * u[0], 0, -p.damping * p.y**2 * v[2]),
        parameters=p,
    )


def sizes(model):
    """SI units of the local coordinates, and of the input."""
    p = model.system.parameters
    q = np.array([p.x, p.theta, p.y])
    return np.concatenate([1 / q, q]), 1 / p.force


def stationary(model, weight, excluded=()):
    s, e = sizes(model)
    at_rest = model.state(np.zeros(3), np.zeros(3)), [0.0]
    Q = np.diag(weight / s**2)
    K = lqr.infinite_horizon(model, *at_rest, Q, [[1 / e**2]], excluded=excluded).K
    return K * s / e


@pytest.fixture(scope="module")
def cart():
    return nh.midpoint(cart_with_load(Units()), 0.01)


@pytest.mark.parametrize("step", STEPS)
def test_an_arm_of_any_mass_is_held_at_any_step(step):
    """The same angle, rate and torque over weight give the same gain over the mass."""
    x, Q = np.zeros(2), np.diag([4.0, 1.0])
    gains, one = [], nh.midpoint(arm(Arm()), step)
    for mass in 10.0 ** np.arange(-4, 6):
        model = one.with_parameters(mass=mass)
        unit = np.diag([1.0, 1 / mass])
        still = nh.Trajectory(step, np.zeros((2, 2)), np.zeros((1, 1)), dsys=model)
        problem = unit @ Q @ unit, [[1 / mass**2]]
        for K in (
            lqr.infinite_horizon(model, x, [0.0], *problem).K,
            lqr.periodic(model, still, *problem).K[0],
        ):
            gains.append(K @ np.diag([1 / mass, 1.0]))
    np.testing.assert_allclose(gains, np.broadcast_to(gains[0], (20, 1, 2)), rtol=1e-9)


def random_units(seed):
    x, theta, y, force = 10.0 ** np.random.default_rng(seed).uniform(-6, 6, 4)
    return {"x": x, "theta": theta, "y": y, "force": force}


@pytest.mark.parametrize("step", STEPS)
def test_the_gain_is_the_same_in_any_units(step, cart):
    model, weight = cart.with_step(step), np.array([1.0, 2.0, 0.0, 0.5, 0.5, 0.0])
    SI = stationary(model, weight, ("y", "p_y"))
    assert np.abs(SI).min(initial=1.0, where=[True, True, False, True, True, False]) > 0.1
    for seed in range(10):
        changed = model.with_parameters(**random_units(seed))
        K = stationary(changed, weight, ("y", "p_y"))
        np.testing.assert_allclose(K, SI, rtol=1e-9, atol=1e-9)


ALL, CART = np.ones(6), ("y", "p_y")
Y = r"(\S+ )?y \+ (\S+ )?p_y"


def weighed(*seen):
    return np.isin(np.arange(6), seen).astype(float)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("load", "weight", "excluded", "unseen"),
    [
        # a load that no input reaches must come to rest
        ({}, ALL, (), r"influences: p_y \(eigenvalue 1\)"),  # it drifts
        ({"stiffness": 4.0}, ALL, (), rf"influences: {Y} \(eigenvalue \S+j\)"),
        ({"stiffness": -1e-2}, ALL, (), rf"influences: {Y} \(eigenvalue 1"),  # it falls
        ({"stiffness": 1.0, "damping": 0.02}, ALL, (), None),  # it comes to rest in minutes
        ({"stiffness": 1e-4, "damping": 1e-2}, ALL, (), None),
        # what the weight does not see is named
        *(
            ({}, weighed(*seen), CART, r"Q is zero for .*: x \(eigenvalue 1\)\. .*=\('x',\)")
            for seen in ((1, 3, 4), (1,), (1, 4))
        ),
        ({}, weighed(0), CART, None),  # a falling pendulum needs no weight
        ({}, weighed(0, 1), CART, None),
    ],
)
def test_whether_there_is_a_gain_does_not_depend_on_units(
    step, load, weight, excluded, unseen, cart
):
    for seed in range(5):
        changed = cart.with_step(step).with_parameters(**random_units(seed), **load)
        if unseen is None:
            K = stationary(changed, weight, excluded)
            np.testing.assert_allclose(K[0, [2, 5]], 0.0, atol=1e-9)
            continue
        with pytest.raises(lqr.NotStabilizable, match=unseen) as refused:
            stationary(changed, weight, excluded)
        assert isinstance(refused.value, lqr.NotDetectable) == bool(excluded)
        if not excluded:
            assert np.abs(refused.value.directions[:, [0, 1, 3, 4]]).max() < 1e-9


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("measured", "load", "unseen"),
    [
        ([0, 2], {}, None),
        ([2], {"stiffness": 1.0}, "x"),
        ([1, 2], {}, "x"),
        ([0, 1], {}, "y"),
        ([0], {"stiffness": 1.0, "damping": 0.02}, None),
        ([0], {"stiffness": 1.0}, Y),
    ],
)
def test_what_a_measurement_does_not_see_is_named_in_any_units(step, measured, load, unseen, cart):
    for seed in range(5):
        changed = cart.with_step(step).with_parameters(**random_units(seed), **load)
        V, see = np.eye(len(measured)), lambda x: 7.0 * x[measured]
        kalman = KalmanFilter(changed, np.eye(6), V, see)
        if unseen is None:
            kalman.require_detectable(np.zeros(6), [0.0])
            continue
        with pytest.raises(
            lqr.NotDetectable, match=rf"does not observe .*: {unseen} \(eigenvalue"
        ):
            kalman.require_detectable(np.zeros(6), [0.0])


# --- Weights of velocities cost what they say, in the momenta of a state ---


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
