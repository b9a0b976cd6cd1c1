"""Goals and trajectories given in flight: the references that come of them, and the refusals."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from payload_cases import lqr_weights, model, weak_model
from refusals import refusal

from nh_control.control import LqrTracker, paths
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.scenarios.payload_flatness import InfeasiblePath, flat_reference
from nh_control.scenarios.payload_guidance import PayloadGuidance
from nh_control.systems.quadrotor_payload import Formation

LINE = paths.line([0.0, 0.0, 1.0], [1.5, 0.5, 1.5], 3.0)
MIDWAY = 150


@cache
def reference_along_the_line(n: int) -> Trajectory:
    return flat_reference(model(n), LINE)


def guidance(n: int = 2, **limits) -> PayloadGuidance:
    """Guidance of n quadrotors along the line."""
    return PayloadGuidance(model(n), reference_along_the_line(n), LINE, **limits)


def require_reference(dsys, old: Trajectory, new: Trajectory, k: int) -> None:
    """The new reference leaves the old one, held past its end, at its step k, is discretely
    feasible, and at rest at its end.
    """
    np.testing.assert_array_equal(new.states[0], old.states[min(k, len(old))])
    for j in range(len(new)):
        assert (
            np.abs(dsys.local(new.states[j + 1], dsys.step(new.states[j], new.inputs[j]))).max()
            < 1e-12
        )
    assert (
        np.abs(dsys.local(new.states[-1], dsys.step(new.states[-1], new.inputs[-1]))).max() < 1e-6
    )
    lower, upper = dsys.system.input_bounds.T
    assert (lower <= new.inputs).all() and (new.inputs <= upper).all()


def test_a_path_takes_over_six_derivatives_and_goes_through_points_with_velocities():
    start = LINE.jets([1.5])[0]
    times, points = [0.0, 0.7, 2.0, 3.0], np.vstack([start[0], [[1, 0, 1], [2, 1, 1], [2, 2, 1]]])
    velocities = np.vstack([start[1], [[1, 1, 0], [0, 1, 0.5], [0, 0, 0]]])
    for path in (
        paths.through(times, points, velocities, start=start[1:]),
        paths.through(times, points, start=start[1:]),
    ):
        jets = path.jets(times)
        np.testing.assert_allclose(jets[0], start, atol=1e-6)
        np.testing.assert_allclose(jets[:, 0], points, atol=1e-9)
        np.testing.assert_allclose(jets[-1, 1:], 0, atol=1e-6)
        near = path.jets(np.add.outer(times[1:-1], [-1e-7, 1e-7]).ravel())
        np.testing.assert_allclose(near[::2], near[1::2], rtol=1e-3, atol=1e-3)
    with_velocities = paths.through(times, points, velocities, start=start[1:]).jets(times)
    np.testing.assert_allclose(with_velocities[:, 1], velocities, atol=1e-9)


@pytest.mark.parametrize(
    "n", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(3, marks=pytest.mark.slow)]
)
def test_a_goal_given_in_motion_is_reached_on_a_feasible_reference(n):
    pilot = guidance(n)
    old, goal = pilot.reference, [0.5, 1.0, 2.0]
    assert np.linalg.norm(LINE.jets([MIDWAY * old.h])[0, 1]) > 0.5
    new = pilot.to_goal(MIDWAY, goal).reference
    require_reference(model(n), old, new, MIDWAY)
    np.testing.assert_allclose(new.states[-1, :3], goal, atol=1e-6)
    assert pilot.reference is old
    jumps = np.abs(np.diff(np.vstack([old.inputs[:MIDWAY], new.inputs]), axis=0)).max(axis=1)
    assert (
        jumps[MIDWAY - 1]
        < 1.5 * np.r_[jumps[MIDWAY - 20 : MIDWAY - 2], jumps[MIDWAY + 1 : MIDWAY + 20]].max()
    )


def test_goals_keep_their_acceleration_and_margin():
    gentle = guidance(acceleration=0.5).to_goal(480, [4.0, 0.0, 1.0]).reference
    swift = guidance(acceleration=5.0).to_goal(480, [4.0, 0.0, 1.0]).reference
    for reference, limit in ((gentle, 0.5), (swift, 5.0)):
        velocities = np.diff(reference.states[:, :3], axis=0) / reference.h
        acceleration = np.linalg.norm(np.diff(velocities, axis=0), axis=1).max() / reference.h
        assert 0.7 * limit < acceleration < 1.02 * limit


def test_a_trajectory_is_flown_through_its_points_at_their_times_and_velocities():
    pilot, dsys = guidance(2), model(2)
    old, times = pilot.reference, np.array([1.5, 3.0, 5.0])
    positions = np.array([[1.5, 1.0, 1.5], [0.5, 1.5, 1.5], [0.0, 0.0, 1.0]])
    velocities = np.array([[0.0, 0.5, 0.0], [-0.8, 0.0, 0.0], [0.0, 0.0, 0.0]])
    new = pilot.through_points(MIDWAY, times, positions, velocities).reference
    require_reference(dsys, old, new, MIDWAY)
    at = np.round(times / dsys.h).astype(int)
    np.testing.assert_allclose(new.states[at, :3], positions, atol=1e-3)
    np.testing.assert_allclose(
        [dsys.velocity(new.states[k])[:3] for k in at], velocities, atol=2e-3
    )
    np.testing.assert_allclose(new.states[-1, :3], positions[-1], atol=1e-6)


def test_two_goals_sent_in_flight_are_tracked_from_beside_the_reference():
    dsys, line = model(2), reference_along_the_line(2)
    tracker = LqrTracker(dsys, line, *lqr_weights(2)[:2], disturbance_gain=0.5, hold=True)
    sequence = ReferenceSequence(tracker, guidance())
    x, memory, errors = (
        dsys.retract(line.states[0], 0.02 * np.random.default_rng(0).normal(size=dsys.ndx)),
        None,
        [],
    )
    for k in range(900):
        if k in (MIDWAY, MIDWAY + 100):
            goal = [1.0, 1.5, 1.5] if k == MIDWAY else [-0.5, 0.0, 1.0]
            assert sequence.add(
                sequence.leg(k + 5).next(
                    k + 5, lambda pilot, step, goal=goal: pilot.to_goal(step, goal)
                )
            )
        command = sequence.command(k, x, memory)
        memory, x = command.memory, dsys.step(x, command.u)
        errors.append(np.linalg.norm(command.error[:3]))
    assert max(errors) < 0.1 and max(errors[-50:]) < 1e-3
    np.testing.assert_allclose(x[:3], [-0.5, 0.0, 1.0], atol=1e-3)


def test_refusals_name_their_reason_and_change_nothing(snapshot):
    pilot = PayloadGuidance(weak_model(), reference_along_the_line(2), LINE)
    before = pilot.reference
    wrong = (
        lambda g: g.to_goal(MIDWAY, [np.nan, 0, 1]),
        lambda g: g.to_goal(MIDWAY, [1.0, 0.0]),
        lambda g: g.to_goal(MIDWAY, [1e6, 0, 1]),
        lambda g: g.through_points(600, [4.0], [[1.5, 0.5, 6.5]]),
        lambda g: g.through_points(600, [2.0], [[1.5, 0.5, -4.0]]),
        lambda g: g.through_points(MIDWAY, [1.0, np.inf], np.ones((2, 3))),
        lambda g: g.through_points(MIDWAY, [1.0, 2.0], [[0, 0, 1], [0, np.nan, 1]]),
        lambda g: g.through_points(MIDWAY, [1.0, 1.0], np.ones((2, 3))),
        lambda g: g.through_points(MIDWAY, [-1.0, 1.0], np.ones((2, 3))),
        lambda g: g.through_points(MIDWAY, [], []),
        lambda g: g.through_points(MIDWAY, [1.0, 2.0], np.ones((3, 3))),
        lambda g: g.through_points(MIDWAY, [2.0], [[1, 0, 1]], [[0.1, 0, 0]]),
        lambda g: g.through_points(MIDWAY, [0.0, 2.0], [[9, 0, 1], [1, 0, 1]]),
        lambda g: g.through_points(MIDWAY, [1e9], [[1, 0, 1]]),
    )
    assert [refusal(lambda: ask(pilot), InfeasiblePath) for ask in wrong] == snapshot
    assert pilot.reference is before
    with pytest.raises(ValueError, match="at least 0"):
        pilot.to_goal(-1, [0, 0, 1])


@pytest.fixture
def planned(monkeypatch):
    """What the guidance asks to be followed, without the work of following it."""
    asked = []

    def flat(dsys, path, formation, name="", start=None):
        asked.append((path, formation, name, start))
        states = np.array([start] * (round(path.duration / dsys.h) + 1))
        return Trajectory(dsys.h, states, np.zeros((len(states) - 1, dsys.nu)), name=name)

    monkeypatch.setattr("nh_control.scenarios.payload_guidance.flat_reference", flat)
    return asked


def test_a_leg_goes_on_from_the_one_before_in_its_state_name_and_formation(planned):
    old = replace(reference_along_the_line(2), name="along a line")
    pilot = PayloadGuidance(model(2), old, LINE, Formation(0.3))
    new = pilot.through_points(MIDWAY, [2.0, 4.0], [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    (path, formation, name, start) = planned[0]
    np.testing.assert_allclose(path.jets([0.0])[0], LINE.jets([1.5])[0], atol=1e-6)
    np.testing.assert_allclose(path.jets([2.0, 4.0])[:, 0], [[1, 1, 1], [0, 0, 1]], atol=1e-9)
    assert (formation, name, path.duration) == (Formation(0.3), old.name, 4.0)
    np.testing.assert_array_equal(start, old.states[MIDWAY])
    assert pilot.reference is old and new.path is path
    newer = new.through_points(70, [2.0], [[0.0, 1.0, 1.0]])
    np.testing.assert_allclose(planned[1][0].jets([0.0])[0], path.jets([0.7])[0], atol=1e-6)
    newer.through_points(9999, [2.0], [[0.0, 1.0, 1.0]])  # held past its end
    np.testing.assert_allclose(planned[2][0].jets([0.0])[0, 0], [0.0, 1.0, 1.0], atol=1e-9)


def test_a_point_now_must_be_where_the_payload_is_to_a_centimeter(planned):
    """To its side as well as in its height."""
    here = LINE.jets([1.5])[0, 0]
    for away, taken in (
        ([0.0, 0.009, 0.0], True),
        ([0.0, 0.0, 0.009], True),
        ([0.0, 0.011, 0.0], False),
        ([0.0, 0.0, 0.011], False),
        ([0.0, 0.0, -0.5], False),
    ):
        pilot, ask = guidance(), [here + away, [0.0, 0.0, 1.0]]
        velocities = [[9.0, 9.0, 9.0], [0.0, 0.0, 0.0]]
        if not taken:
            with pytest.raises(InfeasiblePath, match="starts at"):
                pilot.through_points(MIDWAY, [0.0, 3.0], ask, velocities)
            continue
        pilot.through_points(MIDWAY, [0.0, 3.0], ask, velocities)
        np.testing.assert_allclose(planned[-1][0].jets([0.0])[0], LINE.jets([1.5])[0], atol=1e-6)
