"""Replays of a recorded run's commands: no difference, or the first step with a difference."""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

pytest.importorskip("rosbags", reason="needs rosbags: install the extra 'ros'")

from nh_control import scenarios
from nh_control.cli import main
from nh_control.command import identify_parameters, replay_run
from nh_control.discrete.plant_steps import advance, convert, with_external
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.loop.wire_format import MessageStates, unwrap
from nh_control.runs import launcher, run_folder
from nh_control.runs import replay as replay_module
from nh_control.runs.decoding import RecordingError, chosen
from nh_control.runs.experiment import Experiment
from nh_control.runs.measurements import Measurements
from nh_control.runs.recording import Recording
from nh_control.runs.replay import replay
from nh_control.runs.settings import RunSettings
from nh_control.scenarios import PlantOptions, disturbance, fault

STEPS = 60
GUST = "base_link:gust:1,0,0,start=0.1,duration=0.2"


@pytest.fixture
def simulated_stamps(monkeypatch):
    """A robot's recording with stamps from 0 and one command."""
    hanging = {"hanging": lambda model: model.simulate(np.zeros(2), np.zeros((5, 1)))}
    scenario = replace(scenarios.get("pendulum_swing_up"), references=hanging)
    stamps, wall = np.arange(5) * 20_000_000, 1_790_000_000 * 10**9
    q, v, u, sent = np.full((5, 1), 0.1), np.zeros((5, 1)), np.array([[2.0]]), np.array([wall])
    states = Measurements(stamps, wall + stamps, q, v, u, sent, stamps[:1])
    read = scenario, scenario.model(), states
    for module in (replay_run, identify_parameters):
        monkeypatch.setattr(module, "measured", lambda *_, **__: read)
    return ["folder", "--scenario", "pendulum_swing_up"]


