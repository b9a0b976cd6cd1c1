"""Control through contact: gains by smoothed derivatives, and friction by identification."""

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control.control import equilibrium
from nh_control.control.identification import identify, segments
from nh_control.runs.simulation import closed_loop
from nh_control.systems import wet_snakeboard

BODY, WHEEL, LENGTH, RADIUS, G = 4.5, 0.6, 0.45, 0.06, 9.81
INERTIA, SPIN = 0.12, 0.002
H = 0.005


def kinetic(v, pitch):
    """Kinetic energy of v = (x', z', wheel', pitch'), with x, z of the axle."""
    x, z, wheel, tilt = ca.vertsplit(v)
    at = x + LENGTH * ca.cos(pitch) * tilt, z - LENGTH * ca.sin(pitch) * tilt
    moving = WHEEL * (x**2 + z**2) + BODY * (at[0] ** 2 + at[1] ** 2)
    return (moving + SPIN * wheel**2 + INERTIA * tilt**2) / 2


def touching(friction=0.8, smoothing=1e-6, push=()):
    """The robot whose wheel touches the ground, q = (x, z, wheel, pitch)."""

    def lagrangian(q, v):
        height = WHEEL * q[1] + BODY * (q[1] + LENGTH * ca.cos(q[3]))
        return kinetic(v, q[3]) - G * height

    tire = nh.UnilateralConstraint(
        "tire",
        gap=lambda q: q[1] - RADIUS,
        slip=lambda q: ca.horzcat(1, 0, -RADIUS, 0),
        friction=friction,
    )
    system = nh.System(
        "balancer",
        nh.Rn("x", "z", "wheel", "pitch"),
        lagrangian,
        inputs=("torque",),
        force=lambda q, v, u: ca.vertcat(0, 0, u, -u),
        input_limits=[[-8.0, 8.0]],
        contacts=(tire,),
        smoothing=smoothing,
    )
    return nh.midpoint(system, H)


def rolling():
    """The robot whose wheel always rolls, q = (wheel, pitch)."""

    def lagrangian(q, v):
        moved = ca.vertcat(RADIUS * v[0], 0, v[0], v[1])
        return kinetic(moved, q[1]) - G * BODY * LENGTH * ca.cos(q[1])

    space = nh.Rn("wheel", "pitch")
    system = nh.System("rolls", space, lagrangian, ("torque",), lambda q, v, u: ca.vertcat(u, -u))
    return nh.midpoint(system, H)


WEIGHTS = {"wheel": RADIUS**2, "pitch": 10.0}


def weights(dsys):
    names = dsys.state_space.tangent_names
    return np.diag([WEIGHTS.get(name, 0.0) for name in names]), np.eye(1)


def stationary(dsys, guess):
    """The equilibrium, the gain about it, and the eigenvalues of the closed loop."""
    excluded = ("x",) if "x" in dsys.state_space.tangent_names else ()
    x, u = equilibrium(dsys, guess, [0.0])
    K = nh.lqr.infinite_horizon(dsys, x, u, *weights(dsys), excluded=excluded).K
    lin = dsys.linearize(x, u)
    return x, K, np.linalg.eigvals(lin.A - lin.B @ K)


def standing(dsys):
    return dsys.state([0, RADIUS + 1e-6, 0, 0], np.zeros(4))


@pytest.mark.parametrize("smoothing", [1e-2, 1e-5, 1e-8])
def test_gains_by_smoothed_derivatives_are_close_to_those_of_rolling(smoothing):
    _, _, ideal = stationary(rolling(), np.zeros(4))
    x, K, found = stationary(dsys := touching(smoothing=smoothing), standing(touching()))
    assert x[1] - RADIUS == pytest.approx(smoothing / (G * (BODY + WHEEL)), rel=1e-6)
    off = max(np.abs(found - one).min() for one in ideal)
    assert (
        off < 2e-4 * smoothing + 1e-11 and np.abs(dsys.local(x, dsys.step(x, [0.0]))).max() < 1e-9
    )


