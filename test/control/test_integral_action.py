"""The disturbance estimate of the tracker beside what goes wrong: limits that bind, gaps between
commands, the end of a reference, impulses of holonomic constraints.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.control import LqrTracker
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.systems import pendulum

H, GAIN, TORQUE = 0.05, 0.3, 0.2
STEPS = 12


@pytest.fixture(scope="module")
def model():
    return midpoint(pendulum(), H)


def tracker(model, limits=(-np.inf, np.inf), steps=STEPS, **options):
    rest = Trajectory(H, np.zeros((steps + 1, 2)), np.zeros((steps, 1)))
    return LqrTracker(
        model, rest, np.eye(2), [[0.1]], limits=[limits], disturbance_gain=GAIN, **options
    )


def followed(model, tracker, x, steps, torque=TORQUE):
    """The commands of a run under a constant torque that the model does not know."""
    commands, memory = [], None
    for k in range(steps):
        commands.append(tracker.command(k, x, memory))
        memory, x = commands[-1].memory, model.step(x, commands[-1].u + torque)
    return commands


def test_the_disturbance_estimate_uses_the_limited_input(model):
    """Each step takes the same share of what is left, limited or not: nothing winds up."""
    limited = followed(model, tracker(model, (-0.05, 0.08)), np.array([0.4, 0.0]), STEPS)
    assert sum(command.saturated.any() for command in limited) > STEPS / 2
    assert all(-0.05 <= command.u[0] <= 0.08 for command in limited)
    free = followed(model, tracker(model), np.array([0.4, 0.0]), STEPS)
    left = H * TORQUE * (1 - GAIN) ** np.arange(STEPS)
    for commands in (limited, free):
        estimates = np.array([command.memory.disturbance[0] for command in commands])
        np.testing.assert_allclose(estimates, H * TORQUE - left, atol=0.02 * H * TORQUE)


def test_the_gains_on_the_state_are_those_without_a_disturbance(model):
    """It goes its own way, whatever the weights of the last state."""
    end = tracker(model, Qf=np.diag([50.0, 3.0]))
    plain = LqrTracker(model, end.reference, np.eye(2), [[0.1]], np.diag([50.0, 3.0]))
    np.testing.assert_allclose(end.gains.K, plain.gains.K, rtol=1e-12)


def test_a_limit_that_is_just_reached_does_not_count_as_saturated(model):
    x = np.array([0.3, -0.1])
    u = tracker(model).command(0, x).u[0]
    at = tracker(model, (min(u, 0.0), max(u, 0.0))).command(0, x)
    assert at.u[0] == u and not at.saturated.any()
    within = tracker(model, (0.5 * min(u, 0.0), 0.5 * max(u, 0.0))).command(0, x)
    assert within.u[0] == 0.5 * u and within.saturated.all()


def test_after_a_gap_the_estimate_stays_and_goes_on_from_the_next_state(model):
    """Without a prediction there is no surprise: what was learnt is used as it is."""
    follower = tracker(model)
    before = followed(model, follower, np.array([0.2, 0.0]), 5)[-1].memory
    gap = type(before)(before.disturbance)
    there = np.array([-0.7, 0.9])
    command = follower.command(8, there, gap)
    np.testing.assert_array_equal(command.memory.disturbance, before.disturbance)
    assert command.u[0] < follower.command(8, there).u[0] - 0.01  # against the push
    assert command.memory.predicted is not None
    surprised = follower.command(9, command.memory.predicted + [0.0, 0.01], command.memory)
    np.testing.assert_allclose(
        surprised.memory.disturbance - before.disturbance, GAIN * 0.01, rtol=1e-9
    )


def test_the_disturbance_estimate_survives_a_step_that_fails(model, monkeypatch):
    follower, there = tracker(model), np.array([0.2, 0.0])
    before = followed(model, follower, there, 5)[-1].memory

    def fails(x, u):
        raise StepFailed("pendulum", H, "no luck", 1.0, 1.0, 25, Conditioning(1e9, 1.0, 1.0))

    monkeypatch.setattr(model, "step", fails)
    after = follower.command(6, before.predicted, before).memory
    assert after.predicted is None and abs(before.disturbance[0]) > 0.5 * H * TORQUE
    np.testing.assert_array_equal(after.disturbance, before.disturbance)


def test_the_last_step_of_a_reference_is_controlled_and_the_one_after_only_if_it_holds(model):
    x = np.array([0.2, 0.0])
    released, held = tracker(model), tracker(model, hold=True)
    memory = followed(model, held, x, 5)[-1].memory
    assert released.command(STEPS - 1, x).u[0] != 0.0
    past = released.command(STEPS, x, memory)
    assert past.u[0] == 0.0 and past.memory is None
    last, after = (held.command(k, x, memory) for k in (STEPS - 1, STEPS + 3))
    np.testing.assert_array_equal(after.u, last.u)
    assert after.memory is not None


def test_the_gain_at_a_held_end_does_not_depend_on_the_reference_before(model):
    """The terminal cost is that of the stationary problem at the end."""
    pushed = model.simulate([0.0, 0.0], np.r_[0.0, np.full(STEPS - 1, 5.0)][:, None])
    back = pushed.states[::-1] * [1.0, -1.0]  # backwards in time, to rest at the start
    moving = Trajectory(H, back, pushed.inputs[::-1])
    weights = np.eye(2), [[0.1]]
    for gain in (0.0, GAIN):
        trackers = [
            LqrTracker(model, reference, *weights, disturbance_gain=gain, hold=True)
            for reference in (moving, Trajectory(H, 0 * back, 0 * moving.inputs))
        ]
        np.testing.assert_allclose(trackers[0].gains.P[-1], trackers[1].gains.P[-1], rtol=1e-9)
        np.testing.assert_allclose(trackers[1].gains.P[0], trackers[1].gains.P[-1], rtol=1e-6)


def test_conserved_quantities_are_those_of_the_held_end():
    """The momentum of a satellite's wheels, in its axes, is another on the way there."""
    scenario = scenarios.get("satellite")
    model = scenario.model()
    nq, wheels = model.system.space.nq, np.array([40.0, -20.0, 30.0, 10.0])
    rest = model.state(model.system.space.origin, np.r_[0.0, 0.0, 0.0, wheels])
    torques = np.zeros((61, model.nu))
    torques[1:, 0] = 0.5 * model.system.input_bounds[0, 1]
    away = model.simulate(rest, torques)
    reversal = np.where(np.arange(model.nx) < nq, 1.0, -1.0)
    moving = Trajectory(model.h, away.states[::-1] * reversal, torques[::-1])
    still = model.simulate(moving.states[-1], np.zeros((2, model.nu)))
    weights = np.eye(model.ndx), np.eye(model.nu)
    given = dict(disturbance_gain=GAIN, hold=True, excluded=scenario.excluded)
    ends = [
        LqrTracker(model, reference, *weights, **given).gains.P[-1]
        for reference in (moving, still)
    ]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-9 * np.abs(ends[1]).max())