def test_a_recording_with_stamps_of_another_clock_is_not_replayed_over_years(
    simulated_stamps, capsys
):
    assert main(["replay", *simulated_stamps]) == 2
    told = capsys.readouterr().err
    assert (
        "no command for any of 5 states" in told
        and "--no-compensation accepts other stamps" in told
    )
    plain = ["--no-compensation", "--estimator", "none", "--json"]
    assert main(["replay", *simulated_stamps, *plain]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["states"] == 5 and told["commands_recorded"] == told["commands_compared"] == 1
    assert told["largest_error"] == {"theta": pytest.approx(0.1)}
    assert told["differences"] == told["differences_rms"]  # of one command
    assert 2.0 < told["differences"]["torque"] < 2.5  # instead of 2 N m it pulls back a little


def test_nothing_is_identified_from_stamps_of_another_clock(simulated_stamps, capsys):
    assert main(["identify", *simulated_stamps, "--parameter", "m"]) == 2
    told = capsys.readouterr().err
    assert "0 of 5 states lie between the first command and the last" in told


@pytest.fixture(scope="module")
def run():
    """An experiment with another plant and wind, and its recording."""
    scenario = scenarios.get("snakeboard")
    options = PlantOptions("", 2, {"m": 1.05}, (disturbance.parse(GUST),))
    experiment = Experiment.make(scenario, options=options, duration_s=STEPS * scenario.step_s)
    states = []
    x, model = experiment.x0, experiment.model
    told = MessageStates(scenario, model, model, experiment.plant_parameters)
    loop = experiment.run()
    for x in loop.trajectory.states:
        states.append(told.carried(x))
    q, v = (np.array(column) for column in zip(*states))
    steps = tuple(range(STEPS + 1))
    inputs = loop.trajectory.inputs
    return experiment, Recording(q, v, inputs, 0, 1.0, {}, steps, 0, len(inputs) - 1, len(inputs))


def test_the_commands_of_a_run_give_its_states(run):
    experiment, recording = run
    again = replay(experiment, recording)
    # the loop's states went through those of the model, with other velocities to round-off
    assert again.largest < 1e-12 and again.stopped == "" and len(again.steps) == STEPS + 1


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_difference_stops_the_replay_of_a_lock_step_run(lockstep, run, monkeypatch, capsys):
    experiment, recorded = run
    stored = run_folder.Run(experiment, lockstep)
    monkeypatch.setattr(replay_run, "stored_run", lambda args: stored)
    monkeypatch.setattr("nh_control.runs.recording.read", lambda *_: recorded)
    assert main(["replay", "folder", "--json"]) == lockstep
    out, err = capsys.readouterr()
    told, again = json.loads(out), replay(experiment, recorded)
    assert (told["first_step_with_difference"], told["largest_difference"]) == (
        again.first, again.largest,
    )  # fmt: skip
    assert max(told["differences"].values()) == again.largest and told["steps"] == STEPS
    stopped = f"differs from step {again.first} on"
    assert (stopped in told["stopped"]) == (stopped in err) == lockstep


def test_a_missing_command_shows_at_the_next_step(run):
    experiment, recording = run
    inputs = recording.inputs.copy()
    inputs[40] += 1e-3
    before, after = (replay(experiment, r) for r in (recording, replace(recording, inputs=inputs)))
    both = np.abs(before.configurations - after.configurations).max(axis=1)
    assert both[:41].max() == 0 and both[41] > 1e-9 and after.largest > 1e-6


def test_only_recorded_states_are_compared(run):
    experiment, recording = run
    q = recording.q.copy()
    q[17] += 1.0
    assert replay(experiment, replace(recording, q=q)).largest == 1.0
    known = tuple(k for k in recording.known if k != 17)
    assert replay(experiment, replace(recording, q=q, known=known)).largest < 1e-12


@pytest.mark.parametrize("hold", [False, True])
def test_prescribed_coordinates_stay_without_commands(run, hold, tmp_path):
    held = replace(run[0], scenario=replace(run[0].scenario, hold=hold))
    given = launcher.parameters(held, RunSettings(), tmp_path)
    assert given.get("fallback") == ("hold" if hold else None)


def test_a_floating_robot_is_found_again_as_one(run, tmp_path, monkeypatch):
    robot = scenarios.get("urdf", base="floating")
    plain = replace(run[0], options=PlantOptions(), perturbation=None)
    given = {**launcher.parameters(plain, RunSettings(), tmp_path), **robot.origin}
    for other in ("disturb", "perturb"):
        given.pop(other, None)
    (tmp_path / "parameters.yaml").write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}))
    monkeypatch.setattr(Experiment, "make", lambda scenario, **rest: scenario)
    assert run_folder.load(tmp_path).experiment.origin == robot.origin


def test_a_stored_run_is_loaded_from_the_nodes_parameters(run, tmp_path, capsys):
    experiment, _ = run
    given = {"/**": {"ros__parameters": launcher.parameters(experiment, RunSettings(), tmp_path)}}
    file = tmp_path / "parameters.yaml"
    file.write_text(yaml.safe_dump(given))
    again = run_folder.load(tmp_path)
    assert not again.lockstep and again.faults == ()
    np.testing.assert_array_equal(again.experiment.x0, experiment.x0)
    assert again.experiment.settings == experiment.settings
    given["/**"]["ros__parameters"]["fault"] = ["rotor_torque:lost"]
    file.write_text(yaml.safe_dump(given))
    assert main(["replay", str(tmp_path)]) == 2
    assert "had simulated faults (rotor_torque:lost)" in capsys.readouterr().err


def test_topics_nearest_to_the_root_are_read():
    def found(*names):
        connections = [type("Connection", (), {"topic": name})() for name in names]
        return chosen(connections, ("joint_states", "odom"))

    assert found("/reference/joint_states", "/joint_states", "/joint_states", "/tf") == {
        "/joint_states": "joint_states"
    }
    assert found("/arm/reference/odom", "/arm/odom") == {"/arm/odom": "odom"}
    with pytest.raises(RecordingError, match="several robots: /a/odom, /b/odom"):
        found("/a/odom", "/b/odom")


