"""Recordings are read without ROS: bodies in space, missing steps, and files that contain no
run.
"""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="needs rosbags: install the extra 'ros'")
import recorded_messages
from recorded_messages import diagnostics, joint_state, multi_dof_joint_state, odometry
from transforms3d.quaternions import axangle2quat, quat2mat

from nh_control import scenarios
from nh_control.runs import recording


@pytest.fixture(scope="module")
def payload():
    """The scenario, its model, and a motion of five steps: states (6, nx) and inputs (5, nu)."""
    scenario = scenarios.get("quadrotor_payload")
    model = scenario.model()
    rng = np.random.default_rng(0)
    space = model.system.space
    start = model.retract(
        np.r_[space.origin, np.zeros(space.nw)], rng.normal(scale=0.5, size=model.ndx)
    )
    trajectory = model.simulate(start, np.tile([10.0, 0.1, -0.1, 0.2], (5, 2)))
    return scenario, model, trajectory


def nanoseconds(k, h):
    return round(k * h * 1e9)


def multi_dof(k, model, bodies):
    """Bodies in another order than that of the scenario."""
    bodies = bodies[::-1]
    return multi_dof_joint_state(
        nanoseconds(k, model.h),
        [b.frame for b in bodies],
        [b.position for b in bodies],
        [b.quaternion_wxyz for b in bodies],
        [quat2mat(b.quaternion_wxyz).T @ b.linear_velocity for b in bodies],
        [b.angular_velocity_body for b in bodies],
    )


def command(k, model, u):
    return joint_state(nanoseconds(k, model.h), model.inputs, effort=u)


def write(folder, scenario, model, trajectory, steps):
    """Record the states of these steps and the commands that answer them, in this order."""
    recorded = []
    for k in steps:
        phase = (part(trajectory.states[k]) for part in (model.configuration, model.velocity))
        bodies = scenario.to_bodies(scenario.parameters, *phase)
        recorded.append(("multi_dof_joint_states", multi_dof(k, model, bodies)))
        if k < len(trajectory):
            recorded.append(("joint_commands", command(k, model, trajectory.inputs[k] + k)))
    messages = ((f"/test/{topic}", one, 5 * i) for i, (topic, one) in enumerate(recorded))
    recorded_messages.write(folder, messages)


def test_bodies_in_space_hold_the_state(payload, tmp_path):
    scenario, model, trajectory = payload
    write(tmp_path / "bag", scenario, model, trajectory, range(6))
    read = recording.read(tmp_path / "bag", scenario, model)
    assert read.missing == 0
    np.testing.assert_allclose(
        read.q, [model.configuration(x) for x in trajectory.states], atol=1e-13
    )
    np.testing.assert_allclose(read.v, [model.velocity(x) for x in trajectory.states], atol=1e-12)
    np.testing.assert_array_equal(read.inputs, trajectory.inputs + np.arange(5)[:, None])


def test_missing_steps_are_interpolated_on_the_manifold_and_inputs_held(payload, tmp_path):
    scenario, model, trajectory = payload
    write(tmp_path / "bag", scenario, model, trajectory, [0, 1, 4, 5])
    read = recording.read(tmp_path / "bag", scenario, model)
    assert read.missing == 2 and len(read.q) == 6
    space, (q1, q4) = (
        model.system.space,
        (model.configuration(trajectory.states[k]) for k in (1, 4)),
    )
    assert max(np.abs(space.retract(q, np.zeros(space.nv)) - q).max() for q in read.q) < 1e-15
    np.testing.assert_allclose(
        read.q[2:4],
        [space.retract(q1, t * space.local(q1, q4)) for t in (1 / 3, 2 / 3)],
        atol=1e-12,
    )
    np.testing.assert_array_equal(read.inputs[:, 0], trajectory.inputs[:, 0] + [0, 1, 1, 1, 4])


def rotor(k, h):
    """Return a joint state of the snakeboard."""
    return joint_state(nanoseconds(k, h), ["rotor_joint"], [0.1 * k], [0.0])


def board(k, h, heading=0.0):
    """Return odometry of the snakeboard."""
    return odometry(nanoseconds(k, h), (float(k), 0.0, 0.0), axangle2quat([0, 0, 1], heading))


def test_the_order_of_topics_received_at_the_same_time_does_not_matter():
    scenario = scenarios.get("snakeboard")
    model = scenario.model()
    reader = recording._Reader(scenario, model)
    for k in (0, 0, 1, 2, 3, 0, 0, 1, 2):
        reader.topics["joint_states"](rotor(k, model.h), 0)
    for k in (0, 1, 2, 3, 0, 0, 1, 2):
        reader.topics["odom"](board(k, model.h), 0)
    read = reader.recording("bag")
    np.testing.assert_allclose(read.q[:, [0, 3]], [[0.1 * k, k] for k in range(3)])
    assert read.missing == 0


def test_a_heading_goes_on_beyond_half_a_turn():
    """The heading is also continuous across a missing state."""
    scenario = scenarios.get("snakeboard")
    model, turned = scenario.model(), 0.9
    reader = recording._Reader(scenario, model)
    for k in (0, 1, 2, 3, 5, 6, 7, 8):
        reader.topics["joint_states"](rotor(k, model.h), 0)
        reader.topics["odom"](board(k, model.h, turned * k), 0)
    read = reader.recording("bag")
    heading = read.q[:, model.system.space.names.index(scenario.body.coordinates[0])]
    np.testing.assert_allclose(heading, turned * np.arange(9), atol=1e-12)
    assert read.missing == 1