def balanced(start, kappa, friction=0.8, steps=1200):
    """The states from a configuration, on ground of a friction, under gains at a smoothing."""
    model = touching(smoothing=kappa)
    x, _ = equilibrium(model, standing(model), [0.0])
    reference = nh.Trajectory(
        model.h, np.tile(x, (steps + 1, 1)), np.zeros((steps, 1)), dsys=model
    )
    tracker = nh.LqrTracker(model, reference, *weights(model), hold=True, excluded=("x",))
    plant = touching(friction, smoothing=1e-10)
    loop = closed_loop(plant, tracker, plant.state(start, np.zeros(4)), steps)
    assert loop.failure is None
    return loop.trajectory.states


@pytest.mark.parametrize("kappa", [1e-3, 1e-6])
def test_lqr_balances_a_robot_that_leans_or_is_dropped(kappa):
    leaning = balanced([0, RADIUS + 1e-11, 0, 0.25], kappa)
    assert np.abs(leaning[-1, [2, 3]]).max() < 0.02 and leaning[:, 1].min() > RADIUS
    dropped = balanced([0, RADIUS + 0.1, 0, 0.1], kappa)
    assert np.abs(dropped[-1, [2, 3]]).max() < 0.02 and dropped[:, 1].min() > RADIUS


@pytest.mark.slow
def test_on_ice_a_lean_is_too_much_that_is_none_on_the_road():
    assert np.abs(balanced([0, RADIUS + 1e-11, 0, 0.04], 1e-6, friction=0.05)[-1, 3]) < 0.02
    assert np.abs(balanced([0, RADIUS + 1e-11, 0, 0.25], 1e-6, friction=0.05)[:, 3]).max() > 1.0


@pytest.mark.parametrize("noise", [1e-5, pytest.param(0.0, marks=pytest.mark.slow)])
def test_friction_is_identified_from_a_motion_that_slides(noise):
    model = nh.midpoint(wet_snakeboard(), 0.01)
    plant, steps = model.with_parameters(friction=0.25), 100
    x = plant.state(np.zeros(5), [0.3, -0.2, 0.1, 0.5, 0.4])
    inputs = np.tile([0.3, -0.2], (steps, 1))
    q = plant.simulate(x, inputs).states[:, :5]
    q = q + noise * np.random.default_rng(0).normal(size=q.shape)
    times = np.arange(steps + 1) * 10_000_000
    held = [[(u, model.h)] for u in inputs]
    found = identify(model, ["friction"], segments(times, q, held))
    tolerance = 4 * found.deviations[0] if noise else 1e-9
    assert found.values[0] == pytest.approx(0.25, abs=tolerance) and found.deviations[0] < 0.01


@pytest.mark.slow
def test_motions_are_optimized_from_large_to_small_smoothings():
    """A motion from rest to rest; its torque tends to that of rolling, and LQR keeps it."""
    steps, motion, largest = 300, None, []
    for kappa in (1e-2, 1e-4, 1e-6):
        model = touching(smoothing=kappa)
        start, _ = equilibrium(model, standing(model), [0.0], ("x", "wheel"))
        end = model.retract(start, [0.5, 0, 0.5 / RADIUS, 0, 0, 0, 0, 0])
        states = np.linspace(start, end, steps + 1) if motion is None else motion.states.copy()
        inputs = np.zeros((steps, 1)) if motion is None else motion.inputs
        states[0] = start
        goal = nh.Trajectory(
            model.h, np.tile(end, (steps + 1, 1)), np.zeros((steps, 1)), dsys=model
        )
        found = nh.optimize(
            model,
            nh.quadratic_cost(model, goal, np.zeros((8, 8)), np.eye(1)),
            nh.Trajectory(model.h, states, inputs, dsys=model),
            end=end,
            fixed=("x", "pitch", "p_x", "p_pitch"),
        )
        assert found.converged
        motion = found.trajectory
        largest.append(np.abs(motion.inputs).max())
    assert motion.states[-1, [0, 3]] == pytest.approx([0.5, 0], abs=1e-6)
    assert abs(largest[2] - largest[1]) < 0.1 * abs(largest[1] - largest[0])
    again = model.simulate(motion.states[0], motion.inputs[:100])
    assert again.states[-1] == pytest.approx(motion.states[100], abs=1e-4)