def test_impulses_of_constraints_are_no_disturbance():
    """Measured velocities of a mass on a circle know nothing of the impulse that holds it."""
    bead = midpoint(
        System(
            name="bead",
            space=Rn("x", "y"),
            lagrangian=lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2 - 9.8 * q[1],
            inputs=("f_x", "f_y"),
            force=lambda q, v, u: u,
            holonomic_constraint=lambda q: (q[0] ** 2 + q[1] ** 2 - 1) / 2,
        ),
        0.02,
    )
    low = bead.measured_state([0.0, -1.0], [0.0, 0.0])
    rest = bead.simulate(bead.step(low, [0.0, 0.0]), np.zeros((60, 2)))
    follower = LqrTracker(bead, rest, np.eye(4), np.eye(2), disturbance_gain=GAIN)
    for push, expected in ((0.0, 0.0), (0.1, 0.02 * 0.1)):
        x, memory = bead.measured_state([np.sin(0.3), -np.cos(0.3)], [0.0, 0.0]), None
        for k in range(60):
            measured = bead.measured_state(bead.configuration(x), bead.velocity(x))
            command = follower.command(k, measured, memory)
            memory, x = command.memory, bead.step(x, command.u + [push, 0.0])
        assert memory.disturbance[0] == pytest.approx(expected, abs=2e-4)