def test_a_body_that_is_missing_is_named(payload, tmp_path):
    scenario, model, trajectory = payload
    some = replace(scenario, to_bodies=lambda *state: scenario.to_bodies(*state)[:-1])
    write(tmp_path / "bag", some, model, trajectory, range(6))
    with pytest.raises(recording.RecordingError, match=r"without \['quad2'\]"):
        recording.read(tmp_path / "bag", scenario, model)


@pytest.mark.parametrize(
    ("steps", "text"), [([0], "of a run, got 1"), ([2, 3], "the first recorded step is 2")]
)
def test_what_is_no_run_is_said(payload, tmp_path, steps, text):
    scenario, model, trajectory = payload
    write(tmp_path / "bag", scenario, model, trajectory, steps)
    with pytest.raises(recording.RecordingError, match=text):
        recording.read(tmp_path / "bag", scenario, model)


# --- message by message --------------------------------------------------------------------------


@pytest.fixture
def reader():
    """The reader of a recording of the snakeboard, and its model."""
    scenario = scenarios.get("snakeboard")
    model = scenario.model()
    return recording._Reader(scenario, model), model


def states(reader, model, steps, received_ns=0):
    """Return the messages of these steps at intervals of 1 ms."""
    for i, k in enumerate(steps):
        reader.topics["joint_states"](rotor(k, model.h), received_ns + i * 10**6)
        reader.topics["odom"](board(k, model.h), received_ns + i * 10**6)


def test_commands_are_read_by_name_and_foreign_ones_ignored(reader):
    reader, model = reader
    first, second = model.inputs
    states(reader, model, range(5))
    for k, names, efforts in (
        (0, [second, first], [2.0, 1.0]),
        (1, [first], [9.0]),
        (2, [first, second, "other"], [9.0, 9.0, 9.0]),
        (3, [first, second], [3.0, 4.0]),
    ):
        message = joint_state(nanoseconds(k, model.h), names, effort=efforts)
        reader.topics["joint_commands"](message, 0)
    read = reader.recording("bag")
    np.testing.assert_array_equal(read.inputs, [[1, 2], [1, 2], [1, 2], [3, 4]])
    assert read.n_repeated_commands == 2
    assert (read.last_command, read.n_command_messages) == (3, 4)


def test_commands_of_an_earlier_run_are_ignored(reader):
    reader, model = reader
    for steps in (range(4), (0, 3)):
        states(reader, model, range(4))
        for k in steps:
            reader.topics["joint_commands"](command(k, model, [k + len(steps), 1.0]), 0)
    read = reader.recording("bag")
    assert read.inputs[:, 0].tolist() == [2.0, 2.0, 2.0] and read.n_repeated_commands == 2


def test_a_state_needs_all_its_messages(reader):
    reader, model = reader
    states(reader, model, [0, 1, 3, 4])
    reader.topics["joint_states"](rotor(2, model.h), 0)
    read = reader.recording("bag")
    assert read.known == (0, 1, 3, 4) and read.missing == 1
    np.testing.assert_allclose(read.q[:, 3], range(5), atol=1e-12)


def test_states_out_of_order_begin_no_run(reader):
    reader, model = reader
    states(reader, model, [0, 1, 3, 2, 4])
    assert reader.recording("bag").known == (0, 1, 2, 3, 4)


def test_a_run_with_one_topic_is_not_the_last_run_yet(reader):
    reader, model = reader
    states(reader, model, range(5))
    for k in range(2):
        reader.topics["joint_states"](rotor(k, model.h), 0)
    assert reader.recording("bag").known == (0, 1, 2, 3, 4)


def test_the_time_of_a_run_is_that_from_its_first_step_to_its_last(reader):
    """The plant waits for the tracker before the first step."""
    reader, model = reader
    states(reader, model, [0])
    states(reader, model, range(1, 5), received_ns=10**10)
    assert reader.recording("bag").wall_s == pytest.approx(3e-3)
    paused = diagnostics(("plant: simulation", "done", {"paused_s": "0.001"}))
    reader.topics["diagnostics"](paused, 0)
    assert reader.recording("bag").wall_s == pytest.approx(2e-3)


def test_stamps_are_rounded_to_the_nearest_step(reader):
    reader, model = reader
    for shift in (-0.2, 0.3):
        states(reader, model, [0] + [k + shift for k in range(1, 4)])
        assert reader.recording("bag").known == (0, 1, 2, 3)


def test_the_last_diagnostics_of_the_plant_are_read(reader):
    reader, model = reader
    states(reader, model, range(2))
    for statuses in (
        [("plant: simulation", "running", {"step": "1"}), ("tracker: tracking", "late", {})],
        [("plant: simulation", "done", {"step": "2", "rate_hz": "9"})],
        [("tracker: tracking", "waiting", {"step": "7"})],
    ):
        reader.topics["diagnostics"](diagnostics(*statuses), 0)
    expected = {"message": "done", "step": "2", "rate_hz": "9"}
    assert reader.recording("bag").diagnostics == expected