def test_commands_act_as_far_as_actuators_can(run):
    experiment, recording = run
    inputs, limits = recording.inputs.copy(), experiment.tracker.limits
    inputs[5] = limits[:, 1] + 1.0
    far = replay(experiment, replace(recording, inputs=inputs))
    inputs[5] = limits[:, 1]
    assert far.largest == replay(experiment, replace(recording, inputs=inputs)).largest > 1e-6


def test_a_replay_starts_with_the_model_s_velocity(run):
    e, recorded = run
    at = recorded.q[-1], recorded.v[-1]
    assert np.abs(at[1]).max() > 0.01
    moving = replace(e, x0=e.model.measured_state(*at))
    for mine, its in zip(replay_module._states(moving, recorded.inputs[:0]), at):
        np.testing.assert_allclose(mine, [its], atol=1e-12)


def test_a_replay_ends_at_a_failed_step(run, monkeypatch):
    experiment, recording = run
    calls = []

    def failing(plant, x, u, substeps):
        calls.append(substeps)
        if len(calls) == 11:
            raise StepFailed("board", 0.01, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))
        return advance(plant, x, u, substeps)

    monkeypatch.setattr("nh_control.runs.replay.advance", failing)
    ended = replay(experiment, recording)
    assert "at step 10" in ended.stopped and "no luck" in ended.stopped
    assert ended.steps.tolist() == list(range(11)) and ended.largest < 1e-12


def test_a_heading_that_passes_half_a_turn_is_no_difference(run):
    """The run is rotated, so that its falling heading passes -pi."""
    experiment, recording = run
    model, plant = experiment.model, experiment.plant
    q, v = recording.q[0].copy(), model.velocity(experiment.x0)
    q[2] = 0.005 - np.pi
    turned = replace(experiment, x0=model.measured_state(q, v))
    told = []
    x = convert(turned.x0, model, plant)
    for k in range(STEPS + 1):
        told.append(MessageStates(experiment.scenario, model, plant, None).carried(x))
        if k < STEPS:
            u = with_external(plant, recording.inputs[k], turned.external(k))
            x = advance(plant, x, u, 2)[1]
    q, v = (np.array(column) for column in zip(*told))
    assert np.abs(np.diff(q[:, 2])).max() > 6.0  # as messages have it
    for before, after in zip(q, q[1:]):
        after[2] = unwrap(after[2], before[2])
    assert replay(turned, replace(recording, q=q, v=v)).largest == 0.0


# --- parameters of nodes and runs that were stored -----


def test_nodes_are_told_whom_to_wait_for_and_what_to_record(run, tmp_path):
    """Of a run with faults the true states, too."""
    faulty = replace(run[0], options=PlantOptions(faults=(fault.parse("noise=0.1"),)))
    told = launcher.parameters(faulty, RunSettings(), tmp_path)
    assert told["output"] == str(tmp_path / "recording") and told["on_finish"] == "exit"
    assert told["wait_for"] == told["heard_by"] == ["recorder"]
    assert told["fault"] == ["positions:noise=0.1"] and told["disturb"] == [""]
    topics = {name.partition(":")[0] for name in told["topics"]}
    assert {"ground_truth/joint_states", "joint_states", "joint_commands"} <= topics
    assert "topics" not in launcher.parameters(run[0], RunSettings(), tmp_path)
    unrecorded = launcher.parameters(faulty, RunSettings(record=False), tmp_path)
    assert not {"output", "wait_for", "heard_by", "topics"} & unrecorded.keys()
    shown = launcher.parameters(faulty, RunSettings(view=True), tmp_path)
    assert (shown["wait_for"], shown["heard_by"]) == (["recorder", "view"], ["recorder"])


def test_a_recording_is_in_the_folder_of_its_run_or_is_it(tmp_path):
    assert run_folder.recording(tmp_path) == tmp_path
    (tmp_path / "recording").mkdir()
    assert run_folder.recording(tmp_path) == tmp_path / "recording"
